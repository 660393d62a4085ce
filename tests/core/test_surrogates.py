"""Surrogates: what UTF-8 has no bytes for is replaced, and nothing else is touched."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.encoding import replace_surrogates
from isthmus.wire import CallToolResult, TextContent
from isthmus.wire.jsonrpc import encode

anything = st.characters(codec=None, exclude_categories=())
values = st.recursive(
    st.none() | st.integers() | st.text(anything),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(anything), inner),
)


def test_halves_are_replaced_and_pairs_are_joined():
    """Ours: a model reads as much of a text as there is."""
    assert "a\ufffdb" == replace_surrogates("a\udc80b")
    assert "\U0001f600" == replace_surrogates("\ud83d\ude00")


def test_structs_and_what_is_in_them_are_mended():
    """Ours: a result is mended as a whole."""
    result = CallToolResult(
        content=[TextContent(text="\ud800")], structured_content=msgspec.Raw(b'{"a":1}')
    )

    mended = replace_surrogates(result)
    assert ["\ufffd"] == [block.text for block in mended.content]
    assert msgspec.Raw(b'{"a":1}') == mended.structured_content


@given(values)
def test_whatever_comes_out_has_a_form_in_json(value):
    """Ours: that is what it is for."""
    encode(replace_surrogates(value))


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_has_one_already_stays_the_same(value):
    """Ours: nothing is lost of an honest value."""
    assert value == replace_surrogates(value)
