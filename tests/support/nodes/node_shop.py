"""A server that several nodes serve: every tool says which process answered."""

import asyncio
import os

from isthmus import Accepted, Context, Server, ToolError

STORE = os.environ.get("SHOP_STORE")
SECRET = os.environ.get("SHOP_SECRET")

server = Server(
    "shop",
    version="1.0",
    store=STORE or None,
    secret=SECRET.encode() if SECRET else None,
)

MAX_STEPS = 1_000
counting: set[object] = set()


@server.tool
async def whoami() -> int:
    """The process that answers."""
    return os.getpid()


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def count(ctx: Context, steps: int, pause: float = 0.0) -> int:
    """Report progress in so many steps; gives the process."""
    if steps > MAX_STEPS:
        raise ToolError(f"{MAX_STEPS} steps at most")
    call = object()
    counting.add(call)
    try:
        for step in range(steps):
            await ctx.progress(step + 1, steps, f"step {step + 1}")
            await asyncio.sleep(pause)
    finally:
        counting.discard(call)
    return os.getpid()


@server.tool
async def find_counting() -> int:
    """The process, where it counts for somebody; else 0."""
    return os.getpid() if counting else 0


@server.tool
async def ask(ctx: Context, question: str) -> str:
    """Ask the user; gives the process that asked, and the answer."""
    match await ctx.elicit(question, str):
        case Accepted(value):
            return f"{os.getpid()} {value}"
        case other:
            return f"{os.getpid()} {type(other).__name__}"


@server.tool
async def restock(uri: str) -> None:
    """Say that a resource changed."""
    server.notify_resource_updated(uri)


@server.resource("stock://{item}")
async def stock(item: str) -> str:
    """How many there are."""
    return f"{len(item)} of {item}"


app = server.asgi()
