"""The bare hop of ``bench/gateway.py``: an isthmus server whose tool calls on by an isthmus client.

``hop.py URL PORT`` serves over HTTP.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from isthmus import Client, Context, Server

URL, PORT = sys.argv[1], int(sys.argv[2])


@asynccontextmanager
async def connect(_server: Server[Client]) -> AsyncIterator[Client]:
    """The client, as long as the server runs."""
    async with Client(URL) as client:
        yield client


server: Server[Client] = Server("hop", lifespan=connect)


@server.tool
async def add(a: int, b: int, ctx: Context[Client]) -> int:
    """Add two numbers elsewhere."""
    result = await ctx.state.call_tool("add", {"a": a, "b": b})
    return int(result.text)


server.run("http", port=PORT)
