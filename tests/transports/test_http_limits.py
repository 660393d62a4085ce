"""What is slow, and what is too much: bodies that do not come, readers that do not read."""

import asyncio
import json

import pytest

from isthmus.transports.http.app import HttpApp
from isthmus.transports.http.reply import MAX_MISSED_HEARTBEATS
from isthmus.wire import ListRootsParams, ListRootsResult, ProgressParams
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    INITIALIZE,
    begin_legacy_call,
    begin_modern_call,
    hello,
    legacy_call_body,
    legacy_head,
    make_http_app,
    make_router,
    modern_body,
    modern_head,
    open_legacy_session,
    read_tool_text,
)

BODY = json.dumps(modern_body()).encode()


class Dripping(Exchange):
    """A request whose body comes when the test lets it come."""

    def __init__(self, target, pieces, **options):
        self.gates = [asyncio.Event() for _ in pieces]
        super().__init__(target, body=list(pieces), **options)

    async def receive(self):
        """A piece, when it is let through."""
        if self.read < len(self.gates):
            await self.gates[self.read].wait()
        return await super().receive()


@pytest.mark.covers("http.body.slow")
@pytest.mark.parametrize("come", [0, 1])
async def test_a_body_that_stops_coming_is_refused(come):
    """Ours: from the first piece to the last, none may be waited for for ever."""
    target = HttpApp(make_router(hello=hello), body_idle=0.01)
    exchange = Dripping(target, [BODY[:10], BODY[10:]], headers=modern_head())
    for gate in exchange.gates[:come]:
        gate.set()
    await exchange.done()

    assert (408, "close") == (exchange.status, exchange.header("connection"))
    assert "body_timeout" in exchange.json["error"]["message"]
    assert 0 == exchange.task.cancelling()
    await target.close()


@pytest.mark.covers("http.body.slow")
async def test_a_body_that_never_ends_is_refused_however_steadily_it_comes():
    """Ours: the whole of it has its time, too."""
    target = HttpApp(make_router(hello=hello), body_idle=5.0, body_timeout=0.05)

    class Trickle(Exchange):
        async def receive(self):
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"", "more_body": True}

    exchange = await Trickle(target, headers=modern_head(), body=BODY).done()

    assert 408 == exchange.status
    await target.close()


async def test_a_body_that_comes_in_time_is_served_and_leaves_no_timer():
    """Ours: time is measured from piece to piece."""
    target = HttpApp(make_router(hello=hello), body_idle=1.0)
    exchange = Dripping(target, [BODY[:10], BODY[10:20], BODY[20:]], headers=modern_head())
    for gate in exchange.gates:
        for _ in range(3):
            await asyncio.sleep(0.02)  # real time: the request_watch has to look
        gate.set()
    await exchange.done()

    assert 200 == exchange.status
    assert not target._request_watch.all()
    await target.close()


async def test_a_client_that_leaves_amid_its_body_gets_nothing():
    """Ours: there is nobody to respond to."""
    target = HttpApp(make_router(hello=hello))
    exchange = Dripping(target, [BODY[:10]], headers=modern_head(), whole=False)
    exchange.gates[0].set()
    await exchange.watched.wait()
    exchange.leave()
    await exchange.done()

    assert [] == exchange.messages
    await target.close()


async def test_a_server_that_stops_amid_a_body_says_so():
    """Ours: nothing is left behind."""
    target = HttpApp(make_router(hello=hello))
    await fetch(target, headers=modern_head(), body=modern_body())
    exchange = Dripping(target, [BODY], headers=modern_head())
    await asyncio.sleep(0)
    await target.close(drain=0.0)
    await exchange.done()

    assert 408 == exchange.status


# Readers


class Deaf(Exchange):
    """A client that stops reading: what is sent to it waits, as behind a full pipe."""

    def __init__(self, *arguments, **options):
        self.reads = asyncio.Event()
        self.reads.set()
        self.waiting = asyncio.Event()
        super().__init__(*arguments, **options)

    async def send(self, message):
        """Wait until it reads."""
        if not self.reads.is_set():
            self.waiting.set()
        await self.reads.wait()
        await super().send(message)


class Chatter:
    """A tool that reports until it is told to answer."""

    def __init__(self):
        self.count = 0
        self.enough = asyncio.Event()
        self.went_on = asyncio.Event()
        self.ended = None

    async def __call__(self, inbound):
        """Report."""
        try:
            while not self.enough.is_set():
                self.count += 1
                self.went_on.set()
                params = ProgressParams(progress_token="t", progress=self.count)
                await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "answered"
        return "enough"


@pytest.mark.covers("http.reader.slow-is-cut", "http.reader.slow-resumes")
async def test_a_session_that_does_not_read_its_stream_is_cut_off_and_may_resume_it():
    """Ours: the tool waits for it only so long, then goes on; what it says is kept."""
    chatter = Chatter()
    target = make_http_app({"heartbeat": 0.01}, chatter=chatter)
    session = await open_legacy_session(target)
    call = Deaf(
        target, headers=legacy_head(session), body=legacy_call_body("chatter", progressToken="t")
    )
    await call.event()
    call.reads.clear()
    await call.waiting.wait()
    chatter.went_on.clear()
    await chatter.went_on.wait()
    chatter.enough.set()
    await call.done()

    assert "answered" == chatter.ended
    assert 0 == call.task.cancelling()
    last = call.ids[-1]
    more = {"accept": "text/event-stream", "last_event_id": last}
    again = await fetch(target, "GET", headers=legacy_head(session, **more))
    progress = [event["params"]["progress"] for event in again.events[:-1]]
    assert list(range(len(call.events) + 1, chatter.count + 1)) == progress
    assert "enough" == read_tool_text(again.events[-1])
    await target.close()


@pytest.mark.covers("http.reader.slow-is-cut")
async def test_a_modern_client_that_does_not_read_its_stream_has_left():
    """2026-07-28: a response that has ended has cancelled its request."""
    chatter = Chatter()
    target = make_http_app({"heartbeat": 0.01}, chatter=chatter)
    body = modern_body(params={"name": "chatter", "arguments": {}}, progressToken="t")
    call = Deaf(target, headers=modern_head(name="chatter"), body=body)
    await call.event()
    call.reads.clear()
    await call.done()

    assert "cancelled" == chatter.ended
    await target.close()


@pytest.mark.covers("http.reader.slow-is-cut")
async def test_a_standing_stream_that_is_not_read_is_cut_off_and_the_session_goes_on():
    """Ours: whoever asks on it waits only so long."""

    async def roots(inbound):
        answer = await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
        return str(len(answer.roots))

    target = make_http_app({"heartbeat": 0.01}, roots=roots)
    session = await open_legacy_session(target)
    head = legacy_head(session, accept="text/event-stream")
    standing = Deaf(target, "GET", headers=head)
    await standing.bytes_sent(b"\n\n")
    standing.reads.clear()
    call = begin_legacy_call(target, session, "roots")
    await standing.done()

    last = standing.ids[-1]
    again = Exchange(target, "GET", headers={**head, "last-event-id": last})
    question = await again.event()
    body = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
    await fetch(target, headers=legacy_head(session), body=body)
    assert "0" == read_tool_text((await call.done()).events[-1])
    await target.close()


@pytest.mark.covers("http.reader.slow-resumes")
async def test_a_client_comes_back_though_its_old_connection_is_stuck():
    """Ours: who resumes does not wait until the server has noticed that the network was gone."""
    chatter = Chatter()
    target = make_http_app(chatter=chatter)
    session = await open_legacy_session(target)
    call = Deaf(
        target, headers=legacy_head(session), body=legacy_call_body("chatter", progressToken="t")
    )
    await call.event()
    call.reads.clear()
    await call.waiting.wait()

    more = {"accept": "text/event-stream", "last_event_id": call.ids[0]}
    again = Exchange(target, "GET", headers=legacy_head(session, **more))
    await again.event()
    chatter.enough.set()
    await again.done()
    await call.done()

    assert list(range(1, chatter.count + 1)) == [
        event["params"]["progress"] for event in again.events[:-1]
    ]
    assert "answered" == chatter.ended
    await target.close()


@pytest.mark.covers("http.reader.slow-is-cut")
async def test_a_client_of_the_older_transport_that_does_not_read_loses_its_session():
    """2024-11-05: nothing can be resumed there."""
    target = make_http_app({"heartbeat": 0.01}, hello=hello)
    stream = Deaf(target, "GET", "/sse", headers={"host": "localhost:8000"})
    await stream.bytes_sent(b"endpoint")
    stream.reads.clear()
    await stream.done()

    assert 0 == len(target._sse)
    await target.close()


async def test_a_reader_that_is_slow_but_reads_is_not_cut_off():
    """Ours: a heartbeat that gets through starts the count anew."""
    target = make_http_app({"heartbeat": 0.01})
    session = await open_legacy_session(target)
    standing = Deaf(target, "GET", headers=legacy_head(session, accept="text/event-stream"))
    await standing.bytes_sent(b"\n\n")
    (request,) = target._book.find(session)._gets
    loop = asyncio.get_running_loop()
    for _ in range(3):
        standing.reads.clear()
        request.beat(loop)
        for _ in range(MAX_MISSED_HEARTBEATS - 1):
            request.beat(loop)
        standing.reads.set()
        await asyncio.wait((request.reply._beating,))

    assert not standing.complete.is_set()
    assert not request.is_over
    await target.close()


# Counts


@pytest.mark.covers("http.in-flight.bounded")
async def test_a_session_has_a_most_of_requests_in_flight():
    """Ours: more get an error that says so, and those in flight go on."""
    gate = asyncio.Event()

    async def wait(_inbound):
        await gate.wait()
        return "waited"

    target = make_http_app(wait=wait)
    target.router.in_flight = 2
    session = await open_legacy_session(target)
    calls = [begin_legacy_call(target, session, "wait", id=id) for id in (1, 2)]
    for _ in range(4):
        await asyncio.sleep(0)  # turns of the loop, for both to begin
    refused = await begin_legacy_call(target, session, "wait", id=3).done()
    gate.set()
    answers = [read_tool_text((await call.done()).json) for call in calls]

    assert "Too many requests" in refused.json["error"]["message"]
    assert ["waited", "waited"] == answers
    await target.close()


async def test_an_initialize_that_stops_coming_opens_no_session():
    """Ours: sessions begin with whole requests."""
    target = HttpApp(make_router(), body_idle=0.01)
    body = json.dumps(INITIALIZE).encode()
    exchange = Dripping(target, [body[:5], body[5:]], headers=legacy_head())
    exchange.gates[0].set()
    await exchange.done()

    assert 408 == exchange.status
    assert 0 == len(target._book)
    assert 200 == (await begin_modern_call(make_http_app(hello=hello)).done()).status
    await target.close()
