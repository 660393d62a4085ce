"""The client of isthmus: ``ours.py URL|memory SECONDS WIRE``."""

import asyncio
import json
import sys

from timing import measure_rates, time_list_ms

from isthmus import Client, Server


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def make_server(size: int) -> Server:
    """A server with ``add`` and as many more as asked for."""
    server = Server("bench", version="1")
    for number in range(size):
        server.add_tool(add, name=f"add_{number}" if number else "add")
    return server


async def main() -> None:
    """Measure, and print one JSON line."""
    target, seconds, wire = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    arguments = {"a": 20, "b": 22}
    revision = {"legacy": "2025-06-18", "modern": "2026-07-28"}[wire]
    subject = make_server(1) if target == "memory" else target
    async with Client(subject, revision=revision) as client:
        result = await client.call_tool("add", arguments)
        if "42" not in str(result):
            raise RuntimeError(result)
        found = await measure_rates(lambda: client.call_tool("add", arguments), seconds)
    if target == "memory":
        async with Client(make_server(500), revision=revision) as client:
            found["list_500_ms"] = await time_list_ms(client.list_tools)
    print(json.dumps(found))


asyncio.run(main())
