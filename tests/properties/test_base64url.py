"""Every byte string has exactly one spelling."""

from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.encoding import decode_base64url, encode_base64url


@given(st.binary())
def test_reading_inverts_spelling(data):
    """What was spelled is read back."""
    assert data == decode_base64url(encode_base64url(data))


@given(st.text(st.characters()))
def test_no_text_is_read_that_would_be_spelled_otherwise(text):
    """Anything at all may come from the other side; two texts never mean the same bytes."""
    data = decode_base64url(text)
    assert data is None or text == encode_base64url(data)
