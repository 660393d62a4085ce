"""Which schemas forms can be made of."""

import pytest

from isthmus.core.elicitation import fill_defaults, find_form_flaw

OPTIONS = [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]


def form(**blanks):
    return {"type": "object", "properties": blanks}


@pytest.mark.covers("elicitation.schema.flat-only", "elicitation.schema.every-enum")
@pytest.mark.parametrize(
    "blank",
    [
        {"type": "string", "minLength": 3, "format": "email", "default": "a@b.example"},
        {"type": "string", "pattern": "^[A-Z]+$"},
        {"type": "number", "minimum": 0, "maximum": 100},
        {"type": "integer"},
        {"type": "boolean", "default": False},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        {"type": "string", "oneOf": OPTIONS},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1},
        {"type": "array", "items": {"anyOf": OPTIONS}, "default": ["#f00"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": ["integer", "null"]},
    ],
)
def test_a_form_has_blanks_of_these_kinds(blank):
    """Spec 2026-07-28 client/elicitation#requested-schema; and what may be null, which is sent."""
    assert find_form_flaw(form(blank=blank)) is None


@pytest.mark.covers("elicitation.schema.flat-only")
@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (7, "is no object"),
        ({}, '"type": "object"'),
        ({"type": "array"}, '"type": "object"'),
        ({"type": "object", "properties": []}, "properties is no object"),
        ({"type": "object", "required": "all"}, "required is no list of names"),
        ({"type": "object", "allOf": []}, "'allOf'"),
        ({"type": "object", "anyOf": []}, "'anyOf'"),
        ({"type": "object", "$ref": "#/x"}, "'$ref'"),
        (form(a=True), "properties.a is no schema"),
        (form(a={}), "of type None"),
        (form(a={"type": "null"}), "of type 'null'"),
        (form(a={"type": "object", "properties": {}}), "has 'properties'"),
        (form(a={"type": "object"}), "of type 'object'"),
        (form(a={"$ref": "#/$defs/a"}), "has '$ref'"),
        (form(a={"type": ["string", "integer"]}), "of type ['string', 'integer']"),
        (form(a={"type": "array"}), "without items"),
        (form(a={"type": "array", "items": {"type": "object"}}), "something else than choices"),
        (form(a={"type": "array", "items": {"type": "string"}}), "something else than choices"),
        (form(a={"type": "array", "items": {"anyOf": [{"type": "string"}]}}), "'anyOf' of"),
        (form(a={"type": "string", "oneOf": [{"minLength": 2}]}), "'oneOf' of"),
        (form(a={"anyOf": [{"type": "object"}, {"type": "null"}]}), "of type None"),
    ],
)
def test_what_no_form_can_be_made_of_is_explained(schema, complaint):
    """Spec 2026-07-28 client/elicitation#requested-schema: nothing nested, nothing composed."""
    assert complaint in (find_form_flaw(schema) or "")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (form(a={"type": "string", "default": "x"}, b={"type": "string"}), {"a": "x"}),
        (form(a={"default": None}), {"a": None}),
        ({"type": "object"}, {}),
        ({"properties": [1]}, {}),
    ],
)
def test_the_defaults_of_a_form(schema, expected):
    """SEP-1034: what a blank holds where it is left alone."""
    assert expected == fill_defaults(schema)
