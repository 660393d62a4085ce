"""What a host costs: an allowed call through its pipeline, over the bare client's call.

``python bench/hosts/calls.py [--short]`` prints microseconds: of the client alone, and what the host adds
to it without the row that is durable before the call, and with it in a file and in memory; and how
many bytes a call leaves behind over many calls.
"""

import asyncio
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from statistics import quantiles
from typing import Any

from isthmus import Client, Server
from isthmus.host import Host

CALLS = 4_000
MEMORY_CALLS = 10_000
WARM = 5_000
"""Calls after which caches of a fixed size are full."""

ARGUMENTS = {"name": "Ada", "times": 2}

server = Server("bench")


@server.tool(read_only=True)
async def greet(name: str, times: int) -> str:
    """Greet."""
    return f"hello {name} " * times


class WithoutIntents:
    """An audit log without the rows that have to be durable before anything is done."""

    def __init__(self, log: Any) -> None:
        self.note = log.note
        self.write = log.write

    async def intent(self, row: Any) -> None:
        """Leave it out."""


async def spread(call: Callable[[], Awaitable[object]], calls: int) -> tuple[float, float]:
    """Microseconds of one call: the median, and what 99 of 100 stay below."""
    for _ in range(200):
        await call()
    took = []
    for _ in range(calls):
        began = time.perf_counter_ns()
        await call()
        took.append(time.perf_counter_ns() - began)
    cuts = quantiles(took, n=100)
    return cuts[49] / 1000, cuts[98] / 1000


async def bare(calls: int) -> tuple[float, float]:
    """The client's own call."""
    async with Client(server) as client:
        await client.list_tools()
        return await spread(lambda: client.call_tool("greet", ARGUMENTS), calls)


def hosted(state: str | None) -> Host:
    """A host that allows the call: a trusted tool that only reads."""
    host = Host(policy="personal-read-only", state=state)
    host.add("bench", server, trust="annotations", limits=unlimited())
    return host


def unlimited() -> Any:
    """As many calls as there are."""
    from isthmus.host.model.entries import ServerLimits

    return ServerLimits(calls=None)


async def through(calls: int, state: str | None, *, intents: bool) -> tuple[float, float]:
    """The same call through the pipeline."""
    async with hosted(state) as host:
        if not intents:
            host.core.pipeline.audit = WithoutIntents(host.audit)
        return await spread(lambda: host.call("bench__greet", ARGUMENTS), calls)


async def left_behind(calls: int) -> float:
    """Bytes that a call leaves behind, over many."""
    with tempfile.TemporaryDirectory() as folder:
        async with hosted(folder) as host:
            run = host.run()
            tracemalloc.start()
            for _ in range(WARM):
                await host.call("bench__greet", ARGUMENTS, run=run)
            await host.audit.flush()
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(calls):
                await host.call("bench__greet", ARGUMENTS, run=run)
            await host.audit.flush()
            gc.collect()
            after = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            return (after - before) / calls


def main() -> None:
    """Print a line for each."""
    short = "--short" in sys.argv
    calls = CALLS // 8 if short else CALLS
    alone, alone99 = asyncio.run(bare(calls))
    print(f"the bare client's call:                 p50 {alone:7.1f} µs  p99 {alone99:7.1f} µs")
    with tempfile.TemporaryDirectory() as folder:
        for name, state, intents in (
            ("the host adds, without the intent row", f"{folder}/a", False),
            ("the host adds, with it, in a file", f"{folder}/b", True),
            ("the host adds, with it, in memory", None, True),
        ):
            p50, p99 = asyncio.run(through(calls, state, intents=intents))
            print(f"{name:38}  p50 {p50 - alone:7.1f} µs  p99 {p99 - alone99:7.1f} µs")
    count = MEMORY_CALLS // 10 if short else MEMORY_CALLS
    print(f"bytes left behind a call, over {count} calls: {asyncio.run(left_behind(count)):.1f}")


if __name__ == "__main__":
    main()
