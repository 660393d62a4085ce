"""Log of streams: what was said, kept for a while, so that a stream that broke can go on.

Each stream is an append-only list whose entries get increasing ids. It is bounded in every way:
what is too old, or more than there is room for, is dropped from the front, and whoever asks for
what came after an entry is told when some of that is gone. A stream never has holes.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol

import msgspec

from isthmus.errors import IsthmusError


class Forgotten(IsthmusError):
    """Some of what was asked for is not kept, or never was."""


class Overtaken(IsthmusError):
    """Somebody else wrote to the stream, who took its writer for dead: nothing was added."""


class LogLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a log.

    Attributes:
        entries: the most entries of one stream.
        age: the longest an entry is kept, seconds.
        stream_size: the most bytes of one stream's values; the newest is kept whatever its size.
        size: the most bytes of all streams' values together; the streams that were added to
            longest ago give way.
    """

    entries: int = 1_000
    age: float = 3600.0
    stream_size: int = 1024 * 1024
    size: int = 64 * 1024 * 1024


class Log(Protocol):
    """Log of streams: the entries of each, by the name of the stream.

    A stream has one writer, which counts its entries: 1, 2, 3, … Whoever takes over from a writer
    that is gone goes on behind the last entry, and the first writer is refused from then on.
    """

    async def write(self, stream: str, place: int, values: Sequence[bytes]) -> None:
        """Add entries at the end of a stream, which begins to be with its first: all, or none.

        Args:
            stream: its name.
            place: the id of the first of them; the others follow it.
            values: the entries.

        Raises:
            Overtaken: the stream has an entry of this id, or a later one.
            StoreUnavailable: it cannot be written now.
        """
        ...

    async def read(self, stream: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """The entries of a stream after one of them, in order, with their ids.

        Args:
            stream: its name.
            after: the id of an entry, or 0 for the beginning.
            limit: the most entries to give.

        Raises:
            Forgotten: there was no such entry, or some of those after it are gone.
        """
        ...

    async def forget(self, stream: str) -> None:
        """Drop ``stream`` and all its entries; nothing happens where there is none.

        Args:
            stream: the name of the stream.
        """
        ...


class _LogStream:
    """One stream: its entries, each with the time it was added, the id given last, and its size.

    Ids are given without holes, so that those of the entries follow from the last one.
    """

    __slots__ = ("entries", "last", "size")

    def __init__(self) -> None:
        self.entries: deque[tuple[float, bytes]] = deque()
        self.last = 0
        self.size = 0

    def drop(self) -> int:
        """Drop the oldest entry; returns the bytes that frees."""
        _, value = self.entries.popleft()
        self.size -= len(value)
        return len(value)

    def clear(self) -> None:
        """Drop all entries."""
        self.entries.clear()
        self.size = 0


class MemoryLog:
    """A log in this process: quick, and gone with it.

    A stream costs a record from its first entry until it is forgotten, also when no entry is kept
    any more: what was once given an id is then known to be gone.

    Example:
        >>> log = MemoryLog(clock=lambda: 0.0)
        >>> log.add("s", b"one")
        1

    Args:
        clock: gives the time in seconds, from any beginning; the system's by default.
        entries: the most entries of one stream.
        age: the longest an entry is kept, seconds.
        stream_size: the most bytes of one stream's values; the newest is kept whatever its size.
        size: the most bytes of all streams' values together; the streams that were added to
            longest ago give way.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        entries: int = 1_000,
        age: float = 3600.0,
        stream_size: int = 1024 * 1024,
        size: int = 64 * 1024 * 1024,
    ) -> None:
        self._clock = clock
        self._entries = entries
        self._age = age
        self._stream_size = stream_size
        self._room = size
        self._size = 0
        self._streams: dict[str, _LogStream] = {}
        self._full: OrderedDict[str, _LogStream] = OrderedDict()  # those with entries, idlest first

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def size(self) -> int:
        """Bytes of all values kept."""
        return self._size

    async def write(self, stream: str, place: int, values: Sequence[bytes]) -> None:
        """Add entries at the end of a stream: all, or none; see :meth:`Log.write`.

        Args:
            stream: name of the stream.
            place: id of the first of them.
            values: the entries.

        Raises:
            Overtaken: the stream has an entry of this id, or a later one.
        """
        kept = self._streams.get(stream)
        last = 0 if kept is None else kept.last
        if place <= last:
            raise Overtaken(
                f"stream {stream!r} has {last} entries already, and {place} is no new one"
            )
        if place > last + 1:  # ids have no holes here: what is missing counts as gone
            kept = kept or self._streams.setdefault(stream, _LogStream())
            self._size -= kept.size
            kept.clear()
            kept.last = place - 1
        for value in values:
            self.add(stream, value)

    def add(self, stream: str, value: bytes) -> int:
        """Add an entry at the end of a stream, without waiting; returns its id.

        Args:
            stream: name of the stream.
            value: the entry.
        """
        kept = self._streams.get(stream)
        if kept is None:
            kept = self._streams[stream] = _LogStream()
        elif kept.entries:
            self._full.move_to_end(stream)
        kept.last = id = kept.last + 1
        now, size = self._clock(), len(value)
        kept.entries.append((now, value))
        kept.size += size
        self._size += size
        self._full[stream] = kept
        self._bound(kept, now)
        return id

    async def read(self, stream: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """The entries of a stream behind one of them, in order, with their ids; see :meth:`Log.read`.

        Args:
            stream: name of the stream.
            after: id of an entry, or 0 for the beginning.
            limit: the most entries to give.

        Raises:
            Forgotten: there was no such entry, or some of those after it are gone.
        """
        kept = self._streams.get(stream)
        if kept is None:
            raise Forgotten(f"there is no stream {stream!r}, or no more")
        while kept.entries and kept.entries[0][0] + self._age <= self._clock():
            self._size -= kept.drop()
        gone = kept.last - len(kept.entries)
        if not gone <= after <= kept.last:
            raise Forgotten(f"stream {stream!r} does not have what came after {after}")
        found = islice(kept.entries, after - gone, after - gone + limit)
        return [(id, value) for id, (_, value) in enumerate(found, after + 1)]

    async def forget(self, stream: str) -> None:
        """Drop ``stream`` and all its entries; see :meth:`Log.forget`.

        Args:
            stream: name of the stream.
        """
        self.drop(stream)

    def drop(self, stream: str) -> None:
        """Drop ``stream``, as :meth:`forget`, for callers that do not await.

        Args:
            stream: name of the stream.
        """
        kept = self._streams.pop(stream, None)
        if kept is not None:
            self._size -= kept.size
            self._full.pop(stream, None)

    def _bound(self, kept: _LogStream, now: float) -> None:
        """Drop what is too much here, and what is too much or too old in the idlest streams."""
        while len(kept.entries) > self._entries or (
            kept.size > self._stream_size and len(kept.entries) > 1
        ):
            self._size -= kept.drop()
        while True:
            name, idlest = next(iter(self._full.items()))
            if idlest is kept:
                return
            if self._size <= self._room and idlest.entries:
                newest, _ = idlest.entries[-1]
                if newest + self._age > now:
                    return
            del self._full[name]
            self._size -= idlest.size
            idlest.clear()
