"""What a server keeps: one file per primitive, each a protocol and a form of it in memory."""

from isthmus.store.kv import KV, MemoryKV
from isthmus.store.log import Log, MemoryLog
from isthmus.store.meter import MemoryMeter, Meter, Rate

__all__ = ["KV", "Log", "MemoryKV", "MemoryLog", "MemoryMeter", "Meter", "Rate"]
