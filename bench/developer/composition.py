"""Calls of mounted tools against direct ones, in memory and over HTTP: ``python bench/developer/composition.py``."""

import asyncio
import time

from isthmus import Client, Server
from isthmus.testing import serving

CALLS, ROUNDS = 1500, 7


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def make_servers() -> tuple[Server, Server]:
    """A server with one small tool, and one in which the same is mounted."""
    direct, inner, outer = Server("direct"), Server("inner"), Server("outer")
    direct.add_tool(add)
    inner.add_tool(add)
    outer.mount(inner, "m")
    return direct, outer


async def time_calls(client: Client, name: str) -> float:
    """Seconds of CPU that a call takes, in one round."""
    start = time.process_time()
    for _ in range(CALLS):
        await client.call_tool(name, {"a": 1, "b": 2})
    return (time.process_time() - start) / CALLS


async def compare(direct: object, mounted: object) -> tuple[float, float]:
    """The best rounds of both, taken by turns."""
    best = [float("inf")] * 2
    async with Client(direct) as one, Client(mounted) as two:  # type: ignore[arg-type]  # of any state
        for _ in range(ROUNDS + 1):
            best[0] = min(best[0], await time_calls(one, "add"))
            best[1] = min(best[1], await time_calls(two, "m_add"))
    return best[0], best[1]


async def measure() -> dict[str, float]:
    """How many times as long a mounted call takes, by transport; printed as well."""
    found = {}
    direct, outer = make_servers()
    found["memory"] = report("memory", *await compare(direct, outer))
    direct, outer = make_servers()
    async with serving(direct) as one, serving(outer) as two:
        found["http"] = report("http", *await compare(one, two))
    return found


def report(where: str, direct: float, mounted: float) -> float:
    """Print one line; the ratio."""
    ratio = mounted / direct
    print(
        f"{where}: direct {direct * 1e6:.1f} µs, mounted {mounted * 1e6:.1f} µs: {ratio:.3f} times"
    )
    return ratio


if __name__ == "__main__":
    asyncio.run(measure())
