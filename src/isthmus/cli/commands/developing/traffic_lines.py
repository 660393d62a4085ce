"""Lines of ``isthmus dev``: one for each event of the traffic, and tracebacks of the author's code."""

import copy
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import isthmus
from isthmus.core.redaction.values import Redactor
from isthmus.core.text import clean_text, show_invisible
from isthmus.telemetry.traffic import TrafficEvent

if TYPE_CHECKING:
    from types import TracebackType

PACKAGE_FOLDER = str(Path(isthmus.__file__).parent)
RUNTIME_FILES = ("<string>", "<frozen")  # beginnings of names of what is no file of an author's
COLOURS = {"ok": "32", "accept": "32", "input_required": "36", "task": "36", "tool_error": "33"}
ERROR_COLOUR, DIM = "31", "2"
ANONYMOUS = "a client"


class TrafficPrinter:
    """Prints events, a line each; whole messages below them where they have some.

    Args:
        stream: where to.
        colours: use them; by default where the stream is a terminal.
    """

    def __init__(self, stream: TextIO, *, colours: bool | None = None) -> None:
        self._stream = stream
        self._colours = stream.isatty() if colours is None else colours

    def __call__(self, event: TrafficEvent) -> None:
        """Print an event, unless it is of this process's own look at the server."""
        if event.transport != "memory":
            self.say(*self.format(event))

    def say(self, *lines: str) -> None:
        """Print lines."""
        try:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
        except (OSError, ValueError):
            return  # nobody reads it any more, and the server goes on

    def format(self, event: TrafficEvent) -> Iterator[str]:
        """The line of an event, and those of its messages."""
        at = time.strftime("%H:%M:%S", time.localtime(event.time))
        who = f"{event.client or ANONYMOUS} {event.revision}"
        arrow = "" if event.sender == "client" else "<- "
        what = " ".join(part for part in (event.method, event.name) if part)
        line = f"{self._paint(DIM, f'{at}  {_show(who)}')}  {arrow}{_show(what)}"
        if event.outcome:
            colour = COLOURS.get(event.outcome, ERROR_COLOUR)
            line += f"  {self._paint(colour, event.outcome)}"
        line += _show(" ".join(_list_details(event)))
        if event.seconds is not None:
            line += f"  {self._paint(DIM, format_duration(event.seconds))}"
        yield line
        for mark, message in ((">", event.sent), ("<", event.answered)):
            if message is not None:
                way = mark if event.sender == "client" else "<>"[mark == "<"]
                yield self._paint(DIM, f"    {way} {_show(message)}")

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours else text


def _list_details(event: TrafficEvent) -> Iterator[str]:
    """What a line says of an outcome beside its word; each begins with a blank."""
    if event.asked:
        yield f" {', '.join(event.asked)}"
    code = "" if event.code is None else f"{event.code} "
    if event.error or code:
        yield f" {code}{event.error}"


def _show(text: str) -> str:
    """Somebody else's words on one line of a terminal, which obeys none of them."""
    return show_invisible(text, line=True)


def format_duration(seconds: float) -> str:
    """A duration as people say it.

    Example:
        >>> format_duration(0.00314), format_duration(2.5)
        ('3.1 ms', '2.5 s')
    """
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


class AuthorFormatter(logging.Formatter):
    """Formats log records; tracebacks begin in the author's code, without frames of isthmus."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s  %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        self._redactor = Redactor()

    def format(self, record: logging.LogRecord) -> str:
        """A record as text, redacted and safe for a terminal."""
        record = copy.copy(record)
        if record.exc_info:
            record.exc_text = None  # in which another handler may have kept the whole traceback
        return clean_text(self._redactor.text(super().format(record)))

    def formatException(  # noqa: N802 - of logging.Formatter
        self,
        ei: "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]",
    ) -> str:
        """The traceback of an exception, by its frames of the author's code."""
        error = ei[1]
        if error is None:
            return ""
        told = trim_frames(traceback.TracebackException.from_exception(error))
        return "".join(told.format()).rstrip()


def trim_frames(told: traceback.TracebackException) -> traceback.TracebackException:
    """A traceback without the frames of isthmus; whole where there are no others."""
    seen: set[int] = set()
    waiting: list[traceback.TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        own = [frame for frame in one.stack if not _is_foreign(frame.filename)]
        if own:
            one.stack = traceback.StackSummary.from_list(own)
        waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]
    return told


def _is_foreign(file: str) -> bool:
    return file.startswith((PACKAGE_FOLDER, *RUNTIME_FILES))


def log_to(stream: TextIO, level: str) -> None:
    """Have all log records from a level on written to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(AuthorFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def choose_stream(transport: str) -> TextIO:
    """Where traffic goes: standard output, unless that belongs to the protocol."""
    return sys.stderr if transport == "stdio" else sys.stdout
