"""Key-value store: each value has a version, and is gone when its time is over.

Whatever outlives a call is kept in one of these. Values are bytes, so that a store elsewhere
needs to know nothing about them; :meth:`KV.cas` lets two writers agree on who was first.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

import msgspec

from isthmus.errors import IsthmusError, UsageError

MAX_ENTRIES = 100_000  # entries that a store in memory holds


MAX_VALUE_BYTES = 256 * 1024 * 1024  # bytes of all values together that a store in memory holds

# Bytes of a value that there is always room for: how a thing stands must not be lost.
SMALL_VALUE_BYTES = 4096


class StoreFull(IsthmusError):
    """There is no room for another entry."""


class KVEntry(msgspec.Struct, frozen=True):
    """A value under a key, with its version.

    Attributes:
        value: the bytes.
        version: a number above 0 that changes with every write of this key.
    """

    value: bytes
    version: int


class KV(Protocol):
    """A store of entries; one in memory is :class:`MemoryKV`.

    Where a method takes a ``ttl``, it is the seconds until the entry is gone; None keeps it until
    it is deleted. Every write sets it anew.
    """

    async def get(self, key: str) -> KVEntry | None:
        """The entry under ``key``, or None.

        Args:
            key: the key.
        """
        ...

    async def put(self, key: str, value: bytes, ttl: float | None = None) -> int:
        """Put a value under a key, over any value that is there.

        Args:
            key: the key.
            value: the value.
            ttl: seconds that it is kept; None for no end.

        Returns:
            Its version.

        Raises:
            StoreFull: there is no room.
        """
        ...

    async def cas(
        self, key: str, value: bytes, version: int, ttl: float | None = None
    ) -> int | None:
        """Put a value under ``key`` if what is there has this version.

        Args:
            key: where.
            value: what.
            version: of what is there; 0 says that nothing must be there.
            ttl: seconds it is kept.

        Returns:
            The new version, or None where somebody else wrote, deleted or came first.

        Raises:
            StoreFull: there is no room.
        """
        ...

    async def delete(self, key: str, version: int | None = None) -> bool:
        """Delete the value under a key.

        Args:
            key: the key.
            version: the version that must be there; None for any.

        Returns:
            Whether a value was deleted.
        """
        ...

    async def scan(self, prefix: str, after: str, limit: int) -> list[tuple[str, KVEntry]]:
        """Entries by the beginning of their keys, in order.

        Args:
            prefix: the beginning of the keys.
            after: the key behind which to begin; empty for the first.
            limit: the most entries.
        """
        ...


class KVSlot(msgspec.Struct):
    """An entry, and the moment at which it is gone."""

    entry: KVEntry
    until: float


NEVER = float("inf")


class MemoryKV:
    """A store of this process.

    Args:
        most: the entries it holds.
        clock: says the time in seconds; the event loop's, by default.
        size: the bytes of all values together; small values may go beyond it.

    Raises:
        UsageError: it would hold nothing.
    """

    def __init__(
        self,
        most: int = MAX_ENTRIES,
        clock: Callable[[], float] | None = None,
        *,
        size: int = MAX_VALUE_BYTES,
    ) -> None:
        if most < 1:
            raise UsageError(f"a store holds one entry or more, not {most}")
        self._most = most
        self._room = size
        self._size = 0
        self._clock = clock or loop_time
        self._slots: dict[str, KVSlot] = {}
        self._keys: list[str] = []
        self._ends: list[tuple[float, str]] = []
        self._version = 0

    def __len__(self) -> int:
        """The entries held, with those that nobody has looked for since their time was over."""
        return len(self._slots)

    async def get(self, key: str) -> KVEntry | None:
        """The entry under ``key``, or None.

        Args:
            key: the key.
        """
        return self._live(key)

    async def put(self, key: str, value: bytes, ttl: float | None = None) -> int:
        """Put a value under a key, over any value that is there.

        Args:
            key: the key.
            value: the value.
            ttl: seconds that it is kept; None for no end.

        Returns:
            Its version.

        Raises:
            StoreFull: there is no room.
        """
        return self._write(key, value, ttl)

    async def cas(
        self, key: str, value: bytes, version: int, ttl: float | None = None
    ) -> int | None:
        """Put a value under a key if the present one has this version (compare and set).

        Args:
            key: the key.
            value: the value.
            version: of the present value; 0 for none.
            ttl: seconds that it is kept; None for no end.

        Returns:
            The new version, or None where another version is there.

        Raises:
            StoreFull: there is no room.
        """
        known = self._live(key)
        if (0 if known is None else known.version) != version:
            return None
        return self._write(key, value, ttl)

    async def delete(self, key: str, version: int | None = None) -> bool:
        """Delete what is under ``key``.

        Args:
            key: the key.
            version: the version that must be there; None for any.

        Returns:
            Whether a value was there.
        """
        known = self._live(key)
        if known is None or (version is not None and known.version != version):
            return False
        self._drop(key)
        return True

    async def scan(self, prefix: str, after: str, limit: int) -> list[tuple[str, KVEntry]]:
        """Entries by the beginning of their keys, in order.

        Args:
            prefix: the beginning of the keys.
            after: the key behind which to begin; empty for the first.
            limit: the most entries.
        """
        self._sweep()
        keys = self._keys
        start = max(bisect_left(keys, prefix), bisect_right(keys, after))
        found: list[tuple[str, KVEntry]] = []
        for key in keys[start : start + limit]:
            if not key.startswith(prefix):
                break
            found.append((key, self._slots[key].entry))
        return found

    def drop(self, prefix: str) -> None:
        """Delete all whose keys begin with ``prefix``, at once.

        Args:
            prefix: the beginning of the keys.
        """
        keys = self._keys
        start = at = bisect_left(keys, prefix)
        while at < len(keys) and keys[at].startswith(prefix):
            at += 1
        for key in keys[start:at]:
            self._drop(key)

    def _live(self, key: str) -> KVEntry | None:
        self._sweep()
        slot = self._slots.get(key)
        return None if slot is None else slot.entry

    def _write(self, key: str, value: bytes, ttl: float | None) -> int:
        self._sweep()
        old = self._slots.get(key)
        size = self._size + len(value) - (0 if old is None else len(old.entry.value))
        if size > max(self._room, self._size) and len(value) > SMALL_VALUE_BYTES:
            raise StoreFull(f"the store holds {self._size} bytes, and {self._room} are all it may")
        if old is None:
            if len(self._slots) >= self._most:
                raise StoreFull(f"the store holds {self._most} entries, which is all it may")
            insort(self._keys, key)
        self._size = size
        self._version += 1
        until = NEVER if ttl is None else self._clock() + ttl
        self._slots[key] = KVSlot(KVEntry(value, self._version), until)
        if ttl is not None:
            heappush(self._ends, (until, key))
            if len(self._ends) > 2 * len(self._slots) + 64:
                self._tidy()
        return self._version

    def _sweep(self) -> None:
        """Forget what is over; each entry costs its part once."""
        ends = self._ends
        if not ends:
            return
        now = self._clock()
        while ends and ends[0][0] <= now:
            until, key = heappop(ends)
            slot = self._slots.get(key)
            if slot is not None and slot.until == until:
                self._drop(key)

    def _drop(self, key: str) -> None:
        self._size -= len(self._slots.pop(key).entry.value)
        del self._keys[bisect_left(self._keys, key)]

    def _tidy(self) -> None:
        """Keep no more ends than there are entries, however often they are written."""
        self._ends = sorted(
            (slot.until, key) for key, slot in self._slots.items() if slot.until != NEVER
        )


def loop_time() -> float:
    """The time of the event loop that runs this."""
    return asyncio.get_running_loop().time()
