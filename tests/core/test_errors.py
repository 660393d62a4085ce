"""Exceptions: what they repeat of the other side's words, and what they keep."""

import pytest

from isthmus.errors import (
    AuthRefused,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    Misbehaved,
    ToolFailed,
    refused,
)

HOSTILE = "\x1b[2J\u202ered " + "x" * 10_000_000


@pytest.mark.parametrize(
    "error",
    [
        refused(-32603, HOSTILE),
        HttpRefused(500, HOSTILE, {}),
        ToolFailed("add", HOSTILE, None),
        Misbehaved(HOSTILE),
        ConnectFailed(HOSTILE),
        ConnectionLost(HOSTILE),
        AuthRefused(HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_repeats_the_other_sides_words_cleaned_and_in_part(error):
    """Ours: an exception is logged and printed, wherever that goes."""
    text = str(error)

    assert "[2Jred xxx" in text
    assert text.isprintable()
    assert len(text) < 5000


def test_the_other_sides_words_are_kept_as_they_came():
    """Ours: a program may need all of them."""
    assert HOSTILE == refused(-32603, HOSTILE).message
    assert HOSTILE == ToolFailed("add", HOSTILE, None).text
