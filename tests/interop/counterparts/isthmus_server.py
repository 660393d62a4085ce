"""What every server here offers, by ours: ``isthmus_server.py stdio``, or ``http PORT``, or ``sse PORT``."""

import asyncio
import os
import sys
from pathlib import Path

from msgspec import Struct

from isthmus import Accepted, Context, Server, ToolError
from isthmus.errors import UsageError
from isthmus.revisions import REVISIONS

WITH_TASKS = {"2025-11-25", "2026-07-28"}
revision = os.environ.get("COUNTERPART_REVISION")  # the only one to speak
server = Server(
    "counterpart",
    version="1",
    page_size=5,
    store=os.environ.get("COUNTERPART_STORE"),
    revisions=REVISIONS if revision is None else [revision],
)
# Where several nodes are the counterpart, files in a folder that they share say what was stopped.
FOLDER = os.environ.get("COUNTERPART_FOLDER")
stopped = set()


def mark_stopped(key):
    """Keep that the slow call of a key was cancelled."""
    stopped.add(key)
    if FOLDER:
        Path(FOLDER, f"stopped-{key}").touch()


def is_stopped(key):
    """Whether the slow call of a key was cancelled, at any node."""
    return key in stopped or bool(FOLDER and Path(FOLDER, f"stopped-{key}").exists())


class Seat(Struct):
    """Where to sit."""

    row: int


@server.tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool
def fail() -> str:
    """Fail."""
    raise ToolError("it broke")


@server.tool
async def steps(ctx: Context) -> str:
    """Report progress three times."""
    for step in (1, 2, 3):
        await ctx.progress(step, total=3)
        await asyncio.sleep(0.02)
    return "done"


@server.tool
async def chat(ctx: Context) -> str:
    """Say one thing that is worth hearing, and one that is not."""
    ctx.log.debug("quiet")
    ctx.log.warning("loud")
    return "said"


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the user for a seat."""
    match await ctx.elicit("Which seat?", Seat):
        case Accepted(Seat(row)):
            return f"row {row}"
    return "standing"


@server.tool
async def pay(ctx: Context) -> str:
    """Send the user to a page."""
    match await ctx.elicit_url("Pay here", "https://pay.example/1"):
        case Accepted():
            return "paid"
    return "owed"


@server.tool(**({"task": "required"} if revision in WITH_TASKS else {}))
async def cook(dish: str, ctx: Context) -> str:
    """Take some time, as a task where the only revision to speak has them."""
    await ctx.progress(1, 2, f"{dish} is in the oven")
    await asyncio.sleep(0.05)
    return f"{dish} is done"


@server.tool
async def think(topic: str, ctx: Context) -> str:
    """Ask the user's model."""
    return (await ctx.sample(topic, max_tokens=10)).text


@server.tool
async def where(ctx: Context) -> str:
    """Ask for the roots."""
    return ",".join(root.uri for root in await ctx.roots())


@server.tool
async def slow(key: str, ctx: Context) -> str:
    """Begin, and never end unless cancelled."""
    await ctx.progress(1)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        mark_stopped(key)
        raise
    return "too late"


@server.tool(name="stopped")
async def was_stopped(key: str) -> str:
    """Whether the slow call of this key was cancelled."""
    for _ in range(50):
        if is_stopped(key):
            return "yes"
        await asyncio.sleep(0.1)
    return "no"


@server.tool
def grow() -> str:
    """Change the list of tools."""
    try:
        server.remove_tool("extra")
    except UsageError:
        server.add_tool(lambda: "new", name="extra", description="Comes and goes.")
    return "changed"


@server.tool
def touch() -> str:
    """Change a note."""
    server.notify_resource_updated("note://one")
    return "touched"


@server.tool
async def drop(ctx: Context) -> str:
    """Close the stream before the answer."""
    await ctx.close_stream(retry=0.1)
    await asyncio.sleep(0.05)
    return "resumed"


@server.resource("note://one", mime_type="text/plain")
def one() -> str:
    """A note."""
    return "Remember the milk."


@server.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str:
    """Another note."""
    return f"Note {name}."


@server.prompt
def hello(name: str) -> str:
    """Say hello."""
    return f"Say hello to {name}."


@hello.completes("name")
def names(prefix: str) -> list[str]:
    """Who may be greeted."""
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(prefix)]


if sys.argv[1] == "stdio":
    server.run()
else:
    server.run("http", port=int(sys.argv[2]))
