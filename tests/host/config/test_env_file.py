"""Files of environment variables."""

import pytest

from isthmus.host.config.servers import parse_env


def test_what_people_write_is_read():
    r"""Ours: bare, quoted, exported, with comments."""
    text = '\ufeff# c\nA=1\nexport B = two words # c\nC=\'a # $x\'\nD="a\\n\\"b" # c\nE=\n\nF=#c\nG=a#b\n'

    assert {
        "A": "1", "B": "two words", "C": "a # $x", "D": 'a\n"b', "E": "", "F": "", "G": "a#b",
    } == parse_env(text)  # fmt: skip


@pytest.mark.parametrize("line", ["no sign", "1A=x", "A='x", 'A="x', "A='x' y"])
def test_what_is_none_is_told_by_its_number_alone(line):
    """Ours: the line may hold a secret."""
    with pytest.raises(ValueError, match="line 2") as caught:
        parse_env(f"A=1\n{line}-secret\n")

    assert "secret" not in str(caught.value)
