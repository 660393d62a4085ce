"""Globs."""

import fnmatch
import random

import pytest

from isthmus.host.policy.patterns import Globs, covers_glob, get_literal_prefix, weigh_glob


@pytest.mark.parametrize(
    ("glob", "text", "fits"),
    [
        ("read_*", "read_file", True),
        ("read_*", "Read_file", False),
        ("*", "", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a*b*c", "aXbYbZc", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a*", "a\nb", True),
        ("read_file", "re\u0430d_file", False),
    ],
)
@pytest.mark.covers("hostpolicy.names.exact")
def test_a_glob_fits_the_whole_text_and_nothing_in_it_but_two_signs_is_wild(glob, text, fits):
    """Ours: a star is any text, a question mark one character, all else is itself."""
    assert fits is Globs([glob]).fits(text)


def test_globs_fit_what_those_of_the_standard_library_do():
    """Ours: what people know from elsewhere holds here."""
    dice = random.Random(5)  # noqa: S311 - the same texts each time
    for _ in range(3000):
        glob = "".join(dice.choices("ab*?", k=dice.randint(0, 6)))
        text = "".join(dice.choices("ab", k=dice.randint(0, 7)))

        assert fnmatch.fnmatchcase(text, glob) == Globs([glob]).fits(text), (glob, text)


@pytest.mark.covers("hostpolicy.regex.linear")
def test_a_glob_of_many_stars_ends():
    """Ours: it takes each part at its first place, so that nothing is tried twice."""
    assert not Globs(["*a" * 200 + "b"]).fits("a" * 20_000)


def test_the_glob_that_says_most_counts():
    """Ours: a whole name weighs more than a beginning of the same length."""
    assert [10, 5, -1] == [
        Globs(["read_file", "read_*"]).weigh(t) for t in ("read_file", "read_", "x")
    ]
    assert (4, 5, 0) == (weigh_glob("read*"), weigh_glob("read"), weigh_glob("*read"))
    assert "a" == get_literal_prefix("a?b*")


@pytest.mark.parametrize(
    ("one", "other", "covers"),
    [("*", "a*b", True), ("a*", "ab*", True), ("a*", "abc", True), ("ab*", "a*", False), ("a*b", "a*b", True),
     ("a*b", "ab", True), ("?", "?", True), ("*b", "ab*", False)],
)  # fmt: skip
def test_what_covers_another_glob_is_never_said_wrongly(one, other, covers):
    """Ours: where it cannot be told, it is not said."""
    assert covers is covers_glob(one, other)
