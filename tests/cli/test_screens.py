"""The full screens as commands on a real terminal, and what they leave of it."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios

import pytest

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"

START = """
import os, runpy, sys
os.close(os.open(sys.argv.pop(1), os.O_RDWR))  # the terminal of this session
runpy.run_module("isthmus", run_name="__main__", alter_sys=True)
"""


class Terminal:
    """A terminal of a session of its own, with a command in it."""

    def __init__(self, *words):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, os.ttyname(self.slave), *words],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def until(self, text):
        """Read what it writes until something is there."""
        while text not in self.seen:
            ready = select.select([self.master], [], [], 30)[0]
            assert ready, f"{text!r} does not come: {self.seen!r}"
            self.seen += os.read(self.master, 65_536)

    def end(self):
        """Wait until the command has ended, reading what it writes; its exit code."""
        while self.process.poll() is None:
            if select.select([self.master], [], [], 0.05)[0]:
                self.seen += os.read(self.master, 65_536)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65_536)
        return self.process.returncode


@pytest.fixture
def words(tmp_path):
    """The words of each command, with no servers and a model that says nothing."""
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    (tmp_path / "script.json").write_text(json.dumps([]))
    common = ("--config", str(tmp_path / "mcp.json"), "--state", str(tmp_path / "state"))
    chat = ("chat", "--provider", f"scripted:{tmp_path / 'script.json'}", *common)
    return {"chat": chat, "plain": (*chat, "--plain"), "host": ("host", *common)}


@pytest.mark.covers("hostterminal.command.restored")
@pytest.mark.parametrize("command", ["chat", "host"])
@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_full_screen_and_leaves_the_terminal_as_it_was(words, command, ends):
    """Ours: keys are shown again, the other screen is left, and the mouse is nobody's."""
    with Terminal(*words[command]) as terminal:
        terminal.until(b"isthmus " + command.encode())
        os.kill(terminal.process.pid, ends)
        code = terminal.end()

        assert code == 0
        assert terminal.before == termios.tcgetattr(terminal.slave)
        assert terminal.seen.rindex(LEAVE) > terminal.seen.rindex(ENTER)


@pytest.mark.covers("hostterminal.command.restored")
def test_a_signal_ends_a_conversation_in_lines(words):
    """Ours: in order, as it ends the full screen."""
    with Terminal(*words["plain"]) as terminal:
        terminal.until(b"> ")
        os.kill(terminal.process.pid, signal.SIGTERM)
        code = terminal.end()

        assert code == 0
        assert terminal.before == termios.tcgetattr(terminal.slave)
