"""The client's side of Streamable HTTP, against real servers on this machine."""

import asyncio
import contextlib
import json
import logging

import pytest
from aiohttp import web

from isthmus.client import handshake
from isthmus.client.client import Client
from isthmus.core.answers import Accepted
from isthmus.errors import (
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    HeaderMismatch,
    HttpRefused,
    InvalidRequest,
    MethodNotFound,
    Misbehaved,
)
from isthmus.revisions import LATEST, LATEST_LEGACY
from isthmus.runtime.channel import Outgoing
from isthmus.transports.http.client.channel import HttpClientChannel
from isthmus.transports.http.client.requests import resolve_redirect

EVERY_LOOP = True

MODERN, LEGACY = LATEST.name, LATEST_LEGACY.name
KEY = "io.modelcontextprotocol/"
DISCOVERED = {
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}, "resources": {}},
    "resultType": "complete",
}
GREETED = {
    "protocolVersion": LEGACY,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}
DONE = {"content": [], "resultType": "complete"}


def frame(**members):
    return json.dumps({"jsonrpc": "2.0", **members})


def event(**members):
    return f"event: message\ndata: {frame(**members)}\n\n".encode()


class Endpoint:
    """An MCP endpoint that does what a test says, and keeps what it heard.

    Args:
        reply: ``(endpoint, request, message) -> response`` for everything but the opening.

    Attributes:
        url: where it is.
        heard: method or HTTP verb of each request, with its headers and message.
    """

    def __init__(self, reply, *, modern=True, session=None):
        self.reply, self.modern, self.session = reply, modern, session
        self.heard = []
        self.changed = asyncio.Condition()

    async def __aenter__(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.serve)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/mcp"
        return self

    async def __aexit__(self, *_):
        handshake.forget_target(self.url)
        await self.runner.cleanup()

    async def serve(self, request):
        body = await request.read()
        message = json.loads(body) if body else {}
        async with self.changed:
            self.heard.append((message.get("method") or request.method, request.headers, message))
            self.changed.notify_all()
        answer = self.opening(message)
        if answer is not None:
            return answer
        response = self.reply(self, request, message)
        return await response if hasattr(response, "__await__") else response

    def opening(self, message):
        method, id = message.get("method"), message.get("id")
        if method == "server/discover" and self.modern:
            return answer_with(id, DISCOVERED)
        if method == "initialize" and not self.modern:
            headers = {"Mcp-Session-Id": self.session} if self.session else {}
            return answer_with(id, GREETED, headers=headers)
        if method == "server/discover":
            return web.Response(status=400, text="Bad Request: no session")
        if method == "notifications/initialized":
            return web.Response(status=202)
        return None

    async def until(self, name):
        """The headers and message of the first request of this name, as soon as there is one."""
        async with self.changed:
            await self.changed.wait_for(lambda: any(h[0] == name for h in self.heard))
        return next(h[1:] for h in self.heard if h[0] == name)

    def all(self, name):
        """The messages of all requests of this name so far."""
        return [message for method, _, message in self.heard if method == name]


def answer_with(id, result, **more):
    return web.Response(text=frame(id=id, result=result), content_type="application/json", **more)


def refuse_with(status, **members):
    return web.Response(status=status, text=frame(**members), content_type="application/json")


async def streamed(request, *events, hold=None):
    """A stream of events that ends, or stays open until ``hold`` is set."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for each in events:
        await response.write(each)
    if hold is not None:
        await hold.wait()
    return response


def done(_endpoint, _request, message):
    """Answers every call with an empty result."""
    return answer_with(message.get("id"), DONE)


# A modern server


@pytest.mark.covers(
    "routing.client.headers", "routing.post.either-form", "httpclient.post.every-message"
)
async def test_a_modern_request_says_in_headers_what_it_says_inside():
    """Spec 2026-07-28 basic/transports/streamable-http: Accept, version, method and name."""
    async with Endpoint(done) as endpoint, Client(endpoint.url) as client:
        await client.call_tool("add")
        headers, message = await endpoint.until("tools/call")

    assert MODERN == headers["MCP-Protocol-Version"]
    assert MODERN == message["params"]["_meta"][KEY + "protocolVersion"]
    assert ("tools/call", "add") == (headers["Mcp-Method"], headers["Mcp-Name"])
    assert "application/json, text/event-stream" == headers["Accept"]
    assert "application/json" == headers["Content-Type"]
    assert "Mcp-Session-Id" not in headers


@pytest.mark.covers("routing.values.encoded")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("file:///a?b=c", "file:///a?b=c"),
        ("näme", "=?base64?bsOkbWU=?="),
        (" x", "=?base64?IHg=?="),
    ],
)
async def test_names_are_spelled_so_that_headers_can_carry_them(name, expected):
    """Spec 2026-07-28 basic/transports/streamable-http#value-encoding: MUST use the sentinel."""

    def read(_endpoint, _request, message):
        return answer_with(message["id"], {"contents": [], "resultType": "complete"})

    async with Endpoint(read) as endpoint, Client(endpoint.url) as client:
        await client.read_resource(name)
        headers, _ = await endpoint.until("resources/read")

    assert expected == headers["Mcp-Name"]


TOOLS = {
    "tools": [
        {
            "name": "query",
            "inputSchema": {
                "type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            },
        },
        {
            "name": "bad",
            "inputSchema": {
                "type": "object",
                "properties": {"x": {"type": "object", "x-mcp-header": "X"}},
            },
        },
    ],
    "resultType": "complete",
}


def strict(_endpoint, request, message):
    """Refuses a query without its header, as a conforming server must."""
    if message["method"] == "tools/list":
        return answer_with(message["id"], TOOLS)
    if request.headers.get("Mcp-Param-Region") != message["params"]["arguments"]["region"]:
        error = {"code": -32020, "message": "Header mismatch"}
        return refuse_with(400, id=message["id"], error=error)
    return answer_with(message["id"], DONE)


@pytest.mark.covers("routing.client.hidden-tools")
async def test_marked_arguments_are_mirrored_and_bad_marks_hidden():
    """Spec 2026-07-28 basic/transports/streamable-http: both a MUST."""
    async with Endpoint(strict) as endpoint, Client(endpoint.url) as client:
        assert ["query"] == [tool.name for tool in await client.list_tools()]
        await client.call_tool("query", {"region": "eu"})

    assert 1 == len(endpoint.all("tools/call"))


@pytest.mark.covers("routing.client.listed-then-retried")
async def test_a_header_that_was_not_known_to_be_needed_is_found_out():
    """Spec 2026-07-28 basic/transports/streamable-http#client-behavior: list, then retry."""
    async with Endpoint(strict) as endpoint, Client(endpoint.url) as client:
        await client.call_tool("query", {"region": "eu"})

        assert (1, 2) == (len(endpoint.all("tools/list")), len(endpoint.all("tools/call")))


async def test_a_mismatch_that_listing_does_not_explain_is_the_answer():
    """Ours: one attempt to mend it."""

    def mismatch(_endpoint, _request, message):
        if message["method"] == "tools/list":
            return answer_with(message["id"], TOOLS)
        return refuse_with(400, id=message["id"], error={"code": -32020, "message": "Mismatch"})

    async with Endpoint(mismatch) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(HeaderMismatch):
            await client.call_tool("other")
        assert 1 == len(endpoint.all("tools/call"))


@pytest.mark.covers("routing.post.either-form")
async def test_an_answer_may_come_as_a_stream():
    """Spec 2026-07-28 basic/transports/streamable-http: the client MUST support both."""

    async def stream(_endpoint, request, message):
        token = message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1}
        return await streamed(
            request,
            b": heartbeat\n\n",
            event(method="notifications/progress", params=params),
            event(id=message["id"], result=DONE),
        )

    told = []
    async with Endpoint(stream) as endpoint, Client(endpoint.url) as client:
        for _ in range(3):
            await client.call_tool("slow", on_progress=told.append)

    assert [1, 1, 1] == [progress.progress for progress in told]


async def test_an_answer_is_not_held_back_by_a_stream_that_stays_open():
    """Spec 2026-07-28 basic/transports/streamable-http: the response SHOULD end it, may not."""
    hold = asyncio.Event()

    async def stream(_endpoint, request, message):
        return await streamed(request, event(id=message["id"], result=DONE), hold=hold)

    async with Endpoint(stream) as endpoint, Client(endpoint.url) as client:
        assert [] == (await client.call_tool("slow")).content
        hold.set()


@pytest.mark.covers("rounds.no-requests.client")
async def test_a_server_that_asks_on_a_modern_stream_is_not_answered():
    """Spec 2026-07-28 basic/transports/streamable-http: neither requests nor responses."""

    async def stream(_endpoint, request, message):
        question = event(id="q", method="elicitation/create", params={"message": "?"})
        return await streamed(request, question, event(id=message["id"], result=DONE))

    async with Endpoint(stream) as endpoint:
        async with Client(endpoint.url, elicit=lambda _: Accepted({})) as client:
            await client.call_tool("ask")

        assert ["server/discover", "tools/call"] == [name for name, *_ in endpoint.heard]


@contextlib.asynccontextmanager
async def hanging(**options):
    """A client with one call in flight, its endpoint, and what tells that the call was let go."""
    gone = asyncio.Event()

    async def hang(_endpoint, request, _message):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b":\n\n")
                await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    async with Endpoint(hang) as endpoint, Client(endpoint.url, **options) as client:
        yield client, endpoint, gone


@pytest.mark.covers("cancellation.sent.as-the-transport-has-it")
async def test_a_modern_call_that_times_out_closes_its_stream():
    """Spec 2026-07-28 basic/patterns/cancellation: closing the stream is the signal, no message."""
    async with hanging() as (client, endpoint, gone):
        with pytest.raises(CallTimedOut):
            await client.call_tool("slow", timeout=0.05)
        await gone.wait()

        assert ["server/discover", "tools/call"] == [name for name, *_ in endpoint.heard]


@pytest.mark.covers("cancellation.sent.as-the-transport-has-it")
async def test_a_modern_call_that_is_cancelled_closes_its_stream():
    """Spec 2026-07-28 basic/patterns/cancellation: the same."""
    async with hanging() as (client, endpoint, gone):
        call = asyncio.create_task(client.call_tool("slow"))
        await endpoint.until("tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await gone.wait()

        assert ["server/discover", "tools/call"] == [name for name, *_ in endpoint.heard]


async def test_closing_the_client_ends_what_is_in_flight():
    """Decision D20: each call ends once, with a typed error."""
    async with hanging() as (client, endpoint, gone):
        calls = [asyncio.create_task(client.call_tool("slow")) for _ in range(3)]
        await endpoint.until("tools/call")
        await client.close()
        await gone.wait()
        for call in calls:
            with pytest.raises(ConnectionLost):
                await call


async def test_a_listen_stream_is_held_and_closed():
    """Spec 2026-07-28 basic/patterns/subscriptions: on HTTP the stream is the response."""
    gone = asyncio.Event()

    async def listen(_endpoint, request, message):
        meta = {"_meta": {KEY + "subscriptionId": message["id"]}}
        granted = {"notifications": message["params"]["notifications"]}
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        acknowledged = "notifications/subscriptions/acknowledged"
        await response.write(event(method=acknowledged, params={**meta, **granted}))
        await response.write(event(method="notifications/tools/list_changed", params=meta))
        try:
            while True:
                await asyncio.sleep(0.01)
                await response.write(b":\n\n")
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    async with Endpoint(listen) as endpoint, Client(endpoint.url) as client:
        async with client.listen(tools=True) as changes:
            assert "tools" == (await anext(changes)).kind
        await gone.wait()


# What goes wrong


async def test_an_error_in_a_refusal_is_the_answer():
    """Spec 2026-07-28 basic/transports/streamable-http: 404 and -32601 for an unknown method."""

    def unknown(_endpoint, _request, message):
        return refuse_with(
            404, id=message["id"], error={"code": -32601, "message": "no such method"}
        )

    async with Endpoint(unknown) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(MethodNotFound, match="no such method"):
            await client.call_tool("add")


@pytest.mark.covers("messages.errors.null-id-heard")
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("id", [{}, {"id": None}])
async def test_an_error_without_an_id_reaches_the_caller(status, id):
    """Ours: on this response it can only be about this request."""

    def refuse(_endpoint, _request, _message):
        return refuse_with(status, error={"code": -32600, "message": "bad Host header"}, **id)

    async with Endpoint(refuse) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(InvalidRequest, match="bad Host header"):
            await asyncio.gather(client.call_tool("a"), client.call_tool("b"))


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500, 503])
async def test_a_status_is_an_exception_with_status_body_and_headers(status):
    """Ours: one failed request fails one call."""

    def refuse(endpoint, _request, message):
        if len(endpoint.all("tools/call")) > 1:
            return answer_with(message["id"], DONE)
        return web.Response(status=status, text="because " * 1000, headers={"X-Why": "so"})

    async with Endpoint(refuse) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(HttpRefused, match=f"HTTP {status}: because because") as caught:
            await client.call_tool("add")
        assert (status, "so", 500) == (
            caught.value.status, caught.value.headers["x-why"], len(caught.value.body)
        )  # fmt: skip
        assert [] == (await client.call_tool("add")).content


async def test_an_error_body_does_not_hide_that_credentials_are_wanted():
    """Ours: 401 is about who asks, whatever its body says; its headers tell what to do."""

    def refuse(_endpoint, _request, message):
        error = {"code": -32000, "message": "unauthorized"}
        response = refuse_with(401, id=message["id"], error=error)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    async with Endpoint(refuse) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(HttpRefused, match="HTTP 401") as caught:
            await client.call_tool("add")

    assert "Bearer" == caught.value.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("body", "kind", "complaint"),
    [
        ("<html>log in</html>", "text/html", "answered tools/call with text/html, neither"),
        ("{", "application/json", "no JSON-RPC message: Parse error"),
        ("[]", "application/json", "a message that is not the answer"),
        (frame(id=77, result={}), "application/json", "a message that is not the answer"),
        (frame(method="notifications/message"), "application/json", "is not the answer"),
        ("data: {\n\n", "text/event-stream", "no JSON-RPC message: Parse error"),
    ],
)
async def test_garbage_is_the_servers_fault_at_once(body, kind, complaint):
    """Decision D20: garbage ends the call it came for, in bounded time."""

    def garbage(_endpoint, _request, _message):
        return web.Response(text=body, content_type=kind)

    async with Endpoint(garbage) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(Misbehaved, match=complaint):
            await client.call_tool("add")


async def test_a_request_that_is_accepted_without_an_answer_is_refused():
    """Spec 2026-07-28 basic/transports/streamable-http: 202 is for notifications."""

    def accept(_endpoint, _request, _message):
        return web.Response(status=202)

    async with Endpoint(accept) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(HttpRefused, match="HTTP 202"):
            await client.call_tool("add")


async def test_a_stream_that_ends_without_the_answer_loses_that_call():
    """Users.md pain 5: the caller is not left waiting."""

    async def stop(_endpoint, request, _message):
        return await streamed(request, b": hello\n\n")

    async with Endpoint(stop) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(ConnectionLost, match="ended before the answer"):
            await client.call_tool("add")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_body_that_breaks_off_loses_that_call(kind):
    """Decision D20: a drop in the middle is one typed error."""

    async def cut(_endpoint, request, _message):
        response = web.StreamResponse(headers={"Content-Type": kind})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b'data: {"jsonrpc":')
        request.transport.abort()
        return response

    async with Endpoint(cut) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(ConnectionLost, match="broke off"):
            await client.call_tool("add")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("length", [True, False])
async def test_an_answer_without_end_is_not_taken(kind, length):
    """Ours: what one message may cost is bounded, whether its length is announced or not."""

    async def flood(_endpoint, request, _message):
        response = web.StreamResponse(headers={"Content-Type": kind})
        if length:
            response.content_length = 20_000
        await response.prepare(request)
        await response.write(b"data: " + b"x" * 19_992 + b"\n\n")
        return response

    async with Endpoint(flood) as endpoint:
        channel = HttpClientChannel(endpoint.url, limit=10_000)
        with pytest.raises(Misbehaved, match="10000"):
            await channel.send(Outgoing(frame(id=1, method="x").encode(), 1, method="x"))
        await channel.close()


async def test_nobody_listening_is_a_failed_connection():
    """Users.md L7: one exception that says where, and no group."""
    async with Endpoint(done) as endpoint:
        url = endpoint.url
    client = Client(url)

    with pytest.raises(ConnectFailed, match=url):
        await client.open()
    await client.close()


async def test_a_server_that_goes_away_loses_calls_and_may_come_back():
    """Ours: over HTTP each call stands alone."""
    async with Endpoint(done) as endpoint:
        client = Client(endpoint.url)
        await client.open()
    with pytest.raises(ConnectionLost, match=endpoint.url):
        await client.call_tool("add")
    await client.close()


async def test_a_server_that_dies_in_the_middle_is_a_lost_connection():
    """Users.md L8: never a bare CancelledError."""

    def die(_endpoint, request, _message):
        request.transport.abort()
        return web.Response()

    async with Endpoint(die) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("add")


async def test_silence_is_bounded_by_the_timeout_of_the_call():
    """Decision D18: also where not even headers come."""
    hold = asyncio.Event()

    async def silent(_endpoint, _request, message):
        await hold.wait()
        return answer_with(message["id"], DONE)

    async with Endpoint(silent) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("add", timeout=0.05)
        hold.set()


# Redirects


async def test_a_redirect_within_the_origin_is_followed_and_kept():
    """Users.md L24: servers redirect /mcp to /mcp/."""

    def redirect(_endpoint, request, message):
        if request.path == "/mcp":
            return web.Response(status=307, headers={"Location": "/mcp/"})
        return answer_with(message["id"], DONE)

    async with Endpoint(redirect) as endpoint, Client(endpoint.url) as client:
        await client.call_tool("add")
        await client.call_tool("add")

        assert 3 == len(endpoint.all("tools/call"))


async def test_a_redirect_to_another_origin_is_not_followed():
    """Ours: credentials and arguments stay with the server they were meant for."""

    def redirect(_endpoint, _request, _message):
        return web.Response(status=307, headers={"Location": "https://evil.example/mcp"})

    async with Endpoint(redirect) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(HttpRefused, match=r"redirects to https://evil\.example/mcp"):
            await client.call_tool("add")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/mcp/", "http://a.example/mcp/"),
        ("http://a.example/x", "http://a.example/x"),
        ("https://a.example/mcp", None),
        ("http://b.example/mcp", None),
        ("//b.example/mcp", None),
        ("http://a.example:81/mcp", None),
        ("/mcp", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_where_a_redirect_may_lead(location, expected):
    """Ours: the same scheme, host and port, and not in a circle."""
    assert expected == resolve_redirect("http://a.example/mcp", location)


# A legacy server


@pytest.mark.covers(
    "lifecycle.initialize.first",
    "httpclient.version.header",
    "httpclient.session.named",
    "httpclient.post.every-message",
)
async def test_a_legacy_server_is_found_out_and_greeted():
    """Spec 2026-07-28 basic/transports/streamable-http#backward-compatibility."""
    async with Endpoint(done, modern=False, session="s1") as endpoint:
        async with Client(endpoint.url) as client:
            assert LEGACY == str(client.revision)
            await client.call_tool("add")
        await endpoint.until("DELETE")

        names = [name for name, *_ in endpoint.heard if name != "GET"]
        assert [
            "server/discover", "initialize", "notifications/initialized", "tools/call", "DELETE"
        ] == names  # fmt: skip
        greeting, _ = await endpoint.until("initialize")
        assert not {"MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method"} & set(greeting)
        for name in ("notifications/initialized", "tools/call", "GET", "DELETE"):
            headers, _ = await endpoint.until(name)
            assert (LEGACY, "s1") == (
                headers["MCP-Protocol-Version"], headers["Mcp-Session-Id"]
            )  # fmt: skip


async def test_what_a_server_speaks_is_remembered():
    """Spec 2026-07-28 basic/versioning: the second connection skips the probe."""
    async with Endpoint(done, modern=False) as endpoint:
        for _ in range(2):
            async with Client(endpoint.url):
                pass

        assert 1 == len(endpoint.all("server/discover"))


async def test_what_is_remembered_may_be_wrong():
    """Spec 2026-07-28 basic/versioning: re-probing if the cached assumption fails."""

    def refuse(_endpoint, _request, message):
        return refuse_with(404, id=message["id"], error={"code": -32601, "message": "no"})

    async with Endpoint(refuse) as endpoint:
        handshake.remember_target(endpoint.url, LATEST_LEGACY)
        async with Client(endpoint.url) as client:
            assert MODERN == str(client.revision)


async def test_a_session_without_an_id_is_not_deleted():
    """Spec 2025-11-25 basic/transports#session-management: a server MAY assign one."""
    async with Endpoint(done, modern=False) as endpoint:
        async with Client(endpoint.url, revision=LEGACY) as client:
            await client.call_tool("add")
            headers, _ = await endpoint.until("tools/call")

        assert "Mcp-Session-Id" not in headers
        assert [] == endpoint.all("DELETE")


async def test_a_legacy_server_asks_on_the_stream_of_the_call():
    """Spec 2025-11-25 basic/transports: requests MAY come before the response."""
    done_asking = asyncio.Event()

    async def ask(endpoint, request, message):
        if message.get("id") == "q":
            done_asking.set()
            return web.Response(status=202)
        if message.get("method") != "tools/call":
            return web.Response(status=405)
        question = {"message": "?", "requestedSchema": {"type": "object"}}
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event(id="q", method="elicitation/create", params=question))
        await done_asking.wait()
        await response.write(event(id=message["id"], result=DONE))
        return response

    async with Endpoint(ask, modern=False) as endpoint:
        async with Client(
            endpoint.url, revision=LEGACY, elicit=lambda _: Accepted({"a": 1})
        ) as client:
            await client.call_tool("ask")

        answer = next(m for _, _, m in endpoint.heard if m.get("id") == "q")
        assert {"action": "accept", "content": {"a": 1}} == answer["result"]


@pytest.mark.covers("httpclient.standing.asked-for")
async def test_a_legacy_server_talks_on_the_standing_stream():
    """Spec 2025-11-25 basic/transports#listening-for-messages-from-the-server: GET."""
    told, heard, hold = [], asyncio.Event(), asyncio.Event()

    def on_log(message):
        told.append(message.data)
        heard.set()

    async def get(_endpoint, request, _message):
        message = event(method="notifications/message", params={"level": "info", "data": "hi"})
        return await streamed(request, message, hold=hold)

    async with (
        Endpoint(get, modern=False, session="s") as endpoint,
        Client(endpoint.url, revision=LEGACY, on_log=on_log) as client,
    ):
        await heard.wait()
        headers, _ = await endpoint.until("GET")
        hold.set()
        await client.close()

    assert ["hi"] == told
    assert "text/event-stream" in headers["Accept"]


async def test_calls_wait_for_the_standing_stream():
    """Ours: a server that asks on it would ask nobody while it is not there."""
    offered = []

    async def get(_endpoint, request, message):
        if request.method != "GET":
            return answer_with(message.get("id"), {**DONE, "_meta": {"offered": len(offered)}})
        for _ in range(20):  # it takes its time
            await asyncio.sleep(0)
        offered.append(1)
        return await streamed(request, b":\n\n", hold=asyncio.Event())

    async with (
        Endpoint(get, modern=False) as endpoint,
        Client(endpoint.url, revision=LEGACY) as client,
    ):
        assert 1 == (await client.call_tool("add")).meta["offered"]


async def test_a_standing_stream_that_breaks_is_resumed():
    """Spec 2025-11-25 basic/transports#resumability-and-redelivery: GET with Last-Event-ID."""
    told, both = [], asyncio.Event()

    def on_log(message):
        told.append(message.data)
        if len(told) == 2:
            both.set()

    async def get(_endpoint, request, _message):
        seen = request.headers.get("Last-Event-ID", "0")
        params = {"level": "info", "data": seen}
        data = event(method="notifications/message", params=params)
        return await streamed(request, b"retry: 1\nid: %d\n" % (int(seen) + 1) + data)

    async with (
        Endpoint(get, modern=False) as endpoint,
        Client(endpoint.url, revision=LEGACY, on_log=on_log),
    ):
        await both.wait()

    assert ["0", "1"] == told[:2]


async def test_a_standing_stream_that_is_cut_off_is_asked_for_again():
    """Ours: also where there is nothing to resume after."""
    heard = asyncio.Event()

    async def get(endpoint, request, _message):
        if len(endpoint.all("GET")) > 1:
            params = {"level": "info", "data": "back"}
            return await streamed(request, event(method="notifications/message", params=params))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"retry: 1\n\n")
        request.transport.abort()
        return response

    async with (
        Endpoint(get, modern=False) as endpoint,
        Client(endpoint.url, revision=LEGACY, on_log=lambda _: heard.set()),
    ):
        await heard.wait()


@pytest.mark.covers("httpclient.standing.asked-for")
async def test_a_server_without_a_standing_stream_keeps_its_session():
    """Ours: some answer GET with 404 where they mean 405."""

    async def reply(endpoint, request, message):
        if request.method == "GET":
            return web.Response(status=404)
        return done(endpoint, request, message)

    async with (
        Endpoint(reply, modern=False, session="s1") as endpoint,
        Client(endpoint.url, revision=LEGACY) as client,
    ):
        await endpoint.until("GET")
        assert "" == (await client.call_tool("add")).text


async def test_a_call_survives_that_its_stream_breaks():
    """Spec 2025-11-25 basic/transports: the client SHOULD resume, after the time asked for."""

    async def break_off(_endpoint, request, message):
        if request.method == "GET" and "Last-Event-ID" not in request.headers:
            return web.Response(status=405)
        if request.method == "GET":
            id = int(request.headers["Last-Event-ID"].partition("/")[2])
            return await streamed(request, event(id=id, result=DONE))
        return await streamed(request, b"id: at/%d\nretry: 5\ndata:\n\n" % message["id"])

    async with Endpoint(break_off, modern=False) as endpoint:
        async with Client(endpoint.url, revision=LEGACY) as client:
            assert [] == (await client.call_tool("add")).content

        assert 1 == len(endpoint.all("tools/call"))


async def test_a_stream_that_cannot_be_resumed_loses_its_call():
    """Ours: a refusal to resume is final."""

    async def break_off(_endpoint, request, _message):
        if request.method == "GET":
            return web.Response(status=405)
        return await streamed(request, b"id: 1\nretry: 1\ndata:\n\n")

    async with (
        Endpoint(break_off, modern=False) as endpoint,
        Client(endpoint.url, revision=LEGACY) as client,
    ):
        with pytest.raises(HttpRefused, match="HTTP 405: no stream to resume"):
            await client.call_tool("add")


@pytest.mark.covers("cancellation.sent.as-the-transport-has-it")
async def test_a_legacy_call_that_is_cancelled_is_withdrawn_in_a_message():
    """Spec 2025-11-25 basic/transports: a disconnect is no cancellation, so the client says it."""

    async def hang(_endpoint, request, message):
        if message.get("method") == "tools/call":
            await asyncio.Event().wait()
        return web.Response(status=202)

    async with (
        Endpoint(hang, modern=False) as endpoint,
        Client(endpoint.url, revision=LEGACY) as client,
    ):
        call = asyncio.create_task(client.call_tool("slow"))
        _, asked = await endpoint.until("tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        _, withdrawn = await endpoint.until("notifications/cancelled")

    assert asked["id"] == withdrawn["params"]["requestId"]


async def test_the_end_of_a_session_fails_every_call():
    """Spec 2025-11-25 basic/transports#session-management: 404 is its end."""
    hold = asyncio.Event()

    async def end(_endpoint, _request, message):
        if message.get("params", {}).get("name") == "slow":
            await hold.wait()
        return web.Response(status=404, text="Session not found")

    async with (
        Endpoint(end, modern=False, session="s") as endpoint,
        Client(endpoint.url, revision=LEGACY) as client,
    ):
        slow = asyncio.create_task(client.call_tool("slow"))
        await endpoint.until("tools/call")
        for call in (client.call_tool("quick"), slow):
            with pytest.raises(ConnectionLost, match="the server has ended the session"):
                await call
        hold.set()


async def test_an_error_of_our_own_call_does_not_end_the_session():
    """Ours: a server that puts 404 on an unknown method has not forgotten us."""

    def unknown(_endpoint, _request, message):
        return refuse_with(404, id=message.get("id"), error={"code": -32601, "message": "no"})

    async with (
        Endpoint(unknown, modern=False, session="s") as endpoint,
        Client(endpoint.url, revision=LEGACY) as client,
    ):
        for _ in range(2):
            with pytest.raises(MethodNotFound):
                await client.call_tool("add")


async def test_headers_given_to_the_client_go_with_every_request():
    """Ours: a token is given once."""
    async with Endpoint(done, modern=False, session="s") as endpoint:
        async with Client(endpoint.url, headers={"Authorization": "Bearer t"}) as client:
            await client.call_tool("add")
        await endpoint.until("DELETE")

        assert {"Bearer t"} == {headers.get("Authorization") for _, headers, _ in endpoint.heard}


async def test_a_refused_notification_is_a_lost_connection_to_the_channel():
    """Ours: nobody relies on a message that was not taken."""

    def refuse(_endpoint, _request, _message):
        return web.Response(status=500)

    async with Endpoint(refuse) as endpoint:
        channel = HttpClientChannel(endpoint.url)
        with pytest.raises(ConnectionLost, match="refused x: HTTP 500"):
            await channel.send(Outgoing(frame(method="x").encode(), method="x"))
        await channel.close()
        await channel.close()
        with pytest.raises(ConnectionLost, match="closed"):
            await channel.send(Outgoing(b"{}", method="x"))
        assert None is await channel.receive()


# The channel by itself


def call(id, method="tools/call"):
    return Outgoing(frame(id=id, method=method).encode(), id, method=method)


async def test_a_channel_keeps_what_arrives_until_it_is_received():
    """Ours: a channel is a channel, also without somebody attached to it."""
    async with Endpoint(done) as endpoint:
        channel = HttpClientChannel(endpoint.url)
        waiting = asyncio.create_task(channel.receive())
        for id in (1, 2):
            await channel.send(call(id))

        assert 1 == json.loads((await waiting).data)["id"]
        assert 2 == json.loads((await channel.receive()).data)["id"]
        waiting = asyncio.create_task(channel.receive())
        await endpoint.until("tools/call")
        await channel.close()
        assert None is await waiting


async def test_an_abandoned_request_returns_without_a_word():
    """Ours: whoever abandons a request has told its caller why."""
    async with Endpoint(lambda *_: asyncio.Event().wait()) as endpoint:
        channel = HttpClientChannel(endpoint.url)
        sending = asyncio.create_task(channel.send(call(1)))
        await endpoint.until("tools/call")

        assert channel.abandon(1) is False
        await sending
        assert channel.abandon(1) is True
        await channel.close()


async def test_a_cancellation_from_outside_is_not_taken_for_our_own():
    """Ours: an abandoned request that is cancelled as well ends as cancelled."""
    async with Endpoint(lambda *_: asyncio.Event().wait()) as endpoint:
        channel = HttpClientChannel(endpoint.url)
        sending = asyncio.create_task(channel.send(call(1)))
        await endpoint.until("tools/call")
        channel.abandon(1)
        sending.cancel()

        with pytest.raises(asyncio.CancelledError):
            await sending
        await channel.close()


async def test_nothing_is_sent_once_the_session_has_ended():
    """Ours: the second call is told what the first one found out."""

    def end(_endpoint, _request, message):
        if message.get("method") == "initialize":
            return answer_with(message["id"], GREETED, headers={"Mcp-Session-Id": "s"})
        return web.Response(status=404)

    async with Endpoint(end) as endpoint:
        channel = HttpClientChannel(endpoint.url)
        await channel.send(call(1, "initialize"))
        for out in (Outgoing(b"{}", method="x"), call(2)):
            with pytest.raises(ConnectionLost, match="has ended the session"):
                await channel.send(out)
        await channel.receive()
        with pytest.raises(ConnectionLost, match="has ended the session"):
            await channel.receive()
        await channel.close()


async def test_an_answer_of_ours_that_is_not_taken_is_logged(caplog):
    """Ours: nobody waits for it, so the log is where it can be said."""

    def refuse(_endpoint, _request, _message):
        return web.Response(status=500)

    async with Endpoint(refuse) as endpoint:
        channel = HttpClientChannel(endpoint.url)
        with caplog.at_level(logging.INFO, "isthmus"):
            await channel.send(Outgoing(b"{}", answers=1))
            await asyncio.wait(channel._tasks._tasks)
        await channel.close()

    assert "the server refused our answer: HTTP 500" in caplog.text


async def test_a_refusal_that_is_too_long_is_still_a_refusal():
    """Ours: its body is left out."""

    def refuse(_endpoint, _request, _message):
        return web.Response(status=500, text="x" * 100_000)

    async with Endpoint(refuse) as endpoint, Client(endpoint.url) as client:
        with pytest.raises(HttpRefused) as caught:
            await client.call_tool("add")

    assert (500, "") == (caught.value.status, caught.value.body)


async def test_a_compressed_answer_is_read():
    """Ours: what a proxy compresses is decompressed, within the limit."""

    def compressed(_endpoint, _request, message):
        response = answer_with(message["id"], {**DONE, "_meta": {"x": "y" * 1000}})
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with Endpoint(compressed) as endpoint, Client(endpoint.url) as client:
        assert "y" * 1000 == (await client.call_tool("add")).meta["x"]


@pytest.mark.covers("http.headers.any-case")
async def test_headers_of_a_server_are_read_in_any_case():
    """Spec 2026-07-28 basic/transports/streamable-http#case-sensitivity: a MUST."""

    class Loud(Endpoint):
        def opening(self, message):
            if message.get("method") == "initialize":
                return answer_with(message["id"], GREETED, headers={"MCP-SESSION-ID": "s7"})
            return super().opening(message)

    async with Loud(done, modern=False) as endpoint, Client(endpoint.url) as client:
        await client.call_tool("add")
        headers, _ = await endpoint.until("tools/call")

    assert "s7" == headers["Mcp-Session-Id"]
