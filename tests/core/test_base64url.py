"""Bytes as text with one spelling each."""

import pytest

from isthmus.core.encoding import decode_base64url, encode_base64url


def test_the_alphabet_is_that_of_urls_and_nothing_is_padded():
    """RFC 4648 section 5, without padding as JOSE has it."""
    assert "-_8" == encode_base64url(b"\xfb\xff")
    assert "" == encode_base64url(b"")


def test_what_was_spelled_is_read():
    """Reading inverts spelling."""
    assert b"\xfb\xff" == decode_base64url("-_8")
    assert b"" == decode_base64url("")


@pytest.mark.parametrize(
    "text",
    [
        "A",  # one character is no byte
        "-_9",  # bits beyond the last byte
        "-_8=",  # padded
        "+/8",  # the other alphabet
        "-_ 8",
        "-_8\n",
        "-_é",
        "\ud800",
        "====",
    ],
)
def test_any_other_spelling_is_refused(text):
    """A token must come back unmodified, to the last bit."""
    assert None is decode_base64url(text)
