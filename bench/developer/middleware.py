"""Cost of middleware: CPU of a call in memory with layers, against the same call without.

``python bench/developer/middleware.py`` prints ratios; all variants take turns in one run, and the
least of the rounds counts.
"""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus import Client, Server
from isthmus.server.middleware import (
    Caching,
    Concurrency,
    Deadline,
    Inbound,
    Logging,
    MaxResult,
    Middleware,
    RawCallNext,
    Retry,
    Timing,
)

ROUNDS, CALLS, WARM_UP_CALLS = 9, 500, 100


class CallsOnly(Middleware):
    """One typed hook that hands on."""

    async def on_call_tool(self, ctx: Any, call_next: Any) -> Any:
        """Hand a call on."""
        return await call_next(ctx)


class ListsOnly(Middleware):
    """One typed hook of another method."""

    async def on_list_tools(self, ctx: Any, call_next: Any) -> Any:
        """Hand a list on."""
        return await call_next(ctx)


def print_nothing(_what: object) -> None:
    """Take what is told."""


async def hand_on(inbound: Inbound, call_next: RawCallNext) -> Any:
    """Hand everything on, in the raw shape."""
    return await call_next(inbound)


VARIANTS: Mapping[str, Sequence[Any]] = {
    "none": (),
    "hook of another method": (ListsOnly(),),
    "raw function": (hand_on,),
    "typed hook": (CallsOnly(),),
    "five typed hooks": tuple(CallsOnly() for _ in range(5)),
    "Timing": (Timing(print_nothing),),
    "Logging": (Logging(write=print_nothing),),
    "Caching (a hit)": (Caching(60),),
    "Retry": (Retry(),),
    "Deadline": (Deadline(60),),
    "MaxResult": (MaxResult(100_000),),
    "Concurrency": (Concurrency(10),),
}


def make_server(layers: Sequence[Any]) -> Server:
    """Make a server with one small tool."""
    server = Server("bench", middleware=layers)

    @server.tool(read_only=True)
    async def add(a: int, b: int) -> int:
        return a + b

    return server


async def time_calls(client: Client, calls: int) -> float:
    """CPU seconds of one call, as the mean of many."""
    began = time.process_time()
    for _ in range(calls):
        await client.call_tool("add", {"a": 1, "b": 2})
    return (time.process_time() - began) / calls


async def compare(variants: Mapping[str, Client]) -> dict[str, float]:
    """The least CPU seconds of a call for each client; they take turns."""
    least = dict.fromkeys(variants, float("inf"))
    for client in variants.values():
        await client.open()
        await time_calls(client, WARM_UP_CALLS)
    for _ in range(ROUNDS):
        for name, client in variants.items():
            least[name] = min(least[name], await time_calls(client, CALLS))
    for client in variants.values():
        await client.close()
    return least


def print_ratios(least: Mapping[str, float], base: str) -> None:
    """Print a table of ratios to one of the variants."""
    sys.stdout.write("| variant | µs CPU | ratio |\n| --- | ---: | ---: |\n")
    for name, seconds in least.items():
        sys.stdout.write(f"| {name} | {seconds * 1e6:.1f} | {seconds / least[base]:.2f} |\n")


if __name__ == "__main__":
    clients = {name: Client(make_server(layers)) for name, layers in VARIANTS.items()}
    print_ratios(asyncio.run(compare(clients)), "none")
