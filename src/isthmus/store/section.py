"""Section of a store: keys, streams, channels and meters under a name of their own.

What is mounted in a server shares its store and none of its keys.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isthmus.store.bus import Bus, Hear, Unsubscribe
from isthmus.store.kv import KV, KVEntry
from isthmus.store.meter import Meter, Rate
from isthmus.store.store import Store

if TYPE_CHECKING:
    from isthmus.store.log import Log


class StoreSection:
    """A part of a store, which is a store itself.

    Args:
        store: the whole, which somebody else opens and closes.
        prefix: what every key in it begins with.

    Attributes:
        whole: the whole.
        prefix: the same.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = self.whole = store
        self._prefix = self.prefix = prefix
        self.name = store.name
        self.kv: KV = KVSection(store, prefix)
        self.log: Log = LogSection(store, prefix)
        self.bus: Bus = BusSection(store, prefix)

    def meter(self, name: str, rate: Rate) -> Meter:
        """As :meth:`~isthmus.store.store.Store.meter`."""
        return self._store.meter(self._prefix + name, rate)

    async def open(self, *, durable: bool = False) -> None:
        """As :meth:`~isthmus.store.store.Store.open`."""
        await self._store.open(durable=durable)

    async def close(self) -> None:
        """Nothing: the whole store is still in use."""


class KVSection:
    """Values by key, in a section of a store."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    async def get(self, key: str) -> KVEntry | None:
        """As :meth:`~isthmus.store.kv.KV.get`."""
        return await self._store.kv.get(self._prefix + key)

    async def put(self, key: str, value: bytes, ttl: float | None = None) -> int:
        """As :meth:`~isthmus.store.kv.KV.put`."""
        return await self._store.kv.put(self._prefix + key, value, ttl)

    async def cas(
        self, key: str, value: bytes, version: int, ttl: float | None = None
    ) -> int | None:
        """As :meth:`~isthmus.store.kv.KV.cas`."""
        return await self._store.kv.cas(self._prefix + key, value, version, ttl)

    async def delete(self, key: str, version: int | None = None) -> bool:
        """As :meth:`~isthmus.store.kv.KV.delete`."""
        return await self._store.kv.delete(self._prefix + key, version)

    async def scan(self, prefix: str, after: str, limit: int) -> list[tuple[str, KVEntry]]:
        """As :meth:`~isthmus.store.kv.KV.scan`."""
        start = self._prefix + after if after else ""
        found = await self._store.kv.scan(self._prefix + prefix, start, limit)
        return [(key.removeprefix(self._prefix), entry) for key, entry in found]


class LogSection:
    """Streams, in a section of a store."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    async def write(self, stream: str, place: int, values: Sequence[bytes]) -> None:
        """As :meth:`~isthmus.store.log.Log.write`."""
        await self._store.log.write(self._prefix + stream, place, values)

    async def read(self, stream: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """As :meth:`~isthmus.store.log.Log.read`."""
        return await self._store.log.read(self._prefix + stream, after, limit)

    async def forget(self, stream: str) -> None:
        """As :meth:`~isthmus.store.log.Log.forget`."""
        await self._store.log.forget(self._prefix + stream)


class BusSection:
    """Channels, in a section of a store."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    async def publish(self, channel: str, message: bytes) -> bool:
        """As :meth:`~isthmus.store.bus.Bus.publish`."""
        return await self._store.bus.publish(self._prefix + channel, message)

    async def subscribe(self, channel: str, hear: Hear) -> Unsubscribe:
        """As :meth:`~isthmus.store.bus.Bus.subscribe`."""
        return await self._store.bus.subscribe(self._prefix + channel, hear)

    def on_gap(self, callback: Callable[[], None]) -> Unsubscribe:
        """As :meth:`~isthmus.store.bus.Bus.on_gap`."""
        return self._store.bus.on_gap(callback)
