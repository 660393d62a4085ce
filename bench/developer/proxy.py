"""Calls through a proxy against direct ones, in memory: ``python bench/developer/proxy.py``."""

import asyncio
import time

from isthmus import Client, Server

CALLS, ROUNDS = 1500, 7
REVISIONS = ("2025-11-25", "2026-07-28")


def make_server() -> Server:
    """A server with one small tool."""
    server = Server("sums")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


async def measure(target: Server, revision: str) -> float:
    """Seconds of CPU that a call takes, the best of some rounds."""
    async with Client(target, revision=revision) as client:
        for _ in range(300):
            await client.call_tool("add", {"a": 1, "b": 2})
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.process_time()
            for _ in range(CALLS):
                await client.call_tool("add", {"a": 1, "b": 2})
            best = min(best, time.process_time() - start)
    return best / CALLS


async def main() -> None:
    """Print one line for each revision."""
    for revision in REVISIONS:
        direct = await measure(make_server(), revision)
        proxy = Server.proxy(make_server())
        proxied = await measure(proxy, revision)
        await proxy.close()
        print(
            f"{revision}: direct {direct * 1e6:.1f} µs, proxied {proxied * 1e6:.1f} µs: "
            f"{proxied / direct:.2f} times"
        )


if __name__ == "__main__":
    asyncio.run(main())
