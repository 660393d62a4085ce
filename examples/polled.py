"""A tool that takes long lets go of the connection; its client comes back for the answer.

Run it with ``python examples/polled.py``.
"""

import asyncio

from isthmus import Client, Context, Server
from isthmus.testing import serving

server = Server("oven", version="1.0")


@server.tool
async def bake(ctx: Context) -> str:
    """Bake a cake, which takes its time."""
    await ctx.progress(1, total=2, message="in the oven")
    await ctx.close_stream(retry=0.05)
    await asyncio.sleep(0.1)
    return "a cake"


async def main() -> None:
    """Serve it over HTTP, call it, and be none the wiser."""
    async with serving(server) as url, Client(url, revision="2025-11-25") as client:
        print((await client.call_tool("bake")).text)


if __name__ == "__main__":
    asyncio.run(main())
