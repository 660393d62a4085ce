"""The parts of a run, each with its tables and what measures them."""

from collections.abc import Mapping
from types import ModuleType

from results import Table

from parts import (
    asking,
    auth,
    client,
    growth,
    http,
    kinds,
    memory,
    payload,
    sessions,
    start,
    stdio,
    updates,
    workers,
)

PARTS: Mapping[str, ModuleType] = {
    "http": http,
    "stdio": stdio,
    "client": client,
    "start": start,
    "sessions": sessions,
    "auth": auth,
    "kinds": kinds,
    "payload": payload,
    "growth": growth,
    "workers": workers,
    "memory": memory,
    "updates": updates,
    "asking": asking,
}
SHORT_PARTS = ("http", "stdio", "client", "start", "sessions", "payload", "workers", "memory")
TABLES: tuple[Table, ...] = tuple(table for part in PARTS.values() for table in part.TABLES)
