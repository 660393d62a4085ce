"""Messages of HTTP tests: heads and bodies in both eras, and a small server to send them to."""

from collections.abc import Awaitable, Callable
from typing import Any

from isthmus.revisions import REVISIONS
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.server.features.lifecycle import ServerHandshake
from isthmus.server.guard.caching import CacheHints
from isthmus.server.subscriptions import Subscriptions
from isthmus.transports.http.app import HttpApp
from isthmus.wire import CallToolParams, CallToolResult, Implementation, ServerCapabilities
from isthmus.wire.content import TextContent
from support.http.asgi_driver import Exchange, fetch

Tool = Callable[[Inbound], Awaitable[str]]

BOTH = "application/json, text/event-stream"
NEW = "2026-07-28"
OLD = "2025-11-25"


def make_router(revisions: Any = REVISIONS, middleware: Any = (), **tools: Tool) -> Router:
    """A real router whose tools are given by name; a tool's text is its result."""
    info = Implementation(name="small", version="1")

    async def offer(_inbound: Inbound) -> ServerCapabilities:
        return ServerCapabilities()

    opening = ServerHandshake(info, None, revisions, offer, CacheHints(0, "private"))
    changes = Subscriptions()
    changes.announce_tools()
    changes.announce_resources()

    async def call(params: CallToolParams, inbound: Inbound) -> CallToolResult:
        text = await tools[params.name](inbound)
        return CallToolResult(content=[TextContent(text=text)])

    return Router(
        {
            "initialize": opening.initialize,
            "ping": opening.ping,
            "server/discover": opening.discover,
            "subscriptions/listen": changes.listen,
            "tools/call": call,
        },
        {"notifications/initialized": changes.add_session},
        supported=revisions,
        server=info,
        middleware=middleware,
    )


def make_http_app(options: dict[str, Any] | None = None, **tools: Tool) -> HttpApp:
    """An app with these tools."""
    return HttpApp(make_router(**tools), **(options or {}))


async def hello(_inbound: Inbound) -> str:
    """A tool that answers at once."""
    return "hello"


def read_tool_text(message: Any) -> str:
    """The text that a tool answered with."""
    return str(message["result"]["content"][0]["text"])


# The modern wire


def modern_head(method: str = "tools/call", name: str | None = "hello", **more: str) -> Any:
    """The headers of a modern POST."""
    head = {
        "host": "localhost:8000",
        "content-type": "application/json",
        "accept": BOTH,
        "mcp-protocol-version": NEW,
        "mcp-method": method,
    }
    if name is not None:
        head["mcp-name"] = name
    return {**head, **{key.replace("_", "-"): value for key, value in more.items()}}


def modern_body(
    method: str = "tools/call", params: Any = None, id: Any = 1, **meta: Any
) -> dict[str, Any]:
    """The body of a modern POST; a tools/call of ``hello`` if nothing else is said."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    inner = {"name": "hello", "arguments": {}} if params is None else params
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**inner, "_meta": envelope}}


def begin_modern_call(target: HttpApp, tool: str = "hello", **meta: Any) -> Exchange:
    """Begin a modern call of a tool."""
    body = modern_body(params={"name": tool, "arguments": {}}, **meta)
    return Exchange(target, headers=modern_head(name=tool), body=body)


# The legacy wire


def legacy_head(session: str | None = None, **more: str) -> Any:
    """The headers of a legacy POST."""
    head = {"host": "localhost:8000", "content-type": "application/json", "accept": BOTH}
    if session is not None:
        head["mcp-session-id"] = session
        head["mcp-protocol-version"] = OLD
    return {**head, **{key.replace("_", "-"): value for key, value in more.items()}}


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": OLD,
        "capabilities": {"elicitation": {}, "roots": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def open_legacy_session(target: Any, **options: Any) -> str:
    """Open a legacy session; returns its id."""
    answer = await fetch(target, headers=legacy_head(), body=INITIALIZE, **options)
    session = answer.header("mcp-session-id")
    assert session is not None, answer.body
    await fetch(target, headers=legacy_head(session), body=INITIALIZED, **options)
    return session


def legacy_call_body(tool: str = "hello", id: Any = 1, **meta: Any) -> dict[str, Any]:
    """A legacy call of a tool."""
    params: dict[str, Any] = {"name": tool, "arguments": {}}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def begin_legacy_call(
    target: HttpApp, session: str | None, tool: str = "hello", id: Any = 1, **meta: Any
) -> Exchange:
    """Begin a legacy call of a tool."""
    return Exchange(target, headers=legacy_head(session), body=legacy_call_body(tool, id, **meta))
