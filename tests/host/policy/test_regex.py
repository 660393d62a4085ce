"""Regular expressions in linear time."""

import random
import re

import pytest

from isthmus.host.policy.patterns import MAX_TEXT_CHARS, BadPattern, LinearRegex

PATTERNS = [
    "a*b", "(a|b)+c{2,3}", "[^a-c]+x?", r"\d{2}-\w+", "(?i)ab+", "a(?:b|)c", ".*", "^ab$", "[]a]+", r"[a\]-]+",
    r"\w\W\s?\S", "a{0,2}b{1}", "(a(b(c)))*", r"[\d-]+", "|a", r"a\.b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_expression_fits_what_that_of_the_standard_library_does(pattern):
    """Ours: the part of the language that is there means what it means elsewhere."""
    expression, other = LinearRegex(pattern), re.compile(pattern, re.DOTALL | re.ASCII)
    dice = random.Random(1)  # noqa: S311 - the same texts each time
    for _ in range(300):
        text = "".join(dice.choices("abcABC12-x]. ", k=dice.randint(0, 6)))

        assert bool(other.fullmatch(text)) is expression.fits(text), text


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+b", "(.*a){9}b", "(a*)*(a*)*b"])
@pytest.mark.covers("hostpolicy.regex.linear")
def test_what_keeps_others_busy_for_hours_ends_at_once(pattern):
    """Ours: all ways are followed together, so that none is tried again."""
    expression = LinearRegex(pattern)

    assert expression.fits("a" * (MAX_TEXT_CHARS - 1)) is False


@pytest.mark.covers("hostpolicy.regex.linear")
def test_a_text_that_fits_so_far_and_is_too_long_cannot_be_judged():
    """Ours: what does not fit is known at its first character, however long it is."""
    long = "a" * (MAX_TEXT_CHARS + 1)

    assert LinearRegex("a*").fits(long) is None
    assert LinearRegex("b.*").fits(long) is False


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "linear"), (r"\1", "linear"), (r"(?P<n>a)", "linear"), ("a**", "repetition"), ("a{2}+", "repetition"),
        ("(a", "without"), ("a)", "without"), ("[a", "ends"), ("*a", "repeats nothing"), ("a{", "count"),
        ("a{5,2}", "count"), ("a^b", "end"), ("[b-a]", "backwards"), ("a{999}", "count"), ("(a{50}){50}", "states"),
        ("(((){99}){99}){99}", "too often"), ("(" * 60, "stand"), ("a" * 1001, "characters"), ("a\\", "ends"),
    ],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.regex.linear")
def test_what_cannot_be_had_is_refused_with_a_reason(pattern, why):
    """Ours: an expression is bounded when it is read, also one of a workspace that is hostile."""
    with pytest.raises(BadPattern, match=why):
        LinearRegex(pattern)
