"""The server of ``bench/scale.py``: ``scaled.py`` for ``isthmus run``, its store in ``SCALE_STORE``."""

import os

from isthmus import Accepted, Context, Server

STEPS = 5

server = Server("scaled", version="1", store=os.environ.get("SCALE_STORE") or None)


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def count(a: int, b: int, ctx: Context) -> int:
    """Add two numbers, and report progress five times."""
    for step in range(STEPS):
        await ctx.progress(step + 1, STEPS)
    return a + b


@server.tool
async def ask(a: int, b: int, ctx: Context) -> int:
    """Add two numbers when the user says so."""
    match await ctx.elicit("Shall I?", bool):
        case Accepted(_):
            return a + b
    return 0


@server.tool
async def touch(a: int, b: int) -> int:
    """Add two numbers, and say that a resource changed."""
    server.notify_resource_updated("note://one")
    return a + b


@server.tool
async def work(a: int, b: int, ctx: Context) -> int:
    """Add two numbers after a minute."""
    import asyncio

    for step in range(600):
        await ctx.progress(step + 1, 600)
        await asyncio.sleep(0.1)
    return a + b


@server.resource("note://one")
async def note() -> str:
    """A note."""
    return "one"
