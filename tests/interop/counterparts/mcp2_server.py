"""What ``isthmus_server.py`` offers, on PyPI ``mcp`` 2.3."""

import asyncio
import sys
from typing import Annotated

import mcp.types as t
from events import Events
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("counterpart", version="1")
stopped = set()


class Seat(BaseModel):
    row: int


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("it broke")


@server.tool()
async def steps(ctx: Context) -> str:
    """Report progress three times."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return "done"


@server.tool()
async def chat(ctx: Context) -> str:
    """Say one thing that is worth hearing, and one that is not."""
    await ctx.debug("quiet")
    await ctx.warning("loud")
    return "said"


def seat() -> Elicit[Seat]:
    """The question, in the form that this library carries through both eras."""
    return Elicit("Which seat?", Seat)


@server.tool()
async def ask(seat: Annotated[Seat, Resolve(seat)]) -> str:
    """Ask the user for a seat."""
    return f"row {seat.row}"


def thought(topic: str) -> Sample:
    """What the model is asked."""
    content = t.TextContent(type="text", text=topic)
    return Sample([t.SamplingMessage(role="user", content=content)], max_tokens=10)


@server.tool()
async def think(topic: str, thought: Annotated[t.CreateMessageResult, Resolve(thought)]) -> str:
    """Ask the user's model."""
    return thought.content.text


def places() -> ListRoots:
    """Which roots there are."""
    return ListRoots()


@server.tool()
async def where(places: Annotated[t.ListRootsResult, Resolve(places)]) -> str:
    """Ask for the roots."""
    return ",".join(str(root.uri) for root in places.roots)


@server.tool()
async def slow(key: str, ctx: Context) -> str:
    """Begin, and never end unless cancelled."""
    await ctx.report_progress(1)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        stopped.add(key)
        raise
    return "too late"


@server.tool(name="stopped")
async def was_stopped(key: str) -> str:
    """Whether the slow call of this key was cancelled."""
    for _ in range(50):
        if key in stopped:
            return "yes"
        await asyncio.sleep(0.1)
    return "no"


@server.tool()
async def grow(ctx: Context) -> str:
    """Change the list of tools."""
    if any(tool.name == "extra" for tool in await server.list_tools()):
        server.remove_tool("extra")
    else:
        server.add_tool(lambda: "new", name="extra", description="Comes and goes.")
    await ctx.notify_tools_changed()
    if ctx.protocol_version < "2026":
        await ctx.session.send_tool_list_changed()
    return "changed"


@server.tool()
async def touch(ctx: Context) -> str:
    """Change a note."""
    await ctx.notify_resource_updated("note://one")
    if ctx.protocol_version < "2026":
        await ctx.session.send_resource_updated("note://one")
    return "touched"


@server.tool()
async def drop(ctx: Context) -> str:
    """Close the stream before the answer."""
    if ctx.request_context.close_sse_stream is None:
        return "kept"
    await ctx.close_sse_stream()
    await asyncio.sleep(0.05)
    return "resumed"


@server.resource("note://one")
def one() -> str:
    """A note."""
    return "Remember the milk."


@server.resource("note://{name}")
def note(name: str) -> str:
    """Another note."""
    return f"Note {name}."


@server.prompt()
def hello(name: str) -> str:
    """Say hello."""
    return f"Say hello to {name}."


@server.completion()
async def complete(ref, argument, context):
    """Who may be greeted."""
    names = [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]
    return t.Completion(values=names)


async def nothing(ctx, params):
    """What a server of before 2026-07-28 answers to these; the level is not kept here."""
    return t.EmptyResult()


low = server._lowlevel_server
low.add_request_handler("resources/subscribe", t.SubscribeRequestParams, nothing)
low.add_request_handler("resources/unsubscribe", t.UnsubscribeRequestParams, nothing)
low.add_request_handler("logging/setLevel", t.SetLevelRequestParams, nothing)

if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    import uvicorn

    app = (
        server.sse_app()
        if sys.argv[1] == "sse"
        else server.streamable_http_app(event_store=Events(), retry_interval=100)
    )
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
