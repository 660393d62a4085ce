"""TARGET on a command line: URLs, files, commands, and names in mcp.json."""

import json
import sys

import pytest

from isthmus.cli.targets import read_target
from isthmus.errors import UsageError


def config(folder, name="mcp.json", section="mcpServers", **servers):
    """A folder with one ``mcp.json`` in it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({section: servers}))
    return folder


def test_a_url_is_itself(tmp_path):
    """Ours: an address needs no configuration."""
    target = read_target("https://example.com/mcp", (), tmp_path, {})

    assert "https://example.com/mcp" == target.where


def test_a_command_gets_the_whole_environment_of_its_shell(tmp_path):
    """Ours: what a person types runs as if they had typed it alone."""
    target = read_target("", ["uvx", "a server"], tmp_path, {"KEY": "secret"})

    assert ("uvx", "a server") == target.where.argv
    assert {"KEY": "secret"} == target.where.env
    assert "uvx 'a server'" == target.label


def test_a_file_of_ours_is_served_whatever_stands_at_its_end(tmp_path):
    """Ours: a file that only makes a Server can be called too."""
    path = tmp_path / "server.py"
    path.write_text("from isthmus import Server\n")
    target = read_target(f"{path}:other", (), tmp_path, {})

    assert (sys.executable, "-m", "isthmus", "run", f"{path}:other") == target.where.argv


def test_a_file_of_somebody_else_is_run_as_a_script(tmp_path):
    """Ours: any stdio server in Python can be called."""
    path = tmp_path / "server.py"
    path.write_text("import mcp\n")

    assert (sys.executable, str(path)) == read_target(str(path), (), tmp_path, {}).where.argv


@pytest.mark.parametrize("name", ["mcp.json", ".mcp.json", ".vscode/mcp.json"])
@pytest.mark.parametrize("section", ["mcpServers", "servers"])
def test_a_name_is_looked_up_where_hosts_keep_them(tmp_path, name, section):
    """Ours: what a host is configured with can be tried from the shell."""
    entry = {"command": "uvx", "args": ["files", 3], "env": {"A": "1"}, "cwd": "/srv"}
    target = read_target("files", (), config(tmp_path, name, section, files=entry), {"B": "2"})

    assert ("uvx", "files", "3") == target.where.argv
    assert ({"A": "1"}, "/srv") == (target.where.env, target.where.cwd)


def test_variables_are_filled_in_at_any_depth(tmp_path):
    """Ours: `${VAR}`, `${env:VAR}` and `${VAR:-default}` work in every string."""
    entry = {
        "url": "https://${HOST:-localhost}/mcp",
        "headers": {"Authorization": "Bearer ${env:TOKEN}", "X": "${EMPTY:-}"},
    }
    target = read_target("api", (), config(tmp_path, api=entry), {"TOKEN": "t"})

    assert "https://localhost/mcp" == target.where
    assert {"Authorization": "Bearer t", "X": ""} == target.headers


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"url": "${HOST}"}, r"api\.url: \$\{HOST\} is not set; export HOST="),
        (
            {"command": "x", "args": ["${input:key}"]},
            r"args\[0\]: \$\{input:key\}: the file's inputs have no",
        ),
        ({"args": []}, 'needs "command" or "url"'),
    ],
)
def test_an_entry_that_cannot_be_used_names_its_place(tmp_path, entry, says):
    """Ours: no unresolved variable is ever sent to a server."""
    with pytest.raises(UsageError, match=says):
        read_target("api", (), config(tmp_path, api=entry), {})


def test_an_unknown_name_lists_what_there_is(tmp_path):
    """Ours: the message is the help."""
    with pytest.raises(UsageError, match=r"knows: files; a command goes after --"):
        read_target("flies", (), config(tmp_path, files={"url": "http://x"}), {})


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    """Ours: a mistyped path is not mistaken for a name."""
    with pytest.raises(UsageError, match="there is no file"):
        read_target("nowhere.py", (), tmp_path, {})


def test_a_broken_configuration_is_named(tmp_path):
    """Ours: the file that cannot be read is in the message."""
    (tmp_path / "mcp.json").write_text("{")
    with pytest.raises(UsageError, match=r"mcp\.json is not JSON"):
        read_target("files", (), tmp_path, {})


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("localhost:8000", "http://localhost:8000/mcp"),
        ("localhost:8000/mcp", "http://localhost:8000/mcp"),
        ("127.0.0.1:80/tools/mcp", "http://127.0.0.1:80/tools/mcp"),
        ("[::1]:8000", "http://[::1]:8000/mcp"),
    ],
)
def test_an_address_of_this_machine_needs_no_scheme(tmp_path, text, url):
    """Ours: as it is typed while a server is written."""
    assert url == read_target(text, (), tmp_path, {}).where


@pytest.mark.parametrize("text", ["example.com:8000", "localhost", "localhost.evil.com:80/mcp"])
def test_an_address_elsewhere_needs_one(tmp_path, text):
    """Ours: nothing is sent in clear to another machine because a word was left out."""
    with pytest.raises(UsageError, match="is no URL"):
        read_target(text, (), tmp_path, {})
