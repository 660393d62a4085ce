"""The client of commands that talk to a server: questions, progress, logs and tokens at a terminal.

No command but ``login`` opens a browser: where a login is needed the error says how.
"""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.cli.declarations import Invocation
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.output import print_note
from isthmus.cli.targets import (
    TARGET_HELP,
    CliTarget,
    extend_target,
    find_http_url,
    read_target,
)
from isthmus.client.features.elicitation import concerns
from isthmus.core.answers import Accepted, Answer, Declined
from isthmus.core.text import clean_text
from isthmus.errors import InternalError, UsageError, quote_text
from isthmus.terminal.prompt.forms import FormTerminal, ask_form, confirm_content
from isthmus.transports.command import Command
from isthmus.wire import ElicitParams, LogLevel, LogMessageParams, ProgressParams

if TYPE_CHECKING:
    from rich.progress import TaskID

    from isthmus.client.client import Client
    from isthmus.client.targets import EraChoice
    from isthmus.transports.http.client.requests import Authorization

MAX_STDERR_LINES = 20  # of a launched server, shown where something failed there


@dataclass(frozen=True)
class ConnectOptions:
    """Options of every command that talks to a server.

    Attributes:
        as_json: print JSON for a program.
        revision: speak this revision, or None for the best both know.
        timeout: seconds for connecting and for a call, or None for the client's own limits.
        token_env: the variable that holds a token, or None for those that a login has kept.
        opened: the era in which the connection is opened, or None to find out.
        headers: ``NAME=VALUE`` each, for a server that is reached over HTTP.
        env: ``NAME=VALUE`` each, for a server that is launched.
        log_level: the least severe messages of its log that are shown, or None for the usual.
    """

    as_json: bool = False
    revision: str | None = None
    timeout: float | None = None
    token_env: str | None = None
    opened: "EraChoice | None" = None
    headers: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    log_level: "LogLevel | None" = None

    def authorization(self, target: CliTarget) -> "Authorization | None":
        """The source of the tokens that a server wants.

        Raises:
            UsageError: the variable is not there, or the target takes no tokens.
        """
        if self.token_env is None and isinstance(target.where, Command):
            return None
        return make_authorization(target, self.token_env, os.environ)


@dataclass
class TerminalClient:
    """The client of one server at a terminal: answers questions, shows progress and logs.

    Attributes:
        target: where the server is.
        options: what the command line said.
        heard: what a launched server wrote to standard error, the last lines of it.
    """

    target: CliTarget
    options: ConnectOptions
    heard: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_STDERR_LINES))
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _bar: "ProgressBar | None" = None

    def client(self) -> "Client":
        """A client for the target, not yet connected."""
        from isthmus.client.client import Client
        from isthmus.client.targets import command_target

        where = self.target.where
        limits: dict[str, Any] = {}
        if self.options.timeout is not None:
            kinds = ("timeout", "max_timeout", "connect_timeout")
            limits = dict.fromkeys(kinds, self.options.timeout)
        return Client(
            command_target(where, self.heard.append) if isinstance(where, Command) else where,
            elicit=self.elicit,
            on_log=self.log,
            name="isthmus-cli",
            revision=self.options.revision,
            era=self.options.opened or "auto",
            log_level=self.options.log_level,
            headers=dict(self.target.headers) or None,
            auth=self.options.authorization(self.target),
            **limits,
        )

    async def elicit(self, question: ElicitParams) -> Answer[Any]:
        """Ask the person here; one question at a time, and none where nobody is here."""
        if not sys.stdin.isatty():
            return await decline_unattended(question)
        async with self._asking:
            self.hide_progress()
            discard_typed(sys.stdin.fileno())
            return await answer_question(question, StdioTerminal())

    def log(self, message: LogMessageParams) -> None:
        """A line of the server's log, on stderr."""
        logger = f" {message.logger}" if message.logger else ""
        print_note(quote_text(f"[{message.level}{logger}] {message.data}"))

    def last_words(self) -> None:
        """Print what the server wrote to standard error about the request that failed."""
        if self.heard:
            print_note(
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
                self._bar = ProgressBar()
            self._bar.show(update)

    def hide_progress(self) -> None:
        """Take the progress bar away, before something else is printed."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.end()


Work: TypeAlias = Callable[[TerminalClient, list[str]], Coroutine[Any, Any, Exit]]


def run_with_target(
    context: Invocation,
    words: Sequence[str],
    options: ConnectOptions,
    work: Work,
    *needed: str,
) -> None:
    """Resolve the target among the words, then talk to it.

    Args:
        context: holds the command given after ``--``, if any.
        words: the positional words; the first is the target where no command was given.
        options: what every command takes.
        work: does the talking, given the words after the target.
        needed: names of words that must follow the target.
    """

    def run() -> Coroutine[Any, Any, Exit]:
        command = context.command
        rest = list(words)
        if not command and not rest:
            raise UsageError(f"which server? {TARGET_HELP.format(context.name)}")
        name = "" if command else rest.pop(0)
        if len(rest) < len(needed):
            raise UsageError(f"{context.name} also needs: {' '.join(needed[len(rest) :])}")
        target = extend_target(
            read_target(name, command, Path.cwd(), os.environ), options.headers, options.env
        )
        return _talk(TerminalClient(target, options), rest, work)

    finish(run)


async def _talk(client: TerminalClient, rest: list[str], work: Work) -> Exit:
    try:
        code = await work(client, rest)
    except InternalError:
        client.last_words()
        raise
    if code is Exit.TOOL_FAILED:
        client.last_words()
    return code


class ProgressBar:
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
            description=clean_text(update.message or "").replace("[", r"\["),
        )

    def end(self) -> None:
        """Take it away."""
        self._progress.stop()


class StdioTerminal:
    """The person at this process's terminal: asked on stderr, heard on stdin."""

    def say(self, text: str) -> None:
        """Show a line, cleaned of what a terminal would obey."""
        print_note(text)

    async def ask(self, prompt: str) -> str | None:
        """Read one line from stdin beside the event loop, so that the connection stays alive."""
        print_prompt(prompt)
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
            print_note("")  # control-D leaves the cursor behind the question
            return None
        return text.rstrip("\r\n")


def discard_typed(terminal: int) -> None:
    """Drop what was typed before a question is asked: it is no answer to it."""
    try:
        import termios
    except ImportError:  # no terminal of this kind on this system
        return
    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)


def print_prompt(prompt: str) -> None:
    """A prompt on stderr, with the cursor left behind it."""
    print(clean_text(prompt), end="", file=sys.stderr, flush=True)


async def decline_unattended(question: ElicitParams) -> Answer[Any]:
    """Decline a question where nobody is here to answer, and say so, rather than hang."""
    print_note(
        f"declined: the server asks {question.message!r}, and standard input is no terminal; "
        "run this command at a terminal to answer"
    )
    return Declined()


async def answer_question(question: ElicitParams, terminal: FormTerminal) -> Answer[Any]:
    """Put a server's question to the person at the terminal.

    Control-D anywhere is turning away without choosing; what was filled in is shown for a last
    yes or no before it is sent (spec 2026-07-28 client/elicitation: review before sending).
    """
    terminal.say(f"The server asks: {question.message}")
    if question.mode == "url":
        return await _offer_visit(str(question.url), terminal)
    return await ask_form(question.requested_schema or {}, terminal)


async def _offer_visit(url: str, terminal: FormTerminal) -> Answer[Any]:
    """Show where the server sends the person, whole, and open it only on a yes."""
    # spec 2026-07-28 client/elicitation#safe-url-handling: show the full URL, open on consent
    terminal.say(f"It wants you to visit this page:\n  {url}")
    for concern in concerns(url):
        terminal.say(f"  careful: {concern}")
    said = await confirm_content({}, "Open it in the browser? [y/n] ", terminal)
    if isinstance(said, Accepted):
        import webbrowser

        webbrowser.open(url)
        return Accepted(None)
    return said


def make_authorization(
    target: CliTarget, token_env: str | None, environ: Mapping[str, str]
) -> "Authorization | None":
    """The source of the tokens that a command shows a server over HTTP; None where it needs none.

    Args:
        target: the server.
        token_env: the variable that holds a token, or None.
        environ: where it is looked up. A token is never taken from the command line, which
            every other program on the machine can read.

    Raises:
        UsageError: there is no such variable, or nothing that a token could be shown to.
    """
    from isthmus.auth.client.grants.bearer_token import BearerToken
    from isthmus.auth.client.grants.oauth import StoredLogin
    from isthmus.auth.tokens.secret import Secret

    url = find_http_url(target)
    if token_env is not None:
        if url is None:
            raise UsageError(
                f"--token-env goes with a URL of HTTP, and {target.label} is none: a server that is "
                "launched takes its credentials from its environment"
            )
        if not environ.get(token_env):
            raise UsageError(f"--token-env {token_env}: there is no such variable, or it is empty")
        return BearerToken(Secret(environ[token_env]))
    if url is None or "authorization" in {name.lower() for name in target.headers}:
        return None
    return StoredLogin(target.label)
