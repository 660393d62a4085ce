"""A cart for each session, with dependencies and middleware, with isthmus."""

from contextlib import asynccontextmanager
from typing import Annotated

from isthmus import Context, Inject, Server
from isthmus.server.middleware import Logging, Timing

server = Server("cart", middleware=[Timing(), Logging()])

PRICES = {"tea": 4, "honey": 7}


@asynccontextmanager
async def get_prices():
    """Open the price list for one call."""
    yield PRICES


@server.tool(timeout=5)
async def add(
    item: str, ctx: Context, prices: Annotated[dict[str, int], Inject(get_prices)]
) -> int:
    """Add something to the cart, and give the sum."""
    cart = await ctx.session.get("cart") or []
    await ctx.session.set("cart", [*cart, item])
    return sum(prices[one] for one in [*cart, item])


@server.tool
async def show(ctx: Context) -> list[str]:
    """Show the cart."""
    return await ctx.session.get("cart") or []


@server.route("/health", methods=["GET"])
async def health(request):
    """Say that the process is alive."""
    return "ok"


if __name__ == "__main__":
    server.run()
