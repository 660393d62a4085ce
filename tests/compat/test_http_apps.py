"""Façades over HTTP: apps, routes, session managers and mounted apps, as programs of others use them."""

from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount

from isthmus import Client
from isthmus.compat.fastmcp import FastMCP as FastMcp
from isthmus.compat.mcp.http import StreamableHTTPSessionManager
from isthmus.compat.mcp.lowlevel import Server as LowLevel
from isthmus.compat.mcp.mcpserver import FastMCP as Mcp1Server
from isthmus.compat.mcp.mcpserver import MCPServer
from isthmus.compat.types import TextContent, Tool
from support.http.uvicorn_server import serve_uvicorn

REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]
KINDS = {"mcp 1": Mcp1Server, "mcp 2": MCPServer, "fastmcp": FastMcp}


def make_server(kind):
    """A server of a library with a tool and a route."""
    server = KINDS[kind]("shop")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.custom_route("/status", methods=["GET"])
    async def tell_status(request):
        return JSONResponse({"asked": request.query_params.get("q", "")}, status_code=201)

    return server


def make_app(server, transport):
    """Its app of a transport."""
    if transport == "sse":
        return server.sse_app()
    return server.http_app() if isinstance(server, FastMcp) else server.streamable_http_app()


@pytest.mark.parametrize("revision", REVISIONS[1:])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_app_answers_calls(kind, revision):
    """Ours: at /mcp, where those libraries have it."""
    async with (
        serve_uvicorn(make_app(make_server(kind), "http"), "auto") as port,
        Client(f"http://127.0.0.1:{port}/mcp", revision=revision) as client,
    ):
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text


@pytest.mark.parametrize("kind", KINDS)
async def test_an_app_of_the_transport_of_2024_answers_calls(kind):
    """Ours: at /sse, where those libraries have it."""
    async with (
        serve_uvicorn(make_app(make_server(kind), "sse"), "auto") as port,
        Client(f"http://127.0.0.1:{port}/sse", revision="2024-11-05") as client,
    ):
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text


@pytest.mark.parametrize("kind", KINDS)
async def test_a_route_is_answered_beside_the_endpoint(kind):
    """Ours: its function takes and gives what Starlette has, the query as it was sent."""
    async with serve_uvicorn(make_app(make_server(kind), "http"), "auto") as port:
        status, text = await ask(f"http://127.0.0.1:{port}/status?q=salt%26pepper")
    assert (201, '{"asked":"salt&pepper"}') == (status, text)


async def ask(url):
    """GET a page: status and text."""
    import aiohttp

    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("revision", REVISIONS[1:])
async def test_an_app_can_be_mounted_with_its_session_manager(revision):
    """As in the official SDK's guide: Mount("/shop", …), lifespan with session_manager.run()."""
    server = make_server("mcp 1")
    mounted = server.streamable_http_app()

    @asynccontextmanager
    async def lifespan(_app):
        async with server.session_manager.run():
            yield

    app = Starlette(routes=[Mount("/shop", mounted)], lifespan=lifespan)
    async with (
        serve_uvicorn(app, "auto", lifespan="on") as port,
        Client(f"http://127.0.0.1:{port}/shop/mcp", revision=revision) as client,
    ):
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text


@pytest.mark.parametrize("revision", REVISIONS[1:])
async def test_a_session_manager_serves_a_low_level_server(revision):
    """As in the official SDK's example of a low-level server over HTTP."""
    server = LowLevel("low")

    @server.list_tools()
    async def list_tools():
        return [Tool(name="echo", inputSchema={"type": "object"})]

    @server.call_tool()
    async def call_tool(name, arguments):
        return [TextContent(type="text", text=f"{name} {arguments}")]

    manager = StreamableHTTPSessionManager(app=server, stateless=True)

    @asynccontextmanager
    async def lifespan(_app):
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", manager.handle_request)], lifespan=lifespan)
    async with (
        serve_uvicorn(app, "auto", lifespan="on") as port,
        Client(f"http://127.0.0.1:{port}/mcp/", revision=revision) as client,
    ):
        assert "echo {'x': 1}" == (await client.call_tool("echo", {"x": 1})).text
