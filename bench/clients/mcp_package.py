"""The client of the PyPI package ``mcp``: ``mcp_package.py URL|memory SECONDS``."""

import asyncio
import json
import sys

from mcp import Client
from mcp.server.mcpserver import MCPServer
from timing import list_ms, rates


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def crowd(size: int) -> MCPServer:
    """A server with ``add`` and as many more as asked for."""
    server = MCPServer("bench")
    for number in range(size):
        server.add_tool(add, name=f"add_{number}" if number else "add")
    return server


async def main() -> None:
    target, seconds = sys.argv[1], float(sys.argv[2])
    arguments = {"a": 20, "b": 22}
    async with Client(crowd(1) if target == "memory" else target, mode="legacy") as client:
        result = await client.call_tool("add", arguments)
        if "42" not in str(result):
            raise RuntimeError(result)
        found = await rates(lambda: client.call_tool("add", arguments), seconds)
    if target == "memory":
        async with Client(crowd(500), mode="legacy") as client:
            found["list_500_ms"] = await list_ms(client.list_tools)
    print(json.dumps(found))


asyncio.run(main())
