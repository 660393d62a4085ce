"""Proxy: a server of 2025-11-25, served in every revision. Run it: ``python examples/proxied.py``."""

import asyncio

from isthmus import Accepted, Client, Context, Server

old = Server("old", revisions=["2025-11-25"])


@old.tool
async def order(item: str, ctx: Context) -> str:
    """Order something."""
    answer = await ctx.elicit(f"Which size of {item}?", str)
    return f"one {item}, size {answer.value}" if isinstance(answer, Accepted) else "nothing"


server = Server.proxy(old, name="shop")  # or a URL, a Command(…), an entry of mcpServers


async def main() -> None:
    """Call it as a client of the newest revision."""
    async with Client(server, elicit=lambda _: Accepted({"value": "L"})) as client:
        result = await client.call_tool("order", {"item": "shirt"})
        print(client.revision.name, result.text)
    await server.close()


if __name__ == "__main__":
    asyncio.run(main())
