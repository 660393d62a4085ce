"""Ends of a command: the exit codes that errors mean, and the signals that end it."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NoReturn

from isthmus import errors
from isthmus.cli.exit_codes import Exit
from isthmus.errors import LifespanFailed, Refused, quote_text


@cache
def _list_errors() -> tuple[tuple[type[BaseException], Exit], ...]:
    """The errors and what they mean; the first row that fits decides, so the narrower come first."""
    from isthmus.host.model import errors as host_errors  # what works needs none of it

    return (
        (KeyboardInterrupt, Exit.INTERRUPTED),
        (errors.CallTimedOut, Exit.TIMED_OUT),
        (errors.ConnectFailed, Exit.UNREACHABLE),
        (errors.LifespanFailed, Exit.UNREACHABLE),
        (errors.ConnectionLost, Exit.UNREACHABLE),
        (errors.ToolFailed, Exit.TOOL_FAILED),
        (errors.PeerError, Exit.REFUSED),
        (errors.AuthError, Exit.REFUSED),
        (errors.TooManyRounds, Exit.REFUSED),
        (errors.CapabilityMissing, Exit.REFUSED),
        (errors.NotInRevision, Exit.REFUSED),
        (host_errors.ServerUnavailable, Exit.UNREACHABLE),
        (host_errors.OutcomeUnknown, Exit.UNREACHABLE),
        (host_errors.Denied, Exit.REFUSED),
        (host_errors.UserDeclined, Exit.REFUSED),
        (host_errors.Exhausted, Exit.REFUSED),
        (host_errors.AuditUnavailable, Exit.REFUSED),
        (host_errors.HostError, Exit.USAGE),
        (errors.UsageError, Exit.USAGE),
    )


def exit_for(error: BaseException) -> Exit:
    """The exit code an error means; ``BROKEN`` for one that nobody foresaw."""
    return next((code for kind, code in _list_errors() if isinstance(error, kind)), Exit.BROKEN)


def finish(work: Callable[[], Exit | Coroutine[Any, Any, Exit | None] | None]) -> NoReturn:
    """Do the work and leave with its exit code; a foreseen error is one message on stderr."""
    with exit_at_error():
        done = work()
        code = (asyncio.run(done) if isinstance(done, Coroutine) else done) or Exit.OK
    raise SystemExit(code)


@contextmanager
def exit_at_error() -> Iterator[None]:
    """Leave with the exit code of an error; a foreseen one is one message on stderr."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(Exit.OK) from None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        from isthmus.cli.output import print_note  # what works may print nothing

        code = exit_for(error)
        print_note(f"isthmus: {_format_error(error, code)}")
        raise SystemExit(code) from None


def _format_error(error: BaseException, code: Exit) -> str:
    if code is Exit.INTERRUPTED:
        return "interrupted"
    if code is Exit.BROKEN:
        return _format_traceback(error)
    if isinstance(error, LifespanFailed) and error.__cause__ is not None:
        return f"{error}\n{_format_traceback(error.__cause__)}"
    late = code is Exit.TIMED_OUT or "no connection within" in str(error)
    more = "; --timeout SECONDS allows more" if late else ""
    data = f": {quote_text(error.data)}" if isinstance(error, Refused) and error.data else ""
    return f"{quote_text(error)}{data}{more}"


def _format_traceback(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error)).rstrip()


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
    import signal

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
