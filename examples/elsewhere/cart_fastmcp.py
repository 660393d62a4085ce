"""A cart for each session, with dependencies and middleware, with fastmcp."""

from contextlib import asynccontextmanager

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.server.middleware.logging import LoggingMiddleware
from fastmcp.server.middleware.timing import TimingMiddleware
from starlette.responses import PlainTextResponse

mcp = FastMCP("cart")
mcp.add_middleware(TimingMiddleware())
mcp.add_middleware(LoggingMiddleware())

PRICES = {"tea": 4, "honey": 7}


@asynccontextmanager
async def get_prices():
    """Open the price list for one call."""
    yield PRICES


@mcp.tool(timeout=5)
async def add(item: str, ctx: Context, prices: dict[str, int] = Depends(get_prices)) -> int:
    """Add something to the cart, and give the sum."""
    cart = await ctx.get_state("cart") or []
    await ctx.set_state("cart", [*cart, item])
    return sum(prices[one] for one in [*cart, item])


@mcp.tool
async def show(ctx: Context) -> list[str]:
    """Show the cart."""
    return await ctx.get_state("cart") or []


@mcp.custom_route("/health", methods=["GET"])
async def health(request):
    """Say that the process is alive."""
    return PlainTextResponse("ok")


if __name__ == "__main__":
    mcp.run()
