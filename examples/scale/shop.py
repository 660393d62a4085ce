"""A server for several processes: ``store=`` is all that it needs for that.

``STORE=redis://localhost isthmus run examples/scale/shop.py --http :8001``
"""

import asyncio
import os

from isthmus import Accepted, Context, Server

server = Server("scaled-shop", version="1.0", store=os.environ.get("STORE") or None)


@server.tool
async def add(a: int, b: int) -> str:
    """Add two numbers, and say which process did."""
    return f"{a + b}, says process {os.getpid()}"


@server.tool
async def bake(ctx: Context, loaves: int) -> str:
    """Bake loaves, one each half second."""
    for loaf in range(loaves):
        await ctx.progress(loaf + 1, loaves, f"loaf {loaf + 1} by process {os.getpid()}")
        await asyncio.sleep(0.5)
    return f"{loaves} loaves"


@server.tool
async def order(ctx: Context) -> str:
    """Ask what to bake."""
    match await ctx.elicit("Which bread?", str):
        case Accepted(bread):
            return f"{bread}, noted by process {os.getpid()}"
    return "nothing"
