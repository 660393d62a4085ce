"""What a flooding server, a slow reader and a batch cost a client over HTTP."""

import asyncio
import functools
import json

import pytest

from isthmus.client.client import Client
from isthmus.client.targets import Target
from isthmus.core.caller import Caller
from isthmus.errors import CallTimedOut, Misbehaved, SessionEnded
from isthmus.revisions import BY_NAME
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.testing import VirtualLoop
from isthmus.testing.faults import until
from isthmus.transports.http.client.channel import MAX_WAITING_MESSAGES, HttpClientChannel
from isthmus.wire import PingParams
from support.http.scripted_requests import HOLD, ScriptedReply, ScriptedRequests

URL = "http://server.example/mcp"
BATCHING, LEGACY = "2025-03-26", "2025-11-25"


def virtual(test):
    """Run a test on a clock of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def frame(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def event(**members):
    return b"data: %b\n\n" % frame(**members)


def whole(body, status=200):
    return ScriptedReply(status, body, kind="application/json")


# A server that asks without end


class Flooding:
    """A server that sends thousands of pings on the stream of a call, and takes answers slowly.

    Attributes:
        read: how many pieces of the stream were read.
        answers: how many answers of ours have arrived.
    """

    def __init__(self, count):
        self.count, self.read, self.answers = count, 0, 0
        self.gate = asyncio.Event()

    def note(self):
        self.read += 1

    async def answer(self, method, _url, _headers, body):
        message = json.loads(body) if body else {}
        if message.get("method") == "initialize":
            info = {"name": "flood", "version": "1"}
            result = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
            return whole(frame(id=message["id"], result=result))
        if message.get("method") == "tools/call":
            pings = [event(id=f"p{n}", method="ping") for n in range(self.count)]
            pieces = [piece for ping in pings for piece in (ping, self.note)]
            return ScriptedReply(200, *pieces, event(id=message["id"], result={"content": []}))
        if "result" in message:
            self.answers += 1
            await self.gate.wait()
        return ScriptedReply(405 if method == "GET" else 202)


@virtual
async def test_a_stream_is_read_no_faster_than_our_answers_are_taken():
    """Ours: what a server asks is bounded by what it takes; the call it belongs to still ends."""
    server = Flooding(5000)

    async def dial():
        return HttpClientChannel(URL, requests=ScriptedRequests(server.answer))

    async with Client(Target(URL, dial, http=True), revision=LEGACY) as client:
        call = asyncio.create_task(client.call_tool("noisy"))
        await until(lambda: server.answers == 16)
        for _ in range(2000):
            await asyncio.sleep(0)
        assert 16 == server.answers
        assert server.read < 300
        server.gate.set()
        assert [] == (await call).content

    assert 5000 == server.read


@virtual
async def test_closing_does_not_wait_for_answers_that_nobody_takes():
    """Decision D20: in bounded time, whatever is under way."""
    server = Flooding(5000)
    channel = HttpClientChannel(URL, requests=ScriptedRequests(server.answer))
    client = Client(channel, revision=LEGACY)
    await client.open()
    call = asyncio.create_task(client.call_tool("noisy", timeout=1.0))
    await until(lambda: server.answers == 16)
    with pytest.raises(CallTimedOut):
        await call
    await client.close()

    assert {asyncio.current_task()} == asyncio.all_tasks()


@virtual
async def test_messages_that_nobody_receives_are_kept_up_to_a_bound():
    """Ours: a channel without a reader is cut with an error that says so."""
    pieces = [event(method="notifications/x")] * (MAX_WAITING_MESSAGES + 1)
    requests = ScriptedRequests(lambda *_: ScriptedReply(200, *pieces, HOLD))
    channel = HttpClientChannel(URL, requests=requests)

    with pytest.raises(
        Misbehaved, match=f"{MAX_WAITING_MESSAGES} messages of the server wait to be received"
    ):
        await channel.send(Outgoing(frame(id=1, method="x"), 1, method="x"))
    await channel.close()


# Batches


class Batched:
    """A client's peer in the revision that has batches, and what it sends."""

    def __init__(self, answer):
        self.requests = ScriptedRequests(answer)
        self.channel = HttpClientChannel(URL, requests=self.requests)
        self.peer = Peer(self.channel, Router({}, sender="server"), side="client")
        self.peer.agree(Caller(revision=BY_NAME[BATCHING]))
        self.channel.speak(BY_NAME[BATCHING])

    async def __aenter__(self):
        self.running = asyncio.create_task(self.peer.run())
        return self

    async def __aexit__(self, *_):
        await self.peer.close()
        await self.running

    def pings(self, count, **options):
        """So many pings in one array; what came of each."""
        calls = [self.peer.call("ping", PingParams(), dict, **options) for _ in range(count)]
        return self.peer.batch(calls)

    def posted(self):
        """The messages that were posted, in their arrays."""
        return [json.loads(body) for _, method, _, _, body in self.requests.heard if body]


def answers_of(body, **result):
    return [{"jsonrpc": "2.0", "id": one["id"], "result": result} for one in json.loads(body)]


@pytest.mark.covers("httpclient.batch")
@virtual
async def test_a_batch_is_one_post_whose_answers_come_in_an_array():
    """Spec 2025-03-26 basic/transports#sending-messages-to-the-server: an array as the body."""
    answer = lambda _m, _u, _h, body: whole(json.dumps(answers_of(body)).encode())  # noqa: E731 - one
    async with Batched(answer) as batched:
        assert [{}, {}, {}] == await batched.pings(3)

        (array,) = batched.posted()
        assert ["ping"] * 3 == [message["method"] for message in array]


@virtual
async def test_the_answers_to_a_batch_may_come_on_a_stream_in_any_order():
    """Spec 2025-03-26 basic/transports#sending-messages-to-the-server: one event or several."""

    def answer(_method, _url, _headers, body):
        first, *rest = reversed(answers_of(body, ok=True))
        events = [b"data: %b\n\n" % json.dumps(part).encode() for part in (first, rest)]
        return ScriptedReply(200, *events, HOLD)

    async with Batched(answer) as batched:
        assert [{"ok": True}] * 3 == await batched.pings(3)


@virtual
async def test_a_batch_whose_stream_breaks_is_resumed():
    """Spec 2025-03-26 basic/transports#resumability-and-redelivery: as any other stream."""
    later = []

    def answer(method, _url, headers, body):
        if method == "POST":
            first, second = (json.dumps(one).encode() for one in answers_of(body))
            later.append(second)
            return ScriptedReply(200, b"id: 7\nretry: 5\ndata: %b\n\n" % first)
        assert "7" == headers["Last-Event-ID"]
        return ScriptedReply(200, b"data: %b\n\n" % later[0])

    async with Batched(answer) as batched:
        assert [{}, {}] == await batched.pings(2)


@virtual
async def test_an_answer_that_is_missing_is_the_servers_fault():
    """Ours: every request has an answer; nobody waits for one that cannot come."""

    def answer(_method, _url, _headers, body):
        return whole(json.dumps(answers_of(body)[:1]).encode())

    async with Batched(answer) as batched:
        found = await batched.pings(2)

    assert all(isinstance(one, Misbehaved) for one in found)


@virtual
async def test_a_member_of_a_batch_may_be_given_up_alone():
    """Ours: the others are waited for, and the server is told."""

    def answer(_method, _url, _headers, body):
        message = json.loads(body)
        if isinstance(message, dict):
            return ScriptedReply(202)
        late = answers_of(body)[1:]
        return ScriptedReply(
            200, *[b"data: %b\n\n" % json.dumps(one).encode() for one in late], HOLD
        )

    async with Batched(answer) as batched:
        late, good = await batched.pings(2, timeout=1.0)
        await asyncio.sleep(0.1)

        assert isinstance(late, CallTimedOut)
        assert {} == good
        array, withdrawn = batched.posted()
        assert array[0]["id"] == withdrawn["params"]["requestId"]


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(
    ("array", "says"),
    [
        ([{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(1001)], "1001 messages"),
        ([[]], "array of messages in another"),
    ],
)
@virtual
async def test_an_array_of_the_servers_is_bounded(kind, array, says):
    """Ours: each of its requests would keep an answer, and a task, until it is delivered."""
    body = json.dumps(array).encode()
    reply = ScriptedReply(200, body if "json" in kind else b"data: %b\n\n" % body, kind=kind)
    async with Batched(lambda *_: reply) as batched:
        (error,) = await batched.pings(1)

    assert isinstance(error, Misbehaved)
    assert says in str(error)


@virtual
async def test_a_batch_of_notifications_wants_no_answer():
    """Spec 2025-03-26 basic/transports#sending-messages-to-the-server: 202 and no body."""
    async with Batched(lambda *_: ScriptedReply(202)) as batched:
        notes = [batched.peer.note("notifications/roots/list_changed") for _ in range(2)]
        assert [None, None] == await batched.peer.batch(notes)

        assert 2 == len(batched.posted()[0])


@virtual
async def test_a_batch_that_meets_404_was_not_served():
    """Spec 2025-11-25 basic/transports#session-management: each of its calls may be made again."""

    def answer(_method, _url, _headers, body):
        if b"initialize" in body:
            reply = whole(frame(id=1, result={}))
            reply.headers["Mcp-Session-Id"] = "s"
            return reply
        return ScriptedReply(404)

    async with Batched(answer) as batched:
        hello = frame(id=1, method="initialize")
        await batched.channel.send(Outgoing(hello, 1, method="initialize"))
        found = await batched.pings(2)

    assert [] == [one for one in found if not isinstance(one, SessionEnded)]
