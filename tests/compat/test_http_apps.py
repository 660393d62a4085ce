"""Façades over HTTP: apps, routes, session managers and mounted apps, as programs of others use them."""

from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from isthmus import Client
from isthmus.compat.fastmcp import FastMCP as FastMcp
from isthmus.compat.mcp.http import StreamableHTTPSessionManager
from isthmus.compat.mcp.lowlevel import Server as LowLevel
from isthmus.compat.mcp.mcpserver import FastMCP as Mcp1Server
from isthmus.compat.mcp.mcpserver import MCPServer
from isthmus.compat.mcp.sse import SseServerTransport
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


def make_low_level_server():
    """A low-level server of mcp 1 with one tool."""
    server = LowLevel("low")

    @server.list_tools()
    async def list_tools():
        return [Tool(name="echo", inputSchema={"type": "object"})]

    @server.call_tool()
    async def call_tool(name, arguments):
        return [TextContent(type="text", text=f"{name} {arguments}")]

    return server


@pytest.mark.parametrize("revision", REVISIONS[1:])
async def test_a_session_manager_serves_a_low_level_server(revision):
    """As in the official SDK's example of a low-level server over HTTP."""
    server = make_low_level_server()
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


def make_sse_app(server, transport):
    """The app of the official SDK's examples of 2024: GET /sse, and POST below /messages/."""

    async def connect(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await server.run(*streams, server.create_initialization_options())
        return Response()

    return Starlette(
        routes=[
            Route("/sse", connect, methods=["GET"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )


@pytest.mark.parametrize("mounted", ["", "/shop"])
async def test_a_transport_of_2024_serves_each_client_of_a_low_level_server(mounted):
    """As in the official SDK's example, at the root and below a mount: two clients, each with its session."""
    entered = []

    @asynccontextmanager
    async def lifespan(_server):
        entered.append(1)
        yield {}

    server = make_low_level_server()
    server.lifespan = lifespan
    app = make_sse_app(server, SseServerTransport("/messages/"))
    if mounted:
        app = Starlette(routes=[Mount(mounted, app)])
    async with serve_uvicorn(app, "auto") as port:
        url = f"http://127.0.0.1:{port}{mounted}/sse"
        async with (
            Client(url, revision="2024-11-05") as one,
            Client(url, revision="2024-11-05") as other,
        ):
            assert "echo {'x': 1}" == (await one.call_tool("echo", {"x": 1})).text
            assert "echo {'x': 2}" == (await other.call_tool("echo", {"x": 2})).text
    assert entered == [1]


async def test_a_message_for_no_stream_of_the_transport_of_2024_is_refused():
    """As their library has it: 404."""
    import aiohttp

    app = make_sse_app(make_low_level_server(), SseServerTransport("/messages/"))
    async with (
        serve_uvicorn(app, "auto") as port,
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/messages/?session_id=gone", json={}) as response,
    ):
        assert response.status == 404


async def test_the_server_below_a_server_of_mcp_1_is_served_by_the_transport_of_2024():
    """As programs do that have FastMCP's tools in an app of their own: ``server._mcp_server.run(…)``."""
    inner = make_server("mcp 1")._mcp_server
    inner.version = "7"
    app = make_sse_app(inner, SseServerTransport("/messages/"))
    async with (
        serve_uvicorn(app, "auto") as port,
        Client(f"http://127.0.0.1:{port}/sse", revision="2024-11-05") as client,
    ):
        assert client.info.version == "7"
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", ["/", "/items/{id}", "/status/"])
async def test_a_route_that_cannot_be_matched_is_left_out_with_a_warning(kind, path, caplog):
    """A program with a landing page still serves its tools: on standard input and output it is not asked for."""
    server = make_server(kind)
    server.custom_route(path, methods=["get"])(lambda _: Response("page"))
    made = server.server if kind == "fastmcp" else server.make_isthmus_server()
    async with Client(made) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    assert f"not served: route {path!r}" in caplog.text
