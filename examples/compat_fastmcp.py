"""A server written for fastmcp, as it is: on isthmus, in every revision.

``from fastmcp import …`` stands in a package of yours, which ``isthmus run --compat package.module`` runs unmodified. Here
the façade is imported by its own name, so that the file runs without the command.
"""

import asyncio
from typing import Any

from isthmus import Client as IsthmusClient
from isthmus.compat.fastmcp import Client, Context, FastMCP
from isthmus.compat.fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

mcp = FastMCP("warehouse", instructions="Look before you take.")
STOCK = {"bread": 3}


class Count(Middleware):
    """Counts calls."""

    calls = 0

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Count one."""
        self.calls += 1
        return await call_next(context)


count = Count()
mcp.add_middleware(count)


@mcp.tool(annotations={"readOnlyHint": True})
def in_stock(item: str) -> int:
    """How many there are."""
    return STOCK.get(item, 0)


@mcp.tool
async def take(item: str, ctx: Context, number: int = 1) -> str:
    """Take some."""
    if STOCK.get(item, 0) < number:
        raise ValueError(f"there is not so much {item}")
    STOCK[item] -= number
    await ctx.info(f"took {number}")
    return f"{number} {item}"


@mcp.resource("stock://{item}")
def stock(item: str) -> dict[str, int]:
    """What there is of something."""
    return {item: STOCK.get(item, 0)}


async def main() -> None:
    """Ask it with fastmcp's client, and with isthmus'."""
    async with Client(mcp) as client:
        print((await client.call_tool("take", {"item": "bread", "number": "2"})).data)
        print((await client.read_resource("stock://bread"))[0].text)
    for revision in ("2024-11-05", "2025-11-25", "2026-07-28"):
        async with IsthmusClient(mcp.server, revision=revision) as client:
            print(revision, (await client.call_tool("in_stock", {"item": "bread"})).text)
    print(count.calls, "calls")


if __name__ == "__main__":
    asyncio.run(main())
