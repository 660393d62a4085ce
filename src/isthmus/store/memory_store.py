"""Store in memory: for one process, and for several nodes in one event loop, as in tests."""

import time
from collections.abc import Callable

import msgspec

from isthmus.store.bus import MemoryBus
from isthmus.store.kv import MemoryKV
from isthmus.store.log import LogLimits, MemoryLog
from isthmus.store.meter import MemoryMeter, Rate


class MemoryStore:
    """A store of this process.

    Args:
        clock: says the time in seconds, from any beginning.
        log_limits: bounds of the log.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, log_limits: LogLimits | None = None
    ) -> None:
        self.name = "memory"
        self.kv = MemoryKV(clock=clock)
        self.log = MemoryLog(clock, **msgspec.structs.asdict(log_limits or LogLimits()))
        self.bus = MemoryBus()
        self._clock = clock
        self._meters: dict[str, MemoryMeter] = {}

    def meter(self, name: str, rate: Rate) -> MemoryMeter:
        """A meter that all processes share; see :meth:`~isthmus.store.store.Store.meter`.

        Args:
            name: the limit; meters of one name count together.
            rate: the rate that each key is allowed.
        """
        known = self._meters.get(name)
        if known is None:
            known = self._meters[name] = MemoryMeter(rate, clock=self._clock)
        return known if known.rate == rate else known.share(rate)

    async def open(self, *, durable: bool = False) -> None:
        """Do nothing: memory needs no opening; ``durable`` is not asked for where memory will do.

        Args:
            durable: not used: nothing outlives the process.
        """

    async def close(self) -> None:
        """Do nothing: its contents outlive the nodes that use it."""
