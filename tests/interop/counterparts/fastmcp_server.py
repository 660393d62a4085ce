"""What ``isthmus_server.py`` offers, on PyPI ``fastmcp`` 4."""

import asyncio
import sys

import mcp_types as t
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.event_store import EventStore
from pydantic import BaseModel

server = FastMCP("counterpart", version="1", list_page_size=5)
stopped = set()


class Seat(BaseModel):
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
        await ctx.report_progress(step, 3)
    return "done"


@server.tool
async def chat(ctx: Context) -> str:
    """Say one thing that is worth hearing, and one that is not."""
    await ctx.debug("quiet")
    await ctx.warning("loud")
    return "said"


def modern(ctx):
    """Whether questions travel in results."""
    return ctx.request_context.protocol_version >= "2026"


def question(key, request):
    """A question as the result of a call."""
    return t.InputRequiredResult(input_requests={key: request})


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the user for a seat."""
    if not modern(ctx):
        return f"row {(await ctx.elicit('Which seat?', Seat)).data.row}"
    answers = ctx.input_responses or {}
    if "seat" in answers:
        return f"row {answers['seat'].content['row']}"
    params = t.ElicitRequestFormParams(
        message="Which seat?", requested_schema=Seat.model_json_schema()
    )
    return question("seat", t.ElicitRequest(params=params))


def messages(topic):
    """What the model is asked."""
    return [t.SamplingMessage(role="user", content=t.TextContent(type="text", text=topic))]


@server.tool
async def think(topic: str, ctx: Context) -> str:
    """Ask the user's model."""
    if not modern(ctx):
        answer = await ctx.session.create_message(
            messages(topic), max_tokens=10, related_request_id=ctx.request_id
        )
        return answer.content.text
    answers = ctx.input_responses or {}
    if "thought" in answers:
        return answers["thought"].content.text
    params = t.CreateMessageRequestParams(messages=messages(topic), max_tokens=10)
    return question("thought", t.CreateMessageRequest(params=params))


@server.tool
async def where(ctx: Context) -> str:
    """Ask for the roots."""
    if not modern(ctx):
        roots = (await ctx.session.list_roots()).roots
    elif "roots" not in (answers := ctx.input_responses or {}):
        return question("roots", t.ListRootsRequest())
    else:
        roots = answers["roots"].roots
    return ",".join(str(root.uri) for root in roots)


@server.tool
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


@server.tool
async def grow(ctx: Context) -> str:
    """Change the list of tools."""
    if any(tool.name == "extra" for tool in await server.list_tools()):
        server.local_provider.remove_tool("extra")
    else:
        server.tool(lambda: "new", name="extra", description="Comes and goes.")
    await ctx.send_notification(t.ToolListChangedNotification())
    return "changed"


@server.tool
async def touch(ctx: Context) -> str:
    """Change a note."""
    params = t.ResourceUpdatedNotificationParams(uri="note://one")
    await ctx.send_notification(t.ResourceUpdatedNotification(params=params))
    return "touched"


@server.tool
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


@server.prompt
def hello(name: str) -> str:
    """Say hello."""
    return f"Say hello to {name}."


@server.completion
async def complete(ref, argument, context):
    """Who may be greeted."""
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]


if sys.argv[1] == "stdio":
    server.run("stdio", show_banner=False)
elif sys.argv[1] == "sse":
    server.run("sse", port=int(sys.argv[2]), show_banner=False)
else:
    import uvicorn

    app = server.http_app(event_store=EventStore(), retry_interval=100)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
