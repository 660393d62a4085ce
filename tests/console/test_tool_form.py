"""Forms made from a tool's schema, and the arguments that they mean."""

import pytest

from isthmus.console.drawing.tool_form import (
    JSON_FIELD,
    draw_tool_form_fields,
    fill_tool_form,
    list_tool_fields,
    read_tool_form,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "where <b>to</b>"},
        "count": {"type": "integer", "minimum": 1},
        "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "force": {"type": "boolean"},
        "mode": {"enum": ["fast", 2, None]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "body": {"type": "string"},
        "place": {"$ref": "#/$defs/Place"},
        "free": {},
    },
    "required": ["count", "place"],
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}}},
}
FIELDS = list_tool_fields(SCHEMA)
KEY = {field.name: field.key for field in FIELDS}


def read(**filled):
    return read_tool_form(FIELDS, SCHEMA, {KEY[name]: text for name, text in filled.items()})


def test_each_kind_of_parameter_has_its_own_field():
    """Ours: a field for what a person can type, a box for JSON for the rest; required ones first."""
    assert {field.name: field.kind for field in FIELDS} == {
        "path": "text",
        "count": "number",
        "ratio": "number",
        "force": "boolean",
        "mode": "choice",
        "tags": "lines",
        "body": "long",
        "place": "json",
        "free": "json",
    }
    assert [field.name for field in FIELDS][:2] == ["count", "place"]


def test_a_filled_form_means_arguments():
    """Ours: each value has the type that the schema wants, and what is empty is left out."""
    values = read(
        path="a",
        count=" 3 ",
        ratio="0.5",
        force="false",
        mode="2",
        tags="a b\r\nc\r\n",
        place='{"x": 1}',
        free='"word"',
    )

    assert values.faults == {}
    assert values.arguments == {
        "path": "a",
        "count": 3,
        "ratio": 0.5,
        "force": False,
        "mode": None,
        "tags": ["a b", "c"],
        "place": {"x": 1},
        "free": "word",
    }


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("count", "x", "not a whole number"),
        ("count", "1.5", "not a whole number"),
        ("count", "true", "not a whole number"),
        ("count", "1" * 5000, "not a whole number"),
        ("count", "0", "minimum"),
        ("count", "", "requires a value"),
        ("ratio", "NaN,", "not a number"),
        ("force", "perhaps", "yes or no"),
        ("mode", "3", "in the list"),
        ("mode", "²", "in the list"),
        ("place", "{", "no JSON"),
        ("place", "[" * 100_000, "nested too deeply"),
        ("place", "1e999", "no number"),
        ("ratio", "1e999", "not a number"),
        ("place", '{"x": "y"}', "number"),
    ],
)
def test_what_does_not_fit_is_told_at_its_field(name, text, told):
    """Ours: a person sees what is wrong where it is wrong, and nothing is called."""
    values = read(**{"count": "1", "place": "{}", name: text})

    assert [*values.faults] == [KEY[name]]
    assert told in values.faults[KEY[name]]


def test_the_whole_may_be_written_as_json():
    """Ours: JSON in place of the fields, with every fault told there."""
    good = read_tool_form(FIELDS, SCHEMA, {JSON_FIELD: '{"count": 2, "place": {}}'})
    bad = read_tool_form(FIELDS, SCHEMA, {JSON_FIELD: '{"count": 0, "place": {}}'})
    odd = read_tool_form(FIELDS, SCHEMA, {JSON_FIELD: "[1]"})

    assert good.arguments == {"count": 2, "place": {}}
    assert "minimum" in bad.faults[JSON_FIELD]
    assert "JSON object" in odd.faults[JSON_FIELD]


def test_an_empty_required_text_is_an_empty_text():
    """Ours: a tool that wants a text may get an empty one; its own bounds say whether that will do."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    fields = list_tool_fields(schema)

    assert read_tool_form(fields, schema, {fields[0].key: ""}).arguments == {"q": ""}


def test_a_form_is_made_of_any_schema():
    """Ours: schemas of strangers: circles, nonsense and far references become boxes for JSON."""
    for part in (
        True,
        None,
        {"$ref": "#/properties/a"},
        {"$ref": "https://example.com/x"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": ["string", "integer"]},
        {"type": 5, "enum": []},
        {"type": [{}]},
        {"type": {"a": 1}},
        {"type": "string", "maxLength": "x", "description": 5, "default": {"a": [1]}},
    ):
        fields = list_tool_fields({"type": "object", "properties": {"a": part}})
        drawn = "".join(draw_tool_form_fields(fields, {}, {}))

        assert len(fields) == 1
        assert "argument-0" in drawn
    assert list_tool_fields({"properties": {str(n): {} for n in range(100)}}) == []


def test_names_and_texts_of_a_server_are_text_in_the_form():
    """Ours: nothing that a schema says becomes markup, and marks that hide letters are seen."""
    hostile = '"><script>x</script>\u202e'
    schema = {
        "type": "object",
        "properties": {
            hostile: {"type": "string", "description": hostile, "pattern": hostile},
            "b": {"enum": [hostile], "default": hostile},
        },
    }

    drawn = "".join(draw_tool_form_fields(list_tool_fields(schema), {}, {}))

    assert "<script>" not in drawn
    assert "\u202e" not in drawn
    assert "&lt;U+202E&gt;" in drawn


def test_a_form_comes_back_as_it_was_filled():
    """Ours: after a fault nothing has to be typed again; the fault is tied to its field."""
    filled = {KEY["count"]: "x", KEY["body"]: "\nline", KEY["force"]: "true"}

    drawn = "".join(draw_tool_form_fields(FIELDS, filled, {KEY["count"]: "no number"}))

    assert 'value="x"' in drawn
    assert ">\n\nline</textarea>" in drawn
    assert '<option value="true" selected' in drawn
    assert f'aria-describedby="{KEY["count"]}-fault"' in drawn
    assert f'id="{KEY["count"]}-fault">no number' in drawn


@pytest.mark.parametrize(
    ("arguments", "as_json"),
    [
        ({"count": 3, "place": {"x": 1}, "path": "a", "force": False, "mode": 2}, False),
        ({"count": 3, "place": {}, "tags": ["a", "b"], "ratio": 0.5, "free": None}, False),
        ({"count": 3, "place": {}, "tags": ["a\nb"]}, True),
        ({"count": 3, "place": {}, "path": ""}, True),
        ({"count": 3, "place": {}, "path": "hidden\u200b"}, True),
        ({"count": 3, "place": {}, "unknown": 1}, True),
    ],
)
def test_a_form_is_filled_from_arguments_and_read_back(arguments, as_json):
    """Ours: the form that is shown after a call means the same call."""
    filled = fill_tool_form(FIELDS, arguments)

    assert (JSON_FIELD in filled) is as_json
    assert read_tool_form(FIELDS, SCHEMA, filled).arguments == arguments


def test_a_text_of_several_lines_comes_back_whole():
    """Ours: a field of one line has no place for a line end."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    fields = list_tool_fields(schema)
    filled = fill_tool_form(fields, {"name": "one\ntwo"})

    assert [*filled] == [JSON_FIELD]
    assert read_tool_form(fields, schema, filled).arguments == {"name": "one\ntwo"}
