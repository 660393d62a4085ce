"""The conversation line by line, where there is no full screen: also in a pipe.

The words of the model go to one stream and all else to another, so that a program or a file can get
the words only. Questions are asked on the terminal itself.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from isthmus.cards.lines import StyledLine, error_lines
from isthmus.host.model.interaction import Approver, Decision, Interaction
from isthmus.host.model.trace import Assurance
from isthmus.host.turns import (
    Ended,
    Inserted,
    Noted,
    Question,
    Text,
    ToolAsked,
    ToolDone,
    ToolRunning,
)
from isthmus.terminal.chat.completion import list_suggestions
from isthmus.terminal.chat.lines import (
    describe_inserted,
    describe_tool_call,
    describe_tool_outcome,
    describe_turn_end,
    format_progress,
)
from isthmus.terminal.chat.session import ChatItem, ChatSession
from isthmus.terminal.prompt.tty import NoTerminal, Tty

LEAVE_WINDOW_S = 2.0  # a second Ctrl-C leaves


class LineSource(Protocol):
    """A source of lines: a keyboard or a stream."""

    async def next(self) -> str | None:
        """The next line; None at the end."""
        ...

    def stop(self) -> None:
        """Wait for no line any more."""
        ...


class StdinLines:
    """The lines of standard input, which is no terminal."""

    async def next(self) -> str | None:
        """The next one, read beside the event loop."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[str] = loop.create_future()

        def settle(text: str) -> None:
            if not heard.done():
                heard.set_result(text)

        def read() -> None:
            text = sys.stdin.readline()
            try:
                loop.call_soon_threadsafe(settle, text)
            except RuntimeError:  # the loop is closed: nobody waits
                return

        threading.Thread(target=read, name="lines", daemon=True).start()
        return await heard or None

    def stop(self) -> None:
        """A pipe ends when its other end does."""


class TtyLines:
    """Lines typed at the terminal, which is lent to questions while they are asked."""

    def __init__(self, open: Callable[[], Tty] = Tty) -> None:
        self._tty = open()
        self._free = asyncio.Event()
        self._free.set()
        self._lent = False

    async def next(self) -> str | None:
        """The next line, after a prompt; asked for again where a question came between."""
        while True:
            await self._free.wait()
            self._lent = False
            try:
                self._tty.say("> ", end="")
                text = await self._tty.line()
            except NoTerminal:
                return None
            if text is not None or not self._lent:
                return text

    def stop(self) -> None:
        """Wait for no line any more."""
        self._tty.interrupt()

    def lend(self) -> None:
        """Lend the terminal: somebody else reads from it now."""
        self._free.clear()
        self._lent = True
        self._tty.interrupt()

    def take_back(self) -> None:
        """They are done."""
        self._free.set()

    def close(self) -> None:
        """Leave the terminal."""
        self._tty.close()


class LendingApprover:
    """An approver that gets the terminal to itself while it asks.

    Args:
        approver: asks there.
        keyboard: what else is typed there.
    """

    name: str
    assurance: Assurance

    def __init__(self, approver: Approver, keyboard: TtyLines) -> None:
        self.name = approver.name
        self.assurance = approver.assurance
        self._approver = approver
        self._keyboard = keyboard
        self._asking = 0

    async def offer(self, interaction: Interaction) -> Decision:
        """Ask; what was being typed has to be typed again."""
        self._asking += 1
        self._keyboard.lend()
        try:
            return await self._approver.offer(interaction)
        finally:
            self._asking -= 1
            if not self._asking:
                self._keyboard.take_back()


class PlainChat:
    """A conversation in lines.

    Args:
        session: does what is typed.
        lines: where that comes from.
        say: gets what the model says, piece by piece.
        note: gets everything else, a line each.
        clock: seconds that only go forward.

    Attributes:
        failed: whether the last turn got no answer.
    """

    def __init__(
        self,
        session: ChatSession,
        lines: LineSource,
        *,
        say: Callable[[str], None],
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failed = False
        self._session = session
        self._lines = lines
        self._say = say
        self._note = note
        self._clock = clock
        self._inside = False
        self._interrupted = float("-inf")
        self._turn: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Talk until the lines end, or somebody quits."""
        self._lines_of(self._session.concerns())
        while not self._session.quitting:
            text = await self._lines.next()
            if text is None:
                return
            if text.endswith("\t"):
                found = await list_suggestions(text.rstrip("\t"), self._session.talk)
                self._lines_of(StyledLine(f"  {one.label}") for one in found)
                continue
            self._turn = asyncio.ensure_future(self._enter(text))
            await asyncio.wait((self._turn,))
            if not self._turn.cancelled():
                self._turn.result()

    async def run_until(self, end: asyncio.Event) -> None:
        """Talk as :meth:`run` does; where the event is set before that is over, stop what goes on."""
        talking = asyncio.ensure_future(self.run())
        ending = asyncio.ensure_future(end.wait())
        try:
            await asyncio.wait({talking, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            if not talking.done():
                self._session.talk.cancel()
                talking.cancel()
            await asyncio.gather(talking, return_exceptions=True)
        if not talking.cancelled():
            talking.result()

    def interrupt(self) -> None:
        """Control-C: stop what goes on; twice, leave."""
        now = self._clock()
        if now - self._interrupted < LEAVE_WINDOW_S:
            self._session.quitting = True
            self._lines.stop()
        self._interrupted = now
        if self._session.talk.busy:
            self._session.talk.cancel()
        elif self._turn is not None and not self._turn.done():
            self._turn.cancel()
        self._note("^C again quits.")

    async def _enter(self, text: str) -> None:
        async for item in self._session.enter(text):
            self._show(item)
        self._break()

    def _break(self) -> None:
        """End the line that the model has begun."""
        if self._inside:
            self._say("\n")
            self._inside = False

    def _lines_of(self, lines: Iterable[StyledLine]) -> None:
        for line in lines:
            self._break()
            self._note(line.text)

    def _show(self, item: ChatItem) -> None:
        match item:
            case Text():
                self._inside = True
                self._say(item.text)
            case StyledLine():
                self._lines_of([item])
            case Inserted():
                self._lines_of(describe_inserted(item.messages))
            case ToolAsked():
                self._lines_of(describe_tool_call(item))
            case ToolRunning():
                self._lines_of([StyledLine(format_progress(item))])
            case ToolDone():
                self._lines_of(describe_tool_outcome(item))
            case Noted():
                self._lines_of(error_lines(item.text))
            case Ended():
                self._break()
                self.failed = item.why != "done"
                self._lines_of(describe_turn_end(item))
            case Question():
                pass  # the approver shows it
