"""Calls per second of an async call, and the CPU time of this process for each."""

import asyncio
import time
from collections.abc import Awaitable, Callable

WARM_UP_S = 0.3
WIDTH = 16

Call = Callable[[], Awaitable[object]]


async def call_for(call: Call, seconds: float) -> int:
    """Call one after another for a while: how often."""
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        await call()
        count += 1
    return count


async def time_calls(call: Call, seconds: float, width: int) -> tuple[float, float]:
    """Calls per second with ``width`` under way, and microseconds of CPU for each."""
    began, cpu = time.perf_counter(), time.process_time()
    counts = await asyncio.gather(*(call_for(call, seconds) for _ in range(width)))
    spent, took = time.process_time() - cpu, time.perf_counter() - began
    return sum(counts) / took, spent / sum(counts) * 1e6


async def measure_rates(call: Call, seconds: float) -> dict[str, float]:
    """One under way, then sixteen, after a warm-up."""
    await call_for(call, WARM_UP_S)
    one, one_us = await time_calls(call, seconds, 1)
    many, many_us = await time_calls(call, seconds, WIDTH)
    return {
        "sequential_us": one_us,
        "at_once_us": many_us,
        "sequential": one,
        "at_once_16": many,
    }


async def time_list_ms(call: Call) -> float:
    """Milliseconds of CPU of one listing: the least of many."""
    took = []
    for _ in range(21):
        start = time.process_time()
        await call()
        took.append(time.process_time() - start)
    return min(took) * 1e3
