"""The client's side of HTTP+SSE, against a real server on this machine and a scripted one."""

import asyncio
import contextlib
import json

import pytest
from aiohttp import web

from isthmus.client import handshake
from isthmus.client.client import Client
from isthmus.core.answers import Accepted
from isthmus.errors import (
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    Misbehaved,
    SessionEnded,
)
from isthmus.runtime.channel import Outgoing
from isthmus.transports.http.client.address import HttpSse
from isthmus.transports.http.client.sse import HttpSseChannel
from support.http.scripted_requests import HOLD, ScriptedReply, ScriptedRequests

EVERY_LOOP = True

OLD = "2024-11-05"
GREETED = {
    "protocolVersion": OLD,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}


def frame(**members):
    return json.dumps({"jsonrpc": "2.0", **members})


def event(**members):
    return f"event: message\r\ndata: {frame(**members)}\r\n\r\n".encode()


class OldServer:
    """A server of HTTP+SSE that does what a test says, and keeps what it heard.

    Args:
        reply: ``(server, message) -> result`` of a call, None for none; may be async.
        endpoint: what the first event names, ``{}`` for the number of the session.

    Attributes:
        url: where its streams are.
        heard: method or HTTP verb of each request, with its headers and message.
        streams: the responses of the sessions, by number; take one out to forget it.
    """

    def __init__(self, reply=lambda _server, _message: {"content": []}, *, endpoint="/post?s={}"):
        self.reply, self.endpoint = reply, endpoint
        self.heard, self.streams, self.ends = [], {}, {}
        self.number = 0
        self.changed = asyncio.Condition()

    async def __aenter__(self):
        app = web.Application()
        app.router.add_get("/sse", self.stream)
        app.router.add_post("/post", self.post)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.origin = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        self.url = f"{self.origin}/sse"
        return self

    async def __aexit__(self, *_):
        handshake.forget_target(self.url)
        handshake.forget_target(("http+sse", self.url))
        for end in self.ends.values():
            end.set()
        await self.runner.cleanup()

    async def note(self, name, headers, message):
        async with self.changed:
            self.heard.append((name, headers, message))
            self.changed.notify_all()

    async def stream(self, request):
        self.number += 1
        number = str(self.number)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        endpoint = self.endpoint.format(number)
        await response.write(f"event: endpoint\r\ndata: {endpoint}\r\n\r\n".encode())
        self.streams[number], end = response, asyncio.Event()
        self.ends[number] = end
        await self.note("GET", request.headers, {})
        await end.wait()
        return response

    async def post(self, request):
        message = await request.json()
        number = request.query.get("s", "")
        if number not in self.streams:
            return web.Response(status=404, text="Could not find session")
        await self.note(message.get("method", "answer"), request.headers, message)
        result = GREETED if message.get("method") == "initialize" else None
        if message.get("id") is not None and "method" in message and result is None:
            result = self.reply(self, message)
            result = await result if hasattr(result, "__await__") else result
        if result is not None and number in self.streams:
            await self.streams[number].write(event(id=message["id"], result=result))
        return web.Response(status=202, text="Accepted")

    async def say(self, **members):
        """Say something on the newest stream."""
        await self.streams[str(self.number)].write(event(**members))

    def drop(self):
        """End every stream."""
        self.streams.clear()
        for end in self.ends.values():
            end.set()

    async def until(self, name, count=1):
        """The headers and message of a request of this name, as soon as there are so many."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.all(name)) >= count)
        return [h[1:] for h in self.heard if h[0] == name][count - 1]

    def all(self, name):
        return [message for method, _, message in self.heard if method == name]


@pytest.mark.covers("fallback.post-first", "httpsse.endpoint")
async def test_a_url_alone_finds_an_old_server():
    """Spec 2025-11-25 basic/transports#backwards-compatibility: POST, then GET and its endpoint."""
    async with OldServer() as server, Client(server.url) as client:
        result = await client.call_tool("add")

    assert (OLD, []) == (str(client.revision), result.content)


@pytest.mark.covers("fallback.remembered")
async def test_what_was_found_out_is_remembered():
    """Spec 2026-07-28 basic/versioning: the second connection begins with the stream."""
    async with OldServer() as server:
        posts = []
        for _ in range(2):
            async with Client(server.url) as client:
                await client.call_tool("add")
            posts.append(len(server.heard))

        assert handshake.recall_target(server.url).sse
        assert OLD == str(handshake.recall_target(server.url).revision)
        assert 2 * posts[0] == posts[1]


async def test_an_old_server_may_be_named_as_such():
    """Ours: HttpSse tries nothing else."""
    async with OldServer() as server, Client(HttpSse(server.url)) as client:
        await client.call_tool("add")

    assert ["GET", "initialize", "notifications/initialized", "tools/call"] == [
        name for name, *_ in server.heard
    ]


async def test_an_entry_of_a_configuration_may_name_the_transport():
    """Ours: as other clients' configurations do."""
    async with OldServer() as server:
        entry = {"type": "sse", "url": server.url, "headers": {"X-Key": "k"}}
        async with Client(entry) as client:
            await client.call_tool("add")

    assert {"k"} == {headers.get("X-Key") for _, headers, _ in server.heard}


@pytest.mark.covers("httpclient.version.header")
async def test_headers_and_cookies():
    """Ours: headers go with every request, cookies with none; the version is told once known."""
    sent = {"Authorization": "Bearer t"}
    async with OldServer() as server, Client(HttpSse(server.url, headers=sent)) as client:
        await client.call_tool("add")

    for _, headers, _ in server.heard:
        assert ("Bearer t", None) == (headers["Authorization"], headers.get("Cookie"))
    get, *_ = [headers for name, headers, _ in server.heard if name == "GET"]
    assert "text/event-stream" == get["Accept"]
    (call,) = [headers for name, headers, _ in server.heard if name == "tools/call"]
    assert ("application/json", OLD) == (call["Content-Type"], call["MCP-Protocol-Version"])


async def test_a_server_may_ask_and_tell():
    """Spec 2024-11-05 basic/transports: server messages are events of the stream."""
    told = []

    async def ask(server, _message):
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await server.say(method="notifications/message", params={"level": "info", "data": "hi"})
        await server.say(id="q", method="roots/list", params=params)
        await server.until("answer")
        return {"content": []}

    async with (
        OldServer(ask) as server,
        Client(server.url, roots=["file:///tmp"], on_log=lambda m: told.append(m.data)) as client,
    ):
        await client.call_tool("ask")

        _, answer = await server.until("answer")
    assert ("q", "file:///tmp") == (answer["id"], answer["result"]["roots"][0]["uri"])
    assert ["hi"] == told


async def test_a_question_asked_after_the_call_was_accepted():
    """Ours: elicitation in a newer revision, over the old transport."""
    del GREETED["protocolVersion"]
    GREETED["protocolVersion"] = "2025-06-18"
    try:

        async def ask(server, _message):
            params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            await server.say(id=7, method="elicitation/create", params=params)
            await server.until("answer")
            return {"content": []}

        async with (
            OldServer(ask) as server,
            Client(server.url, elicit=lambda _: Accepted({"a": 1})) as client,
        ):
            await client.call_tool("ask")
            _, answer = await server.until("answer")
    finally:
        GREETED["protocolVersion"] = OLD
    assert {"action": "accept", "content": {"a": 1}} == answer["result"]


async def test_a_call_that_times_out_is_withdrawn_in_a_message():
    """Spec 2024-11-05 basic/utilities/cancellation: the stream goes on, so a message says it."""
    async with (
        OldServer(lambda *_: None) as server,
        Client(HttpSse(server.url)) as client,
    ):
        with pytest.raises(CallTimedOut):
            await client.call_tool("slow", timeout=0.05)
        _, withdrawn = await server.until("notifications/cancelled")

    assert server.all("tools/call")[0]["id"] == withdrawn["params"]["requestId"]


# The end of a stream


@pytest.mark.covers("httpsse.stream-lost")
async def test_losing_the_stream_ends_every_call_once():
    """Decision D20: with one typed error, and nothing is asked for a second time."""
    async with OldServer(lambda *_: None) as server, Client(HttpSse(server.url)) as client:
        calls = [asyncio.create_task(client.call_tool("slow")) for _ in range(3)]
        await server.until("tools/call", 3)
        server.drop()
        for call in calls:
            with pytest.raises(ConnectionLost, match="the server has ended the stream"):
                await call

        assert 3 == len(server.all("tools/call"))


@pytest.mark.covers("httpsse.new-session")
async def test_a_new_stream_is_a_new_session_for_the_next_call():
    """Ours: reconnecting means to begin anew."""
    async with OldServer() as server, Client(HttpSse(server.url)) as client:
        await client.call_tool("add")
        server.drop()
        await server.until("initialize", 2)
        await client.call_tool("add")

        assert (2, 2) == (server.number, len(server.all("tools/call")))


async def test_a_session_the_server_does_not_know_is_replaced_and_the_call_made_there():
    """Spec 2025-11-25 basic/transports#session-management: 404 means that nothing was done."""
    async with OldServer() as server, Client(HttpSse(server.url)) as client:
        await client.call_tool("add")
        server.streams.clear()  # it has forgotten the session, and holds the connection
        assert [] == (await client.call_tool("add")).content

        assert (2, 2) == (server.number, len(server.all("tools/call")))


async def test_closing_ends_the_stream():
    """Spec 2024-11-05 basic/transports: the client closes the connection."""
    async with OldServer(lambda *_: None) as server:
        client = Client(HttpSse(server.url))
        await client.open()
        call = asyncio.create_task(client.call_tool("slow"))
        await server.until("tools/call")
        await asyncio.wait_for(asyncio.create_task(client.close()), 5)
        await client.close()
        with pytest.raises(ConnectionLost):
            await call


# What an endpoint may be


@pytest.mark.parametrize(
    "endpoint", ["post?s={}", "/post?s={}", "{origin}/post?s={}", "./x/../post?s={}"]
)
async def test_an_endpoint_may_be_relative_or_absolute(endpoint):
    """Spec 2024-11-05 basic/transports: a URI for the client to use."""
    async with OldServer() as server:
        server.endpoint = endpoint.replace("{origin}", server.origin)
        async with Client(HttpSse(server.url)) as client:
            await client.call_tool("add")


@pytest.mark.covers("httpsse.same-origin")
@pytest.mark.parametrize(
    "endpoint",
    [
        "http://evil.example/post",
        "//evil.example/post",
        "https://127.0.0.1/post",
        "http://127.0.0.1:1/post",
        "http://[/post",
        "file:///etc/passwd",
        "",
    ],
)
async def test_an_endpoint_of_another_origin_is_refused(endpoint):
    """Ours: what is posted there may hold credentials."""
    async with OldServer(endpoint=endpoint) as server:
        with pytest.raises(ConnectFailed, match=r"not of the origin of http://127\.0\.0\.1"):
            await Client(HttpSse(server.url)).open()
        with pytest.raises(ConnectFailed, match=r"not of the origin of http://127\.0\.0\.1"):
            await Client(server.url).open()


# Against a script


URL = "http://server.example/sse"
ENDPOINT = b"event: endpoint\ndata: /post\n\n"


@contextlib.asynccontextmanager
async def channel(answer, **options):
    """A channel whose requests a function answers, to be opened."""
    requests = ScriptedRequests(answer)
    made = HttpSseChannel(URL, requests=requests, **options)
    try:
        yield made, requests
    finally:
        await made.close()
    assert requests.closed


def stream(*pieces):
    """A server whose GET brings these pieces, and whose POST is accepted."""
    return lambda method, *_: ScriptedReply(200, *pieces) if method == "GET" else ScriptedReply(202)


@pytest.mark.parametrize(
    ("reply", "error", "complaint"),
    [
        (lambda: ScriptedReply(405, b"no"), HttpRefused, "HTTP 405: no"),
        (lambda: ScriptedReply(401), HttpRefused, "HTTP 401"),
        (
            lambda: ScriptedReply(302, Location="http://evil.example/"),
            HttpRefused,
            "redirects to http://evil",
        ),
        (
            lambda: ScriptedReply(200, b"<html>", kind="text/html"),
            Misbehaved,
            "GET brings text/html",
        ),
        (lambda: ScriptedReply(200), ConnectionLost, "ended the stream"),
        (
            lambda: ScriptedReply(200, b"data: {}\n\n", HOLD),
            Misbehaved,
            "does not begin with an endpoint event",
        ),
        (lambda: ConnectionLost("nobody there"), ConnectionLost, "nobody there"),
    ],
)
async def test_what_is_no_stream_of_this_transport_is_told(reply, error, complaint):
    """Ours: each in its own words, and nothing is left open."""
    async with channel(lambda *_: reply()) as (made, requests):
        with pytest.raises(error, match=complaint):
            await made.open()
        assert requests.closed
        with pytest.raises(ConnectionLost):
            await made.send(Outgoing(b"{}", method="x"))


async def test_a_stream_without_an_endpoint_is_not_waited_for_long(monkeypatch):
    """Decision D20: a server of another transport may send nothing on GET."""
    monkeypatch.setattr("isthmus.transports.http.client.sse.ENDPOINT_TIMEOUT_S", 0.01)
    async with channel(stream(b":\n\n", HOLD)) as (made, _):
        with pytest.raises(Misbehaved, match="named no endpoint within"):
            await made.open()


async def test_comments_before_the_endpoint_and_messages_with_it():
    """Ours: events are events, however they are cut."""
    message = b'data: {"jsonrpc":"2.0","method":"x"}\n\n'
    async with channel(stream(b": hi\n\n", ENDPOINT + message, b"data:\n\n" + message, HOLD)) as (
        made,
        _,
    ):
        await made.open()
        assert "http://server.example/post" == made.endpoint
        assert message[6:-2] == (await made.receive()).data
        assert message[6:-2] == (await made.receive()).data


async def test_redirects_within_the_origin_are_followed():
    """Ours: as over Streamable HTTP."""

    def answer(method, url, *_):
        if url.endswith("/sse"):
            return ScriptedReply(307, Location="/sse/")
        if url.endswith("/post"):
            return ScriptedReply(308, Location="/post/")
        return ScriptedReply(200, ENDPOINT, HOLD) if method == "GET" else ScriptedReply(202)

    async with channel(answer) as (made, requests):
        await made.open()
        for _ in range(2):
            await made.send(Outgoing(b"{}", method="x"))

    assert ["/sse", "/sse/", "/post", "/post/", "/post/"] == [
        url.removeprefix("http://server.example") for _, _, url, *_ in requests.heard
    ]


async def test_a_message_that_is_too_long_ends_the_session():
    """Ours: nobody can tell whose answer it was."""
    async with channel(stream(ENDPOINT, b"data: %b\n\n" % (b"x" * 500), HOLD), limit=100) as (
        made,
        _,
    ):
        await made.open()
        with pytest.raises(SessionEnded, match="message of 506 bytes, and the limit is 100"):
            await made.receive()


@pytest.mark.parametrize("status", [400, 403, 500])
async def test_a_refused_message_is_told_to_whoever_sent_it(status):
    """Ours: one failed request fails one call."""

    def answer(method, *_):
        return (
            ScriptedReply(200, ENDPOINT, HOLD)
            if method == "GET"
            else ScriptedReply(status, b"because")
        )

    async with channel(answer) as (made, _):
        await made.open()
        with pytest.raises(HttpRefused, match=f"HTTP {status}: because"):
            await made.send(Outgoing(b"{}", 1, method="tools/call"))


async def test_a_notification_that_is_not_taken_in_time_is_given_up(monkeypatch):
    """Decision D20: no message waits for ever."""
    monkeypatch.setattr("isthmus.transports.http.client.sse.NOTIFICATION_TIMEOUT_S", 0.01)

    async def answer(method, *_):
        if method == "GET":
            return ScriptedReply(200, ENDPOINT, HOLD)
        return await asyncio.Event().wait()

    async with channel(answer) as (made, _):
        await made.open()
        with pytest.raises(ConnectionLost, match="did not accept x in time"):
            await made.send(Outgoing(b"{}", method="x"))


async def test_an_answer_of_ours_that_is_not_taken_is_logged(caplog):
    """Ours: nobody waits for it, so the log is where it can be said."""
    caplog.set_level("INFO", "isthmus")

    def answer(method, *_):
        return ScriptedReply(200, ENDPOINT, HOLD) if method == "GET" else ScriptedReply(500)

    async with channel(answer) as (made, _):
        await made.open()
        await made.send(Outgoing(b"{}", answers=1))
        await asyncio.wait(made._tasks._tasks)

    assert "our answer did not reach the server: HTTP 500" in caplog.text


@pytest.mark.covers("httpclient.flood")
async def test_a_flood_of_questions_is_read_no_faster_than_our_answers_are_taken():
    """Ours: memory is bounded by what the server takes."""
    gate, read = asyncio.Event(), []

    async def answer(method, *_):
        if method == "GET":
            pings = [
                b'data: {"jsonrpc":"2.0","id":%d,"method":"ping"}\n\n' % n for n in range(2000)
            ]
            pieces = [piece for ping in pings for piece in (ping, lambda: read.append(1))]
            return ScriptedReply(200, ENDPOINT, *pieces, HOLD)
        await gate.wait()
        return ScriptedReply(202)

    async def serve(made):
        for id in range(2000):
            await made.receive()
            await made.send(Outgoing(b"{}", answers=id))

    async with channel(answer) as (made, requests):
        await made.open()
        serving = asyncio.create_task(serve(made))
        for _ in range(5000):
            await asyncio.sleep(0)
        assert (300 > len(read), 17) == (True, len(requests.heard))
        gate.set()
        await serving


async def test_a_channel_that_is_closed_while_it_opens():
    """Ours: in any order, from any task."""
    async with channel(stream(HOLD)) as (made, _):
        opening = asyncio.create_task(made.open())
        for _ in range(10):
            await asyncio.sleep(0)
        await made.close()
        with pytest.raises(ConnectionLost):
            await opening
        assert None is await made.receive()
