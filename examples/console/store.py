"""A server of a tea shop: it finds, weighs, orders and restocks. The console's example launches it."""

import asyncio
import sys

from isthmus import Context, Server, ToolError

server = Server("store", version="2.1", title="Tea shop")

TEAS = {"assam": 900, "darjeeling": 1400, "sencha": 1700, "rooibos": 650}


@server.tool(read_only=True)
async def find(words: str, most: int = 10) -> list[str]:
    """Find teas by their names.

    Args:
        words: a part of the name.
        most: how many are wanted.
    """
    await asyncio.sleep(len(words) / 200)  # the catalogue is old
    return [name for name in TEAS if words.lower() in name][:most]


@server.tool(read_only=True)
async def price(tea: str, grams: int = 100) -> float:
    """Tell the price of so many grams, in euros."""
    if tea not in TEAS:
        raise ToolError(f"there is no tea called {tea!r}; find() knows which there are")
    return TEAS[tea] * grams / 10_000


@server.tool
async def order(tea: str, grams: int, address: str, note: str = "") -> str:
    """Order tea, and have it paid from the account of the house."""
    print(f"ordered: {grams} g of {tea}", file=sys.stderr)
    return f"{grams} g of {tea} to {address}{': ' if note else ''}{note}"


@server.tool
async def restock(tea: str, ctx: Context) -> str:
    """Restock a tea, box by box."""
    for box in range(1, 6):
        await ctx.progress(box, 5, f"box {box} of {tea}")
        await asyncio.sleep(0.05)
    return f"five boxes of {tea}"


@server.tool
async def empty(reason: str) -> str:
    """Empty the whole shop."""
    return f"emptied: {reason}"


if __name__ == "__main__":
    server.run()
