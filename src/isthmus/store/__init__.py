"""What a server keeps: one file per primitive, each a protocol and a form of it in memory."""

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Import a name on its first use: most servers keep little (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.store' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value
