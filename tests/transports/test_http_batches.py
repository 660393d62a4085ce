"""Batches over HTTP: one POST of several messages, in the one revision that has them."""

import asyncio
import json

import pytest

from isthmus.core.batch import MAX_BATCH_MEMBERS
from isthmus.transports.http.app import HttpApp
from isthmus.wire import ElicitParams, ElicitResult, ProgressParams
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    OLD,
    hello,
    legacy_call_body,
    legacy_head,
    make_router,
    read_tool_text,
)

pytestmark = pytest.mark.usefixtures("carrier")
ASGI_ONLY = frozenset()

BATCHING = "2025-03-26"
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


async def report(inbound):
    """A tool that reports progress."""
    params = ProgressParams(progress_token=inbound.progress_token, progress=1)
    await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
    return "reported"


async def ask(inbound):
    """A tool that asks its user."""
    params = ElicitParams(message="?", requested_schema={"type": "object", "properties": {}})
    answer = await inbound.link.call("roots/list", params, ElicitResult, relates_to=inbound.id)
    return answer.action


class Gate:
    """A tool that waits until it is let through."""

    def __init__(self):
        self.arrived = asyncio.Semaphore(0)
        self.open = asyncio.Event()
        self.ended = []

    async def __call__(self, _inbound):
        """Wait."""
        self.arrived.release()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return "through"


def head(session, revision=BATCHING, **more):
    """The headers of a request in a session."""
    return {**legacy_head(session, **more), "mcp-protocol-version": revision}


async def open_batch_session(target, revision=BATCHING):
    """A session in a revision."""
    body = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": revision}}
    session = (await fetch(target, headers=legacy_head(), body=body)).header("mcp-session-id")
    await fetch(target, headers=head(session, revision), body=INITIALIZED)
    return session


def post(target, session, *members, **more):
    """Begin a POST of several messages."""
    return Exchange(target, headers=head(session, **more), body=[json.dumps(members).encode()])


@pytest.mark.covers("batching.received.answered-as-array")
async def test_an_array_of_requests_is_answered_by_one_json_array():
    """2025-03-26 basic/transports: either content type; the responses may be batched."""
    target = HttpApp(make_router(hello=hello))
    session = await open_batch_session(target)
    answer = await post(
        target, session, legacy_call_body(id=1), PING, INITIALIZED, legacy_call_body(id="1")
    ).done()

    assert (200, "application/json") == (answer.status, answer.header("content-type"))
    assert {1, "1", 7} == {one["id"] for one in answer.json}
    assert ["hello", "hello"] == [read_tool_text(one) for one in answer.json if one["id"] != 7]
    await target.close()


@pytest.mark.covers("batching.received.answered-as-array")
async def test_what_is_said_before_the_answers_is_on_the_stream_of_the_array():
    """2025-03-26: notifications may precede the responses."""
    target = HttpApp(make_router(hello=hello, report=report))
    session = await open_batch_session(target)
    answer = await post(
        target, session, legacy_call_body("report", id=1, progressToken="t"), legacy_call_body(id=2)
    ).done()

    assert "text/event-stream" == answer.header("content-type")
    assert "notifications/progress" == answer.events[0]["method"]
    assert {1, 2} == {one["id"] for one in answer.events[1]}
    assert 2 == len(answer.ids)
    await target.close()


@pytest.mark.covers("batching.responses.both-ways", "batching.notes.202")
async def test_a_question_to_a_batched_call_may_be_answered_in_an_array():
    """2025-03-26: an array of responses is accepted with 202."""
    target = HttpApp(make_router(ask=ask))
    session = await open_batch_session(target)
    call = post(target, session, legacy_call_body("ask", id=1), legacy_call_body("ask", id=2))
    questions = [await call.event() for _ in range(2)]
    answers = [
        {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        for question in questions
    ]
    accepted = await post(target, session, *answers).done()
    await call.done()

    assert (202, b"") == (accepted.status, accepted.body)
    assert ["decline", "decline"] == [read_tool_text(one) for one in call.events[-1]]
    await target.close()


@pytest.mark.covers("batching.notes.202")
async def test_an_array_of_notifications_is_accepted_without_a_body():
    """2025-03-26 basic/transports#sending-messages-to-the-server, point 4."""
    target = HttpApp(make_router())
    session = await open_batch_session(target)
    answer = await post(target, session, INITIALIZED, INITIALIZED).done()

    assert (202, b"") == (answer.status, answer.body)
    await target.close()


@pytest.mark.covers("batching.members.each-answered", "batching.initialize.refused")
async def test_flawed_members_are_answered_for_themselves():
    """JSON-RPC 2.0; initialize is never part of an array."""
    target = HttpApp(make_router(hello=hello))
    session = await open_batch_session(target)
    answer = await post(
        target, session, 5, [], INITIALIZE, legacy_call_body(id=3), legacy_call_body(id=3)
    ).done()

    assert 200 == answer.status
    codes = [(one.get("id"), one.get("error", {}).get("code")) for one in answer.json]
    assert [(None, -32600), (None, -32600), (0, -32600), (3, -32600), (3, None)] == codes
    only = await post(target, session, 5).done()
    assert (200, [None]) == (only.status, [one["id"] for one in only.json])
    await target.close()


@pytest.mark.covers("batching.empty.refused", "batching.members.bounded")
@pytest.mark.parametrize("members", [[], [PING] * (MAX_BATCH_MEMBERS + 1)])
async def test_an_array_of_none_or_too_many_is_refused_in_one_piece(members):
    """2025-03-26: 400 where the input cannot be accepted, with an error that has no id."""
    target = HttpApp(make_router())
    answer = await post(target, await open_batch_session(target), *members).done()

    assert (400, -32600) == (answer.status, answer.json["error"]["code"])
    assert "id" not in answer.json
    await target.close()


@pytest.mark.covers("batching.elsewhere.refused")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", OLD])
async def test_sessions_of_other_revisions_refuse_arrays(revision):
    """2025-06-18 changelog: removed; 2024-11-05 had none."""
    target = HttpApp(make_router())
    session = await open_batch_session(target, revision)
    answer = await post(target, session, PING, revision=revision).done()

    assert (400, -32600) == (answer.status, answer.json["error"]["code"])
    assert "one message at a time" in answer.json["error"]["message"]
    await target.close()


@pytest.mark.covers("batching.elsewhere.refused", "batching.initialize.refused")
async def test_an_array_without_a_session_or_in_an_unknown_one_is_refused():
    """2025-03-26 basic/lifecycle: nothing can be batched before initialize was answered."""
    target = HttpApp(make_router())
    first = await fetch(target, headers=legacy_head(), body=[json.dumps([INITIALIZE]).encode()])
    unknown = await post(target, "0" * 48, PING).done()
    modern = await post(target, "0" * 48, PING, revision="2026-07-28").done()

    assert (400, -32600) == (first.status, first.json["error"]["code"])
    assert 404 == unknown.status
    assert (400, -32600) == (modern.status, modern.json["error"]["code"])
    assert 0 == len(target._book)
    await target.close()


@pytest.mark.covers("batching.cancelled.left-out")
async def test_a_cancelled_member_is_left_out_of_the_answers():
    """A cancelled request is never answered, and the others are."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate, hello=hello))
    session = await open_batch_session(target)
    call = post(target, session, legacy_call_body("gate", id=1), legacy_call_body(id=2))
    await gate.arrived.acquire()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    await fetch(target, headers=head(session), body=cancel)
    await call.done()

    assert [2] == [one["id"] for one in call.json]
    assert ["cancelled"] == gate.ended
    await target.close()


async def test_a_session_that_ends_cuts_short_its_batches():
    """Work for a session that is gone is work for nobody."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate))
    session = await open_batch_session(target)
    call = post(target, session, legacy_call_body("gate", id=1), legacy_call_body("gate", id=2))
    for _ in range(2):
        await gate.arrived.acquire()
    await fetch(target, "DELETE", headers=head(session))
    await call.done()

    assert 404 == call.status
    assert ["cancelled", "cancelled"] == gate.ended
    assert 0 == call.task.cancelling()
    await target.close()


async def test_an_id_in_flight_in_another_post_is_refused_for_itself():
    """JSON-RPC: an id stands for one request; the refusal is part of the array."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate, hello=hello))
    session = await open_batch_session(target)
    first = Exchange(target, headers=head(session), body=legacy_call_body("gate", id=1))
    await gate.arrived.acquire()
    batch = await post(target, session, legacy_call_body(id=1), legacy_call_body(id=2)).done()
    gate.open.set()
    await first.done()

    assert [(1, True), (2, False)] == [(one["id"], "error" in one) for one in batch.json]
    assert "through" == read_tool_text(first.json)
    await target.close()


async def test_a_batch_whose_client_lost_its_connection_is_resumed():
    """2025-03-26: a stream is a stream, whatever it answers."""
    gate = Gate()
    target = HttpApp(make_router(gate=gate, report=report))
    session = await open_batch_session(target)
    call = post(
        target,
        session,
        legacy_call_body("report", id=1, progressToken="t"),
        legacy_call_body("gate", id=2),
    )
    await call.event()
    await call.watched.wait()
    call.leave()
    gate.open.set()
    await call.done()
    more = {"accept": "text/event-stream", "last_event_id": call.ids[0]}
    again = await fetch(target, "GET", headers=head(session, **more))

    assert {1, 2} == {one["id"] for one in again.events[0]}
    await target.close()
