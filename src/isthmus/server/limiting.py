"""Holding callers to their limits: who is counted, and what becomes of what is too much."""

import math
import time
from collections.abc import Callable

from isthmus.core.principal import owner_of
from isthmus.errors import Refuse
from isthmus.revisions.codes import LIMITED
from isthmus.runtime.inbound import Inbound
from isthmus.server.limits import Limits
from isthmus.store.meter import MemoryMeter, Meter, Rate

__all__ = ["Limiter", "Limiters", "who"]

HIGH = 10_000
"""From such an amount on, counting begins when half of it was taken by everybody together."""


class Limiter:
    """One limit, for every caller.

    A rate that is high costs a call one subtraction: nobody can be beyond it while all callers
    together are not beyond half of it, so that half is not counted, and what is counted after it
    is held to the other half.

    Args:
        what: what is limited, in the plural.
        setting: which limit it is, for the message.
        rate: how much, or what measures it.
        clock: says the time in seconds.

    Attributes:
        spare: what may happen before anything need be counted; whoever takes subtracts one, and
            asks :meth:`check` when it is below zero.
    """

    __slots__ = ("_clock", "_free", "_meter", "_rate", "_setting", "_since", "_what", "spare")

    def __init__(
        self,
        what: str,
        setting: str,
        rate: Rate | Meter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._setting = setting
        self._clock = clock
        self._since = clock()
        self._free = 0
        self._rate = rate if isinstance(rate, Rate) else None
        if isinstance(rate, Rate):
            self._free = int(rate.amount // 2) if rate.amount >= HIGH else 0
            rest = Rate(rate.amount - self._free, rate.seconds)
            self._meter: Meter = MemoryMeter(rest, clock=clock)
        else:
            self._meter = rate
        self.spare = self._free

    async def excess(self, inbound: Inbound) -> float:
        """Take one for the caller of a request; the seconds to wait if that is too much."""
        if self._free and self._rate is not None:
            now = self._clock()
            if now - self._since >= self._rate.seconds:
                self._since, self.spare = now, self._free - 1
                return 0.0
        self.spare = 0
        return await self._meter.take(who(inbound))

    async def check(self, inbound: Inbound) -> None:
        """Take one for the caller of a request.

        Raises:
            Refuse: that is too much; it says how long to wait.
        """
        wait = await self.excess(inbound)
        if wait > 0:
            allowed = "" if self._rate is None else f" ({self._rate} for each caller)"
            raise Refuse(
                LIMITED,
                f"Too many {self._what}{allowed}: try again in {max(wait, 0.001):.3g} s",
                {"limit": self._setting, "retryAfterMs": math.ceil(wait * 1000)},
            )


def who(inbound: Inbound) -> str:
    """Whose request it is, as far as limits are concerned.

    What a client says of itself is no part of it: anybody can say anything.
    """
    owner = owner_of(inbound.principal)
    if owner is not None:
        return f"principal {owner}"
    origin = inbound.origin
    if origin.session is not None:
        return f"session {origin.session}"
    if origin.peer is not None:
        return f"peer {origin.peer}"
    return f"link {id(inbound.link)}"


class Limiters:
    """The limits of one server that are rates.

    Args:
        limits: the server's limits.

    Attributes:
        tool_calls: holds back calls of tools, or None; so do the others, each its kind.
    """

    __slots__ = ("completions", "log_messages", "progress", "tool_calls")

    def __init__(self, limits: Limits) -> None:
        self.tool_calls = _limiter("tool calls", "tool_calls", limits.tool_calls)
        self.completions = _limiter("completions", "completions", limits.completions)
        self.log_messages = _limiter("log messages", "log_messages", limits.log_messages)
        self.progress = _limiter("reports of progress", "progress", limits.progress)


def _limiter(what: str, setting: str, rate: Rate | Meter | None) -> Limiter | None:
    return None if rate is None else Limiter(what, setting, rate)
