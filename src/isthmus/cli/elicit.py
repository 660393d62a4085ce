"""A server's question, asked at the terminal blank by blank."""

import asyncio
import sys
import threading
from contextlib import suppress
from typing import Any

from isthmus.cli.output import note
from isthmus.client.elicitation import concerns
from isthmus.core.answers import Accepted, Answer, Declined
from isthmus.core.plain_text import clean
from isthmus.terminal.filling import Terminal, agreed, fill
from isthmus.wire import ElicitParams

__all__ = ["Keyboard", "answer", "forget_typing", "unattended"]


class Keyboard:
    """The person at this process's terminal: asked on stderr, heard on stdin."""

    def say(self, text: str) -> None:
        """Show a line, cleaned of what a terminal would obey."""
        note(text)

    async def ask(self, prompt: str) -> str | None:
        """One line from stdin, read beside the event loop so that the connection stays alive."""
        note_inline(prompt)
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def settle(text: str) -> None:
            if not line.done():
                line.set_result(text)

        def read() -> None:
            text = sys.stdin.readline()
            loop.call_soon_threadsafe(settle, text)

        # A daemon: nothing waits for the person once the call is over.
        threading.Thread(target=read, name="keyboard", daemon=True).start()
        text = await line
        if not text:
            note("")  # control-D leaves the cursor behind the question
            return None
        return text.rstrip("\r\n")


def forget_typing(terminal: int) -> None:
    """Drop what was typed before a question is asked: it is no answer to it."""
    try:
        import termios
    except ImportError:  # no terminal of this kind on this system
        return
    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)


def note_inline(prompt: str) -> None:
    """A prompt on stderr, with the cursor left behind it."""
    print(clean(prompt), end="", file=sys.stderr, flush=True)


async def unattended(question: ElicitParams) -> Answer[Any]:
    """Nobody is here to answer: say so once, and decline rather than hang."""
    note(
        f"declined: the server asks {question.message!r}, and standard input is no terminal; "
        "run this command at a terminal to answer"
    )
    return Declined()


async def answer(question: ElicitParams, terminal: Terminal) -> Answer[Any]:
    """What the person says to a server's question.

    Control-D anywhere is turning away without choosing; what was filled in is shown for a last
    yes or no before it is sent (spec 2026-07-28 client/elicitation: review before sending).
    """
    terminal.say(f"The server asks: {question.message}")
    if question.mode == "url":
        return await _visit(str(question.url), terminal)
    return await fill(question.requested_schema or {}, terminal)


async def _visit(url: str, terminal: Terminal) -> Answer[Any]:
    """Show where the server sends the person, whole, and open it only on a yes."""
    # spec 2026-07-28 client/elicitation#safe-url-handling: show the full URL, open on consent
    terminal.say(f"It wants you to visit this page:\n  {url}")
    for concern in concerns(url):
        terminal.say(f"  careful: {concern}")
    said = await agreed({}, "Open it in the browser? [y/n] ", terminal)
    if isinstance(said, Accepted):
        import webbrowser

        webbrowser.open(url)
        return Accepted(None)
    return said
