"""A client at the terminal: who answers questions, where progress and logs go."""

import asyncio
import os
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isthmus.cli.elicit import Keyboard, answer, forget_typing, unattended
from isthmus.cli.output import note
from isthmus.cli.targets import Target
from isthmus.core.answers import Answer
from isthmus.core.plain_text import clean
from isthmus.errors import quote_text
from isthmus.transports.command import Command
from isthmus.wire import ElicitParams, LogMessageParams, ProgressParams

if TYPE_CHECKING:
    from rich.progress import TaskID

    from isthmus.client.client import Client
    from isthmus.client.targets import EraChoice
    from isthmus.transports.http.bearer import Authorization

__all__ = ["Options", "Talk"]

WORDS = 20
"""Lines of a launched server's standard error that are shown where something failed there."""


@dataclass(frozen=True)
class Options:
    """What every command that talks to a server takes.

    Attributes:
        as_json: print JSON for a program.
        revision: speak this revision, or None for the best both know.
        timeout: seconds for connecting and for a call, or None for the client's own limits.
        token_env: the variable that holds a token, or None for those that a login has kept.
        opened: the era in which the connection is opened, or None to find out.
    """

    as_json: bool = False
    revision: str | None = None
    timeout: float | None = None
    token_env: str | None = None
    opened: "EraChoice | None" = None

    def authorization(self, target: Target) -> "Authorization | None":
        """What gets the tokens that a server wants.

        Raises:
            UsageError: the variable is not there, or the target takes no tokens.
        """
        if self.token_env is None and isinstance(target.where, Command):
            return None
        from isthmus.cli.credentials import authorization

        return authorization(target, self.token_env, os.environ)


@dataclass
class Talk:
    """One conversation with a server, as seen from a terminal.

    Attributes:
        target: where the server is.
        options: what the command line said.
        heard: what a launched server wrote to standard error, the last lines of it.
    """

    target: Target
    options: Options
    heard: deque[str] = field(default_factory=lambda: deque(maxlen=WORDS))
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _bar: "Bar | None" = None

    def client(self) -> "Client":
        """A client for the target, not yet connected."""
        from isthmus.client.client import Client
        from isthmus.client.targets import launched

        where = self.target.where
        limits: dict[str, Any] = {}
        if self.options.timeout is not None:
            kinds = ("timeout", "max_timeout", "connect_timeout")
            limits = dict.fromkeys(kinds, self.options.timeout)
        return Client(
            launched(where, self.heard.append) if isinstance(where, Command) else where,
            elicit=self.elicit,
            on_log=self.log,
            name="isthmus-cli",
            revision=self.options.revision,
            era=self.options.opened or "auto",
            headers=dict(self.target.headers) or None,
            auth=self.options.authorization(self.target),
            **limits,
        )

    async def elicit(self, question: ElicitParams) -> Answer[Any]:
        """Ask the person here; one question at a time, and none where nobody is here."""
        if not sys.stdin.isatty():
            return await unattended(question)
        async with self._asking:
            self.settle()
            forget_typing(sys.stdin.fileno())
            return await answer(question, Keyboard())

    def log(self, message: LogMessageParams) -> None:
        """A line of the server's log, on stderr."""
        logger = f" {message.logger}" if message.logger else ""
        note(quote_text(f"[{message.level}{logger}] {message.data}"))

    def last_words(self) -> None:
        """What the server wrote to standard error about the request that failed."""
        if self.heard:
            note(
                "\n".join(
                    [
                        "the server wrote to standard error:",
                        *(f"  | {quote_text(line)}" for line in self.heard),
                    ]
                )
            )

    def progress(self, update: ProgressParams) -> None:
        """Show how far a call is, where somebody can see it."""
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = Bar()
            self._bar.show(update)

    def settle(self) -> None:
        """Take the progress bar away, before something else is printed."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.end()


class Bar:
    """A progress bar on stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress: Progress = Progress(console=Console(stderr=True), transient=True)
        self._task: TaskID = self._progress.add_task("", total=None)
        self._progress.start()

    def show(self, update: ProgressParams) -> None:
        """Move it to where the server says the call is."""
        self._progress.update(
            self._task,
            completed=update.progress,
            total=update.total or None,
            description=clean(update.message or "").replace("[", r"\["),
        )

    def end(self) -> None:
        """Take it away."""
        self._progress.stop()
