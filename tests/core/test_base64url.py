"""Bytes as text with one spelling each."""

import pytest

from isthmus.core.base64url import from_text, to_text


def test_the_alphabet_is_that_of_urls_and_nothing_is_padded():
    """RFC 4648 section 5, without padding as JOSE has it."""
    assert "-_8" == to_text(b"\xfb\xff")
    assert "" == to_text(b"")


def test_what_was_spelled_is_read():
    """Reading inverts spelling."""
    assert b"\xfb\xff" == from_text("-_8")
    assert b"" == from_text("")


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
    assert None is from_text(text)
