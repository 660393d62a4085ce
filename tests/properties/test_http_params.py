"""Mirrored headers always pass the server's check, and no input is an exception."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.http.params import (
    BadAnnotation,
    check_headers,
    decode_value,
    encode_value,
    find_header_params,
    mirror_arguments,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
names = st.text(string.ascii_letters + string.digits + "-_.!~", min_size=1)
safe = st.integers(1 - 2**53, 2**53 - 1)
values = {
    "string": texts,
    "integer": safe | safe.map(float),
    "boolean": st.booleans(),
}
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)

KEYWORDS = ["properties", "items", "type", "x-mcp-header", "anyOf", "$defs", "not", "default", "a"]
schemas = st.recursive(
    st.sampled_from(["string", "integer", "number", "Region", "Count", "", None, True]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
    ),
    max_leaves=15,
)


@st.composite
def calls(draw):
    """A tool's schema and arguments that fit it, some missing, some null."""
    chosen = draw(
        st.dictionaries(texts, st.tuples(names, st.sampled_from(sorted(values))), max_size=5)
    )
    properties, arguments, taken = {}, {}, set()
    for key, (name, kind) in chosen.items():
        if name.lower() not in taken:
            taken.add(name.lower())
            properties[key] = {"type": kind, "x-mcp-header": name}
            value = draw(values[kind] | st.none() | st.just(...))
            if value is not ...:
                arguments[key] = value
    return {"type": "object", "properties": properties}, arguments


@pytest.mark.covers("routing.values.encoded")
@given(texts)
def test_decoding_inverts_encoding(text):
    """Every string travels in a header and arrives as it was."""
    value = encode_value(text)
    assert text == decode_value(value)
    assert value.isascii()
    assert not value or value.isprintable()


@given(st.text(st.characters(max_codepoint=255)))
def test_any_header_value_is_a_string_or_none(value):
    """Whatever comes is read or refused."""
    text = decode_value(value)
    assert text is None or text == decode_value(encode_value(text))


@given(calls())
def test_what_a_client_mirrors_passes_the_servers_check(call):
    """The two sides agree on every schema and all arguments."""
    params = find_header_params(call[0])
    headers = {name.lower(): value for name, value in mirror_arguments(params, call[1])}
    assert None is check_headers(params, call[1], headers)


@given(calls(), texts)
def test_a_changed_header_never_passes(call, text):
    """A proxy that was told something else must not be believed."""
    params = find_header_params(call[0])
    headers = {name.lower(): value for name, value in mirror_arguments(params, call[1])}
    for key, value in headers.items():
        wrong = {**headers, key: encode_value(text + "!")}
        if decode_value(value) != text + "!":
            assert None is not check_headers(params, call[1], wrong)


@given(schemas)
def test_any_schema_is_read_or_refused(schema):
    """A schema comes from whomever."""
    try:
        params = find_header_params(schema if isinstance(schema, dict) else {"properties": schema})
    except BadAnnotation:
        return
    assert len(params) == len({param.key for param in params})
    assert all(param.path and param.type in values for param in params)


@given(calls(), st.dictionaries(texts, json), st.dictionaries(st.text(), st.text()))
def test_any_arguments_and_headers_are_checked(call, arguments, headers):
    """Both come from whomever."""
    flaw = check_headers(find_header_params(call[0]), {**call[1], **arguments}, headers)
    assert flaw is None or flaw.startswith("Mcp-Param-")
