"""Two peers back to back: every call ends once, whatever happens."""

import asyncio
import contextlib
import json

import pytest
from msgspec import Raw

from isthmus.core.caller import Caller
from isthmus.errors import (
    CallTimedOut,
    ConnectionLost,
    MethodNotFound,
    Misbehaved,
    NotInRevision,
    OutOfPhase,
)
from isthmus.revisions import BY_NAME
from isthmus.runtime import outbound
from isthmus.runtime.channel import Delivery, Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.memory import MAX_WAITING_MESSAGES, open_pair
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    EmptyResult,
    ListRootsParams,
    ListRootsResult,
    ListToolsParams,
    ListToolsResult,
    PingParams,
    ProgressParams,
    TextContent,
)
from support.clock import run_in_virtual_time

LEGACY = Caller(BY_NAME["2025-11-25"])
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@contextlib.asynccontextmanager
async def conversation(server_routes, client_routes=None, notices=None, *, initialized=True):
    """A client peer and a server peer after a legacy handshake, joined in memory."""
    near, far = open_pair()
    client = Peer(near, Router(client_routes or {}, notices, sender="server"), side="client")
    server = Peer(far, Router(server_routes), side="server")
    server.session.receive(b'{"jsonrpc":"2.0","id":"i","method":"initialize"}')
    server.session.answer("i", b"{}")
    if initialized:
        server.session.receive(INITIALIZED)
    for peer in (client, server):
        peer.agree(LEGACY)
    runs = [asyncio.create_task(client.run()), asyncio.create_task(server.run())]
    try:
        yield client, server
    finally:
        await client.close()
        await server.close()
        await asyncio.gather(*runs)


def answering(result):
    async def handler(params, inbound):
        return result

    return handler


async def test_a_call_gets_its_answer_typed():
    """The answer is read into the type asked for (our promise)."""
    async with conversation({"tools/list": answering(ListToolsResult(tools=[]))}) as (client, _):
        assert ListToolsResult(tools=[]) == await client.call(
            "tools/list", ListToolsParams(), ListToolsResult
        )
        assert b'{"tools":[]}' == bytes(await client.call("tools/list", None, Raw))


async def test_an_error_answer_is_raised_by_its_code():
    """The exception's type tells what happened (architecture 9.2)."""
    async with conversation({}) as (client, _):
        with pytest.raises(MethodNotFound):
            await client.call("tools/list", None, ListToolsResult)


async def test_an_answer_of_the_wrong_shape_is_the_servers_fault():
    """Blame is in the type: Misbehaved, not a decoding error (architecture 9.2)."""
    async with conversation({"tools/list": answering(Raw(b'{"tools":3}'))}) as (client, _):
        with pytest.raises(Misbehaved, match="tools/list"):
            await client.call("tools/list", None, ListToolsResult)


async def test_a_server_asks_in_the_middle_of_a_call():
    """Both sides call over one pipe without blocking each other (legacy asking)."""

    async def tool(params, inbound):
        roots = await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
        return CallToolResult(content=[TextContent(text=str(len(roots.roots)))])

    routes = {"roots/list": answering(ListRootsResult(roots=[]))}
    async with conversation({"tools/call": tool}, routes) as (client, _):
        result = await client.call("tools/call", CallToolParams(name="t"), CallToolResult)

    assert "0" == result.content[0].text


async def test_progress_arrives_in_order_and_before_the_answer():
    """Progress is delivered while the call is in flight (spec: progress)."""
    seen = []

    async def tool(params, inbound):
        for step in (1, 2):
            await inbound.link.note(
                "notifications/progress",
                ProgressParams(progress_token=inbound.progress_token, progress=step),
                relates_to=inbound.id,
            )
        return CallToolResult(content=[])

    async with conversation({"tools/call": tool}) as (client, _):
        await client.call(
            "tools/call",
            CallToolParams(name="t"),
            CallToolResult,
            on_progress=lambda p: seen.append(p.progress),
        )

    assert [1, 2] == seen


async def test_a_broken_progress_callback_does_not_break_the_call(caplog):
    """A listener's bug is logged, the call goes on (our promise)."""

    async def tool(params, inbound):
        await inbound.link.note(
            "notifications/progress",
            ProgressParams(progress_token=inbound.progress_token, progress=1),
        )
        return CallToolResult(content=[])

    def broken(progress):
        raise ValueError("my bug")

    async with conversation({"tools/call": tool}) as (client, _):
        await client.call(
            "tools/call", CallToolParams(name="t"), CallToolResult, on_progress=broken
        )

    assert "my bug" in caplog.text


@pytest.mark.covers("cancellation.sent.as-the-transport-has-it")
async def test_cancelling_the_caller_stops_the_work_and_nothing_is_answered():
    """Cancellation goes over the wire and cancels the handler (spec: cancellation)."""
    started, stopped = asyncio.Event(), asyncio.Event()

    async def tool(params, inbound):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with conversation({"tools/call": tool, "ping": answering(EmptyResult())}) as (client, _):
        call = asyncio.create_task(
            client.call("tools/call", CallToolParams(name="t"), CallToolResult)
        )
        await started.wait()
        call.cancel()
        await stopped.wait()

        assert EmptyResult() == await client.call("ping", PingParams(), EmptyResult)
        assert call.cancelled()


@run_in_virtual_time
async def test_silence_ends_a_call_at_its_timeout_and_stops_the_work():
    """A timeout is a CallTimedOut, and the server hears of it (spec: timeouts)."""
    stopped = asyncio.Event()

    async def tool(params, inbound):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with conversation({"tools/call": tool}) as (client, _):
        with pytest.raises(CallTimedOut, match="tools/call"):
            await client.call("tools/call", CallToolParams(name="t"), CallToolResult, timeout=0.01)
        await stopped.wait()


@run_in_virtual_time
async def test_a_shorter_timeout_is_not_held_up_by_a_longer_one():
    """The one timer moves to the earliest deadline (our promise)."""

    async def tool(params, inbound):
        await asyncio.Event().wait()

    async with conversation({"tools/call": tool}) as (client, _):
        slow = asyncio.create_task(
            client.call("tools/call", CallToolParams(name="t"), CallToolResult, timeout=60)
        )
        with pytest.raises(CallTimedOut):
            await client.call("tools/call", CallToolParams(name="t"), CallToolResult, timeout=0.01)
        assert not slow.done()
        slow.cancel()


async def test_the_end_of_the_channel_ends_every_call_once():
    """ConnectionLost, not a bare CancelledError and no hang (decision D20)."""
    started = asyncio.Event()

    async def tool(params, inbound):
        started.set()
        await asyncio.Event().wait()

    async with conversation({"tools/call": tool}) as (client, server):
        call = asyncio.create_task(
            client.call("tools/call", CallToolParams(name="t"), CallToolResult)
        )
        await started.wait()
        await server.close()
        with pytest.raises(ConnectionLost, match="tools/call"):
            await call
        with pytest.raises((OutOfPhase, ConnectionLost)):
            await client.call("tools/call", CallToolParams(name="t"), CallToolResult)


@pytest.mark.covers("stdio.end.progress-until-answer")
async def test_work_in_hand_is_answered_after_the_last_word():
    """Every request read before the end of input is answered, its progress told before (ours)."""
    near, far = open_pair()
    go = asyncio.Event()

    async def tool(params, inbound):
        await go.wait()
        told = ProgressParams(progress_token="p", progress=1)
        await inbound.link.note("notifications/progress", told, relates_to=inbound.id)
        await inbound.link.note("notifications/progress", told)  # belongs to no call: not sent
        return CallToolResult(content=[])

    class HalfClosed:
        """A channel whose other side has said its last word and still listens."""

        def __init__(self):
            self.sent = []
            self.deliveries = [
                Delivery(
                    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{'
                    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
                    b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
                )
            ]

        async def receive(self):
            if self.deliveries:
                return self.deliveries.pop()
            asyncio.get_running_loop().call_soon(go.set)
            return None

        async def send(self, out):
            self.sent.append(out.data)

        def abandon(self, id):
            return False

        async def close(self):
            pass

    channel = HalfClosed()
    await Peer(channel, Router({"tools/call": tool}), side="server").run()
    await near.close()
    await far.close()

    progress, answer = map(json.loads, channel.sent)
    assert "p" == progress["params"]["progressToken"]
    assert 1 == answer["id"]


@pytest.mark.covers("messages.methods.of-the-revision")
async def test_what_the_revision_lacks_is_not_sent():
    """Our own mistakes are caught before the wire (architecture 9.2)."""
    async with conversation({}) as (client, server):
        with pytest.raises(NotInRevision, match="server/discover"):
            await client.call("server/discover", None, EmptyResult)
        with pytest.raises(NotInRevision):
            await server.note("notifications/roots/list_changed")


async def test_notifications_reach_the_other_sides_router():
    """Notices are dispatched like requests, without an answer (JSON-RPC 2.0)."""
    heard = asyncio.Event()
    notices = {"notifications/tools/list_changed": lambda params, inbound: heard.set()}
    async with conversation({}, notices=notices) as (_, server):
        await server.note("notifications/tools/list_changed")
        await heard.wait()


async def test_whoever_waits_for_the_end_hears_of_it_once():
    """on_close callbacks run when the conversation ends, unless taken back (our promise)."""
    ended = []
    async with conversation({}) as (_, server):
        server.on_close(lambda: ended.append("kept"))
        server.on_close(lambda: ended.append("taken back"))()

    assert ["kept"] == ended


@pytest.mark.covers("versions.stateless.own-facts")
async def test_modern_requests_are_served_by_their_own_facts():
    """Facts come from the request, not the connection (spec 2026-07-28: statelessness)."""
    seen = []

    async def handler(params, inbound):
        seen.append((inbound.caller.revision.name, inbound.caller.log_level))
        return ListToolsResult(tools=[])

    async with conversation({"tools/list": handler}) as (client, _):
        client.agree(Caller(BY_NAME["2026-07-28"]))
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "debug",
        }
        await client.call("tools/list", ListToolsParams(meta=meta), ListToolsResult)

    assert [("2026-07-28", "debug")] == seen


@pytest.mark.covers("versions.modern.unsupported")
async def test_a_foreign_version_is_refused_with_what_is_supported():
    """-32022 with data.supported and data.requested (spec 2026-07-28: versioning)."""
    async with conversation({}) as (client, _):
        client.agree(Caller(BY_NAME["2026-07-28"]))
        meta = {
            "io.modelcontextprotocol/protocolVersion": "1900-01-01",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        with pytest.raises(Exception, match="1900-01-01") as refusal:
            await client.call("tools/list", ListToolsParams(meta=meta), ListToolsResult)

    assert "1900-01-01" == refusal.value.data["requested"]
    assert "2026-07-28" in refusal.value.data["supported"]


@run_in_virtual_time
async def test_a_timeout_also_ends_a_call_that_could_not_be_sent():
    """A side that does not read must not hold a caller past its timeout (decision D20)."""
    near, far = open_pair()
    client = Peer(near, Router({}, sender="server"), side="client")
    client.agree(LEGACY)
    for _ in range(MAX_WAITING_MESSAGES):
        await near.send(Outgoing(b"{}"))  # nobody receives: the next one has to wait

    with pytest.raises(CallTimedOut, match="ping"):
        await client.call("ping", PingParams(), EmptyResult, timeout=0.01)

    assert 0 == asyncio.current_task().cancelling()
    await near.close()
    await far.close()


async def test_cancelling_a_call_that_could_not_be_sent_is_a_cancellation():
    """The caller's own cancellation stays what it is (decision D20)."""
    near, far = open_pair()
    client = Peer(near, Router({}, sender="server"), side="client")
    client.agree(LEGACY)
    for _ in range(MAX_WAITING_MESSAGES):
        await near.send(Outgoing(b"{}"))
    call = asyncio.create_task(client.call("ping", PingParams(), EmptyResult, timeout=60))
    await asyncio.sleep(0)
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await client.close()
    await client.finish()
    await far.close()


@run_in_virtual_time
async def test_a_timeout_during_somebodys_clean_up_is_still_a_timeout():
    """A cancellation from before the call is not the call's (decision D20)."""
    near, far = open_pair()
    client = Peer(near, Router({}, sender="server"), side="client")
    client.agree(LEGACY)
    for _ in range(MAX_WAITING_MESSAGES):
        await near.send(Outgoing(b"{}"))
    ended = []

    async def cleaned_up():
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await client.call("ping", PingParams(), EmptyResult, timeout=0.01)
            except CallTimedOut:
                ended.append("timed out")

    task = asyncio.create_task(cleaned_up())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ["timed out"] == ended
    await near.close()
    await far.close()


@pytest.mark.covers("lifecycle.opening.only-pings")
async def test_nothing_is_asked_before_the_handshake_has_ended():
    """Spec 2025-11-25 basic/lifecycle#initialization: SHOULD NOT, but for pings."""
    asked = []

    def answers(method, result):
        async def handler(params, inbound):
            asked.append(method)
            return result

        return handler

    routes = {
        "roots/list": answers("roots/list", ListRootsResult(roots=[])),
        "ping": answers("ping", EmptyResult()),
    }
    async with conversation({}, routes, initialized=False) as (client, server):
        question = asyncio.create_task(
            server.call("roots/list", ListRootsParams(), ListRootsResult)
        )
        await server.call("ping", PingParams(), EmptyResult)
        assert ["ping"] == asked
        await client.channel.send(Outgoing(INITIALIZED))
        await question

    assert ["ping", "roots/list"] == asked


@pytest.mark.covers("lifecycle.opening.only-pings")
async def test_a_client_that_never_ends_its_handshake_is_asked_nothing(monkeypatch):
    """Ours: whoever wanted to ask is told what the client left out, and does not wait for ever."""
    monkeypatch.setattr(outbound, "HANDSHAKE_TIMEOUT_S", 0.0)
    async with conversation({}, {}, initialized=False) as (_, server):
        with pytest.raises(OutOfPhase, match="notifications/initialized"):
            await server.call("roots/list", ListRootsParams(), ListRootsResult)


@pytest.mark.covers("lifecycle.opening.only-pings")
async def test_a_client_that_leaves_amid_its_handshake_is_waited_for_no_longer():
    """Decision D20: whoever waits is told at once."""
    async with conversation({}, {}, initialized=False) as (client, server):
        question = asyncio.create_task(
            server.call("roots/list", ListRootsParams(), ListRootsResult)
        )
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(OutOfPhase, match="cannot call roots/list"):
            await question
