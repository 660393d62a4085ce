"""Nesting: measured before anything is decoded."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.wire.jsonrpc import Unreadable, is_nested_deeper, parse

values = st.recursive(
    st.none() | st.text(st.sampled_from('[]{}"\\/a\n é')) | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=40,
)

MEGABYTE = 1024 * 1024


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


@given(st.lists(st.integers(0, 150), max_size=40), st.integers(1, 140))
def test_many_deep_chains_side_by_side_are_measured_by_the_deepest(chains, most):
    """Ours: however much of it can be peeled off from within before the rest is added up."""
    data = b"[%b]" % b",".join(b"[" * deep + b'{"a":"[["}' + b"]" * deep for deep in chains)
    deepest = max(chains, default=-1) + 2  # the list around them, and the object inside

    assert is_nested_deeper(data, most) == (deepest > most)


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


class Part(msgspec.Struct):
    """A message of which one member is left unread."""

    kept: msgspec.Raw = msgspec.Raw(b"")


class Chain(msgspec.Struct):
    """A type that holds itself."""

    next: "Chain | None" = None


@pytest.mark.parametrize("opening", [b"[", b'{"next":'])
@pytest.mark.parametrize("around", [b"%b", b'{"kept":%b', b'{"unknown":%b'])
@pytest.mark.parametrize("shape", [object, msgspec.Raw, Part, Chain])
def test_ten_megabytes_of_opening_brackets_are_an_exception_and_no_crash(shape, around, opening):
    """Ours: what is skipped or left unread is no deeper than the interpreter's stack, either."""
    data = around % (opening * (10 * MEGABYTE // len(opening)))

    with pytest.raises((RecursionError, msgspec.DecodeError)):
        msgspec.json.decode(data, type=shape)
    assert isinstance(parse(b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + data), Unreadable)
