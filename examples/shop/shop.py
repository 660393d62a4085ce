"""A shop made of servers: one is mounted, one is proxied, one is made of an OpenAPI document.

Dependencies, typed state, a cart for each session, tags, a tool in other words, a page beside the protocol,
and middleware, in every revision: ``isthmus run examples/shop/shop.py --http 127.0.0.1:8000``.
"""

import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct

from isthmus import Accepted, Context, Inject, Server, ToolError
from isthmus.openapi import Shape
from isthmus.server.middleware import Caching, Logging, Middleware, Timing

sys.path.insert(0, str(Path(__file__).parent))

import parcels
import payments
import stock

# What lives as long as the server


class Books(Struct):
    """The books of the shop.

    Attributes:
        orders: what was ordered, by the number of the order.
        numbers: gives the numbers.
    """

    orders: dict[str, dict[str, int]]
    numbers: "itertools.count[int]"


@asynccontextmanager
async def keep_books(_server: Server) -> AsyncIterator[Books]:
    """Open the books, and close them in the end."""
    yield Books({}, itertools.count(1))


# Around every call


class Till(Middleware):
    """Counts the tools that were called."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    async def on_call_tool(self, ctx: Any, call_next: Any) -> Any:
        """Count a call, whatever comes of it."""
        self.calls[ctx.params.name] = self.calls.get(ctx.params.name, 0) + 1
        return await call_next(ctx)


till = Till()
server: Server[Books] = Server(
    "shop",
    version="2.0",
    instructions="Search the stock, fill the cart, and order. Then have the parcel sent.",
    lifespan=keep_books,
    middleware=[Timing(), Logging(), till, Caching(ttl=5, tools=["stock_search"])],
)

# Other servers

server.mount(stock.server, prefix="stock")
server.mount(Server.proxy(parcels.server), prefix="parcel")
server.mount(
    Server.from_openapi(
        payments.DOCUMENT,
        app=payments.app,
        credentials={"key": os.environ.get("PAYMENTS_KEY", payments.KEY)},
        exclude="tag:internal",
        shape={"createPayment": Shape(name="pay"), "getPayment": Shape(name="find")},
    ),
    prefix="payment",
)
server.include(
    "stock_search",
    name="find_gift",
    description="Find something to give to somebody.",
    hide={"limit": 1},
    rename={"words": "for_whom_or_what"},
    describe={"for_whom_or_what": "A word about the gift, such as 'tea'."},
)
server.visibility(sessions=True)  # `unlock` shows them in one session
server.disable(tags={"staff"})

# The cart


async def load_cart(ctx: Context[Books]) -> dict[str, int]:
    """Load the cart of this session: how many of each item."""
    return await ctx.session.get("cart", {}, type=dict[str, int])


Cart = Annotated[dict[str, int], Inject(load_cart)]


def add_up(cart: dict[str, int]) -> int:
    """Add up what a cart costs, in cents."""
    return sum(stock.find_item(name).price * count for name, count in cart.items())


@server.tool(tags={"public"})
async def add_to_cart(item: str, cart: Cart, ctx: Context[Books], count: int = 1) -> int:
    """Put something into the cart, and give its price in cents."""
    found = stock.find_item(item)
    cart[item] = cart.get(item, 0) + count
    if cart[item] > found.left:
        raise ToolError(f"there are only {found.left} of {item}")
    await ctx.session.set("cart", cart)
    return add_up(cart)


@server.tool(read_only=True, tags={"public"})
async def show_cart(cart: Cart) -> dict[str, int]:
    """Show the cart."""
    return cart


@server.tool(destructive=True, timeout=60, tags={"public"})
async def order(cart: Cart, ctx: Context[Books]) -> str:
    """Order what is in the cart, once the customer has agreed."""
    if not cart:
        raise ToolError("the cart is empty")
    answer = await ctx.elicit(f"Order for {add_up(cart) / 100:.2f} EUR?", bool)
    if not isinstance(answer, Accepted) or not answer.value:
        return "nothing was ordered"
    number = await ctx.once(write_order, ctx.state, cart)
    await ctx.session.delete("cart")
    return number


def write_order(books: Books, cart: dict[str, int]) -> str:
    """Write an order into the books, and take it from the stock."""
    number = f"o{next(books.numbers)}"
    books.orders[number] = cart
    for name, count in cart.items():
        stock.find_item(name).left -= count
    return number


@server.resource("orders://{number}")
async def show_order(number: str, ctx: Context[Books]) -> dict[str, int] | None:
    """One order."""
    return ctx.state.orders.get(number)


@server.tool(read_only=True)
async def explain(item: str, ctx: Context[Books]) -> str:
    """Explain an item, by what the stock says of it."""
    found = await ctx.read_resource(f"stock://stock/{item}")
    return f"Of {item} we know: {found.contents[0].text}"


# Staff, and a page beside the protocol


@server.tool
async def unlock(word: str, ctx: Context[Books]) -> str:
    """Show the tools of the staff in this session."""
    if word != os.environ.get("STAFF_WORD", "open sesame"):
        raise ToolError("that is not the word")
    await ctx.session.enable(tags={"staff"})
    return "stock_refill is there now"


@server.route("/till", methods=["GET"])
async def show_till(_request: Any) -> dict[str, int]:
    """Say how often each tool was called."""
    return till.calls


if __name__ == "__main__":
    server.run()
