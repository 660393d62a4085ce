"""Custom HTTP routes: what they answer, to whom, and what no stranger reads or reaches."""

import json
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount

from isthmus import Client, Server
from isthmus.errors import UsageError
from isthmus.server import RouteRequest, RouteResponse
from isthmus.testing import serving
from support.auth.protected_server import bearer_header, make_guard
from support.http.asgi_driver import fetch

pytestmark = pytest.mark.usefixtures("carrier")
ASGI_ONLY = {"test_a_mounted_server_has_its_routes_below_its_prefix"}


def make_app(handler, path="/status", options=None, server=None, **route):
    """An app with one route."""
    server = server or Server("routed")
    server.route(path, **route)(handler)
    return server.asgi(**(options or {}))


async def ask(app, path="/status", method="GET", body=b"", query=b"", **headers):
    """The answer to a request."""
    named = {"host": "localhost", **{key.replace("_", "-"): one for key, one in headers.items()}}
    return await fetch(app, method, path, headers=named, body=body, scope={"query_string": query})


def make_handler(value):
    async def handler():
        return value

    return handler


# Answers


@pytest.mark.parametrize(
    ("value", "status", "kind", "body"),
    [
        ("fine", 200, "text/plain; charset=utf-8", b"fine"),
        (b"\x00", 200, "application/octet-stream", b"\x00"),
        ({"ok": True}, 200, "application/json", b'{"ok":true}'),
        ([1], 200, "application/json", b"[1]"),
        (None, 204, None, b""),
        (({"ok": False}, 503), 503, "application/json", b'{"ok":false}'),
        (
            RouteResponse("<p>", 202, headers={"X-A": "b"}, media_type="text/html"),
            202,
            "text/html",
            b"<p>",
        ),
        (JSONResponse({"a": 1}, 418), 418, "application/json", b'{"a":1}'),
    ],
)
async def test_what_a_route_returns_is_its_answer(value, status, kind, body):
    """Text, bytes, plain data, a status beside it, a response, and Starlette's."""
    answer = await ask(make_app(make_handler(value)))

    assert status == answer.status
    assert kind == answer.header("content-type")
    assert body == answer.body


async def test_a_route_is_told_what_was_asked_and_in_a_thread_if_it_is_plain():
    """Method, query, headers, body and the state of the lifespan."""

    @asynccontextmanager
    async def lifespan(_server):
        yield {"rows": 3}

    def handler(request: RouteRequest):
        return {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "agent": request.headers["user-agent"],
            "body": request.json(),
            "principal": request.principal,
            "state": request.state,
        }

    app = make_app(handler, methods=["POST"], server=Server("s", lifespan=lifespan))
    answer = await ask(
        app, method="POST", query=b"a=1&a=2&b=%C3%A9&c", body={"x": 1}, user_agent="me"
    )

    assert {
        "method": "POST",
        "path": "/status",
        "query": {"a": "2", "b": "é", "c": ""},
        "agent": "me",
        "body": {"x": 1},
        "principal": None,
        "state": {"rows": 3},
    } == answer.json
    await app.close()


async def test_a_head_is_a_get_without_its_body_and_other_methods_are_refused():
    """RFC 9110 9.3.2 and 15.5.6."""
    app = make_app(make_handler("fine"))
    head, refused = await ask(app, method="HEAD"), await ask(app, method="POST")

    assert (200, b"", "4") == (head.status, head.body, head.header("content-length"))
    assert (405, "GET, HEAD, OPTIONS") == (refused.status, refused.header("allow"))


async def test_a_route_may_stand_in_place_of_a_probe():
    """Whoever declares /health means it."""
    app = make_app(make_handler({"mine": True}), "/health")

    assert {"mine": True} == (await ask(app, "/health")).json
    assert {"status": "ok"} == (await ask(app, "/ready")).json


async def test_an_exception_is_500_without_a_word_of_it():
    """What broke is in the log."""

    async def broken():
        raise RuntimeError("password hunter2")

    async def split():
        return RouteResponse("", headers={"X-A": "b\r\nSet-Cookie: evil"})

    for handler in (broken, split, make_handler(object())):
        answer = await ask(make_app(handler))
        assert (500, b"Internal Server Error") == (answer.status, answer.body)


# Who may ask


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_a_page_elsewhere_reaches_no_route(headers, method):
    """Attack: DNS rebinding, and a page that posts to a program on this machine."""
    called = []
    app = make_app(lambda: called.append(1), methods=["GET", "POST"])
    answer = await ask(app, method=method, **headers)

    assert 403 == answer.status
    assert answer.header("access-control-allow-origin") is None
    assert [] == called


async def test_a_page_that_is_allowed_reads_it():
    """CORS as of the endpoint, with the methods of the route."""
    origin = "https://app.example"
    app = make_app(
        make_handler("fine"), options={"allowed_origins": [origin]}, methods=["GET", "PUT"]
    )
    asked = await ask(app, method="OPTIONS", origin=origin, access_control_request_headers="x-a")
    read = await ask(app, origin=origin)

    assert (204, "GET, HEAD, OPTIONS, PUT") == (
        asked.status,
        asked.header("access-control-allow-methods"),
    )
    assert (origin, "x-a") == (
        asked.header("access-control-allow-origin"),
        asked.header("access-control-allow-headers"),
    )
    assert origin == read.header("access-control-allow-origin")


async def test_a_route_with_auth_takes_the_token_of_the_endpoint_and_keeps_it_to_itself():
    """401 with a challenge for everybody else; the handler sees who it is, and no token."""

    def who(request: RouteRequest):
        return [request.principal.subject, "authorization" in request.headers]

    server = Server("guarded", auth=make_guard())
    server.route("/who", auth=True)(who)
    server.route("/open")(lambda request: repr(request.principal))
    app = server.asgi()
    stranger = await ask(app, "/who")
    known = await fetch(app, "GET", "/who", headers={"host": "localhost", **bearer_header("ada")})
    anybody = await ask(app, "/open")

    assert 401 == stranger.status
    assert "resource_metadata" in stranger.header("www-authenticate")
    assert ["ada", False] == known.json
    assert b"None" == anybody.body


# Bodies


@pytest.mark.parametrize("body", [b"x" * 11, [b"x" * 6, b"x" * 6]])
async def test_a_body_has_so_many_bytes(body):
    """413 as soon as that is known, whatever length was announced."""
    app = make_app(lambda request: len(request.body), methods=["POST"], body_limit=10)
    large, small = (
        await ask(app, method="POST", body=body),
        await ask(app, method="POST", body=b"x" * 10),
    )

    assert 413 == large.status
    assert b"10" == small.body


# Where


@pytest.mark.parametrize(
    "path", ["/mcp", "/mcp/x", "/sse", "/messages", "/.well-known/oauth-protected-resource"]
)
async def test_no_route_stands_before_the_endpoint_or_authorization(path):
    """Attack on oneself: metadata that an author's page hides."""
    with pytest.raises(UsageError, match="this path is"):
        make_app(make_handler(""), path)


@pytest.mark.parametrize(
    ("path", "options", "told"),
    [
        ("status", {}, "begins with a slash"),
        ("/", {}, "begins with a slash"),
        ("/a/", {}, "begins with a slash"),
        ("/{id}", {}, "no patterns"),
        ("/a?b", {}, "no patterns"),
        ("/a", {"methods": ["get"]}, "methods= are some of"),
        ("/a", {"methods": []}, "methods= are some of"),
        ("/a", {"auth": True}, "auth=True takes"),
    ],
)
async def test_a_route_that_is_none_is_refused(path, options, told):
    """At declaration, or when the app is made."""
    with pytest.raises(UsageError, match=told):
        make_app(make_handler(""), path, **options)


async def test_routes_are_declared_once_and_before_the_server_serves():
    """And take the request, or nothing."""
    server = Server("routed")
    server.route("/a")(make_handler(""))
    with pytest.raises(UsageError, match="there is one already"):
        server.route("/a")(make_handler(""))
    with pytest.raises(UsageError, match="takes the request, or nothing"):
        server.route("/b")(lambda request, more: "")
    server.asgi()
    with pytest.raises(UsageError, match="before the server serves"):
        server.route("/c")(make_handler(""))


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (99, {}),
        (600, {}),
        (200, {"a b": "c"}),
        (200, {"a": "é\n"}),
        (200, {"Content-Length": "5"}),
        (200, {"a": "\u20ac"}),
    ],
)
async def test_a_response_that_is_none_is_refused(status, headers):
    """A header ends where its line does, and framing is the connection's."""
    with pytest.raises(UsageError):
        RouteResponse("", status, headers=headers)


async def test_a_mounted_server_has_its_routes_below_its_prefix():
    """As the endpoint itself."""
    outer = Starlette(routes=[Mount("/tools", make_app(make_handler("fine")))])

    assert b"fine" == (await ask(outer, "/tools/status")).body


async def test_routes_and_calls_share_one_server():
    """Over a real socket, the endpoint beside it."""
    import aiohttp

    server = Server("routed")
    server.add_tool(lambda: "hello", name="hello")
    server.route("/status")(make_handler({"ok": True}))
    async with serving(server) as url, Client(url) as client, aiohttp.ClientSession() as session:
        assert "hello" == (await client.call_tool("hello")).text
        async with session.get(url.replace("/mcp", "/status")) as answer:
            assert {"ok": True} == json.loads(await answer.read())
