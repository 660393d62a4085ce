"""Calls per second of an async call: one after another, and 16 at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable

WARM_UP = 0.4


async def one_after_another(call: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Calls per second with one under way."""
    start = now = time.perf_counter()
    count = 0
    while now < start + seconds:
        await call()
        count += 1
        now = time.perf_counter()
    return count / (now - start)


async def at_once(call: Callable[[], Awaitable[object]], seconds: float, width: int) -> float:
    """Calls per second with ``width`` under way."""
    return sum(await asyncio.gather(*(one_after_another(call, seconds) for _ in range(width))))


async def rates(call: Callable[[], Awaitable[object]], seconds: float) -> dict[str, float]:
    """Both, after a warm-up."""
    await one_after_another(call, WARM_UP)
    return {
        "sequential": await one_after_another(call, seconds),
        "at_once_16": await at_once(call, seconds, 16),
    }


async def list_ms(call: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of one listing: the middle of many."""
    took = []
    for _ in range(41):
        start = time.perf_counter()
        await call()
        took.append(time.perf_counter() - start)
    return sorted(took)[20] * 1e3
