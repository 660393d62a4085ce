"""Exit codes of the command, the errors that mean them, and the signals that end a command."""

import asyncio
import os
import signal
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import Any, NoReturn

import typer

from isthmus.cli.output import print_note
from isthmus.errors import (
    AuthError,
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    LifespanFailed,
    NotInRevision,
    PeerError,
    Refused,
    ToolFailed,
    TooManyRounds,
    UsageError,
    quote_text,
)
from isthmus.host.model.errors import (
    AuditUnavailable,
    Denied,
    Exhausted,
    HostError,
    OutcomeUnknown,
    ServerUnavailable,
    UserDeclined,
)


class Exit(IntEnum):
    """The exit codes, for scripts to branch on."""

    OK = 0
    TOOL_FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    TIMED_OUT = 5
    UNPROVED = 6
    BROKEN = 70
    INTERRUPTED = 130


EXIT_MEANINGS = {
    Exit.OK: "it worked",
    Exit.TOOL_FAILED: "the tool ran and said that it failed, or a check found errors",
    Exit.USAGE: "the command line asks for something that cannot be, or there is nothing to check",
    Exit.UNREACHABLE: "no connection came about, or it broke",
    Exit.REFUSED: "the server said no, wants a login, lacks what was asked for, or broke the protocol",
    Exit.TIMED_OUT: "no answer came within --timeout",
    Exit.UNPROVED: "a check found nothing wrong, and cannot vouch for all that it checked",
    Exit.BROKEN: "isthmus itself failed; please report it with what it printed",
    Exit.INTERRUPTED: "interrupted from the keyboard",
}

# The first row that fits decides, so the narrower types come first.
_BY_ERROR: tuple[tuple[type[BaseException], Exit], ...] = (
    (KeyboardInterrupt, Exit.INTERRUPTED),
    (CallTimedOut, Exit.TIMED_OUT),
    (ConnectFailed, Exit.UNREACHABLE),
    (LifespanFailed, Exit.UNREACHABLE),
    (ConnectionLost, Exit.UNREACHABLE),
    (ToolFailed, Exit.TOOL_FAILED),
    (PeerError, Exit.REFUSED),
    (AuthError, Exit.REFUSED),
    (TooManyRounds, Exit.REFUSED),
    (CapabilityMissing, Exit.REFUSED),
    (NotInRevision, Exit.REFUSED),
    (ServerUnavailable, Exit.UNREACHABLE),
    (OutcomeUnknown, Exit.UNREACHABLE),
    (Denied, Exit.REFUSED),
    (UserDeclined, Exit.REFUSED),
    (Exhausted, Exit.REFUSED),
    (AuditUnavailable, Exit.REFUSED),
    (HostError, Exit.USAGE),
    (UsageError, Exit.USAGE),
)


def exit_for(error: BaseException) -> Exit:
    """The exit code an error means; ``BROKEN`` for one that nobody foresaw."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.BROKEN)


def finish(work: Callable[[], Exit | Coroutine[Any, Any, Exit | None] | None]) -> NoReturn:
    """Do the work and leave with its exit code; a foreseen error is one message on stderr."""
    with exit_at_error():
        done = work()
        code = (asyncio.run(done) if isinstance(done, Coroutine) else done) or Exit.OK
    raise typer.Exit(code)


@contextmanager
def exit_at_error() -> Iterator[None]:
    """Leave with the exit code of an error; a foreseen one is one message on stderr."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(Exit.OK) from None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        code = exit_for(error)
        print_note(f"isthmus: {_format_error(error, code)}")
        raise typer.Exit(code) from None


def _format_error(error: BaseException, code: Exit) -> str:
    if code is Exit.INTERRUPTED:
        return "interrupted"
    if code is Exit.BROKEN:
        return "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, LifespanFailed) and error.__cause__ is not None:
        return f"{error}\n{''.join(traceback.format_exception(error.__cause__)).rstrip()}"
    late = code is Exit.TIMED_OUT or "no connection within" in str(error)
    more = "; --timeout SECONDS allows more" if late else ""
    data = f": {quote_text(error.data)}" if isinstance(error, Refused) and error.data else ""
    return f"{quote_text(error)}{data}{more}"


ENDING_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")  # not every system has all of them


@contextmanager
def set_on_signals() -> Iterator[asyncio.Event]:
    """An event that is set when a signal wants this process to end."""
    end = asyncio.Event()
    with handle_signals(dict.fromkeys(ENDING_SIGNALS, end.set)):
        yield end


@contextmanager
def handle_signals(handlers: Mapping[str, Callable[[], None]]) -> Iterator[None]:
    """Handle signals, where this system has them and its event loop can."""
    loop = asyncio.get_running_loop()
    handled = []
    for name, handler in handlers.items():
        number = getattr(signal, name, None)
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not everywhere
            if number is not None:
                loop.add_signal_handler(number, handler)
                handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
