"""Every byte string has exactly one spelling."""

from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.base64url import from_text, to_text


@given(st.binary())
def test_reading_inverts_spelling(data):
    """What was spelled is read back."""
    assert data == from_text(to_text(data))


@given(st.text(st.characters()))
def test_no_text_is_read_that_would_be_spelled_otherwise(text):
    """Anything at all may come from the other side; two texts never mean the same bytes."""
    data = from_text(text)
    assert data is None or text == to_text(data)
