"""Stores: one file per primitive, each a protocol and a form of it in memory."""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.store.kv import KV, MemoryKV
    from isthmus.store.log import Log, MemoryLog
    from isthmus.store.meter import MemoryMeter, Meter, Rate

__all__ = ["KV", "Log", "MemoryKV", "MemoryLog", "MemoryMeter", "Meter", "Rate"]

_HOMES = {
    "KV": "isthmus.store.kv",
    "Log": "isthmus.store.log",
    "MemoryKV": "isthmus.store.kv",
    "MemoryLog": "isthmus.store.log",
    "MemoryMeter": "isthmus.store.meter",
    "Meter": "isthmus.store.meter",
    "Rate": "isthmus.store.meter",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
