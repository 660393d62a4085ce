"""A server beside other work: an oven in the same event loop, a page at a path of its own, a tool with a time limit.

``python bakery.py`` serves MCP clients at http://127.0.0.1:8000/mcp, and everybody else at
http://127.0.0.1:8000/status.
"""

import asyncio

from isthmus import Context, Server

server = Server("bakery", version="1.0")

shelf = {"rolls": 0}
baked = asyncio.Condition()


async def bake(seconds: float) -> None:
    """Bake twelve rolls at a time, for ever."""
    while True:
        await asyncio.sleep(seconds)
        async with baked:
            shelf["rolls"] += 12
            baked.notify_all()


@server.route("/status")
async def status() -> dict[str, int]:
    """Tell a browser, or a monitor, what is on the shelf."""
    return shelf


@server.resource("bakery://shelf")
async def read_shelf() -> str:
    """What is on the shelf."""
    return f"{shelf['rolls']} rolls"


@server.tool(timeout=30)
async def wait_for(rolls: int, ctx: Context) -> str:
    """Wait until there are so many rolls, for half a minute at most."""
    async with baked:
        await baked.wait_for(lambda: shelf["rolls"] >= rolls)
    read = await ctx.read_resource("bakery://shelf")  # as the caller would read it
    return f"There are {read.contents[0].text} now."


async def main(seconds: float = 10, port: int = 8000) -> None:
    """Bake and serve until the process is interrupted."""
    baking = asyncio.create_task(bake(seconds))
    try:
        await server.run_async("http", port=port)
    finally:
        baking.cancel()


if __name__ == "__main__":
    asyncio.run(main())
