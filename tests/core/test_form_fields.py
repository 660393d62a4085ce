"""A form's blanks: what is asked, and what a typed line means."""

import pytest

from isthmus.core.form_fields import FormField, list_fields


def blank(required=True, **schema):
    """One blank named ``x``."""
    return FormField("x", schema, required)


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"type": "string"}, " aisle ", "aisle"),
        ({"type": "integer"}, "12", 12),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "number"}, "2.0", 2),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "string", "enum": ["red", "blue"]}, "2", "blue"),
        ({"type": "string", "enum": ["red", "blue"]}, "red", "red"),
        ({"type": "string", "enum": ["r"], "enumNames": ["Red"]}, "Red", "r"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "1", "r"),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "3, 1", ["c", "a"]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, "A", ["a"]),
    ],
)
def test_a_line_becomes_the_value_the_schema_wants(schema, line, value):
    """Ours: what a person types is turned into the blank's type."""
    assert value == blank(**schema).read(line)


@pytest.mark.parametrize(
    ("schema", "line", "says"),
    [
        ({"type": "integer"}, "1.5", "not a whole number"),
        ({"type": "number"}, "much", "not a number"),
        ({"type": "number"}, "inf", "not a number"),
        ({"type": "number"}, "nan", "not a number"),
        ({"type": "integer", "maximum": 30}, "31", "30"),
        ({"type": "string", "minLength": 3}, "ab", "3"),
        ({"type": "string", "format": "email"}, "nobody", "email"),
        ({"type": "string", "format": "date"}, "tomorrow", "date"),
        ({"type": "boolean"}, "maybe", "y or n"),
        ({"type": "string", "enum": ["red", "blue"]}, "3", "none of 1 to 2"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, "1,2", "1"),
        ({"type": "string"}, "", "needed"),
    ],
)
def test_a_line_that_does_not_fit_is_refused_with_what_would(schema, line, says):
    """Ours: the person is told what is wanted, and can try again."""
    with pytest.raises(ValueError, match=says):
        blank(**schema).read(line)


def test_an_empty_line_takes_the_default():
    """Ours: the server's default stands for an empty line."""
    assert 3 == blank(type="integer", default=3).read("")


def test_an_empty_line_leaves_an_optional_blank_out():
    """Ours: what is not required may be passed over."""
    assert None is blank(required=False, type="string").read("  ")


def test_a_question_says_what_it_wants():
    """Ours: title, type, bounds and the default are on the line."""
    asked = blank(type="integer", title="Row", minimum=1, maximum=30, default=7).question()

    assert "Row (integer, at least 1, at most 30, empty for 7): " == asked


def test_a_bound_of_one_character_is_in_the_singular():
    """Ours: it is English, too."""
    asked = blank(type="string", minLength=1, maxLength=2).question()

    assert "x (text, 1 character or more, 2 characters or fewer): " == asked


def test_a_yes_or_no_is_spelled_as_it_is_typed():
    """Ours: what an empty line means is said in the words that may be typed."""
    assert (
        "window (y or n, empty for n): "
        == FormField("window", {"type": "boolean", "default": False}, required=False).question()
    )


def test_choices_are_listed_by_number():
    """Ours: titles are shown, the value beside them where it differs."""
    schema = {"oneOf": [{"const": "a", "title": "Aisle"}, {"const": "w", "title": "w"}]}

    assert ["Which?", "  1. Aisle  (a)", "  2. w"] == blank(
        type="string", description="Which?", **schema
    ).explanation()


def test_blanks_come_in_the_servers_order_and_know_what_is_required():
    """Ours: the form is asked as it was written."""
    schema = {"properties": {"b": {"type": "string"}, "a": {"type": "integer"}}, "required": ["a"]}

    assert [("b", False), ("a", True)] == [(x.name, x.required) for x in list_fields(schema)]


def test_a_number_is_a_choice_before_a_value_of_the_same_digits():
    """Ours: choices are asked for by their numbers."""
    sizes = blank(type="string", enum=["2", "1", "30"])
    assert ["1", "2", "30"] == [sizes.read("2"), sizes.read("1"), sizes.read("30")]


def test_a_long_whole_number_keeps_its_digits():
    """Ours: a float has room for 53 bits."""
    assert 9007199254740993 == blank(type="number").read("9007199254740993")


@pytest.mark.parametrize(
    ("schema", "titles"),
    [
        ({"type": "integer", "enum": [3, 5]}, ["3", "5"]),
        ({"type": "string", "enum": None}, []),
        ({"type": "string", "enum": ["a", ["b"]]}, ["a", "b"]),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A"]}, ["a", "b"]),
        ({"type": "string", "oneOf": [{"const": "a", "title": 7}, "b"]}, ["a"]),
        ({"type": "boolean", "anyOf": 1.5}, []),
        ({"type": "array", "items": ["a"], "default": 1}, []),
    ],
)
def test_choices_are_made_of_whatever_a_server_sends(schema, titles):
    """Ours: a form that nobody can open can be neither answered nor declined."""
    assert titles == [one.title for one in blank(**schema).choices]
    assert blank(**schema).question()


def test_a_choice_among_numbers_is_a_number():
    """Ours: outside the letter of the specification, and what some servers send."""
    numbers = blank(type="integer", enum=[30, 2])
    assert [30, 2, 30] == [numbers.read("1"), numbers.read("2"), numbers.read("30")]
