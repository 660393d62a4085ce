"""One file: what it says, and where each part of it stands."""

import pytest

from isthmus.host.config.files import MAX_FILE_BYTES, parse_document, read_document
from isthmus.host.model.errors import ConfigError


def test_json_and_toml_say_the_same(tmp_path):
    """Ours: whichever somebody likes better."""
    (tmp_path / "a.json").write_text('{"mcpServers": {"x": {"args": ["1"]}}}')
    (tmp_path / "a.toml").write_text('[mcpServers.x]\nargs = ["1"]\n')

    assert read_document(tmp_path / "a.json").value == read_document(tmp_path / "a.toml").value


def test_places_are_those_of_the_nearest_part_there_is(tmp_path):
    """Ours: what is missing is told where it is missing."""
    path = tmp_path / "a.json"
    document = parse_document(path, b'{\n "a": {"b": 1}}')

    assert f"{path}:2:8" == document.place("a", "b")
    assert f"{path}:2:2" == document.place("a", "c", "d")
    assert str(path) == document.place("x")


def test_toml_has_the_lines_of_its_tables_and_keys(tmp_path):
    """Ours: an error in TOML names its line, too."""
    path = tmp_path / "a.toml"
    text = b'# c\n[a]\nb = 1\n"c d".e = [\n  1]\n[[f]]\n[a."g.h"]\nx = """\n[no]\n"""\n'
    document = parse_document(path, text)

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
        ("a.json", b"[]", "the top level must be an object"),
        ("a.json", b'{\n"a": "\xff"}', r"a\.json:2: this is no text in UTF-8"),
    ],
)
def test_what_is_no_configuration_says_where(tmp_path, name, data, says):
    """Ours: the message has the file, the line and the column."""
    with pytest.raises(ConfigError, match=says):
        parse_document(tmp_path / name, data)


@pytest.mark.covers("hostconfig.file.syntax-place")
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a: [1", r"a\.yaml:\d:\d+: a\.yaml is not YAML: "),
        (b"- a", "the top level must be a mapping"),
        (b"a: !!python/object:os.system x", r"a\.yaml:1:4: .*the tag .* is not read"),
        (b"a: &b {c: 1}\nd: {<<: *b}", r"a\.yaml:2:5: .*merge keys are not read"),
        (b"? [1]\n: 2", "a key is a text"),
        (b"[" * 5000, "not YAML"),
        (b"a: &a [*a]", "too much in it, or too deep"),
        (b"[" * 100_000, r"a\.yaml:1:\d+: .*too much in it, or too deep"),
        (b"{a: " * 100_000, r"a\.yaml:1:\d+: .*too much in it, or too deep"),
        (b"- " * 100_000 + b"a", r"a\.yaml:1:\d+: .*too much in it, or too deep"),
    ],
)
def test_what_is_no_yaml_says_where(tmp_path, data, says):
    """Ours: nothing of a file makes an object of Python's."""
    pytest.importorskip("yaml")
    with pytest.raises(ConfigError, match=says):
        parse_document(tmp_path / "a.yaml", data)


def test_aliases_do_not_multiply_without_end(tmp_path):
    """Ours: nine lines that mean a billion words are refused before they are made."""
    pytest.importorskip("yaml")
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="too much in it"):
        parse_document(tmp_path / "a.yaml", "\n".join(lines).encode())


def test_yaml_is_read_by_its_core_schema(tmp_path):
    """Ours: a variable that is called NO is no truth value, and each part knows its line."""
    pytest.importorskip("yaml")
    text = b'a: {no: NO, yes: 1.5, n: 07, t: true, q: "1", e: , z: ~, h: 0x1F}\nb:\n  - one\n'
    document = parse_document(tmp_path / "a.yaml", text)

    assert {
        "a": {"no": "NO", "yes": 1.5, "n": 7, "t": True, "q": "1", "e": None, "z": None, "h": 31},
        "b": ["one"],
    } == document.value
    assert f"{tmp_path / 'a.yaml'}:3:5" == document.place("b", 0)
    assert {} == parse_document(tmp_path / "a.yaml", b"# nothing\n").value


def test_a_file_that_is_not_there_or_no_file_is_told(tmp_path):
    """Ours: nothing of Python shows."""
    with pytest.raises(ConfigError, match="there is no file"):
        read_document(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path)


def test_a_file_is_bounded(tmp_path):
    """Ours: a configuration is no database."""
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)

    with pytest.raises(ConfigError, match="it is no configuration"):
        read_document(tmp_path / "a.json")
