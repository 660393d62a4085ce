"""One file: what it says, and where each part of it stands."""

import pytest

from isthmus.host.config.document import LARGEST, read, read_text
from isthmus.host.errors import ConfigError


def test_json_and_toml_say_the_same(tmp_path):
    """Ours: whichever somebody likes better."""
    (tmp_path / "a.json").write_text('{"mcpServers": {"x": {"args": ["1"]}}}')
    (tmp_path / "a.toml").write_text('[mcpServers.x]\nargs = ["1"]\n')

    assert read(tmp_path / "a.json").value == read(tmp_path / "a.toml").value


def test_places_are_those_of_the_nearest_part_there_is(tmp_path):
    """Ours: what is missing is told where it is missing."""
    path = tmp_path / "a.json"
    document = read_text(path, b'{\n "a": {"b": 1}}')

    assert f"{path}:2:8" == document.place("a", "b")
    assert f"{path}:2:2" == document.place("a", "c", "d")
    assert str(path) == document.place("x")


def test_toml_has_the_lines_of_its_tables_and_keys(tmp_path):
    """Ours: an error in TOML names its line, too."""
    path = tmp_path / "a.toml"
    text = b'# c\n[a]\nb = 1\n"c d".e = [\n  1]\n[[f]]\n[a."g.h"]\nx = """\n[no]\n"""\n'
    document = read_text(path, text)

    assert [f"{path}:{n}" for n in (2, 3, 4, 7, 8)] == [
        document.place(*keys)
        for keys in (("a",), ("a", "b"), ("a", "c d", "e"), ("a", "g.h"), ("a", "g.h", "x"))
    ]


@pytest.mark.covers("hostconfig.file.syntax-place")
@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.json", b'{"a": 1,, }', r"a\.json:1:9: a\.json is not JSON: a name"),
        ("a.toml", b"a = \n", r"a\.toml:1:5: a\.toml is not TOML"),
        ("a.json", b"[]", "the whole should be an object"),
        ("a.json", b'{\n"a": "\xff"}', r"a\.json:2: this is no text in UTF-8"),
        ("config.yaml", b"a: 1", "YAML, which isthmus does not read: write its servers as JSON"),
    ],
)
def test_what_is_no_configuration_says_where(tmp_path, name, data, says):
    """Ours: the message has the file, the line and the column."""
    with pytest.raises(ConfigError, match=says):
        read_text(tmp_path / name, data)


def test_a_file_that_is_not_there_or_no_file_is_told(tmp_path):
    """Ours: nothing of Python shows."""
    with pytest.raises(ConfigError, match="there is no file"):
        read(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)


def test_a_file_is_bounded(tmp_path):
    """Ours: a configuration is no database."""
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(LARGEST + 1)

    with pytest.raises(ConfigError, match="it is no configuration"):
        read(tmp_path / "a.json")
