"""Mounting: in any framework, under any prefix, with nothing to wire up."""

import asyncio
import contextvars

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Mount, Route

from isthmus.transports.http.asgi_exchange import inner_path
from isthmus.wire import ProgressParams
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    begin_legacy_call,
    hello,
    make_http_app,
    modern_body,
    modern_head,
    open_legacy_session,
    read_tool_text,
)


def in_starlette(prefix, inner):
    """A Starlette application with the app under a prefix."""
    return Starlette(routes=[Mount(prefix, inner)])


def in_fastapi(prefix, inner):
    """A FastAPI application with the app under a prefix."""
    outer = FastAPI()
    outer.mount(prefix, inner)
    return outer


frameworks = pytest.mark.parametrize("mounted", [in_starlette, in_fastapi])


async def call(outer, path, **options):
    """A modern call of ``hello`` at a path."""
    return await fetch(outer, path=path, headers=modern_head(), body=modern_body(), **options)


@frameworks
@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("/mcp", "/mcp/"),
        ("/mcp", "/mcp/mcp"),
        ("/tools", "/tools/"),
        ("/tools", "/tools/mcp"),
        ("/tools", "/tools/mcp/"),
        ("/a/b/c", "/a/b/c/"),
        ("/", "/mcp"),
        ("/", "/mcp/"),
        ("/", "/"),
        ("", "/mcp"),
    ],
)
async def test_a_mounted_app_serves_from_the_first_request_on(mounted, prefix, path):
    """Users' pain 14: no lifespan, no redirect, no wiring."""
    answer = await call(mounted(prefix, make_http_app(hello=hello)), path)

    assert (200, "hello") == (answer.status, read_tool_text(answer.json))


@frameworks
async def test_a_path_below_the_mount_that_is_not_the_endpoint_is_404(mounted):
    """The mount does not swallow what it does not know."""
    answer = await call(mounted("/tools", make_http_app()), "/tools/other")

    assert 404 == answer.status
    assert "/mcp" in answer.json["error"]["message"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_mounted_at_the_root_no_slash_is_ever_redirected(path):
    """What to do where clients do not follow redirects; other routes come first."""
    routes = [Route("/health", lambda request: None), Mount("/", make_http_app(hello=hello))]

    assert 200 == (await call(Starlette(routes=routes), path)).status


@pytest.mark.parametrize("framework", [Starlette, FastAPI])
@pytest.mark.parametrize("path", ["/api/mcp", "/api/mcp/"])
async def test_attached_no_slash_is_ever_redirected(framework, path):
    """Under a prefix, too, and beside other routes."""
    outer = framework()
    make_http_app(hello=hello).attach(outer, "api/mcp/")

    assert 200 == (await call(outer, path)).status
    assert 404 == (await call(outer, "/api/other")).status


async def test_the_app_may_be_a_route_of_its_own():
    """A route takes an ASGI app as its endpoint, and passes every verb."""
    target = make_http_app(hello=hello)
    outer = Starlette(routes=[Route("/mcp", target)])

    assert 200 == (await call(outer, "/mcp")).status
    session = await open_legacy_session(outer)
    exchange = await begin_legacy_call(outer, session).done()
    assert "hello" == read_tool_text(exchange.json)
    await target.close()


async def test_a_mount_within_a_mount_and_a_prefix_of_the_server_add_up():
    """root_path may have several owners."""
    inner = Starlette(routes=[Mount("/inner", make_http_app(hello=hello))])
    outer = Starlette(routes=[Mount("/outer", inner)])

    answer = await call(outer, "/proxy/outer/inner/", scope={"root_path": "/proxy"})

    assert 200 == answer.status


@pytest.mark.parametrize(
    ("root", "path", "inner"),
    [
        ("", "/mcp", "/mcp"),
        ("", "/mcp/", "/mcp"),
        ("", "/", ""),
        ("/tools", "/tools/mcp", "/mcp"),
        ("/tools", "/tools", ""),
        ("/tools", "/tools/", ""),
        ("/tools/", "/tools/mcp", "/mcp"),
        ("/tools", "/mcp", "/mcp"),  # older frameworks take the prefix off
        ("/tools", "/", ""),
        ("/tools", "/toolset", "/toolset"),
        ("/mcp", "/mcp/mcp", "/mcp"),
        ("", "", ""),
    ],
)
def test_the_path_below_a_prefix_is_found_in_old_and_new_scopes(root, path, inner):
    """ASGI: path begins with root_path since that was settled; before, it did not."""
    assert inner == inner_path({"path": path, "root_path": root})


def test_a_server_that_knows_no_root_path_is_fine():
    """The member is optional."""
    assert "/mcp" == inner_path({"path": "/mcp/"})


async def test_sessions_and_streams_work_behind_a_mount():
    """The whole of the legacy wire, not only a call."""
    target = make_http_app(hello=hello)
    outer = in_fastapi("/api", target)
    session = await open_legacy_session(outer, path="/api/mcp")
    standing = Exchange(
        outer,
        "GET",
        "/api/mcp",
        headers={"host": "localhost", "mcp-session-id": session, "accept": "text/event-stream"},
    )
    await standing.started.wait()

    answer = await fetch(
        outer, "DELETE", "/api/mcp", headers={"host": "localhost", "mcp-session-id": session}
    )
    await standing.done()

    assert (200, 200) == (standing.status, answer.status)
    await target.close()


who = contextvars.ContextVar("who", default="nobody")


async def test_context_variables_of_a_middleware_reach_the_handler():
    """A call runs in its request's own task."""

    async def tell(_inbound):
        return who.get()

    inner = make_http_app(tell=tell)

    async def outer(scope, receive, send):
        who.set("alice")
        await inner(scope, receive, send)

    answer = await fetch(
        outer,
        headers=modern_head(name="tell"),
        body=modern_body(params={"name": "tell", "arguments": {}}),
    )

    assert "alice" == read_tool_text(answer.json)


async def pass_through(request, call_next):
    """A middleware of the kind that wraps requests and responses."""
    return await call_next(request)


async def test_behind_a_request_middleware_streams_come_as_they_are_sent():
    """The most used kind of middleware, which runs the app in a task of its own."""
    go = asyncio.Event()

    async def report(inbound):
        params = ProgressParams(progress_token=1, progress=1)
        await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
        await go.wait()
        return "done"

    outer = Starlette(
        routes=[Mount("/", make_http_app(report=report))],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=pass_through)],
    )
    exchange = Exchange(
        outer,
        headers=modern_head(name="report"),
        body=modern_body(params={"name": "report", "arguments": {}}, progressToken=1),
    )

    assert "notifications/progress" == (await exchange.event())["method"]
    go.set()
    assert "done" == read_tool_text(await exchange.event())
    await exchange.done()


async def test_behind_a_request_middleware_a_client_that_leaves_cancels():
    """The disconnect finds its way through."""
    running, ended = asyncio.Event(), asyncio.Event()

    async def slow(inbound):
        params = ProgressParams(progress_token=1, progress=1)
        await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    outer = Starlette(
        routes=[Mount("/", make_http_app(slow=slow))],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=pass_through)],
    )
    exchange = Exchange(
        outer,
        headers=modern_head(name="slow"),
        body=modern_body(params={"name": "slow", "arguments": {}}, progressToken=1),
    )
    await running.wait()
    exchange.leave()

    await ended.wait()
    await exchange.done()


async def test_a_cors_middleware_around_the_app_does_not_double_its_headers():
    """Browsers refuse an answer that allows two origins."""
    outer = Starlette(
        routes=[Mount("/", make_http_app({"allowed_origins": ["*"]}, hello=hello))],
        middleware=[Middleware(CORSMiddleware, allow_origins=["*"])],
    )

    answer = await fetch(
        outer, headers=modern_head(origin="https://page.example"), body=modern_body()
    )

    allowed = [value for name, value in answer.headers if name == "access-control-allow-origin"]
    assert 1 == len(allowed)


async def test_the_lifespan_protocol_is_answered_where_a_server_speaks_it():
    """Run alone, the app starts and stops with its server."""
    log = []

    async def on_start():
        log.append("started")

    async def on_stop():
        log.append("stopped")

    to_app, from_app = asyncio.Queue(), asyncio.Queue()
    target = make_http_app({"on_start": on_start, "on_stop": on_stop})
    life = asyncio.ensure_future(target({"type": "lifespan"}, to_app.get, from_app.put))

    await to_app.put({"type": "lifespan.startup"})
    assert {"type": "lifespan.startup.complete"} == await from_app.get()
    assert ["started"] == log
    await to_app.put({"type": "lifespan.shutdown"})
    assert {"type": "lifespan.shutdown.complete"} == await from_app.get()
    await life
    assert ["started", "stopped"] == log


async def test_a_start_that_fails_is_told_to_the_server():
    """The server then exits, with the reason in its log."""

    async def on_start():
        raise RuntimeError("no database")

    sent = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        sent.append(message)

    await make_http_app({"on_start": on_start})({"type": "lifespan"}, receive, send)

    assert ["lifespan.startup.failed"] == [message["type"] for message in sent]
    assert sent[0]["message"].startswith("no database\nTraceback")


async def test_a_websocket_is_turned_away():
    """There is no such endpoint here; the handshake ends instead of hanging."""
    sent = []

    async def send(message):
        sent.append(message)

    await make_http_app()({"type": "websocket", "path": "/mcp"}, None, send)

    assert [{"type": "websocket.close"}] == sent
