"""Tool arguments in HTTP headers: marks in schemas, spellings of values, both sides' duties."""

import pytest

from isthmus.core.http.params import (
    BadAnnotation,
    HeaderParam,
    check_headers,
    decode_value,
    encode_value,
    find_header_params,
    mirror_arguments,
)
from isthmus.errors import UsageError


def marked(name, type="string", **more):
    """A property's schema with a mark."""
    return {"type": type, "x-mcp-header": name, **more}


def schema(**properties):
    """An input schema."""
    return {"type": "object", "properties": properties}


def param(*path, name="Region", type="string"):
    """What the marks of these tests read as."""
    return HeaderParam(path, f"Mcp-Param-{name}", f"mcp-param-{name.lower()}", type)


REGION = find_header_params(schema(region=marked("Region")))
COUNT = find_header_params(schema(count=marked("Count", "integer")))
DRY = find_header_params(schema(dry=marked("Dry", "boolean")))


# --- marks


def test_a_schema_without_marks_has_no_header_params():
    """The common case."""
    assert () == find_header_params(schema(a={"type": "string"}))
    assert () == find_header_params({})


@pytest.mark.covers("routing.marks.constraints")
def test_marks_are_found_with_their_path_and_type():
    """Spec 2026-07-28 basic/transports/streamable-http#schema-extension: all primitive types."""
    found = find_header_params(
        schema(
            region=marked("Region"),
            count=marked("Count", "integer"),
            dry=marked("Dry", "boolean"),
            query={"type": "string"},
        )
    )
    expected = (
        param("count", name="Count", type="integer"),
        param("dry", name="Dry", type="boolean"),
        param("region"),
    )
    assert expected == found


def test_a_property_of_a_property_may_be_marked():
    """Spec: every step of the chain is a `properties` key."""
    inner = schema(city=marked("City"), street={"type": "string"})
    assert (param("to", "city", name="City"),) == find_header_params(schema(to=inner))


def test_a_parameter_that_may_be_null_counts_by_its_other_type():
    """Null is never sent, so it takes nothing from a type that is."""
    assert (param("a"),) == find_header_params(schema(a=marked("Region", ["string", "null"])))
    assert (param("a"),) == find_header_params(schema(a=marked("Region", ["null", "string"])))


def test_a_property_called_like_the_mark_is_a_property():
    """Names of properties are the author's."""
    assert () == find_header_params(schema(**{"x-mcp-header": {"type": "string"}}))


def test_data_in_a_schema_is_no_mark():
    """Defaults and examples may look like anything."""
    data = {"x-mcp-header": "Region"}
    assert () == find_header_params(
        schema(a={"type": "object", "default": data, "examples": [data], "enum": [data]})
    )


@pytest.mark.covers("routing.marks.constraints")
@pytest.mark.parametrize(
    "name", ["", "My Region", "a:b", "a\r\nb", "é", "a\x7f", "a\n", 5, None, []]
)
def test_a_mark_that_is_no_token_is_refused(name):
    """Spec: 1*tchar of RFC 9110, which is not empty."""
    with pytest.raises(BadAnnotation, match=r"at a: .* cannot be part of a header's name"):
        find_header_params(schema(a=marked(name)))


@pytest.mark.covers("routing.marks.constraints")
@pytest.mark.parametrize(
    "type", ["number", "object", "array", "null", None, [], {}, ["string", "integer"], ["null"] * 2]
)
def test_a_mark_on_anything_but_a_string_an_integer_or_a_boolean_is_refused(type):
    """Spec: primitive types only, and no `number`."""
    with pytest.raises(BadAnnotation, match="its type must be string, integer or boolean"):
        find_header_params(schema(a=marked("Region", type)))


def test_a_mark_without_a_type_is_refused():
    """What may be anything is no primitive."""
    with pytest.raises(BadAnnotation, match="not None"):
        find_header_params(schema(a={"x-mcp-header": "Region", "enum": ["a"]}))


@pytest.mark.covers("routing.marks.constraints")
def test_two_marks_with_one_name_are_refused_in_whatever_case():
    """Spec: case-insensitively unique; header names have no case."""
    with pytest.raises(BadAnnotation, match="taken by"):
        find_header_params(schema(a=marked("Region"), b=schema(c=marked("REGION"))))


def test_a_mark_on_the_whole_schema_is_refused():
    """Spec: marks are for properties."""
    with pytest.raises(BadAnnotation, match="at the root"):
        find_header_params(marked("Region"))


@pytest.mark.covers("routing.marks.constraints")
@pytest.mark.parametrize(
    "hidden",
    [
        {"items": marked("Region")},
        {"prefixItems": [marked("Region")]},
        {"oneOf": [marked("Region")]},
        {"anyOf": [{"type": "null"}, schema(b=marked("Region"))]},
        {"allOf": [schema(b=marked("Region"))]},
        {"not": marked("Region")},
        {"if": schema(b=marked("Region"))},
        {"then": schema(b=marked("Region"))},
        {"else": schema(b=marked("Region"))},
        {"additionalProperties": marked("Region")},
        {"patternProperties": {"^a": marked("Region")}},
        {"$defs": {"A": marked("Region")}},
        {"definitions": {"A": schema(b=marked("Region"))}},
        {"dependentSchemas": {"a": schema(b=marked("Region"))}},
    ],
)
def test_a_mark_off_the_chain_of_properties_is_refused(hidden):
    """Spec: statically reachable only; anywhere else makes the whole tool invalid."""
    with pytest.raises(BadAnnotation, match="outside the chain of properties"):
        find_header_params({"type": "object", "properties": {"a": hidden}})


def test_a_schema_of_nonsense_has_no_marks():
    """A schema comes from whomever; its validity is for others to judge."""
    odd = {"properties": ["a"], "items": None, "anyOf": [1, "x-mcp-header"], "$defs": {"A": True}}
    assert () == find_header_params(odd)


def test_a_very_deep_schema_does_no_harm():
    """Depth is the sender's choice; Python's stack is ours."""
    deep = marked("Region")
    for _ in range(10_000):
        deep = {"properties": {"a": deep}}
    assert 10_000 == len(find_header_params(deep)[0].path)
    while deep:
        deep = deep.pop("properties", {}).pop("a", None)  # or its end would be recursive


# --- spellings


@pytest.mark.covers("routing.values.encoded")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b", "a b"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (" ", "=?base64?IA==?="),
        ("\ta", "=?base64?CWE=?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?BASE64?a?=", "=?BASE64?a?="),
        ("=?base64?a", "=?base64?a"),
    ],
)
def test_a_string_is_spelled_plainly_where_that_is_safe(text, value):
    """Spec 2026-07-28 basic/transports/streamable-http#value-encoding, its examples among them."""
    assert value == encode_value(text)
    assert text == decode_value(value)


def test_blanks_around_a_value_are_no_part_of_it():
    """RFC 9110 5.5; the conformance suite asks for it too."""
    assert "add" == decode_value(" \tadd \t")
    assert " padded " == decode_value(" =?base64?IHBhZGRlZCA=?= ")


@pytest.mark.covers("routing.values.invalid")
@pytest.mark.parametrize(
    "value",
    [
        "=?base64?SGVsbG8?=",  # padding missing
        "=?base64?SGVs*bG8=?=",  # a foreign character
        "=?base64?SGVsbG8==?=",  # too much padding
        "=?base64?/w==?=",  # no UTF-8
        "caf\xe9",
        "a\x00b",
        "a\nb",
        "a\x7f",
    ],
)
def test_a_value_that_spells_no_string_is_none(value):
    """Spec: invalid characters and bad base64 are refused, not guessed at."""
    assert None is decode_value(value)


def test_a_sentinel_too_short_to_hold_anything_is_literal():
    """Its beginning and end overlap, so nothing is wrapped in it."""
    assert "=?base64?=" == decode_value("=?base64?=")


def test_a_lone_surrogate_is_spelled_as_something():
    """No text of Python's makes the spelling fail."""
    assert "=?base64?Pw==?=" == encode_value("\ud800")


# --- the client's side


@pytest.mark.covers("routing.marks.values")
@pytest.mark.parametrize(
    ("params", "arguments", "value"),
    [
        (REGION, {"region": "us-west1"}, "us-west1"),
        (REGION, {"region": ""}, ""),
        (REGION, {"region": "世界"}, "=?base64?5LiW55WM?="),
        (COUNT, {"count": 42}, "42"),
        (COUNT, {"count": -7}, "-7"),
        (COUNT, {"count": 42.0}, "42"),
        (COUNT, {"count": 2**53 - 1}, "9007199254740991"),
        (DRY, {"dry": True}, "true"),
        (DRY, {"dry": False}, "false"),
    ],
)
def test_a_value_is_mirrored_as_text(params, arguments, value):
    """Spec: strings as they are, integers in decimal, booleans in lower case."""
    assert ((params[0].header, value),) == mirror_arguments(params, arguments)
    assert None is check_headers(params, arguments, {params[0].key: value})


@pytest.mark.covers("routing.marks.values")
@pytest.mark.parametrize(
    ("params", "arguments"),
    [
        (REGION, {}),
        (REGION, {"region": None}),
        (DRY, {"dry": None}),
        (REGION, {"region": 5}),
        (REGION, {"region": ["a"]}),
        (COUNT, {"count": "5"}),
        (COUNT, {"count": 4.5}),
        (COUNT, {"count": True}),
        (COUNT, {"count": float("inf")}),
        (DRY, {"dry": 1}),
    ],
)
def test_a_value_that_is_absent_null_or_of_another_type_has_no_header(params, arguments):
    """Spec: omitted for null and absent; what does not fit is refused as an argument instead."""
    assert () == mirror_arguments(params, arguments)
    assert None is check_headers(params, arguments, {})


@pytest.mark.covers("routing.marks.values")
def test_a_nested_value_is_read_at_its_path():
    """Spec: the instance value at the exact path."""
    params = find_header_params(schema(to=schema(city=marked("City"))))
    assert (("Mcp-Param-City", "Rome"),) == mirror_arguments(params, {"to": {"city": "Rome"}})
    assert () == mirror_arguments(params, {"to": "Rome"})
    assert () == mirror_arguments(params, {"city": "Rome"})


@pytest.mark.covers("routing.marks.safe-integers")
@pytest.mark.parametrize("count", [2**53, -(2**53), 1e300])
def test_an_integer_that_not_everybody_keeps_exact_is_not_sent(count):
    """Spec: within the safe range of JavaScript."""
    with pytest.raises(UsageError, match="too large"):
        mirror_arguments(COUNT, {"count": count})
    assert "too large" in str(check_headers(COUNT, {"count": count}, {}))
    assert "too large" in str(
        check_headers(COUNT, {"count": count}, {"mcp-param-count": str(count)})
    )


# --- the server's side


@pytest.mark.covers("routing.values.invalid")
def test_headers_that_nobody_marked_are_ignored():
    """Spec: unknown Mcp-Param-* headers are somebody else's."""
    assert None is check_headers(
        REGION, {"region": "a"}, {"mcp-param-region": "a", "mcp-param-x": "b"}
    )


@pytest.mark.covers("routing.values.invalid")
@pytest.mark.parametrize(
    ("params", "arguments", "headers", "flaw"),
    [
        (REGION, {"region": "a"}, {}, "Mcp-Param-Region header is missing"),
        (REGION, {"region": "a"}, {"mcp-param-region": "b"}, "'b' does not match"),
        (REGION, {"region": "a"}, {"mcp-param-region": "A"}, "'A' does not match"),
        (REGION, {}, {"mcp-param-region": "a"}, "'a' does not match"),
        (REGION, {"region": None}, {"mcp-param-region": "null"}, "'null' does not match"),
        (REGION, {"region": "a"}, {"mcp-param-region": "=?base64?YQ?="}, "cannot be read"),
        (REGION, {"region": "é"}, {"mcp-param-region": "é"}, "cannot be read"),
        (REGION, {"region": "Hello"}, {"mcp-param-region": "SGVsbG8="}, "does not match"),
        (COUNT, {"count": 42}, {"mcp-param-count": "43"}, "'43' does not match"),
        (COUNT, {"count": 42}, {"mcp-param-count": "42.5"}, "'42.5' does not match"),
        (COUNT, {"count": 42}, {"mcp-param-count": "many"}, "'many' does not match"),
        (COUNT, {"count": "42"}, {"mcp-param-count": "42"}, "'42' does not match"),
        (DRY, {"dry": True}, {"mcp-param-dry": "True"}, "'True' does not match"),
    ],
)
def test_headers_that_say_something_else_are_a_flaw(params, arguments, headers, flaw):
    """Spec 2026-07-28 basic/transports/streamable-http#server-validation."""
    assert flaw in str(check_headers(params, arguments, headers))


@pytest.mark.parametrize("value", ["42.0", "42.", "42.000", "042"])
def test_integers_are_compared_as_numbers(value):
    """Spec: 42.0 and 42 are considered equal."""
    assert None is check_headers(COUNT, {"count": 42}, {"mcp-param-count": value})


@pytest.mark.covers("routing.name.decoded")
def test_a_wrapped_value_equals_the_string_inside():
    """Spec: decoded before it is compared."""
    assert None is check_headers(
        REGION, {"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8=?="}
    )
