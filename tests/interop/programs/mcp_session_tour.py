"""Tour of sessions of mcp 1.x and 2.x, run under the library itself and under the façade; prints what it got.

``python mcp_session_tour.py GENERATION TRANSPORT TARGET``: the target is a command as JSON, or a URL.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib import import_module

from mcp import ClientSession, types
from mcp_session_server import make_server

GENERATION, TRANSPORT, TARGET = sys.argv[1:4]
MCP1 = GENERATION == "1"

CALLS = [
    ("add", {"a": 1}),
    ("add", {"a": "5", "b": 3}),
    ("add", {}),
    ("add", {"a": "x"}),
    ("fail", {"how": "told"}),
    ("fail", {"how": "else"}),
    ("write", None),
    ("ask", {}),
    ("sample", {"text": "dawn"}),
    ("sample", {"text": "no"}),
    ("places", {}),
    ("nobody", {}),
]

QUESTIONS = {"ask", "sample", "places"}

heard = []


async def hear_log(params):
    """Told of log messages."""
    heard.append(["log", params.level, params.data])


async def hear_message(message):
    """Told of every notification."""
    inner = getattr(message, "root", message)
    if TRANSPORT == "auto" and inner.method == "notifications/progress":
        return  # mcp 2 makes no messages of it in memory
    heard.append(["message", inner.method])


async def answer_form(context, params):
    """Answer a form."""
    assert context.session is not None
    heard.append(["elicit", params.message])
    return types.ElicitResult(action="accept", content={"size": 3})


async def write_message(context, params):
    """Write for the server."""
    text = params.messages[0].content.text
    if text == "no":
        return types.ErrorData(code=-1, message="the user says no")
    return types.CreateMessageResult(
        role="assistant",
        content=types.TextContent(type="text", text=f"{text} breaks"),
        model="poet",
        **{"stopReason" if MCP1 else "stop_reason": "endTurn"},
    )


async def list_roots(context):
    """Say where the server may work."""
    return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/x", name="x")])


async def hear_progress(progress, total, message):
    """Told of progress."""
    heard.append(["progress", progress, total, message])


CALLBACKS = {
    "sampling_callback": write_message,
    "elicitation_callback": answer_form,
    "list_roots_callback": list_roots,
    "logging_callback": hear_log,
    "message_handler": hear_message,
}


@asynccontextmanager
async def open_streams():
    """The streams of a transport."""
    if TRANSPORT == "stdio":
        from mcp import StdioServerParameters, stdio_client

        command = json.loads(TARGET)
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        async with stdio_client(parameters) as (read, write):
            yield read, write
    elif TRANSPORT == "sse":
        from mcp.client.sse import sse_client

        async with sse_client(TARGET) as (read, write):
            yield read, write
    elif MCP1:
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(TARGET) as (read, write, get_session_id):
            assert callable(get_session_id)
            yield read, write
    else:
        from mcp.client.streamable_http import streamable_http_client

        async with streamable_http_client(TARGET) as (read, write):
            yield read, write


@asynccontextmanager
async def open_session():
    """A session, initialized, and what the server said of itself."""
    if TRANSPORT == "memory" and MCP1:
        memory = import_module("mcp.shared.memory")
        server = make_server("1")._mcp_server
        connect = memory.create_connected_server_and_client_session
        async with connect(server, **CALLBACKS) as session:
            yield session, None
    elif TRANSPORT in {"memory", "auto", "auto-http"}:
        from mcp import Client

        mode = "legacy" if TRANSPORT == "memory" else "auto"
        target = TARGET if TRANSPORT == "auto-http" else make_server("2")
        async with Client(target, mode=mode, **CALLBACKS) as client:
            yield client, None
    else:
        async with (
            open_streams() as (read, write),
            ClientSession(read, write, **CALLBACKS) as session,
        ):
            yield session, await session.initialize()


# What models of mcp 2 fill in where the server said nothing.
FILLED_IN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def show(value):
    """An answer as plain data."""
    if not hasattr(value, "model_dump"):
        return value
    said = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if said.get("code") == 0:  # isthmus' servers say -32603, as JSON-RPC has it
        said["code"] = -32603
    return {key: one for key, one in said.items() if key not in FILLED_IN or FILLED_IN[key] != one}


async def record(name, work, said):
    """Note an answer, or the error."""
    heard.clear()
    try:
        answer = show(await work)
    except Exception as error:  # noqa: BLE001 - which one it is, is what is compared
        inner = getattr(error, "error", None)
        answer = [type(error).__name__.upper(), show(inner) if inner else str(error)]
    said[name] = [answer, list(heard)]


async def tour(session, said):
    """Ask for all there is."""
    await record("tools", session.list_tools(), said)
    await record("resources", session.list_resources(), said)
    await record("templates", session.list_resource_templates(), said)
    await record("prompts", session.list_prompts(), said)
    for number, (name, given) in enumerate(CALLS):
        if TRANSPORT.startswith("auto") and name in QUESTIONS:  # mcp 2 cannot ask since 2026-07-28
            continue
        await record(f"call {number} {name}", session.call_tool(name, given), said)
    reporting = session.call_tool("report", {"steps": 2}, progress_callback=hear_progress)
    await record("progress", reporting, said)
    for uri in ("notes://today", "notes://me", "else://x"):
        await record(f"read {uri}", session.read_resource(uri), said)
    for name, given in (("greet", {"name": "Ada"}), ("greet", {}), ("nobody", None)):
        await record(f"prompt {name} {given}", session.get_prompt(name, given), said)
    prompt = types.PromptReference(type="ref/prompt", name="greet")
    argument = {"name": "name", "value": "A"}
    await record("complete", session.complete(prompt, argument), said)
    template = types.ResourceTemplateReference(type="ref/resource", uri="notes://{name}")
    context = {"other": "x"}
    await record("complete template", session.complete(template, argument, context), said)
    await record("ping", session.send_ping(), said)
    await record("roots", session.send_roots_list_changed(), said)


async def main():
    """Print what was got."""
    said = {}
    async with open_session() as (session, opened):
        said["opened"] = show(opened)
        await tour(session, said)
        if MCP1:
            late = session.call_tool("report", {"steps": 1}, timedelta(seconds=30))
        else:
            late = session.call_tool("report", {"steps": 1}, 30)
        await record("with a limit", late, said)
    print(json.dumps(said, sort_keys=True))


asyncio.run(main())
