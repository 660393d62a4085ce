r"""Server-sent events (SSE): an encoder, the ids of events, and a parser for bytes cut anywhere.

The format is the WHATWG one (HTML Living Standard, "Server-sent events"). The parser keeps the
unfinished event within a limit and throws a longer one away; like the rest of the core it never
raises, and what comes out depends on the bytes alone, never on how they were cut.
"""

from typing import NamedTuple

import msgspec

from isthmus.core.framing import Oversize
from isthmus.errors import UsageError

MAX_ID_DIGITS = 15  # of a number in an event id; a longer one is none of ours

MAX_NODE_DIGITS = 32  # of the name of a process in an event id


def encode_event(
    data: bytes, *, event: str | None = None, id: str | None = None, retry: int | None = None
) -> bytes:
    """One event, ready to send.

    Args:
        data: UTF-8 text; a line break in it becomes a new ``data`` line.
        event: the event's type; receivers take a missing one for ``message``.
        id: what a client sends back as ``Last-Event-ID`` to resume after this event.
        retry: how long a client waits before it connects again, milliseconds.

    Raises:
        UsageError: a line break in ``event`` or ``id`` (it would forge a field), a NUL in ``id``
            (receivers ignore such an id), or a negative ``retry``.
    """
    if retry is None and b"\n" not in data and b"\r" not in data:
        if id is not None:
            if event is None:
                return b"id: %b\ndata: %b\n\n" % (_encode_id_line(id), data)
        elif event is None:
            return b"data: %b\n\n" % data
        elif event == "message":
            return b"event: message\ndata: %b\n\n" % data
    lines = _encode_head(event, id, retry)
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines += [b"data: %b" % line for line in text.split(b"\n")]
    return b"\n".join(lines) + b"\n\n"


def encode_comment(text: bytes = b"") -> bytes:
    """A comment, which every receiver ignores: it keeps an idle connection open.

    Raises:
        UsageError: a line break in ``text``.
    """
    if b"\n" in text or b"\r" in text:
        raise UsageError(f"a comment is one line, got {text!r}")
    return b": %b\n\n" % text if text else b":\n\n"


class EventId(NamedTuple):
    """The id of an event that a client can come back after.

    Attributes:
        mark: what all ids of one session begin with.
        node: the process that the stream began at.
        stream: the number of the stream among those of its session that began there.
        place: how many entries were on the stream, up to this event.
    """

    mark: str
    node: str
    stream: int
    place: int


def make_stream_name(mark: str, node: str, number: int) -> str:
    """The name of a stream: its session's mark, the process it began at, and its number there."""
    return f"{mark}-{node}.{number}"


def make_event_id(stream: str, place: int) -> str:
    """The id of an event: its stream and its place in that.

    Args:
        stream: the name, from :func:`make_stream_name`.
        place: how many entries were on the stream, up to this event.
    """
    return f"{stream}-{place}"


def parse_event_id(text: str) -> EventId | None:
    """The parts of a ``Last-Event-ID``; None where :func:`make_event_id` cannot have made it."""
    name, _, place = text.rpartition("-")
    mark, _, rest = name.rpartition("-")
    node, _, stream = rest.partition(".")
    if not (mark and _is_node(node) and _is_number(stream) and _is_number(place)):
        return None
    return EventId(mark, node, int(stream), int(place))


def _is_number(text: str) -> bool:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS):
        return False
    return text == "0" or text[0] != "0"


def _is_node(text: str) -> bool:
    digits = text[1:]
    return (
        text[:1] == "n"
        and 0 < len(digits) <= MAX_NODE_DIGITS
        and not digits.strip("0123456789abcdef")
    )


def _encode_head(event: str | None, id: str | None, retry: int | None) -> list[bytes]:
    """The lines of an event that come before its data."""
    lines = []
    if event is not None:
        lines.append(b"event: %b" % _encode_type_line(event))
    if id is not None:
        lines.append(b"id: %b" % _encode_id_line(id))
    if retry is not None:
        if retry < 0:
            raise UsageError(f"retry is a number of milliseconds, got {retry}")
        lines.append(b"retry: %d" % retry)
    return lines


def _encode_id_line(id: str) -> bytes:
    if "\n" in id or "\r" in id or "\0" in id:
        raise UsageError(f"an event id may hold no line break or NUL, got {id!r}")
    return id.encode("utf-8", "replace")


def _encode_type_line(event: str) -> bytes:
    if "\n" in event or "\r" in event:
        raise UsageError(f"an event type may hold no line break, got {event!r}")
    return event.encode("utf-8", "replace")


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    r"""One event as it came in.

    Attributes:
        event: its type, ``message`` where the sender named none.
        data: its data lines, joined by ``\n``; UTF-8, unchecked.
        id: the last event id the stream has given, this event's included; empty for none.
        retry: the reconnection time the stream has given last, milliseconds, or None.
    """

    event: str
    data: bytes
    id: str
    retry: int | None


_BOM = b"\xef\xbb\xbf"
_MAX_RETRY_DIGITS = 12  # thirty years in milliseconds; a longer number is not meant


class SseParser:
    r"""Parses a stream of server-sent events.

    Example:
        >>> events = Events(limit=1024)
        >>> events.feed(b"id: 1\ndata: he")
        []
        >>> events.feed(b"llo\n\n")
        [Event(event='message', data=b'hello', id='1', retry=None)]

    Args:
        limit: the most bytes one event may keep: its data, and the line being read.

    Attributes:
        last_id: what to send as ``Last-Event-ID`` to resume after the last whole event.
        retry: how long to wait before connecting again, milliseconds, or None.
    """

    __slots__ = (
        "_after_return",
        "_data",
        "_event",
        "_held",
        "_held_size",
        "_id",
        "_limit",
        "_lost",
        "_size",
        "_started",
        "last_id",
        "retry",
    )

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        self.retry: int | None = None
        self._limit = limit
        self._started = False  # the first line, which may carry a byte order mark, is over
        self._after_return = False  # the last byte was a \r: a \n that follows belongs to it
        self._held: list[bytes] = []  # the unfinished line
        self._held_size = 0
        self._data: list[bytes] = []
        self._size = 0  # of the event's data
        self._lost = 0  # size of an event that grew too long, 0 while it has not
        self._event = ""
        self._id = ""

    def feed(self, data: bytes) -> list[SseEvent | Oversize]:
        """The events that ``data`` completes, in order, and what stands for those too long."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in data:
            self._after_return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        last = lines.pop()
        events: list[SseEvent | Oversize] = []
        if lines and (self._held_size or not self._started):
            self._hold(lines.pop(0))
            self._release(events)
        for line in lines:
            if line:
                self._read(line)
            else:
                self._dispatch(events)
        if last:
            self._hold(last)
        return events

    def _hold(self, piece: bytes) -> None:
        """Keep a piece of the unfinished line, or only count it where the event is too long."""
        self._held_size += len(piece)
        if self._size + self._held_size > self._limit:
            self._held.clear()
        else:
            self._held.append(piece)

    def _release(self, events: list[SseEvent | Oversize]) -> None:
        """The unfinished line is finished: read it, whether all of it was kept or not."""
        line, size = b"".join(self._held), self._held_size
        self._held.clear()
        self._held_size = 0
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if self._size + size > self._limit:
            self._lose(size)
        elif line:
            self._read(line)
        else:
            self._dispatch(events)

    def _read(self, line: bytes) -> None:
        """Take in one line that is not blank."""
        if self._size + len(line) > self._limit:
            self._lose(len(line))
            return
        if line.startswith(b"data: "):
            self._add(line[6:])
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._add(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self.retry = int(value)

    def _add(self, value: bytes) -> None:
        size = len(value) + 1  # the line break that joins it to the next
        if self._lost:
            self._lost += size
        else:
            self._data.append(value)
            self._size += size

    def _lose(self, size: int) -> None:
        """Throw the event away, and count what it was."""
        self._lost += self._size + size
        self._data.clear()
        self._size = 0

    def _dispatch(self, events: list[SseEvent | Oversize]) -> None:
        """A blank line ends the event; one without data is none, but its id counts."""
        self.last_id = self._id
        if self._lost:
            events.append(Oversize(self._lost))
        elif self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(SseEvent(self._event or "message", data, self._id, self.retry))
        self._event = ""
        self._data.clear()
        self._size = self._lost = 0
