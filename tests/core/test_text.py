"""What a terminal must not be made to obey."""

import pytest

from isthmus.core.text import clean_text, find_mixed_scripts, show_invisible


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
    assert shown == clean_text(text)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\r\nb", "a<U+000D>\nb"),
        ("red \x1b[31mred", "red <U+001B>[31mred"),
        ("safe\u202eexe.txt", "safe<U+202E>exe.txt"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("no\u00a0break", "no<U+00A0>break"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("fill\u3164er", "fill<U+3164>er"),
        ("hidden\U000e0101", "hidden<U+E0101>"),
        ("de\u200dlete", "de<U+200D>lete"),
        ("👩\u200d", "👩<U+200D>"),
        ("👩\u200d" * 6 + "👩", "👩<U+200D>" * 6 + "👩"),
        ("a" + "\u0301" * 6, "a" + "\u0301" * 4 + "<U+0301>" * 2),
        ("บ" + "\u0e49" * 5, "บ" + "\u0e49" * 4 + "<U+0E49>"),
        ("Grüße, 世界 👩\u200d🚀", "Grüße, 世界 👩\u200d🚀"),
    ],
)
def test_what_a_terminal_would_obey_can_be_seen_instead(text, seen):
    """Ours: who decides upon a text sees every mark in it."""
    assert seen == show_invisible(text)
    assert seen == clean_text(show_invisible(text))


def test_a_line_stays_one_line():
    """Ours: a name with a line end in it cannot pretend to be two lines."""
    assert "a<U+000A>Why: it is safe<U+0009>" == show_invisible("a\nWhy: it is safe\t", line=True)


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("paypal.example", ""),
        ("p\u0430ypal.example", "Cyrillic and Latin"),
        ("яндекс", ""),
        ("Grüße", ""),
        ("日本語 abc", ""),
    ],
)
def test_letters_that_look_alike_side_by_side_are_told(text, scripts):
    """Ours: a name that can pass for another one is called one."""
    assert scripts == find_mixed_scripts(text)
