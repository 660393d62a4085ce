"""``isthmus config`` at the command line."""

import asyncio
import io
import json
import sys

import pytest
from typer.testing import CliRunner

from isthmus.cli.typer_app import app
from isthmus.host.state.database import HostState


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A workspace, and folders of the user's that are its own."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ISTHMUS_STORE_KEY", "k" * 32)
    (tmp_path / "conf" / "isthmus").mkdir(parents=True)
    return work


def user(place, **whole):
    """The user's own file."""
    path = place.parent / "conf" / "isthmus" / "mcp.json"
    path.write_text(json.dumps(whole))
    return path


def workspace(place, **servers):
    """The workspace's file."""
    (place / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def run(*words, input=None):
    """A command: its exit code and what it printed."""
    done = CliRunner().invoke(app, ["config", *words], input=input)
    return done.exit_code, done.stdout, done.stderr


def test_check_says_what_is_wrong_and_where(place):
    """Ours: one line a server, and an exit code for scripts."""
    path = user(place, mcpServers={"a": {"command": "uvx", "args": ["x"]}, "b": {}})
    code, said, _ = run("check")

    assert 1 == code
    assert ["ok      a: uvx x", f'broken  b: {path}:1:57: mcpServers.b: this server needs "command" or "url"'] == said.splitlines()  # fmt: skip


def test_check_for_programs(place):
    """Ours: the same as JSON."""
    user(place, mcpServers={"a": {"command": "uvx"}})
    workspace(place, w={"command": "x"})
    code, said, _ = run("check", "--json")
    found = json.loads(said)

    assert (0, {}) == (code, found["broken"])
    assert [("user", True), ("workspace", False)] == [
        (one["layer"], one["trusted"]) for one in found["servers"].values()
    ]


def test_check_without_any_configuration(place):
    """Ours: says how to make one."""
    code, _, said = run("check")

    assert 0 == code
    assert "isthmus servers add makes one" in said


def test_a_file_can_be_named(place):
    """Ours: in place of the usual ones."""
    (place / "other.json").write_text('{"mcpServers": {"o": {"command": "x"}}}')
    code, said, _ = run("check", "--config", "other.json")

    assert (0, "ok      o: x\n") == (code, said)
    assert 2 == run("check", "--config", "none.json")[0]
    assert said == run("check", "other.json")[1]


def test_a_file_without_servers_is_told(place):
    """Ours: silence would leave one wondering."""
    (place / "empty.json").write_text("{}")

    code, _, told = run("check", "empty.json")

    assert told.startswith("no server stands in ")
    assert 1 == code  # it was named to be checked
    code, _, told = run("import", "--from", "empty.json")
    assert 1 == code
    assert "has no servers" in told


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_explain_shows_places_and_no_secrets(place):
    """Ours: for one server, and for all."""
    user(place, mcpServers={"a": {"command": "uvx", "env": {"API_KEY": "the-canary"}}})
    code, said, _ = run("explain", "a")
    _, everything, _ = run("explain")

    assert 0 == code
    assert "canary" not in said + everything
    assert "command = uvx" in said
    assert "mcp.json:1:17" in everything
    assert "command" in [line["name"] for line in json.loads(run("explain", "a", "--json")[1])]
    assert "a" in json.loads(run("explain", "--json")[1])["servers"]
    assert 2 == run("explain", "none")[0]


def test_trust_is_given_to_what_is_seen(place):
    """Ours: the file is shown, asked about at a terminal, and inert again when it changes."""
    workspace(place, w={"command": "x"})
    without = run("trust")
    code, said, _ = run("trust", "--yes")
    after = run("check")[1]
    workspace(place, w={"command": "evil"})

    assert 2 == without[0]
    assert "pass --yes once you have reviewed the files" in without[2]
    assert 0 == code
    assert '"command": "x"' in said
    assert "ok      w: x\n" == after
    assert "not trusted" in run("check")[1]
    assert [True, False] == ["trusted no more" in run("untrust")[2] for _ in range(2)]


def test_trust_shows_what_of_the_users_goes_where(place):
    """Ours: variables in addresses and headers by name, with their destination, before the yes."""
    headers = {"Authorization": "Bearer ${A_TOKEN}", "X": "${secret:x}"}
    workspace(place, w={"url": "https://u@evil.example/mcp?k=${B}", "headers": headers})
    _, said, _ = run("trust", "--yes")

    assert [
        f"warning: w: {name} is sent to https://evil.example"
        for name in ("${B}", "${A_TOKEN}", "${secret:x}")
    ] == [line for line in said.splitlines() if line.startswith("warning:")]


def test_an_import_that_would_lose_a_restriction_fails(place):
    """Ours: by line, with what is taken over all the same, and previews show what names a secret."""
    headers = {"Authorization": "Bearer ${AUTH_TOKEN}", "X-Key": "the-canary"}
    servers = {
        "a": {"url": "https://x/mcp", "headers": headers},
        "b": {"command": "x", "toolFilter": "safe"},
    }
    (place / "theirs.json").write_text(json.dumps({"mcpServers": servers}, indent=1))
    code, said, told = run("import", "--from", "theirs.json")

    assert 1 == code
    assert {"Authorization": "Bearer ${AUTH_TOKEN}", "X-Key": "[secret]"} == json.loads(said)[
        "mcpServers"
    ]["a"]["headers"]
    assert "theirs.json:12:4: mcpServers.b.toolFilter: isthmus does not know" in told
    assert "b" in json.loads(run("import", "--from", "theirs.json", "--json")[1])["refused"]


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_a_person_is_asked_before_a_workspace_is_trusted(place, monkeypatch, typed, code):
    """Ours: anything but yes is no."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    from isthmus.cli.commands import config

    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    if code:
        with pytest.raises(config.UsageError, match="nothing was trusted"):
            config._confirm("? ")
    else:
        config._confirm("? ")


def test_trust_stands_where_the_users_file_says(place):
    """Ours: in the state that their host has, which a workspace has no say in."""
    user(place, host={"state": str(place.parent / "other")})
    workspace(place, w={"command": "x"})
    run("trust", "--yes")

    assert "ok      w: x\n" == run("check")[1]
    assert [True, False] == [
        (folder / "host.db").exists()
        for folder in (place.parent / "other", place.parent / "state" / "isthmus" / "host")
    ]


def test_marks_in_a_file_are_seen_before_it_is_trusted(place):
    """Ours: what turns the reading direction round is no secret of the file's author."""
    (place / "mcp.json").write_text('{"mcpServers": {"w": {"command": "x\u202ey\u200b"}}}')

    assert '"x<U+202E>y<U+200B>"' in run("trust", "--yes")[1]


def test_a_folder_without_files_is_not_trusted(place):
    """Ours: a mistyped folder is told."""
    assert "there is nothing to trust" in run("trust", "--yes")[2]


def test_secrets_are_set_listed_and_removed(place):
    """Ours: read from standard input, and never printed."""
    user(place, mcpServers={"a": {"command": "x", "args": ["${secret:a/b}"]}})
    before = run("check")[0]
    code, said, told = run("secret", "set", "a/b", input="the-canary\n")
    after, where, _ = run("check")

    assert (1, 0, 0) == (before, code, after)
    assert "canary" not in said + told + where
    assert "${secret:a/b}" in told
    assert ("a/b\n", ["a/b"]) == (
        run("secret", "list")[1],
        json.loads(run("secret", "list", "--json")[1]),
    )
    assert [0, 2] == [run("secret", "remove", "a/b")[0] for _ in range(2)]
    assert "no secret is kept" in run("secret", "list")[2]
    assert 2 == run("secret", "set", "a b", input="x")[0]


def test_import_shows_and_writes(place):
    """Ours: nothing is written before one has looked; keys are not printed."""
    (place / "theirs.json").write_text(
        '{"mcpServers": {"a": {"command": "x", "env": {"A_KEY": "the-canary"}}}}'
    )
    code, said, told = run("import", "--from", "theirs.json")
    own = place.parent / "conf" / "isthmus" / "mcp.json"

    assert (0, False) == (code, own.exists())
    assert "canary" not in said + told
    assert {"command": "x", "env": {"A_KEY": "[secret]"}} == json.loads(said)["mcpServers"]["a"]
    assert "1 servers written" in run("import", "--from", "theirs.json", "--write")[2]
    assert "the-canary" in own.read_text()
    found = json.loads(run("import", "--from", "theirs.json", "--write", "--json")[1])
    assert [] == found["written"]
    assert 2 == run("import", "--from", "emacs")[0]


def test_the_schema_is_printed():
    """Ours: for an editor to read."""
    code, said, _ = run("schema")

    assert (0, "object") == (code, json.loads(said)["type"])


def test_roots_are_listed_granted_and_revoked(place):
    """Ours: what a running host asks, a command can answer beforehand."""
    (place / "a").mkdir()
    user(place, mcpServers={"s": {"command": "x"}}, host={"roots": [{"path": str(place / "a"), "name": "A"}, {"path": "/none"}]})  # fmt: skip
    first = json.loads(run("roots", "list", "--json")[1])
    granted = run("roots", "grant", "s", "A")
    listed = run("roots", "list")[1]
    revoked = run("roots", "revoke", "s", str(place / "a"))

    assert [("there", []), ("gone", [])] == [(one["state"], one["granted"]) for one in first]
    assert (0, 0) == (granted[0], revoked[0])
    assert "granted to s" in listed
    assert "granted to none" in run("roots", "list")[1].splitlines()[0]
    assert [2, 2, 2] == [
        run("roots", "grant", *words)[0] for words in (("t", "A"), ("s", "B"), ("s", "none"))
    ]


def test_without_roots_it_says_how_to_declare_one(place):
    """Ours: the message is the help."""
    assert '{"host": {"roots"' in run("roots", "list")[2]


def test_trust_is_stored_in_the_users_state(place):
    """Ours: where a running host looks for it."""
    workspace(place, w={"command": "x"})
    run("trust", "--yes")

    async def rows():
        state = HostState(place.parent / "state" / "isthmus" / "host")
        found = await state.read(lambda db: db.execute("SELECT name FROM trust").fetchall())
        await state.close()
        return [row[0] for row in found]

    assert ["w"] == asyncio.run(rows())
