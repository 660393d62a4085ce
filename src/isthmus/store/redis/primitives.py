"""Key-value store, log of streams and meters in Redis."""

import math
from collections.abc import Sequence
from hashlib import blake2b

from isthmus.store.kv import KVEntry, StoreFull
from isthmus.store.log import Forgotten, LogLimits, Overtaken
from isthmus.store.meter import Rate
from isthmus.store.redis.client import MAX_VALUE_BYTES, RedisClient, RedisFull
from isthmus.store.redis.scripts import (
    DELETE_ENTRY,
    READ_STREAM,
    SCAN_ENTRIES,
    TAKE_FROM_METER,
    WRITE_ENTRY,
    WRITE_STREAM,
)
from isthmus.store.store import StoreUnavailable

MAX_READ_BYTES = 8 * 1024 * 1024  # of one answer with several values

MAX_TTL_S = 10 * 366 * 24 * 3600.0  # ten years: Redis refuses what is much later

VERSION_DIGITS = 16

MAX_METER_KEY_BYTES = 128  # what is longer is kept as a digest


class RedisKV:
    """A key-value store in Redis.

    Args:
        client: the server.
        prefix: what all our keys begin with.
    """

    def __init__(self, client: RedisClient, prefix: str) -> None:
        self._client = client
        self._name = client.name
        self._entries = f"{prefix}k/".encode()
        self._index = f"{prefix}i/".encode()
        self._ends = f"{prefix}e/".encode()
        self._last_version = f"{prefix}v/".encode()

    async def get(self, key: str) -> KVEntry | None:
        """The entry under ``key``, or None."""
        place = self._entries + key.encode()
        most = VERSION_DIGITS + MAX_VALUE_BYTES  # the byte at this offset is one too many
        found: bytes = await self._client.call("GETRANGE", place, 0, most, repeat=True)
        return self._read_entry(key, found) if found else None

    async def put(self, key: str, value: bytes, ttl: float | None = None) -> int:
        """As of a KV.

        Raises:
            StoreFull: the server has no memory left, or the value is too long.
            StoreUnavailable: the server does not answer.
        """
        return int(await self._write(key, value, b"", ttl) or 0)

    async def cas(
        self, key: str, value: bytes, version: int, ttl: float | None = None
    ) -> int | None:
        """As of a KV.

        Raises:
            StoreFull: the server has no memory left, or the value is too long.
            StoreUnavailable: the server does not answer.
        """
        written = await self._write(key, value, _format_version(version), ttl)
        return None if written is None else int(written)

    async def delete(self, key: str, version: int | None = None) -> bool:
        """As of a KV."""
        name = key.encode()
        expected = b"" if version is None else _format_version(version)
        keys = (self._entries + name, self._index, self._ends)
        return bool(await self._client.run(DELETE_ENTRY, keys, (name, expected)))

    async def scan(self, prefix: str, after: str, limit: int) -> list[tuple[str, KVEntry]]:
        """As of a KV."""
        start, end = prefix.encode(), b"(" + prefix.encode() + b"\xff"  # no UTF-8 has this byte
        found: list[tuple[str, KVEntry]] = []
        more = limit > 0
        while more:
            behind = found[-1][0] if found else after
            first = b"(" + behind.encode() if behind >= prefix else b"[" + start
            most = VERSION_DIGITS + MAX_VALUE_BYTES
            limits = (limit - len(found), most, MAX_READ_BYTES)
            asked = (self._entries, first, end, *limits)
            flag, *pairs = await self._client.run(SCAN_ENTRIES, (self._index,), asked, again=asked)
            for name, entry in zip(pairs[::2], pairs[1::2], strict=True):
                key = self._read_name(name)
                found.append((key, self._read_entry(key, entry)))
            more = bool(flag) and len(found) < limit
        return found

    async def _write(
        self, key: str, value: bytes, expected: bytes, ttl: float | None
    ) -> bytes | None:
        if len(value) > MAX_VALUE_BYTES:
            raise StoreFull(
                f"a value in {self._name} has {MAX_VALUE_BYTES} bytes at most, not {len(value)}"
            )
        name = key.encode()
        ms = b"" if ttl is None else max(1, math.ceil(min(ttl, MAX_TTL_S) * 1000))
        keys = (self._entries + name, self._index, self._ends, self._last_version)
        try:
            written: bytes | None = await self._client.run(
                WRITE_ENTRY, keys, (name, value, ms, expected)
            )
        except RedisFull as error:
            raise StoreFull(str(error)) from None
        return written

    def _read_entry(self, key: str, found: bytes) -> KVEntry:
        """An entry as it lies in Redis; whatever else lies there is refused."""
        found = found if type(found) is bytes else b""
        version = found[:VERSION_DIGITS]
        whole = VERSION_DIGITS <= len(found) <= VERSION_DIGITS + MAX_VALUE_BYTES
        if not whole or not version.isdigit():
            raise StoreUnavailable(
                f"{self._name} holds something under the key {key!r} that isthmus did not write"
            )
        return KVEntry(found[VERSION_DIGITS:], int(version))

    def _read_name(self, name: bytes) -> str:
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise StoreUnavailable(
                f"{self._name} holds a key {name!r} that isthmus did not write"
            ) from None


class RedisLog:
    """A log of streams in Redis.

    Args:
        client: the server.
        prefix: what all our keys begin with.
        limits: bounds of each stream; all of them together are bounded by the server's maxmemory.
    """

    def __init__(self, client: RedisClient, prefix: str, limits: LogLimits) -> None:
        self._client = client
        self._streams = f"{prefix}s/".encode()
        self._last_places = f"{prefix}l/".encode()
        self._bounds = (limits.entries, limits.stream_size, math.ceil(limits.age * 1000))

    async def write(self, stream: str, place: int, values: Sequence[bytes]) -> None:
        """As of a Log.

        Raises:
            Overtaken: the stream has an entry of this id, or a later one.
            StoreUnavailable: the server does not answer, or has no memory left.
        """
        if not values:
            return
        for value in values:
            self._client.check_size("an entry of a stream", value)
        keys = self._make_keys(stream)
        # The same entries at the same places, asked for again: they are what was added before.
        first, second = (place, *self._bounds, 0), (place, *self._bounds, 1)
        last: int = await self._client.run(
            WRITE_STREAM, keys, (*first, *values), again=(*second, *values)
        )
        if last:
            raise Overtaken(
                f"stream {stream!r} has {last} entries already, and {place} is no new one"
            )

    async def read(self, stream: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """As of a Log.

        Raises:
            Forgotten: some of that is gone, or never was.
            StoreUnavailable: the server does not answer.
        """
        keys = self._make_keys(stream)
        asked = (after, max(1, limit), MAX_READ_BYTES)
        values: list[bytes] | None = None
        if after >= 0:
            values = await self._client.run(READ_STREAM, keys, asked, again=asked)
        if values is None:
            raise Forgotten(f"stream {stream!r} does not have what came after {after}")
        return list(enumerate(values[:limit], after + 1))

    async def forget(self, stream: str) -> None:
        """As of a Log."""
        await self._client.call("UNLINK", *self._make_keys(stream), repeat=True)

    def _make_keys(self, stream: str) -> tuple[bytes, bytes]:
        name = stream.encode()
        return self._streams + name, self._last_places + name


class RedisMeter:
    """A meter that all processes share, by the clock of Redis.

    Args:
        client: the server.
        prefix: what all our keys begin with.
        name: what is limited.
        rate: what each key may do.
    """

    def __init__(self, client: RedisClient, prefix: str, name: str, rate: Rate) -> None:
        self.rate = rate
        self._client = client
        self._keys = f"{prefix}m/{name}/".encode()
        self._unit_us = rate.seconds / rate.amount * 1e6
        self._burst_us = f"{rate.seconds * 1e6:.3f}"

    async def take(self, key: str, cost: float = 1.0) -> float:
        """As of a Meter.

        Raises:
            StoreUnavailable: the server does not answer, or has no memory left.
        """
        name = key.encode()
        if len(name) > MAX_METER_KEY_BYTES:
            name = blake2b(name, digest_size=32).hexdigest().encode()
        cost_us = f"{cost * self._unit_us:.3f}"
        wait = await self._client.run(
            TAKE_FROM_METER, (self._keys + name,), (cost_us, self._burst_us)
        )
        return int(wait) / 1e6


def _format_version(version: int) -> bytes:
    return b"%016d" % version
