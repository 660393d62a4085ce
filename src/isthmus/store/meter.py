"""Rate limits: the generic cell rate algorithm (GCRA), one number a key.

A key that was quiet may take ``amount`` at once, and then goes on at ``amount`` in ``seconds``.
Nothing is counted and no window begins: the one number kept per key is the moment at which it
would be as good as new, and an answer of the meter is how long to wait.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from isthmus.errors import UsageError

MAX_METER_KEYS = 10_000  # keys that a meter in memory knows at a time


class Rate(msgspec.Struct, frozen=True):
    """So much, in so many seconds.

    Example:
        >>> Rate(60, seconds=60)  # one a second on average, sixty at once after a quiet minute
        Rate(amount=60, seconds=60)

    Attributes:
        amount: how much at once, and in each span.
        seconds: how long a span is.

    Raises:
        UsageError: one of them is not more than nothing.
    """

    amount: float
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if not (self.amount > 0 and 0 < self.seconds < float("inf")):
            raise UsageError(
                f"a rate needs an amount above 0 and a finite time above 0, not {self!r}"
            )

    def __str__(self) -> str:
        return f"{self.amount:g} in {self.seconds:g} s"


class Meter(Protocol):
    """Rate limiter: whether a key may do something now, or how long it has to wait.

    One in memory is :class:`MemoryMeter`; one that several processes share is a class with this
    method.
    """

    async def take(self, key: str, cost: float = 1.0) -> float:
        """Take ``cost`` out of what ``key`` has left.

        Args:
            key: the key, such as a principal.
            cost: the units to take.

        Returns:
            0.0 where there was enough; otherwise the seconds until there is, and nothing is
            taken.
        """
        ...


class MemoryMeter:
    """A meter of this process.

    It keeps a number for each key that is not as good as new. Where there are more of those than
    ``most``, the one that has waited longest for its turn to be forgotten is forgotten.

    Args:
        rate: what each key may do.
        most: the keys it knows at a time.
        clock: says the time in seconds.
    """

    __slots__ = ("_clock", "_full", "_most", "_per_unit", "rate")

    def __init__(
        self,
        rate: Rate,
        *,
        most: int = MAX_METER_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rate = rate
        self._per_unit = rate.seconds / rate.amount
        self._most = most
        self._clock = clock
        self._full: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._full)

    def share(self, rate: Rate) -> "MemoryMeter":
        """A meter at another rate that counts the same keys together with this one.

        Args:
            rate: the rate of the other meter.
        """
        other = MemoryMeter(rate, most=self._most, clock=self._clock)
        other._full = self._full
        return other

    async def take(self, key: str, cost: float = 1.0) -> float:
        """Take ``cost``; see :meth:`Meter.take`. More than a key can ever have is never given.

        Args:
            key: the key, such as a principal.
            cost: the units to take.
        """
        return self.spend(key, cost)

    def spend(self, key: str, cost: float = 1.0) -> float:
        """Take from the allowance of a key; as :meth:`take`, for callers that do not await.

        Args:
            key: the key, such as a principal.
            cost: the units to take.
        """
        now = self._clock()
        full = max(self._full.pop(key, now), now) + cost * self._per_unit
        wait = full - now - self.rate.seconds
        if wait > ROUNDING_SLACK_S:
            self._full[key] = full - cost * self._per_unit
            return wait
        self._full[key] = full
        if len(self._full) > self._most:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Make room: keys as good as new first, and one at least."""
        for key in [key for key, full in self._full.items() if full <= now]:
            del self._full[key]
        while len(self._full) > self._most:
            del self._full[next(iter(self._full))]


ROUNDING_SLACK_S = 1e-9  # seconds: sums of floating point numbers are that far off at most
