"""Nesting: measured before anything is decoded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.wire.jsonrpc import is_nested_deeper

values = st.recursive(
    st.none() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=40,
)


def depth(value):
    """How deep a decoded value is."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict | list)) + max(map(depth, inner), default=0)


@given(values, st.booleans())
def test_the_depth_is_that_of_the_decoded_value(value, ascii):
    """Ours: measured from the bytes alone, whatever is in their strings."""
    data = json.dumps(value, ensure_ascii=ascii).encode(errors="replace")
    deep = depth(value)

    assert not is_nested_deeper(data, deep)
    assert is_nested_deeper(data, deep - 1) or deep == 0


@pytest.mark.parametrize(
    "data",
    [b'{"a":"]]]]","b":[[[[1]]]]}', rb'{"\"]]]":[[[[]]]]}', b'{"a\\\\":[{"b":[[1]]}]}'],
)
def test_brackets_in_strings_hide_nothing(data):
    """Ours: closing brackets in a string do not make up for opening ones."""
    assert is_nested_deeper(data, 4)
    assert not is_nested_deeper(data, 5)


@given(st.binary(max_size=300))
def test_what_is_no_json_harms_nobody(data):
    """Ours: it is measured before it is known to be JSON."""
    is_nested_deeper(data, 3)
