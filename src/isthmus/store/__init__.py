"""Stores: one module per primitive, and per engine that has them all."""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.store.bus import Bus, MemoryBus
    from isthmus.store.kv import KV, MemoryKV
    from isthmus.store.lease import Lease, Leases
    from isthmus.store.log import Log, LogLimits, MemoryLog
    from isthmus.store.mailbox import Mailbox
    from isthmus.store.memory_store import MemoryStore
    from isthmus.store.meter import MemoryMeter, Meter, Rate
    from isthmus.store.redis_store import RedisStore
    from isthmus.store.sqlite_store import SqliteStore
    from isthmus.store.store import Store, StoreUnavailable, open_store

__all__ = [
    "KV",
    "Bus",
    "Lease",
    "Leases",
    "Log",
    "LogLimits",
    "Mailbox",
    "MemoryBus",
    "MemoryKV",
    "MemoryLog",
    "MemoryMeter",
    "MemoryStore",
    "Meter",
    "Rate",
    "RedisStore",
    "SqliteStore",
    "Store",
    "StoreUnavailable",
    "open_store",
]

_HOMES = {
    "Bus": "isthmus.store.bus",
    "KV": "isthmus.store.kv",
    "Lease": "isthmus.store.lease",
    "Leases": "isthmus.store.lease",
    "Log": "isthmus.store.log",
    "LogLimits": "isthmus.store.log",
    "Mailbox": "isthmus.store.mailbox",
    "MemoryBus": "isthmus.store.bus",
    "MemoryKV": "isthmus.store.kv",
    "MemoryLog": "isthmus.store.log",
    "MemoryMeter": "isthmus.store.meter",
    "MemoryStore": "isthmus.store.memory_store",
    "Meter": "isthmus.store.meter",
    "Rate": "isthmus.store.meter",
    "RedisStore": "isthmus.store.redis_store",
    "SqliteStore": "isthmus.store.sqlite_store",
    "Store": "isthmus.store.store",
    "StoreUnavailable": "isthmus.store.store",
    "open_store": "isthmus.store.store",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
