"""What a terminal must not be made to obey."""

import pytest

from isthmus.core.plain_text import clean


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\r\nb", "a\nb"),
        ("red \x1b[31mred", "red [31mred"),
        ("over\rwritten", "overwritten"),
        ("\x9b2Jgone", "2Jgone"),
        ("safe\u202eexe.txt", "safeexe.txt"),
        ("a\u2066b\u2069", "ab"),
        ("zero\u200bwidth", "zerowidth"),
        ("bell\x07 nul\x00", "bell nul"),
        ("Grüße, 世界 👩\u200d🚀", "Grüße, 世界 👩\u200d🚀"),
    ],
)
def test_a_terminal_gets_no_text_it_would_obey(text, shown):
    """Ours: control characters and direction marks are dropped, letters of all scripts stay."""
    assert shown == clean(text)
