"""`isthmus host` in a real terminal, with servers in processes of their own."""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from support.terminal.panes import Tmux

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux"),
]

HOST = (sys.executable, "-m", "isthmus", "host")
ASKER = str(Path(__file__).with_name("asking_server.py"))
EDITOR = """\
import json, pathlib, sys
file = pathlib.Path(sys.argv[1])
file.write_text(json.dumps(json.loads(file.read_text())[:1]))
"""


@pytest.fixture
def tmux(tmp_path):
    """Terminals whose editor leaves only the first of what it is given."""
    script = tmp_path / "editor.py"
    script.write_text(EDITOR)
    found = Tmux(tmp_path, {"VISUAL": "", "EDITOR": f"{sys.executable} {script}"})
    yield found
    found.close()


def configured(folder, servers, roots=()):
    """The words of a host with these servers."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers, "host": {"roots": list(roots)}}))
    return (*HOST, "--config", str(file), "--state", str(folder / "state"))


def asker(folder, **options):
    """A server that asks as soon as it is connected."""
    words = [ASKER, str(folder / "answers")]
    return {"command": sys.executable, "args": words, "host": options}


def answers(folder, count):
    """What the server was answered, once it is that much; None for what there is."""
    end = time.monotonic() + 30
    while True:
        file = folder / "answers"
        lines = file.read_text().splitlines() if file.exists() else []
        if count is None or len(lines) == count:
            return [json.loads(line) for line in lines]
        assert time.monotonic() < end, lines
        time.sleep(0.05)


def running(word):
    """Whether a process has this word on its command line."""
    found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.name != "self"]
    lines = []
    for path in found:
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    return any(word.encode() in line.split(b"\0") for line in lines)


def gone(word):
    """Wait until no process has this word on its command line."""
    end = time.monotonic() + 30
    while running(word):
        assert time.monotonic() < end, f"{word} is still there"
        time.sleep(0.1)


def test_typing_approving_editing_denying_and_resizing(tmux, tmp_path):
    """Ours: a person starts a server, edits what it may see, fills in a form, says no, and leaves."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    roots = [{"path": str(one)}, {"path": str(two)}]
    host = tmux.open("host", *configured(tmp_path, {"asker": asker(tmp_path)}, roots))

    host.until("0 questions")
    host.press("2", "asker: idle")
    host.type("s")
    host.press("1", "run the server asker")
    host.press("A", "Press y to allow it")
    host.type("y")

    host.until("May asker know of these folders?")
    host.press("e", "your changes")
    host.press("A", "Press y to allow it")
    host.resize(60, 15)
    host.press("A", "Press y to allow it")
    host.type("y")

    host.until("asker asks you to fill in a form.")
    host.press("a", "^S send")
    host.type("E", "v", "e")
    host.until(" Eve")
    host.resize(100, 30)
    host.press("C-s", "risk: medium")
    host.until("1 question ")
    (roots, form) = answers(tmp_path, 2)
    assert [one.as_uri()] == [root["uri"] for root in roots["roots"]]
    assert {"action": "accept", "content": {"name": "Eve", "side": "window"}} == form

    host.press("d", "0 questions")
    assert {"action": "decline"} == answers(tmp_path, 3)[-1]
    host.type("q")
    host.until("EXIT 0")
    gone(str(tmp_path / "answers"))


def pid_of(word):
    """The process with this word on its command line, which began with Python's -m isthmus."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"isthmus" in words and word.encode() in words and b"--attach" not in words:
            return int(path.parent.name)
    raise AssertionError(f"no host has {word}")


@pytest.mark.parametrize("end", ["SIGTERM", "SIGHUP", "window"])
def test_a_host_that_is_ended_ends_its_servers(tmux, tmp_path, end):
    """Ours: a signal, or the end of the window, leaves no process behind and answers nothing yes."""
    words = configured(tmp_path, {"asker": asker(tmp_path, start="eager")})
    host = tmux.open("host", *words)
    host.until("run the server asker")
    host.press("A", "Press y to allow it")
    host.type("y")
    host.until("asker asks you to fill in a form.")

    if end == "window":
        host.hang_up()
    else:
        os.kill(pid_of(words[-1]), getattr(signal, end))
        assert "Traceback" not in host.until("EXIT 0")
    gone(str(tmp_path / "answers"))
    gone(words[-1])

    assert {"accept"}.isdisjoint(answer.get("action") for answer in answers(tmp_path, None))


@pytest.mark.covers("hostterminal.attach.closed")
def test_two_terminals_show_one_host_and_the_last_one_to_close_denies(tmux, tmp_path):
    """Ours: the first answer counts on both; where nobody is left, what waits is denied."""
    words = configured(tmp_path, {"asker": asker(tmp_path), "other": asker(tmp_path)})
    attached = (*HOST, "--attach", "--state", words[-1])
    host = tmux.open("host", *words, "--approve", "none")
    host.until("the host runs")
    one, two = tmux.open("one", *attached), tmux.open("two", *attached, size=(60, 15))

    for pane in (one, two):
        pane.until("0 questions")
    one.press("2", "asker: idle")
    one.type("s")
    two.until("run the server asker")
    two.press("d", "0 questions")
    one.press("1", "0 questions")
    one.press("2", "asker: ")
    one.type("Down", "s")
    two.until("run the server other")
    two.type("q", "q")
    two.until("EXIT 0")
    one.press("1", "run the server other")
    one.hang_up()

    three = tmux.open("three", *attached)
    three.until("0 questions")
    three.press("3", "deny by nobody")
    host.type("C-c")
    three.until("EXIT 0")
    host.until("EXIT 0")


def test_a_prompt_asks_line_by_line_and_control_c_is_no(tmux, tmp_path):
    """Ours: without a screen of its own; control-C answers, and ends the host where it asks nothing."""
    no = {"command": "nowhere", "host": {"start": "eager"}}
    servers = {"one": no, "two": asker(tmp_path, start="eager")}
    host = tmux.open("host", *configured(tmp_path, servers), "--approve", "prompt", size=(100, 50))

    host.until("May the server one be run on this machine?")
    host.until("? why]")
    host.type("C-c")
    host.until("May the server two be run on this machine?")
    host.look_at(2, "? why]")
    host.type("y", "Enter")
    host.until("That is not one of the answers.")
    host.look_at(3, "? why]")
    host.type("yes", "Enter")
    host.until("asks you to fill in a form.")
    host.look_at(4, "? why]")
    host.type("y", "Enter")
    host.until("name (text, 2 characters or more):")
    host.type("Eve", "Enter")
    host.until("side (1 to 2, empty for window):")
    host.type("Enter")
    host.until("Send this? [y/n]")
    host.type("y", "Enter")
    found = answers(tmp_path, 2)[1]
    assert {"action": "accept", "content": {"name": "Eve", "side": "window"}} == found

    host.until("? why]")
    host.type("C-c")
    assert {"action": "cancel"} == answers(tmp_path, 3)[2]
    host.type("C-c")
    host.until("EXIT 0")


def test_a_server_of_other_people_is_started_stopped_and_looked_at(tmux, tmp_path, python_of):
    """Ours: mcp-server-time under the terminal: the exact command, its state, what it says it is."""
    program = str(python_of("servers").parent / "mcp-server-time")
    servers = {"time": {"command": program, "args": ["--local-timezone", "UTC"]}}
    host = tmux.open("host", *configured(tmp_path, servers), size=(120, 40))

    host.press("2", "time: idle")
    host.type("s")
    assert "1: --local-timezone" in host.press("1", "run the server time")
    host.press("A", "Press y to allow it")
    host.type("y")
    host.until("start of time: done")
    assert "says it is: mcp-time" in host.press("2", "time: ready")
    host.type("x")
    host.until("stop of time: done")
    gone(program)
    host.press("q", "EXIT 0")
