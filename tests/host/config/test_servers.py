"""One server of a file: what it says, checked."""

import json
import os

import pytest

from isthmus.host.config.load import load_config


def read(folder, entry, name="x", **environ):
    """The configuration of one server."""
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {name: entry}}))
    return load_config(path, folder=folder, environ=environ, managed=folder / "managed")


def one(folder, entry, **environ):
    """The server, which is not broken."""
    config = read(folder, entry, **environ)
    assert {} == config.broken
    return config.servers["x"]


def test_a_command_with_all_it_can_have(tmp_path):
    """Ours: what every host reads."""
    (tmp_path / "my.env").write_text("A=file\nB=file\n")
    entry = one(
        tmp_path,
        {
            "command": "uvx",
            "args": ["files", 3, "${HOST}"],
            "env": {"B": "1", "N": 2, "T": True, "Z": None},
            "envFile": "my.env",
            "cwd": "sub",
            "type": "stdio",
        },
        HOST="h",
    )

    assert ("uvx", "files", "3", "h") == entry.command
    assert {"A": "file", "B": "1", "N": "2", "T": "true"} == entry.env
    assert (str(tmp_path / "sub"), "stdio", "") == (entry.cwd, entry.kind, entry.url)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"url": "https://x/mcp"}, "http"),
        ({"serverUrl": "https://x/mcp"}, "http"),
        ({"httpUrl": "https://x/mcp", "type": "streamableHttp"}, "http"),
        ({"url": "https://x/sse", "type": "sse"}, "sse"),
        ({"url": "https://x/sse", "transport": "sse"}, "sse"),
        ({"url": "wss://x"}, "ws"),
        ({"url": "unix:///run/x.sock"}, "socket"),
        ({"url": "tcp://127.0.0.1:1"}, "socket"),
    ],
)
def test_the_ways_to_reach_a_server(tmp_path, entry, kind):
    """Ours: as Claude, VS Code, Cursor, Gemini and Windsurf write them."""
    assert kind == one(tmp_path, entry).kind


def test_words_of_others_for_being_off(tmp_path):
    """Ours: what is switched off elsewhere is off here, unless our own word says otherwise."""
    off = {"command": "x", "disabled": True}

    assert not one(tmp_path, off).options.enabled
    assert not one(tmp_path, {"command": "x", "enabled": False}).options.enabled
    assert one(tmp_path, off | {"host": {"enabled": True}}).options.enabled


@pytest.mark.covers("hostconfig.server.bad-alone")
@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (1, r"mcpServers\.x: a server is an object"),
        ({}, 'needs "command" or "url"'),
        ({"command": ""}, 'needs "command" or "url"'),
        ({"command": ["uvx"]}, r"x\.command: command is a text"),
        ({"command": "a\0b"}, "a zero byte"),
        ({"command": "x", "args": "y"}, r"x\.args: args is a list"),
        ({"command": "x", "args": [{}]}, r"x\.args\[0\]: an argument is a text"),
        ({"command": "x", "env": []}, r"x\.env: env is an object"),
        ({"command": "x", "env": {"A": {}}}, r"x\.env\.A: 'A' is a text"),
        ({"command": "x", "envFile": "none.env"}, r"x\.envFile: the file cannot be read: No such"),
        ({"command": "x", "url": "http://y"}, "both a command and a url"),
        ({"url": "http://x", "serverUrl": "http://y"}, "both url and serverUrl"),
        ({"url": "example.com"}, "this is no URL of a server"),
        ({"url": "ftp://example.com"}, "this is no URL of a server"),
        ({"url": "http://x", "type": "stdio"}, "does not go with a url"),
        ({"url": "ws://x", "type": "http"}, "does not go with a url"),
        ({"command": "x", "type": "sse"}, "does not go with a command"),
        ({"command": "x", "type": "smoke"}, "unknown type 'smoke'"),
        ({"url": "http://x", "headers": {"a b": "c"}}, "'a b' is no header"),
        ({"url": "http://x", "headers": {"A": "b\r\nC: d"}}, "'A' is no header"),
        ({"url": "${HOST}"}, r"x\.url: \$\{HOST\} is not set"),
        ({"command": "x", "host": 1}, r"x\.host: this is an object of options"),
        ({"command": "x", "host": {"start": "now"}}, r"x\.host\.start"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, entry, says):
    """Ours: file, line, member, and how to mend it; and the rest of the file works."""
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"x": entry, "good": {"command": "uvx"}}}, indent=1))
    config = load_config(path, folder=tmp_path, environ={}, managed=tmp_path)

    assert ["good"] == list(config.servers)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(config.broken["x"])
    assert config.broken["x"].startswith(f"{path}:")


@pytest.mark.covers("hostconfig.server.name")
@pytest.mark.parametrize("name", ["", "a__b", "-a", "a-", "a/b", "x" * 65, "ü", "a\u202eb"])
def test_names_that_cannot_be(tmp_path, name):
    """Ours: a name stands before each tool's, in menus and in the audit log."""
    config = read(tmp_path, {"command": "x"}, name)

    assert "is no name for a server" in config.broken[name]


@pytest.mark.parametrize("name", ["a", "My_Server", "com.example.files-2", "x" * 64])
def test_names_that_can_be(tmp_path, name):
    """Ours: what people call their servers."""
    assert [name] == list(read(tmp_path, {"command": "x"}, name).servers)


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_nothing_that_prints_an_entry_shows_a_secret(tmp_path):
    """Ours: entries are logged and compared; what is in them is nobody's business."""
    entry = one(
        tmp_path,
        {"command": "x", "env": {"API_KEY": "plain-secret", "T": "${TOKEN}"}},
        TOKEN="env-secret",
    )

    assert {"plain-secret", "env-secret"} == {s.reveal() for s in entry.secrets}
    assert "secret" not in f"{entry} {entry!r}"


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_what_gets_tokens_may_name_secrets(tmp_path):
    """Ours: a client's secret stands in no file in clear, and in no text of an entry."""
    auth = {"kind": "client-credentials", "clientId": "c", "clientSecret": "${TOKEN}"}
    entry = one(tmp_path, {"url": "https://x/mcp", "host": {"auth": auth}}, TOKEN="the-canary")

    assert auth | {"clientSecret": "the-canary"} == entry.options.auth
    assert "canary" not in repr((entry, entry.options))
    assert ["the-canary"] == [secret.reveal() for secret in entry.secrets]


@pytest.mark.parametrize("what", ["pipe", "huge", "folder"])
def test_a_file_of_variables_that_is_none_breaks_its_server_alone(tmp_path, what):
    """Ours: a pipe that nobody writes into, or a disk full of variables, keeps no host waiting."""
    path = tmp_path / "values"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.write_text("A=" + "x" * 1024 * 1024)
    config = read(tmp_path, {"command": "x", "envFile": "values"})

    assert "the file cannot be read" in config.broken["x"]
