"""`isthmus host` as a command: what it needs, and how it ends."""

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from isthmus.cli.commands.host import HostCommandOptions, run_host
from isthmus.errors import UsageError
from isthmus.host.model.events import HostNotice
from isthmus.host.remote.attached import AttachedHost

SHOP = str(Path(__file__).parents[1] / "support" / "cli" / "shop.py")
ISTHMUS = (sys.executable, "-m", "isthmus")


def ran(*words):
    """The command, in a session without a terminal: its exit code, stdout and stderr."""
    done = subprocess.run(
        [*ISTHMUS, *words],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        start_new_session=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def words(tmp_path):
    """The words of a host with one server, which nobody has to be asked about until it is used."""
    server = {"command": sys.executable, "args": ["-m", "isthmus", "run", SHOP]}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": server, "odd": {"comand": "x"}}}))
    return ("host", "--config", str(file), "--state", str(tmp_path / "state"))


@pytest.mark.covers("hostterminal.command.extra")
def test_without_the_extra_the_full_screen_says_what_to_install(monkeypatch):
    """Ours: one sentence with the command, and what works without."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(UsageError) as error:
        run_host(HostCommandOptions())
    assert (
        "the full screen needs pip install 'isthmus[host]'; --approve=prompt asks line by line "
        "without it" == str(error.value)
    )


@pytest.mark.covers("hostterminal.command.extra")
def test_the_prompt_needs_no_extra():
    """Ours: what asks line by line loads nothing of the full screen."""
    code = (
        "import sys, isthmus.cli.commands.host, isthmus.cards.cards\n"
        "print([m for m in ('textual', 'watchfiles', 'tomlkit') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20
    )

    assert "[]\n" == done.stdout


def test_the_full_screen_needs_a_terminal(words):
    """Ours: in a pipe the command says so, and what to do instead, at once."""
    code, out, err = ran(*words)

    assert (2, "") == (code, out)
    assert "isthmus: the full screen needs a terminal; --approve=prompt asks" in err


def test_to_attach_there_has_to_be_a_host(tmp_path):
    """Ours: where none runs, the sentence names the folder."""
    code, _, err = ran("host", "--attach", "--approve=none", "--state", str(tmp_path))

    assert 2 == code
    assert str(tmp_path) in err


@pytest.mark.parametrize("approve", ["none", "prompt"])
def test_a_host_without_a_terminal_runs_until_a_signal_ends_it(words, approve):
    """Ours: a host is a process like any other; a second one on the same state says so."""
    with subprocess.Popen(
        [*ISTHMUS, *words, "--approve", approve],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # without a terminal of its own
        text=True,
    ) as process:
        try:
            told = [process.stderr.readline() for _ in range(2)]
            assert told[0].startswith("isthmus: odd: ")
            assert told[1].startswith("isthmus: the host runs")
            code, _, err = ran(*words, "--approve", approve)
            assert 2 == code
            assert "a host runs on" in err
            os.kill(process.pid, signal.SIGTERM)
            out, err = process.communicate(timeout=15)
        finally:
            process.kill()

    assert (0, "", "") == (process.returncode, out, err)


def test_a_host_without_any_server_says_how_to_add_one(tmp_path):
    """Ours: who starts a host before anything else is told what comes first."""
    empty = tmp_path / "mcp.json"
    empty.write_text("{}")
    words = ("host", "--config", str(empty), "--state", str(tmp_path), "--approve", "none")
    with subprocess.Popen(
        [*ISTHMUS, *words], stderr=subprocess.PIPE, start_new_session=True, text=True
    ) as process:
        try:
            told = process.stderr.readline()
        finally:
            process.kill()

    assert told.startswith("isthmus: no server is configured: isthmus servers add NAME -- COMMAND")


@pytest.mark.covers("hostservers.reload.told")
def test_a_file_that_is_edited_counts_at_once_and_what_is_different_is_told(words):
    """Ours: a new server is there, a broken entry says why, and other terminals hear of it, too."""
    file = Path(words[2])
    entries = json.loads(file.read_text())["mcpServers"]
    entries = {"store": entries["shop"], "odd": {"comand": "y", "command": 7}}
    with subprocess.Popen(
        [*ISTHMUS, *words, "--approve", "none"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        try:
            begun = [process.stderr.readline() for _ in range(2)]
            changed = file.with_name("changed.json")
            changed.write_text(json.dumps({"mcpServers": entries}))
            edit = partial(changed.replace, file)  # nobody reads half of it
            seen, servers = asyncio.run(heard_of(words[4], edit))
            told = [process.stderr.readline() for _ in range(2)]
        finally:
            process.kill()

    difference = "added: store; removed: shop; broken: odd"
    assert ([("", difference), ("odd", seen[1][1])], ["store", "odd"]) == (seen, servers)
    assert [f"isthmus: config: {difference}\n", f"isthmus: odd: {seen[1][1]}\n"] == told
    assert begun[0].startswith("isthmus: odd: ")


async def heard_of(state, edit):
    """What a surface hears of the configuration while it is edited, and the servers after that."""
    async with AttachedHost(state) as view:
        seen, events = [], view.events()
        edit()
        while len(seen) < 2:
            event = await anext(events)
            if isinstance(event, HostNotice) and event.about == "config":
                seen.append((event.server, event.text))
        return seen, [server.name for server in view.servers()]
