"""Bounds of schemas: measured, and found to be whole in themselves, before they are compiled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.schema_bounds import DIALECTS, Bounds, find_bounds_flaw


def nested(levels, keyword="properties"):
    """A schema that many levels deep."""
    schema = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"properties": {"a": schema}} if keyword == "properties" else {keyword: [schema]}
    return schema


@pytest.mark.covers("limits.schemas.bounded")
@pytest.mark.parametrize(
    ("schema", "bounds", "said"),
    [
        (nested(6), Bounds(depth=5), "more than 5 schemas deep"),
        ({"anyOf": [{}] * 3, "oneOf": [{}] * 3}, Bounds(choices=5), "more than 5 alternatives"),
        ({"if": {}, "then": {}, "else": {}, "not": {}}, Bounds(choices=3), "3 alternatives"),
        ({"properties": {str(n): {} for n in range(9)}}, Bounds(parts=9), "more than 9 schemas"),
        ({"description": "x" * 100}, Bounds(size=90), "more than the 90"),
        ({"allOf": [{"pattern": "a"}] * 4}, Bounds(patterns=3), "more than 3 patterns"),
        ({"patternProperties": {"a": {}, "b": {}}}, Bounds(patterns=1), "more than 1 patterns"),
    ],
)
def test_a_schema_beyond_a_bound_is_refused_by_name_of_the_bound(schema, bounds, said):
    """The spec: depth, subschemas and composition SHOULD be bounded; ours: it says which was."""
    assert said in find_bounds_flaw(schema, bounds)


def test_a_schema_within_its_bounds_is_left_alone():
    """Ours: nobody who writes a schema by hand ever meets them."""
    assert None is find_bounds_flaw(nested(60), Bounds())
    assert None is find_bounds_flaw({"anyOf": [{"const": n} for n in range(1000)]}, Bounds())


@pytest.mark.covers("limits.schemas.no-network")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/address.json"},
        {"properties": {"a": {"items": {"$ref": "http://169.254.169.254/latest#/x"}}}},
        {"allOf": [{"$dynamicRef": "file:///etc/passwd"}]},
        {"$id": "https://example.com/root.json", "$ref": "other.json"},
        {"$defs": {"deep": {"not": {"$ref": "//evil.example/x"}}}},
    ],
)
def test_a_reference_out_of_the_schema_is_refused(schema):
    """The spec: a network URI MUST NOT be fetched, and such a schema SHOULD be rejected."""
    assert "nothing is fetched" in find_bounds_flaw(schema, Bounds())


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": {"$anchor": "here"}}, "$ref": "#/$defs/a", "items": {"$ref": "#here"}},
        {"$defs": {"a": {"$id": "https://example.com/a.json"}}, "$ref": "a.json#/x"},
        {"$id": "tree", "properties": {"left": {"$ref": "tree"}}},
        {"$ref": DIALECTS[0]},
        {"default": {"$ref": "https://example.com/this-is-data"}},
        {"properties": {"$ref": {"type": "string"}, "default": {"$ref": "#"}}},
    ],
)
def test_a_reference_inside_the_schema_is_fine(schema):
    """The spec: local references are what `$ref` is for."""
    assert None is find_bounds_flaw(schema, Bounds())


@pytest.mark.covers("meta.dialects.unknown-named")
def test_an_unknown_dialect_is_named():
    """The spec: an error MUST say that the dialect is not supported."""
    said = find_bounds_flaw({"$schema": "https://example.com/my-dialect"}, Bounds())

    assert "dialect that is not supported" in said
    assert None is find_bounds_flaw(
        {"$schema": "http://json-schema.org/draft-07/schema#"}, Bounds()
    )


values = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["$ref", "$id", "$schema", "anyOf", "properties", "not", "default"]),
            inner,
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["$ref", "items", "$id", "allOf"]), values))
def test_nothing_at_all_makes_it_raise(schema):
    """Ours: schemas come from the other side."""
    find_bounds_flaw(schema, Bounds(depth=5, parts=50))
