"""Validation cost: a hostile schema is refused, and an honest one is checked."""

import pytest

from isthmus.client.model.schema_validation import SchemaValidator, ValidationCost
from isthmus.errors import Misbehaved


def make_doubling_schema(depth, reference="#/$defs/{}"):
    """A schema that applies each of its definitions twice, and those the next ones twice."""
    both = lambda n: [{"$ref": reference.format(f"a{n}")}] * 2  # noqa: E731 - one line is clearer
    defs = {f"a{n}": {"$anchor": f"a{n}", "allOf": both(n - 1)} for n in range(1, depth)}
    defs["a0"] = {"$anchor": "a0", "type": "object"}
    return {"$defs": defs, "$ref": reference.format(f"a{depth - 1}")}


def nested(depth):
    """A value that goes deep, and is small."""
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


AGAIN = {"properties": {"a": {"$ref": "#"}}}
HOSTILE = {
    "pointers": (make_doubling_schema(60), {}),
    "anchors": (make_doubling_schema(60, "#{}"), {}),
    "an id of its own": ({"$id": "https://a.example/s", **make_doubling_schema(60)}, {}),
    "deep values": ({"allOf": [AGAIN, AGAIN]}, nested(60)),
    "names": ({"propertyNames": {"$ref": "#/$defs/a59"}, **make_doubling_schema(60)}, {"a": 1}),
    "items": ({"anyOf": [{"items": {"$ref": "#"}}, {"contains": {"$ref": "#"}}]}, [[]]),
}


def deep_list():
    """A list in a list, and so on."""
    value = []
    for _ in range(60):
        value = [value]
    return value


@pytest.mark.covers("clientlimits.schemas.bounded")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_schema_that_would_take_for_ever_is_not_checked(kind):
    """Spec 2026-07-28 basic#composition-keyword-resource-use: bounds SHOULD be applied."""
    schema, value = HOSTILE[kind]

    with pytest.raises(Misbehaved, match=r"^the schema is not checked: it would take too long$"):
        SchemaValidator(schema, "the schema").complaint(deep_list() if kind == "items" else value)


JSON = {
    "$defs": {
        "json": {
            "anyOf": [
                {"type": ["string", "number", "boolean", "null"]},
                {"type": "array", "items": {"$ref": "#/$defs/json"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
            ]
        }
    },
    "$ref": "#/$defs/json",
}
TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "a": {"$ref": "#"}},
}


@pytest.mark.parametrize("schema", [JSON, TREE, make_doubling_schema(10)])
def test_an_honest_schema_is_checked(schema):
    """Ours: schemas that come back to themselves are common, and cheap."""
    assert None is SchemaValidator(schema, "the schema").complaint(nested(100))


def test_what_is_found_wrong_is_told():
    """Ours: a schema that was counted still checks."""
    assert "1 is not" in str(SchemaValidator(TREE, "the schema").complaint({"left": {"left": 1}}))


def test_a_plain_schema_costs_no_count():
    """Ours: most results are never looked at twice."""
    plain = {"type": "object", "properties": {"a": {"type": "integer", "allOf": [{"minimum": 1}]}}}

    assert not ValidationCost(plain)._risky


TRYING = {
    "pattern": {"anyOf": [{"pattern": r"(a|aa)+$(?<=c)"}, {}]},
    "names": {"patternProperties": {r"^(?:(a|aa)+)+\1b$": {}}},
}


@pytest.mark.parametrize("name", TRYING)
def test_texts_that_are_matched_by_trying_are_counted(name):
    """Ours: each may take as many steps as a validator allows, and there may be many of them."""
    hostile = "a" * 40 + "!"
    values = {"pattern": [hostile] * 20_000, "names": [{f"{hostile}{n}": n} for n in range(20_000)]}
    checker = SchemaValidator({"items": TRYING[name]}, "it")

    with pytest.raises(Misbehaved, match="too long"):
        checker.complaint(values[name])
    checker.complaint(values[name][:10])  # which is not too much


def test_regular_expressions_that_take_much_to_compile_are_refused():
    """Ours: a schema of a few lines must not take a second, nor megabytes."""
    with pytest.raises(Misbehaved, match="cannot be used"):
        SchemaValidator({"pattern": r"(?:\w{1,500}){1,50}"}, "it")
    with pytest.raises(Misbehaved, match="more than 500 patterns"):
        SchemaValidator({"anyOf": [{"pattern": str(n)} for n in range(501)]}, "it")


def test_a_value_that_is_nested_deeper_than_the_validator_goes_is_not_checked():
    """Ours: Misbehaved, as for all that cannot be checked, and no traceback."""
    schema = {"properties": {"a": {"type": "string"}}}
    with pytest.raises(Misbehaved):
        SchemaValidator(schema, "a schema").complaint(nested(400))
