"""HTTP+SSE of 2024-11-05 on the server's side: one stream, and POSTs beside it."""

import asyncio

import pytest

from isthmus import Accepted, Context, Server
from isthmus.errors import ConnectionLost
from isthmus.revisions import BY_NAME
from isthmus.runtime.channel import Outgoing
from isthmus.testing.faults import until
from isthmus.transports.http.app import HttpApp
from isthmus.transports.http.sse_server import FULL_STREAM, MAX_HELD_REQUESTS
from isthmus.wire import ListRootsParams, ListRootsResult, ProgressParams
from support.http.asgi_driver import fetch
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    hello,
    legacy_call_body,
    make_router,
    modern_body,
    open_legacy_session,
    read_tool_text,
)
from support.http.sse_visitor import HOST, Visitor

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


class Gate:
    """A tool that waits until it is let through."""

    def __init__(self):
        self.arrived = asyncio.Event()
        self.open = asyncio.Event()
        self.ended = []

    async def __call__(self, _inbound):
        """Wait."""
        self.arrived.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        except ConnectionLost:
            self.ended.append("lost")
            raise
        return "through"


@pytest.mark.covers("ssehttp.endpoint.first", "ssehttp.messages.events")
async def test_the_first_event_says_where_to_send_messages_and_the_answers_are_events():
    """2024-11-05 basic/transports#http-with-sse."""
    target = HttpApp(make_router(hello=hello))
    visitor = Visitor(target)
    answer = await visitor.open()
    await visitor.say(legacy_call_body(id="x"))
    result = await visitor.message()

    assert (200, "text/event-stream") == (
        visitor.stream.status,
        visitor.stream.header("content-type"),
    )
    assert visitor.endpoint.startswith("/messages?session_id=")
    assert "2024-11-05" == answer["result"]["protocolVersion"]
    assert ("x", "hello") == (result["id"], read_tool_text(result))
    assert b"\nid:" not in visitor.stream.body
    await target.close()


@pytest.mark.covers("ssehttp.revisions.all-legacy")
@pytest.mark.parametrize("revision", LEGACY)
async def test_every_revision_with_a_handshake_is_spoken(revision):
    """Ours: clients of later revisions fall back to this transport, too."""
    target = HttpApp(make_router(hello=hello))
    visitor = Visitor(target)
    answer = await visitor.open(revision)
    await visitor.say(legacy_call_body(id=5))

    assert revision == answer["result"]["protocolVersion"]
    assert "hello" == read_tool_text(await visitor.message())
    await target.close()


@pytest.mark.covers("ssehttp.both.at-once")
async def test_both_transports_are_served_at_once():
    """2025-03-26 basic/transports#backwards-compatibility: alongside the new endpoint."""
    target = HttpApp(make_router(hello=hello))
    visitor = Visitor(target)
    await visitor.open()
    session = await open_legacy_session(target)
    head = {**HOST, "content-type": "application/json", "mcp-session-id": session}
    answer = await fetch(target, headers=head, body=legacy_call_body())
    await visitor.say(legacy_call_body())

    assert "hello" == read_tool_text(answer.json)
    assert "hello" == read_tool_text(await visitor.message())
    await target.close()


@pytest.mark.covers("ssehttp.fallback.4xx")
async def test_a_client_that_tries_the_newer_transport_here_learns_that_this_is_the_older():
    """2025-03-26 basic/transports#backwards-compatibility: a 4xx, then a GET to the same URL."""
    target = HttpApp(make_router())
    head = {**HOST, "content-type": "application/json", "accept": "text/event-stream"}
    answer = await fetch(target, "POST", "/sse", headers=head, body=INITIALIZE)

    assert (405, "GET") == (answer.status, answer.header("allow"))
    await Visitor(target).arrive()
    await target.close()


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE"])
async def test_messages_are_posted(verb):
    """Ours: anything else is 405."""
    target = HttpApp(make_router())
    answer = await fetch(target, verb, "/messages", headers=HOST)

    assert (405, "POST") == (answer.status, answer.header("allow"))
    await target.close()


async def test_questions_progress_and_changes_travel_on_the_stream():
    """Ours: it is an ordinary pipe to everything above it."""

    async def busy(inbound):
        progress = ProgressParams(progress_token=inbound.progress_token, progress=1)
        await inbound.link.note("notifications/progress", progress, relates_to=inbound.id)
        answer = await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
        return str(len(answer.roots))

    target = HttpApp(make_router(busy=busy))
    visitor = Visitor(target)
    await visitor.open()
    await visitor.say(legacy_call_body("busy", id=1, progressToken="t"))
    progress, question = await visitor.message(), await visitor.message()
    await visitor.say({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})

    assert "t" == progress["params"]["progressToken"]
    assert "0" == read_tool_text(await visitor.message())
    await target.close()


@pytest.mark.covers("ssehttp.asking.works")
async def test_a_tool_asks_its_user():
    """Ours: ``await ctx.elicit`` in a plain tool body, here as everywhere."""
    server = Server("asks")

    @server.tool
    async def agree(ctx: Context) -> str:
        await ctx.close_stream()
        return "yes" if isinstance(await ctx.elicit("Agreed?"), Accepted) else "no"

    target = server.asgi()
    visitor = Visitor(target)
    await visitor.open("2025-06-18")
    await visitor.say(legacy_call_body("agree"))
    question = await visitor.message()
    result = {"action": "accept", "content": {}}
    await visitor.say({"jsonrpc": "2.0", "id": question["id"], "result": result})

    assert "yes" == read_tool_text(await visitor.message())
    await target.close()


async def test_a_batch_is_served_where_the_revision_has_them():
    """2025-03-26 basic#batching, on any transport."""
    target = HttpApp(make_router(hello=hello))
    visitor = Visitor(target)
    await visitor.open("2025-03-26")
    await visitor.say([legacy_call_body(id=1), legacy_call_body(id=2)])

    assert {1, 2} == {one["id"] for one in await visitor.message()}
    older = Visitor(target)
    await older.open()
    await older.say([legacy_call_body(id=1)])
    assert -32600 == (await older.message())["error"]["code"]
    await target.close()


@pytest.mark.covers("ssehttp.close.ends-calls")
async def test_a_client_that_closes_its_stream_ends_its_calls():
    """2024-11-05: the stream is the connection."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate))
    visitor = Visitor(target)
    await visitor.open()
    await visitor.say(legacy_call_body("gate"))
    await gate.arrived.wait()
    await visitor.leave()

    assert ["cancelled"] == gate.ended
    assert 404 == (await visitor.post(legacy_call_body()).done()).status
    assert 0 == len(target._sse)
    await target.close()


@pytest.mark.covers("ssehttp.sessions.isolated", "ssehttp.sessions.unknown-404")
async def test_sessions_are_apart_and_unknown_ones_are_404():
    """Ours: two clients that use the same ids never meet."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate, hello=hello))
    one, other = Visitor(target), Visitor(target)
    await one.open()
    await other.open()
    await one.say(legacy_call_body("gate", id=1))
    await other.say(legacy_call_body("hello", id=1))
    gate.open.set()

    assert "hello" == read_tool_text(await other.message())
    assert "through" == read_tool_text(await one.message())
    assert one.endpoint != other.endpoint
    one.endpoint = one.endpoint[:-1] + "_"
    assert 404 == (await one.post(legacy_call_body()).done()).status
    one.endpoint = "/messages?other=1"
    assert 400 == (await one.post(legacy_call_body()).done()).status
    await target.close()


@pytest.mark.covers("ssehttp.sessions.bound-to-principal")
async def test_a_session_belongs_to_who_opened_it():
    """Somebody else cannot tell it from one that does not exist."""
    target = HttpApp(make_router(hello=hello))
    visitor = await Visitor(target).arrive()
    (stream,) = target._sse._streams.values()
    stream._principal = "alice"
    theirs = await visitor.post(legacy_call_body()).done()
    visitor.endpoint = f"/messages?session_id={'0' * 48}"
    nobodys = await visitor.post(legacy_call_body()).done()

    assert (404, nobodys.body) == (theirs.status, theirs.body)
    await target.close()


@pytest.mark.covers("ssehttp.guard.origin")
@pytest.mark.parametrize("forged", [{"origin": "http://evil.example"}, {"host": "evil.example"}])
async def test_foreign_pages_are_refused_on_both_paths(forged):
    """2024-11-05: servers MUST validate the Origin header on all incoming connections."""
    target = HttpApp(make_router())
    visitor = await Visitor(target).arrive()
    head = {**HOST, **forged}

    assert 403 == (await fetch(target, "GET", "/sse", headers=head)).status
    assert 403 == (await visitor.post(legacy_call_body(), headers=forged).done()).status
    await target.close()


async def test_a_page_at_an_allowed_origin_may_listen_and_post():
    """Ours: browsers ask first, and need the headers that let them read."""
    target = HttpApp(make_router(), allowed_origins=["https://app.example"])
    visitor = await Visitor(target, origin="https://app.example").arrive()
    accepted = await visitor.post(INITIALIZED).done()
    head = {**visitor.head, "access-control-request-headers": "content-type"}
    asked = await fetch(target, "OPTIONS", "/messages", headers=head)

    for answer in (visitor.stream, accepted, asked):
        assert "https://app.example" == answer.header("access-control-allow-origin")
    assert 204 == asked.status
    await target.close()


@pytest.mark.covers("ssehttp.body.checked")
async def test_what_is_no_message_is_refused_and_the_session_lives():
    """Ours: type, size and form of a body are those of the other endpoint."""
    target = HttpApp(make_router(hello=hello), body_limit=2000)
    visitor = Visitor(target)
    await visitor.open()
    typed = await visitor.post(legacy_call_body(), headers={"content-type": "text/plain"}).done()
    garbled = await visitor.post(b"{").done()
    huge = await visitor.post(b" " * 2001).done()
    modern = await visitor.post(modern_body(id=9)).done()

    assert [415, 400, 413, 400] == [one.status for one in (typed, garbled, huge, modern)]
    assert (-32700, 9) == (garbled.json["error"]["code"], modern.json["id"])
    assert "Streamable HTTP" in modern.json["error"]["message"]
    await visitor.say(legacy_call_body())
    assert "hello" == read_tool_text(await visitor.message())
    await target.close()


async def test_a_duplicate_id_in_flight_is_refused_on_the_stream():
    """JSON-RPC: an id stands for one request."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate))
    visitor = Visitor(target)
    await visitor.open()
    await visitor.say(legacy_call_body("gate", id=3))
    await visitor.say(legacy_call_body("gate", id=3))

    assert -32600 == (await visitor.message())["error"]["code"]
    await target.close()


async def test_there_are_no_more_streams_than_sessions_may_be():
    """Ours: each costs a connection and a task."""
    target = HttpApp(make_router(), max_sessions=1)
    await Visitor(target).arrive()
    answer = await fetch(target, "GET", "/sse", headers=HOST)

    assert 503 == answer.status
    assert "max_sessions" in answer.json["error"]["message"]
    await target.close()


async def test_a_stream_must_be_acceptable_to_the_client():
    """Ours: a client that takes JSON alone is told."""
    target = HttpApp(make_router())

    assert (
        406
        == (
            await fetch(target, "GET", "/sse", headers={**HOST, "accept": "application/json"})
        ).status
    )
    await target.close()


@pytest.mark.covers("ssehttp.heartbeat.sent")
async def test_a_stream_shows_signs_of_life():
    """Users' pain 21: idle streams are cut by what lies between."""
    target = HttpApp(make_router(), heartbeat=0.01)
    visitor = await Visitor(target).arrive()

    await visitor.stream.bytes_sent(b":\n\n:\n\n")
    await target.close()


async def test_a_server_that_stops_ends_its_streams_in_good_order():
    """The client sees the end of the stream, not a reset."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate))
    visitor = Visitor(target)
    await visitor.open()
    await visitor.say(legacy_call_body("gate"))
    await gate.arrived.wait()
    await target.close()
    await visitor.stream.done()

    assert visitor.stream.complete.is_set()
    assert ["cancelled"] == gate.ended
    assert 0 == visitor.stream.task.cancelling()


async def test_the_paths_can_be_chosen_and_the_transport_left_out():
    """Ours: who serves nobody that old need not have it."""
    target = HttpApp(make_router(), sse="old/events", messages="/old/post/")
    visitor = await Visitor(target, "/old/events/").arrive()
    assert visitor.endpoint.startswith("/old/post/?session_id=")
    await target.close()

    without = HttpApp(make_router(), sse=None)
    modern = HttpApp(make_router(revisions=(BY_NAME["2026-07-28"],)))
    for app in (without, modern):
        assert 404 == (await fetch(app, "GET", "/sse", headers=HOST)).status


@pytest.mark.parametrize(
    ("path", "root", "endpoint"),
    [
        ("/tools/sse", "/tools", "/tools/messages"),
        ("/sse", "/tools", "/tools/messages"),
        ("/tools/sse", "/tools/", "/tools/messages"),
        ("/sse", "", "/messages"),
    ],
)
async def test_below_a_prefix_the_endpoint_is_below_it_too(path, root, endpoint):
    """Ours: mounted anywhere; frameworks differ in whether the path has the prefix."""
    target = HttpApp(make_router())
    visitor = await Visitor(target, path, scope={"root_path": root}).arrive()

    assert endpoint == visitor.endpoint.partition("?")[0]
    await target.close()


async def test_a_client_that_asks_and_does_not_read_gets_no_more_work_done():
    """Ours: few of its requests wait, the rest is refused; answers and notes always get in."""
    reads, blocked, begun = asyncio.Event(), asyncio.Event(), []

    async def big(inbound):
        begun.append(inbound.id)
        return "x" * FULL_STREAM

    target = HttpApp(make_router(big=big))
    visitor = Visitor(target)
    await visitor.open()
    take = visitor.stream.send

    async def stuck(message):
        blocked.set()
        await reads.wait()
        await take(message)

    visitor.stream.send = stuck
    await visitor.say(legacy_call_body("big", id=0))
    await blocked.wait()
    posts = [visitor.post(legacy_call_body("big", id=id)) for id in range(1, 1 + MAX_HELD_REQUESTS)]
    for _ in range(10):
        await asyncio.sleep(0)
    refused = await visitor.post(legacy_call_body("big", id="late")).done()
    await visitor.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
    held = [post.status for post in posts], [*begun]
    reads.set()
    accepted = {(await post.done()).status for post in posts}

    assert 503 == refused.status
    assert "Too much is left unread" in refused.json["error"]["message"]
    assert ([0] * MAX_HELD_REQUESTS, [0]) == held
    assert {202} == accepted
    await until(lambda: 1 + MAX_HELD_REQUESTS == len(begun))
    await target.close()


async def test_requests_held_for_a_client_end_with_its_stream():
    """Ours: nothing waits for a client that is gone."""

    async def big(_inbound):
        return "x" * FULL_STREAM

    target = HttpApp(make_router(big=big))
    visitor = Visitor(target)
    await visitor.open()

    blocked = asyncio.Event()

    async def stuck(_message):
        blocked.set()
        await asyncio.Event().wait()

    visitor.stream.send = stuck
    await visitor.say(legacy_call_body("big", id=0))
    await blocked.wait()
    late = visitor.post(legacy_call_body("big", id="late"))
    for _ in range(10):
        await asyncio.sleep(0)
    visitor.stream.leave()

    assert 404 == (await late.done()).status
    await target.close()


async def test_a_stream_is_a_channel_like_any_other():
    """Ours: closed twice, it takes no messages, and says so."""
    target = HttpApp(make_router())
    visitor = await Visitor(target).arrive()
    (stream,) = target._sse._streams.values()
    assert await stream.receive() is None
    assert not stream.abandon(1)
    await stream.close()
    await stream.close()
    await visitor.stream.done()

    with pytest.raises(ConnectionLost):
        await stream.send(Outgoing(b"{}"))
    assert visitor.stream.complete.is_set()
    await target.close()


async def test_a_server_that_cannot_start_says_so():
    """Ours: as on the other endpoint."""

    async def fail():
        raise OSError("no database")

    target = HttpApp(make_router(), on_start=fail)

    assert 500 == (await fetch(target, "GET", "/sse", headers=HOST)).status
