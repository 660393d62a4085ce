"""TOML, as every file of the host is read."""

import pytest

from isthmus.host.model.toml import BadToml, parse_toml


def test_a_text_is_what_it_says():
    """Ours: whichever editor has put a mark before it."""
    assert {"a": {"b": [1]}} == parse_toml("[a]\nb = [1]\n") == parse_toml("\ufeff[a]\nb = [1]\n")


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("a = 1\nb = \n", "Invalid value", (2, 5)),
        ("a = 1\nb = ", "Invalid value (at end of document)", (0, 0)),
        ("a = " + "[" * 5000, "it is nested too deep", (0, 0)),
    ],
)
@pytest.mark.covers("hostconfig.file.syntax-place")
def test_what_is_none_says_what_is_wrong_and_where(text, said, place):
    """Ours: also where it would take more stack than there is."""
    with pytest.raises(BadToml) as error:
        parse_toml(text)

    assert (said, place) == (error.value.said, (error.value.line, error.value.column))
