"""A server for the tests of the command, with something of everything."""

import asyncio

from msgspec import Struct

from isthmus import Accepted, Context, Server, ToolError

# What it says reaches the command as it is, as that of other people's servers does.
server = Server("shop", version="2.0", instructions="Buy something.", sanitise=None)
print("loaded")  # noqa: T201 - what a file prints must not reach the protocol


class Order(Struct):
    """What is wanted."""

    count: int
    gift: bool = False


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


@server.tool
async def buy(ctx: Context) -> str:
    """Buy apples."""
    await ctx.progress(1, total=2, message="looking")
    match await ctx.elicit("How many apples?", Order):
        case Accepted(order):
            return f"{order.count} apples{' as a gift' if order.gift else ''}"
        case _:
            raise ToolError("Nothing bought.")


@server.tool
async def wait(ctx: Context) -> str:
    """Never come back."""
    ctx.log.info("waiting")
    await asyncio.Event().wait()
    return "never"


@server.tool
def trick() -> str:
    """Try to paint the terminal."""
    return "a\x1b[31mb\u202ec"


@server.tool
def fail() -> str:
    """Fail on purpose."""
    raise ToolError("out of apples")


@server.tool
def stumble() -> str:
    """Fail by mistake."""
    raise ValueError("no apples in this crate")


@server.resource("shop://hours")
def hours() -> str:
    """When it is open."""
    return "8 to 18"


@server.resource("shop://logo", mime_type="image/png")
def logo() -> bytes:
    """Its picture."""
    return b"\x89PNG\x00"


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."
