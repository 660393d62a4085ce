"""What ``isthmus_server.py`` offers, on PyPI ``mcp`` 1.x."""

import asyncio
import sys

import mcp.types as t
from events import Events
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from pydantic import AnyUrl, BaseModel

port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = FastMCP(
    "counterpart", port=port, event_store=Events(), retry_interval=100, log_level="WARNING"
)
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


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the user for a seat."""
    answer = await ctx.elicit("Which seat?", Seat)
    return f"row {answer.data.row}"


@server.tool()
async def think(topic: str, ctx: Context) -> str:
    """Ask the user's model."""
    content = t.TextContent(type="text", text=topic)
    message = t.SamplingMessage(role="user", content=content)
    answer = await ctx.session.create_message(
        [message], max_tokens=10, related_request_id=ctx.request_id
    )
    return answer.content.text


@server.tool()
async def where(ctx: Context) -> str:
    """Ask for the roots."""
    return ",".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


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
    await ctx.session.send_tool_list_changed()
    return "changed"


@server.tool()
async def touch(ctx: Context) -> str:
    """Change a note."""
    await ctx.session.send_resource_updated(AnyUrl("note://one"))
    return "touched"


@server.tool()
async def drop(ctx: Context) -> str:
    """Close the stream before the answer."""
    if ctx.request_context.close_sse_stream is None:
        return "kept"
    await ctx.request_context.close_sse_stream()
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


low = server._mcp_server


@low.set_logging_level()
async def level(level):
    """Messages below it are sent all the same: this library leaves that to its users."""


@low.subscribe_resource()
async def subscribe(uri):
    """Everybody is told of every change."""


server.run({"http": "streamable-http"}.get(sys.argv[1], sys.argv[1]))
