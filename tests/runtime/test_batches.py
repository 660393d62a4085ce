"""Batches over a living peer: received, answered, and sent."""

import asyncio
import contextlib
import json

import pytest
from msgspec import Raw

from isthmus.core.batch import MAX_BATCH_MEMBERS
from isthmus.core.caller import Caller
from isthmus.errors import CallTimedOut, ConnectionLost, MethodNotFound, NotInRevision, UsageError
from isthmus.revisions import BY_NAME
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.memory import open_pair
from isthmus.wire import EmptyResult, RootsListChangedParams
from support.clock import run_in_virtual_time

BATCHING = Caller(BY_NAME["2025-03-26"])


class Heard:
    """A channel that keeps what it sends."""

    def __init__(self, channel):
        self.channel = channel
        self.sent = []
        self.broken = None

    async def send(self, out):
        """Keep it, and send it."""
        self.sent.append(out)
        if self.broken is not None:
            raise self.broken
        await self.channel.send(out)

    def __getattr__(self, name):
        return getattr(self.channel, name)


class Gate:
    """A handler that waits until it is let through."""

    def __init__(self):
        self.arrived = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, _params, _inbound):
        """Wait."""
        self.arrived.set()
        await self.open.wait()
        return EmptyResult()


async def pong(_params, _inbound):
    """Answer at once."""
    return EmptyResult()


@contextlib.asynccontextmanager
async def conversation(caller=BATCHING, **routes):
    """A client peer and a server peer after their handshake, and the client's channel."""
    near, far = open_pair()
    heard = Heard(near)
    client = Peer(heard, Router({"roots/list": pong}, sender="server"), side="client")
    server = Peer(far, Router({"ping": pong, **routes}), side="server")
    server.session.receive(b'{"jsonrpc":"2.0","id":"i","method":"initialize"}')
    server.session.answer("i", b"{}")
    for peer in (client, server):
        peer.agree(caller)
    runs = [asyncio.create_task(client.run()), asyncio.create_task(server.run())]
    try:
        yield client, server, heard
    finally:
        await client.close()
        await server.close()
        await asyncio.gather(*runs)


@pytest.mark.covers("batching.sent.one-array")
async def test_calls_and_notes_leave_as_one_array_and_each_gets_its_own_end():
    """MAY support sending batches (spec 2025-03-26 basic#batching)."""
    async with conversation() as (client, _, heard):
        results = await client.batch(
            [
                client.call("ping", None, Raw),
                client.call("tools/list", None, Raw),
                client.note("notifications/roots/list_changed", RootsListChangedParams()),
            ]
        )

    assert b"{}" == bytes(results[0])
    assert isinstance(results[1], MethodNotFound)
    assert results[2] is None
    (out,) = heard.sent
    methods = [member["method"] for member in json.loads(out.data)]
    assert ["ping", "tools/list", "notifications/roots/list_changed"] == methods
    assert methods == [member.method for member in out.members]


@pytest.mark.covers("batching.sent.one-array")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_revision_without_batches_sends_none(revision):
    """Batching was removed (spec 2025-06-18 changelog)."""
    async with conversation(Caller(BY_NAME[revision])) as (client, _, heard):
        with pytest.raises(NotInRevision, match="no batches"):
            await client.batch([client.call("ping", None, Raw)])

    assert [] == heard.sent


async def test_no_more_calls_than_a_batch_may_have_members():
    """Ours: what we refuse to receive we do not send."""
    async with conversation() as (client, _, heard):
        calls = [client.call("ping", None, Raw) for _ in range(MAX_BATCH_MEMBERS + 1)]
        with pytest.raises(UsageError, match=str(MAX_BATCH_MEMBERS)):
            await client.batch(calls)

    assert [] == heard.sent


async def test_what_others_say_meanwhile_is_not_held_back():
    """Ours: a batch is of its own calls only."""
    async with conversation() as (client, _, heard):
        late = asyncio.Event()

        async def later():
            await late.wait()
            return await client.call("ping", None, Raw)

        batch = asyncio.ensure_future(client.batch([later(), client.call("ping", None, Raw)]))
        await client.call("ping", None, Raw)
        assert 1 == len(heard.sent)
        late.set()
        assert 2 == len(await batch)

    assert [0, 2] == [len(out.members) for out in heard.sent]
    assert client.channel is heard


async def test_calls_that_say_nothing_do_not_hold_up_the_batch():
    """Ours: what ends before it speaks is no member."""
    async with conversation() as (client, _, heard):

        async def fails():
            raise ValueError("no")

        results = await client.batch([fails(), client.call("ping", None, Raw)])
        assert [] == await client.batch([])

    assert isinstance(results[0], ValueError)
    assert 1 == len(json.loads(heard.sent[0].data))


async def test_two_batches_at_once_are_two_arrays():
    """Ours: each has its own."""
    async with conversation() as (client, _, heard):
        calls = [[client.call("ping", None, Raw) for _ in range(n)] for n in (2, 3)]
        results = await asyncio.gather(*(client.batch(each) for each in calls))

    assert [2, 3] == [len(each) for each in results]
    assert [2, 3] == sorted(len(out.members) for out in heard.sent)
    assert client.channel is heard


async def test_a_batch_that_cannot_be_sent_fails_each_of_its_calls():
    """Decision D20: every call ends once, with one typed error."""
    async with conversation() as (client, _, heard):
        heard.broken = ConnectionLost("cut")
        results = await client.batch([client.call("ping", None, Raw) for _ in range(2)])

    assert [ConnectionLost, ConnectionLost] == [type(result) for result in results]


async def test_a_batch_that_is_given_up_sends_nothing_more():
    """Ours: whoever stops waiting leaves nothing behind."""
    async with conversation() as (client, _, heard):
        batch = asyncio.ensure_future(
            client.batch([asyncio.Event().wait(), client.call("ping", None, Raw)])
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        await client.call("ping", None, Raw)

    assert [()] == [out.members for out in heard.sent if out.method != "notifications/cancelled"]
    assert client.channel is heard


@run_in_virtual_time
async def test_a_call_of_a_batch_times_out_by_itself():
    """Each call has its own deadline (spec: timeouts)."""
    gate = Gate()
    async with conversation(**{"tools/list": gate}) as (client, _, _heard):
        results = await client.batch(
            [client.call("tools/list", None, Raw, timeout=0.01), client.call("ping", None, Raw)]
        )

    assert isinstance(results[0], CallTimedOut)
    assert b"{}" == bytes(results[1])


@contextlib.asynccontextmanager
async def open_server(**routes):
    """A server after its handshake, and the bare channel to it."""
    near, far = open_pair()
    server = Peer(far, Router({"ping": pong, **routes}), side="server")
    server.session.receive(b'{"jsonrpc":"2.0","id":"i","method":"initialize"}')
    server.session.answer("i", b"{}")
    server.agree(BATCHING)
    run = asyncio.create_task(server.run())
    try:
        yield near
    finally:
        await near.close()
        await run


def message(**members):
    """One message."""
    return {"jsonrpc": "2.0", **members}


def withdrawal(id):
    """The notification that withdraws a request."""
    return message(method="notifications/cancelled", params={"requestId": id})


async def say(channel, what):
    """Send JSON."""
    await channel.send(Outgoing(json.dumps(what).encode()))


async def heard_ids(channel):
    """The ids of the next array."""
    delivery = await channel.receive()
    return [answer["id"] for answer in json.loads(delivery.data)]


@pytest.mark.covers("batching.cancelled.left-out")
async def test_a_server_answers_what_is_left_of_a_batch_when_a_member_is_cancelled():
    """A cancelled request is never answered, and holds up nobody (spec: cancellation)."""
    gate = Gate()
    async with open_server(**{"tools/list": gate}) as channel:
        await say(channel, [message(id=1, method="tools/list"), message(id=2, method="ping")])
        await gate.arrived.wait()
        await say(channel, withdrawal(1))

        assert [2] == await heard_ids(channel)


@pytest.mark.covers("batching.cancelled.left-out")
async def test_a_member_that_another_member_withdraws_is_never_begun():
    """Ours: no work for nobody, and the array does not wait for it."""
    gate = Gate()
    async with open_server(**{"tools/list": gate}) as channel:
        await say(
            channel,
            [message(id=1, method="tools/list"), withdrawal(1), message(id=2, method="ping")],
        )

        assert [2] == await heard_ids(channel)
    assert not gate.arrived.is_set()
