"""``key=value`` on a command line as the JSON a tool's schema asks for."""

import pytest

from isthmus.cli.arguments import list_kinds, parse_arguments, parse_json_object, split_pairs
from isthmus.errors import UsageError

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "yes": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "integer"}},
        "seat": {"$ref": "#/$defs/Seat"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "colour": {"enum": ["red", "blue"]},
        "anything": {},
    },
    "$defs": {"Seat": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("count=5", 5),
        ("share=5", 5),
        ("share=0.5", 0.5),
        ("yes=true", True),
        ("tags=a", ["a"]),
        ("rows=5", [5]),
        ("rows=[1, 2]", [1, 2]),
        ('seat={"row": 1}', {"row": 1}),
        ("maybe=null", None),
        ("maybe=4", 4),
        ("either=4", "4"),
        ("colour=red", "red"),
        ("anything=plain words", "plain words"),
        ("anything=[1]", [1]),
    ],
)
def test_a_value_is_read_as_the_schema_wants_it(word, value):
    """Ours: text where a string is allowed, JSON elsewhere."""
    assert {word.split("=", 1)[0]: value} == parse_arguments(split_pairs([word]), SCHEMA)


def test_a_key_given_twice_makes_an_array():
    """Ours: lists need no quoting in a shell."""
    assert {"tags": ["a", "b"]} == parse_arguments(split_pairs(["tags=a", "tags=b"]), SCHEMA)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["count=many"], "wants integer, and this is not JSON"),
        (["count=1.5"], "wants integer, not number"),
        (["yes=1"], "wants boolean, not integer"),
        (["count=1", "count=2"], "given 2 times"),
        (["size=1"], "no parameter 'size'; it has: text"),
        (["alone"], "not key=value"),
        (["=5"], "not key=value"),
    ],
)
def test_a_word_that_cannot_be_is_refused_before_anything_is_sent(words, says):
    """Ours: the mistake is named with what would be right."""
    with pytest.raises(UsageError, match=says):
        parse_arguments(split_pairs(words), SCHEMA)


def test_a_tool_that_describes_no_parameters_takes_any():
    """Ours: an open schema is open."""
    assert {"a": 1, "b": "x"} == parse_arguments(split_pairs(["a=1", "b=x"]), {"type": "object"})


def test_a_tool_that_takes_nothing_takes_nothing():
    """Ours: a closed schema is closed."""
    with pytest.raises(UsageError, match="it has: none"):
        parse_arguments(split_pairs(["a=1"]), {"type": "object", "additionalProperties": False})


def test_references_that_go_in_circles_end():
    """Ours: a schema that names itself allows anything here."""
    assert set() == list_kinds({"$ref": "#/$defs/A"}, {"$defs": {"A": {"$ref": "#/$defs/A"}}})


@pytest.mark.parametrize("text", ["{", "[1]", "5"])
def test_json_arguments_are_an_object(text):
    """Ours: `--json-args` takes the whole arguments object."""
    with pytest.raises(UsageError, match="--json-args"):
        parse_json_object(text)
