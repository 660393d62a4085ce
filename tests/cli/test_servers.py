"""``isthmus servers``: what is configured, and what is written into the configuration."""

import json
import tempfile
from contextlib import asynccontextmanager

import pytest

from isthmus import Server
from isthmus.cli.commands.servers import do_with_server, print_log, print_servers
from isthmus.cli.main import main
from isthmus.host.host import Host
from isthmus.host.model.errors import Unknown
from isthmus.host.remote.control import Control
from isthmus.host.state.database import find_user_folder
from isthmus.wire import LogMessageParams


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without any configuration, in a folder without one; the file they would have."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    with tempfile.TemporaryDirectory() as short:  # paths of sockets are
        monkeypatch.setenv("XDG_STATE_HOME", short)
        yield tmp_path / "config" / "isthmus" / "mcp.json"


@pytest.fixture
def isthmus(capsys):
    """Runs a command; gives its exit code, and what it wrote to both outputs."""

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["servers", *words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


def test_without_servers_one_is_told_how_to_add_one(home, isthmus):
    """Ours: the first command that a person tries leads to the second."""
    assert (0, "", "there are no servers: isthmus servers add NAME -- COMMAND\n") == isthmus()
    assert (0, "[]\n", "") == isthmus("--json")


@pytest.mark.covers("hostservers.cli.written")
def test_servers_are_added_listed_switched_off_and_removed(home, isthmus):
    """Ours: the file is the truth, and every command but list writes it."""
    assert 0 == isthmus("add", "time", "--env", "TZ=UTC", "--", "uvx", "mcp-server-time", "-v")[0]
    assert 0 == isthmus("add", "crm", "https://crm.example/mcp", "--header", "X-Tenant=a")[0]
    assert {
        "time": {"command": "uvx", "args": ["mcp-server-time", "-v"], "env": {"TZ": "UTC"}},
        "crm": {"url": "https://crm.example/mcp", "headers": {"X-Tenant": "a"}},
    } == json.loads(home.read_text())["mcpServers"]
    assert 0 == isthmus("disable", "time")[0]
    listed = json.loads(isthmus("list", "--json")[1])
    assert [("time", "disabled"), ("crm", "not running")] == [
        (one["name"], one["state"]) for one in listed
    ]
    code, out, err = isthmus()
    assert (0, "no host is running here; this is what is configured\n") == (code, err)
    assert ["name", "time", "crm"] == [line.split()[0] for line in out.splitlines()]
    assert 0 == isthmus("enable", "time")[0]
    assert (0, "not running") == (
        isthmus("remove", "crm")[0],
        json.loads(isthmus("list", "--json")[1])[0]["state"],
    )
    assert ["time"] == list(json.loads(home.read_text())["mcpServers"])


def test_a_bad_entry_is_refused_before_anything_is_written(home, isthmus):
    """Ours: a URL and a command exclude each other, and so do their options."""
    for words, hint in (
        (("add", "x"), "a server is a URL, or a command after --"),
        (("add", "x", "https://x.example", "--", "run"), "a server is a URL, or a command"),
        (("add", "x", "uvx"), "'uvx' is no URL; a command follows after --: -- uvx"),
        (("add", "x", "https://x.example", "--env", "A=1"), "--env goes with a command"),
        (("add", "x", "--header", "A=1", "--", "run"), "--header goes with a URL"),
        (("add", "x", "--env", "A", "--", "run"), "'A' is not NAME=VALUE"),
        (("remove", "x"), "there is no server 'x'; there are: none"),
    ):
        code, _, err = isthmus(*words)
        assert 2 == code, err
        assert hint in err, err
    assert not home.exists()


def test_a_command_that_needs_a_running_host_says_so(home, isthmus):
    """Ours: exit code 3, and the command that starts a host."""
    isthmus("add", "time", "--", "uvx", "mcp-server-time")
    for word in ("start", "stop", "restart", "logs"):
        code, _, err = isthmus(word, "time")
        assert 3 == code, err
        assert err.rstrip().endswith(": isthmus host"), err


def test_a_broken_entry_is_listed_with_what_is_wrong_with_it(home, isthmus):
    """Ours: a server that is wrong is not one that is missing, and writes over nothing else."""
    home.parent.mkdir(parents=True)
    entry = {"command": "run\u202e", "args": ["\x1b[2J"]}
    home.write_text(json.dumps({"mcpServers": {"bad": {"command": 5}, "odd": entry}}))
    code, out, _ = isthmus()
    assert 0 == code
    assert "broken" in out
    assert not {"\x1b", "\u202e"} & set(out)


@pytest.mark.covers("hostservers.cli.running")
async def test_a_running_host_is_asked_and_does_what_is_said(home, capsys):
    """Ours: with a host running, states are live, and start, stop and logs reach it."""
    async with small_host() as host:
        assert 0 == await do_with_server("desk", "start", None)
        assert 0 == await print_servers(None, as_json=True)
        (listed,) = json.loads(capsys.readouterr().out)
        assert ("desk", "ready", "in this process") == (
            listed["name"],
            listed["state"],
            listed["where"],
        )
        assert 0 == await print_servers(None, as_json=False)
        assert "desk" in capsys.readouterr().out
        host.servers["desk"].keep_log(LogMessageParams(level="info", data="hello\x1b[2J"))
        assert 0 == await print_log("desk", as_json=False)
        assert "info: hello[2J\n" == capsys.readouterr().out
        with pytest.raises(Unknown, match="there is no server 'dest'; there are: desk"):
            await print_log("dest", as_json=False)
        assert 0 == await do_with_server("desk", "stop", None)
        assert "idle" == host.servers["desk"].state


@asynccontextmanager
async def small_host():
    """A host with one server, whom other processes of the user can reach."""
    host = Host()
    host.add("desk", Server("desk"))
    async with host, Control(host.view, find_user_folder()):
        yield host


@pytest.mark.covers("hostservers.cli.state")
async def test_the_host_that_runs_is_found_by_its_state(home, tmp_path, capsys):
    """Ours: also where it runs on another one than the user's, or on the file that is named."""
    file = home.parent / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"shop": {"command": "true"}}}))
    with tempfile.TemporaryDirectory() as short:
        host = Host.from_config(str(file), state=short)
        async with Control(host.view, short), host:
            await print_servers(None, short, as_json=True)
            by_state = json.loads(capsys.readouterr().out)
            await print_servers(None, as_json=True)
            without = json.loads(capsys.readouterr().out)
    with tempfile.TemporaryDirectory() as short:
        file.write_text(
            json.dumps({"mcpServers": {"shop": {"command": "true"}}, "host": {"state": short}})
        )
        host = Host.from_config(str(file))
        async with Control(host.view, short), host:
            await print_servers(str(file), as_json=True)
            by_file = json.loads(capsys.readouterr().out)

    assert ["idle", "not running", "idle"] == [
        one[0]["state"] for one in (by_state, without, by_file)
    ]


@pytest.mark.covers("hostservers.cli.pipe")
def test_a_table_in_a_pipe_is_not_cut(home, isthmus, monkeypatch):
    """Ours: a program that reads it gets all of it, whatever the width of somebody's terminal."""
    monkeypatch.setenv("COLUMNS", "40")
    words = [f"argument-{number}" for number in range(40)]
    assert 0 == isthmus("add", "a-server-with-a-name", "--", "uvx", "mcp-server-time", *words)[0]
    out = isthmus()[1]

    assert [2] == [len(out.splitlines())]
    assert " ".join(words) in out
