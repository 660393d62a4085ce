"""Engines of stores for the contract suite: each makes stores that share what is in it.

A new engine is one function in :data:`ENGINES`, which the suite runs over in that order. It gets
the folder of the test, and skips the test, with the reason, where the engine cannot run here.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.store.log import LogLimits
from isthmus.store.memory_store import MemoryStore
from isthmus.store.redis_store import RedisStore
from isthmus.store.sqlite_store import SqliteStore
from isthmus.store.store import Store
from support.clock import ManualClock
from support.store.redis_server import make_test_url

__all__ = ["ENGINES", "ENGINE_PARAMS", "Engine", "MemoryEngine"]


class Engine:
    """One engine, empty at first.

    Attributes:
        url: where other processes find it; None where no other process can.
        clock: the time of the engine, where a test can set it; None where it is the engine's own.
        span: seconds that are short for this engine, and may be waited for.
    """

    url: str | None = None
    clock: ManualClock | None = None
    span: float = 0.04

    def make_store(self, limits: LogLimits | None = None, *, real: bool = False) -> Store:
        """A store over what is in this engine, as another process would have it; not open yet.

        Args:
            limits: bounds of its log, where they are not the usual ones.
            real: its time passes by itself, also where the test could set it.
        """
        raise NotImplementedError

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in the engine; it is waited for where the clock is the engine's own."""
        if self.clock is not None:
            self.clock.now += seconds
        else:
            assert seconds < 0.2, "a test does not wait that long"
            await asyncio.sleep(seconds + 0.005)


class MemoryEngine(Engine):
    """The store in memory: all nodes of this process have one object."""

    span = 5.0

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._stores: dict[object, MemoryStore] = {}

    def make_store(self, limits: LogLimits | None = None, *, real: bool = False) -> Store:
        """The one store, per kind."""
        if (limits, real) not in self._stores:
            made = (
                MemoryStore(log_limits=limits)
                if real
                else MemoryStore(self.clock, log_limits=limits)
            )
            self._stores[limits, real] = made
        return self._stores[limits, real]


class RedisEngine(Engine):
    """Redis, under a prefix of its own."""

    def __init__(self) -> None:
        self.url = make_test_url()

    def make_store(self, limits: LogLimits | None = None, *, real: bool = False) -> Store:
        """A store over that prefix."""
        return RedisStore(self.url, log_limits=limits)


def make_memory_engine(folder: Path) -> Engine:
    """The engine in memory; it has no files."""
    return MemoryEngine()


class SqliteEngine(Engine):
    """The store in a file of a folder: each store has the file open for itself."""

    span = 5.0

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        self.clock = ManualClock(1_700_000_000.0)

    def make_store(self, limits: LogLimits | None = None, *, real: bool = False) -> Store:
        """A store of its own over the file."""
        clock = time.time if real else self.clock
        return SqliteStore(self.url, clock=clock, log_limits=limits)


def make_sqlite_engine(folder: Path) -> Engine:
    """The engine in a file."""
    return SqliteEngine(folder)


def make_redis_engine(folder: Path) -> Engine:
    """The engine in Redis: a server of its own in the folder, or a prefix of its own elsewhere."""
    return RedisEngine()


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "memory": make_memory_engine,
    "sqlite": make_sqlite_engine,
    "redis": make_redis_engine,
}

# What runs over Redis has a mark, as it needs a server.
ENGINE_PARAMS = [
    pytest.param(name, marks=[pytest.mark.redis] if name == "redis" else []) for name in ENGINES
]
