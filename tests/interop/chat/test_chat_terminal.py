"""A conversation in real terminals: one of tmux for the full screen, a pty for the plain lines."""

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
import uuid

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

SERVER = '''
from dataclasses import dataclass

from isthmus import Context, Server

server = Server("trips")


@dataclass
class Seat:
    row: int


@server.tool
def book(day: str) -> str:
    """Book a day."""
    return f"booked {day}"


@server.tool
async def seat(ctx: Context) -> str:
    """Choose a seat."""
    answer = await ctx.elicit("Which seat?", Seat)
    return f"seat: {answer}"


@server.tool
async def rhyme(ctx: Context) -> str:
    """Have a rhyme written."""
    return f"rhyme: {await ctx.sample('a rhyme, please', max_tokens=20)}"


@server.prompt(completes={"city": lambda: ["Paris", "Parma"]})
def plan(city: str) -> str:
    """Plan a trip."""
    return f"Plan a trip to {city}."


@server.resource("trips://tickets")
def tickets() -> str:
    """The tickets."""
    return "two tickets"
'''

SCRIPT = [
    {"when": "hello", "say": "Welcome aboard."},
    {"when": "plan a trip to parma", "say": "Parma it is."},
    {"when": "book may", "use": "trips__book", "with": {"day": "May 1"}},
    {"when": "booked", "say": "That is settled."},
    {"when": "a seat", "use": "trips__seat"},
    {"when": "seat:", "say": "Sit down."},
    {"when": "not allowed", "say": "As you like."},
    {"when": "a rhyme, please", "say": "Roses are red."},
    {"when": "write me", "use": "trips__rhyme"},
    {"when": "rhyme: ", "say": "How lovely."},
    {"when": "two tickets", "say": "There are two."},
]


@pytest.fixture
def command(tmp_path):
    """The command line, with a server and a script, and a state of its own."""
    (tmp_path / "trips.py").write_text(SERVER)
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    launch = {
        "command": sys.executable,
        "args": ["-m", "isthmus", "run", "trips.py"],
        "host": {"advertise": {"sampling": True}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"trips": launch}}))
    chat = [sys.executable, "-m", "isthmus", "chat", "--config", "mcp.json", "--state", "state"]
    return [*chat, "--provider", "scripted:script.json"]


class Tmux:
    """A terminal whose screen can be read."""

    def __init__(self, folder, command):
        self._socket = f"isthmus-{uuid.uuid4().hex[:8]}"
        self._tmux = shutil.which("tmux")
        if self._tmux is None:
            pytest.skip("not to be had: tmux")
        whole = f"{shlex.join(command)}; echo ENDED $?; cat"
        self._do("new-session", "-d", "-x", "100", "-y", "32", "-c", str(folder), whole)

    def _do(self, *words):
        argv = [self._tmux, "-f", os.devnull, "-L", self._socket, *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    @property
    def screen(self):
        return self._do("capture-pane", "-p")

    def keys(self, *keys):
        """Press keys, as tmux names them."""
        self._do("send-keys", *keys)

    def type(self, text):
        """Type a text."""
        self._do("send-keys", "-l", text)

    def resize(self, width, height):
        """Give the window another size."""
        self._do("resize-window", "-x", str(width), "-y", str(height))

    def until(self, text, seconds=20):
        """Wait until the screen shows something; the screen then."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen
            if text in screen:
                return screen
            select.select([], [], [], 0.05)
        raise AssertionError(f"{text!r} did not appear:\n{screen}")

    def answer(self, *keys):
        """Look at a card for long enough, then press keys."""
        select.select([], [], [], 0.6)
        self.keys(*keys)

    def close(self):
        """The end."""
        self._do("kill-server")


@pytest.mark.covers("hostchat.face.real-terminal")
def test_a_conversation_on_the_full_screen(tmp_path, command):
    """Ours: type, complete a command, approve, fill in a form, deny, attach, resize, quit."""
    terminal = Tmux(tmp_path, command)
    try:
        starts(terminal)
        completes(terminal)
        decides(terminal)
        attaches(terminal)
        terminal.keys("C-c")
        terminal.until("^C again quits.")
        terminal.keys("C-c")
        terminal.until("ENDED 0")
    finally:
        terminal.close()


def starts(terminal):
    """The server's command is agreed to, and the model answers."""
    terminal.until("May the server trips be run on this machine?")
    terminal.answer("A")
    terminal.until("Press y to allow it")
    terminal.keys("y")
    terminal.until("Allowed: May the server trips be run")
    terminal.until("1 server running")
    terminal.type("hello")
    terminal.keys("Enter")
    terminal.until("Welcome aboard.")


def completes(terminal):
    """A prompt is a command; its server says what goes into it."""
    terminal.type("/tri")
    terminal.until("/trips__plan   Plan a trip.")
    terminal.keys("Tab")
    terminal.until("city=   (needed)")
    terminal.type("city=Parm")
    terminal.until("\n Parma\n")
    terminal.keys("Tab", "Enter")
    terminal.until("Parma it is.")


def decides(terminal):
    """One call is allowed, another asks with a form, and the third is denied."""
    terminal.type("book May 1")
    terminal.keys("Enter")
    terminal.until("May the tool book of trips be called?")
    terminal.answer("a")
    terminal.until("That is settled.")

    terminal.type("a seat please")
    terminal.keys("Enter")
    terminal.until("May the tool seat of trips be called?")
    terminal.resize(80, 24)
    terminal.answer("a")
    terminal.until("trips asks you to fill in a form.")
    terminal.answer("a")
    terminal.until("^S send")
    terminal.type("12")
    terminal.answer("C-s")
    terminal.until("Sit down.")

    terminal.type("book May 2")
    terminal.keys("Enter")
    terminal.until("May the tool book of trips be called?")
    terminal.answer("d")
    terminal.until("As you like.")


def attaches(terminal):
    """A resource is picked, and goes along."""
    terminal.type("how many @tick")
    terminal.until("@trips+trips://tickets")
    terminal.keys("Tab", "Enter")
    terminal.until("There are two.")


class Paper:
    """A terminal of lines, with a process on it."""

    def __init__(self, folder, command):
        self.pid, self._fd = pty.fork()
        if not self.pid:  # the process itself
            os.chdir(folder)
            os.execv(command[0], command)  # noqa: S606 - our own command line
        self.text = ""

    def until(self, text, seconds=20):
        """Wait until something was printed; forget what was before it."""
        end = time.monotonic() + seconds
        while text not in self.text:
            ready = select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]
            if not ready:
                raise AssertionError(f"{text!r} did not appear in {self.text!r}")
            try:
                found = os.read(self._fd, 65536)
            except OSError as error:
                raise AssertionError(f"{text!r} did not appear in {self.text!r}") from error
            self.text += re.sub(r"\r", "", found.decode())
        before, _, self.text = self.text.partition(text)
        return before + text

    def type(self, text, *, after=0.0):
        """Type a line, once one has looked for a while."""
        select.select([], [], [], after)
        os.write(self._fd, text.encode() + b"\n")

    def end(self):
        """How the process ended."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.covers("hostchat.plain.real-terminal", "hostchat.plain.sampling")
def test_a_conversation_line_by_line(tmp_path, command):
    """Ours: the same without a full screen: questions come at the terminal, between the lines."""
    paper = Paper(tmp_path, [*command, "--plain"])

    paper.until("> ")
    paper.type("hello")
    paper.until("May the server trips be run on this machine?")
    paper.until("? why] ")
    paper.type("yes", after=0.6)
    paper.until("Welcome aboard.\n> ")
    paper.type("/trips__plan city=Pa\t")
    paper.until("  Paris\n  Parma\n> ")
    paper.type("/trips__plan city=Parma")
    paper.until("Parma it is.\n> ")
    paper.type("book May 1")
    paper.until("* the model wants to call book of trips")
    paper.until("? why] ")
    paper.type("y", after=0.6)
    paper.until("That is settled.\n> ")
    paper.type("book May 2")
    paper.until("? why] ")
    paper.type("n", after=0.6)
    paper.until("As you like.\n> ")
    paper.type("write me something")
    for question in ("May the tool rhyme", "Send the request?", "Send its answer to trips?"):
        paper.until(question)
        paper.until("? why] ")
        paper.type("y", after=0.6)
    assert "Roses are red." in paper.until("How lovely.\n> ")
    paper.type("/audit 5")
    paper.until("-- audit log --")
    paper.until("> ")
    paper.type("/quit")

    assert 0 == paper.end()
