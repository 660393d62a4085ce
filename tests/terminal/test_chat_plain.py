"""The conversation line by line."""

import asyncio
import subprocess
import sys

import pytest

from isthmus import Server
from isthmus.host.chat.conversation import Conversation
from isthmus.host.model.interaction import Decision
from isthmus.host.providers.provider import ProviderUnavailable
from isthmus.host.providers.scripted import Scripted, Slow
from isthmus.terminal.chat.plain import LendingApprover, PlainChat, TtyLines
from isthmus.terminal.chat.session import ChatModel, ChatSession
from isthmus.terminal.prompt.tty import NoTerminal
from isthmus.wire import ToolUseContent
from support.host.plain_host import PlainHost
from support.host.waiting_host import make_interaction


def trips():
    """A server with a tool and a prompt."""
    server = Server("trips")

    @server.tool
    def book(day: str) -> str:
        """Book a day."""
        return f"booked {day}"

    @server.prompt(completes={"city": lambda: ["Paris", "Parma"]})
    def plan(city: str) -> str:
        """Plan a trip."""
        return f"Plan {city}."

    return server


class Typed:
    """Lines that somebody types."""

    def __init__(self, *lines):
        self.rest = list(lines)
        self.stopped = False

    async def next(self):
        """The next one."""
        line = self.rest.pop(0) if self.rest and not self.stopped else None
        return line() if callable(line) else line

    def stop(self):
        """No more."""
        self.stopped = True


async def talk(lines, script, prepare=None):
    """What is said and noted in a conversation, and the conversation."""
    async with PlainHost(trips=trips()) as host:
        await host.catalog.load()
        provider = Scripted(script)
        session = ChatSession(
            host, Conversation(host, provider, "m"), {"m": ChatModel(provider, "m")}, "m"
        )
        said, notes = [], []
        plain = PlainChat(
            session, Typed(*lines), say=said.append, note=notes.append, clock=lambda: 9.0
        )
        if prepare is not None:
            prepare(plain)
        await plain.run()
    return "".join(said), "\n".join(notes), plain


@pytest.mark.covers("hostchat.plain.words-apart")
async def test_the_words_of_the_model_come_apart_from_everything_else():
    """Ours: a pipe gets the answer and nothing more."""
    script = ["Hi.", ToolUseContent(id="1", name="trips__book", input={"day": "x"}), "Booked."]

    said, notes, plain = await talk(["hello", "book x"], script)

    assert "Hi.\nBooked.\n" == said
    assert '* the model wants to call book of trips\n  | {\n  |   "day": "x"\n  | }' in notes
    assert "* trips__book is done\n  | booked x" in notes
    assert not plain.failed


async def test_commands_and_completion_work_in_lines_too():
    """Ours: what ends with a tab is completed, what begins with a slash is a command."""
    said, notes, _ = await talk(
        ["/trips__plan city=Pa\t", "/trips__plan city=Parma", "/tools", "/quit", "never"], ["Bon."]
    )

    assert "Bon.\n" == said
    assert "  Paris\n  Parma" in notes
    assert "Plan Parma." in notes
    assert "trips__book: Book a day." in notes


async def test_a_turn_without_an_answer_counts_as_failed():
    """Ours: a script that uses this learns of it."""
    said, notes, plain = await talk(["hello"], [ProviderUnavailable("nobody there")])

    assert "" == said
    assert plain.failed
    assert "  ! No answer: nobody there" == notes


async def test_control_c_stops_the_answer_and_twice_leaves():
    """Ours: the first one stops what goes on."""
    plains = []

    def answer(_completion):
        plains[0].interrupt()
        return Slow("never", float("inf"))

    def again():
        plains[0].interrupt()
        return ""

    said, notes, plain = await talk(["hello", again, "never"], answer, plains.append)

    assert "" == said
    assert plain.failed
    assert "Stopped." in notes
    assert plain._session.quitting


class Paper:
    """A terminal in which nothing is typed until somebody interrupts."""

    def __init__(self):
        self.shown = []
        self.lines = []
        self.waiting = asyncio.Event()
        self._interrupted = asyncio.Event()

    def say(self, text, end="\n"):
        """Show it."""
        self.shown.append(text + end)

    async def line(self):
        """What was typed; None when interrupted."""
        if self.lines:
            return self.lines.pop(0)
        self.waiting.set()
        await self._interrupted.wait()
        self._interrupted.clear()
        return None

    def interrupt(self):
        """Wait no more."""
        self._interrupted.set()

    def close(self):
        """Nothing to do."""


class Asker:
    """An approver that looks at what else goes on at the terminal."""

    name, assurance = "prompt", "local_ui"

    def __init__(self, paper):
        self.paper = paper

    async def offer(self, interaction):
        """Yes; meanwhile a line is prepared for the keyboard."""
        self.paper.lines.append("typed afterwards")
        return Decision(verdict="allow", by=interaction.id)


@pytest.mark.covers("hostchat.plain.terminal-lent")
async def test_a_question_has_the_terminal_to_itself():
    """Ours: two that read from one terminal would each get half of what is typed."""
    paper = Paper()
    keyboard = TtyLines(lambda: paper)
    waiting = asyncio.ensure_future(keyboard.next())
    await paper.waiting.wait()

    decision = await LendingApprover(Asker(paper), keyboard).offer(make_interaction("q1"))

    assert "q1" == decision.by
    assert "typed afterwards" == await waiting
    assert ["> ", "> "] == paper.shown


async def test_a_terminal_that_is_gone_ends_the_conversation():
    """Ours: no loop that asks nobody."""

    class Gone(Paper):
        def say(self, text, end="\n"):
            raise NoTerminal("hung up")

    assert None is await TtyLines(Gone).next()


WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"textual", "watchfiles", "tomlkit"}:
            raise ImportError(name)

sys.meta_path.insert(0, Without())
import isthmus.cli.commands.chat
import isthmus.terminal.chat.plain
import isthmus.terminal.prompt.prompt
"""


@pytest.mark.covers("hostchat.plain.without-extra")
def test_lines_need_no_extra():
    """Ours: pip install isthmus is enough for a conversation line by line."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, check=False)

    assert (0, b"") == (done.returncode, done.stderr)
