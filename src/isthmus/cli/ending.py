"""How every command ends: with an exit code, and one message where something went wrong."""

import os
import traceback
from collections.abc import Callable

import typer

from isthmus.cli.exits import Exit, exit_for
from isthmus.cli.output import note
from isthmus.errors import LifespanFailed, Refused, quote_text

__all__ = ["finish"]


def finish(work: Callable[[], Exit | None]) -> None:
    """Do the work and leave with its exit code; a foreseen error is one message on stderr."""
    try:
        code = work() or Exit.OK
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = Exit.OK
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        code = exit_for(error)
        note(f"isthmus: {_explained(error, code)}")
    raise typer.Exit(code)


def _explained(error: BaseException, code: Exit) -> str:
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
