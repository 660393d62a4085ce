"""Legacy sessions: many POSTs and streams as one conversation, and the book that keeps them."""

import asyncio

import pytest

from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Outgoing
from isthmus.transports.http.app import HttpApp
from isthmus.wire import (
    ElicitParams,
    ElicitResult,
    ListRootsParams,
    ListRootsResult,
    ProgressParams,
)
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    BOTH,
    INITIALIZE,
    INITIALIZED,
    OLD,
    begin_legacy_call,
    begin_modern_call,
    hello,
    legacy_call_body,
    legacy_head,
    make_http_app,
    make_router,
    open_legacy_session,
    read_tool_text,
)


async def ask(inbound):
    """A tool that asks its user, on behalf of its call."""
    params = ElicitParams(message="Which?", requested_schema={"type": "object", "properties": {}})
    answer = await inbound.link.call(
        "elicitation/create", params, ElicitResult, relates_to=inbound.id
    )
    return answer.action


async def roots(inbound):
    """A tool that asks for roots, on nobody's behalf."""
    answer = await inbound.link.call("roots/list", ListRootsParams(), ListRootsResult)
    return str(len(answer.roots))


async def report(inbound):
    """A tool that reports progress."""
    params = ProgressParams(progress_token=inbound.progress_token, progress=1)
    await inbound.link.note("notifications/progress", params, relates_to=inbound.id)
    return "reported"


class Gate:
    """A tool that waits until it is let through, once per call."""

    def __init__(self) -> None:
        self.arrived = asyncio.Semaphore(0)
        self.open = asyncio.Event()
        self.ended = []

    async def __call__(self, inbound):
        """Wait."""
        self.arrived.release()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("answered")
        return f"through with {inbound.id}"


async def send(target, session, body, **options):
    """One POST of a session from beginning to end."""
    return await fetch(target, headers=legacy_head(session), body=body, **options)


def listen(target, session, **head):
    """Begin to listen on a standing stream."""
    return Exchange(
        target, "GET", headers=legacy_head(session, **{"accept": "text/event-stream", **head})
    )


def answer_to(question, result):
    """The client's answer to a question."""
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


# Opening


@pytest.mark.covers("sessions.ids.unguessable", "auth.resource.sessions-not-authentication")
async def test_initialize_opens_a_session_with_a_name_that_cannot_be_guessed():
    """2025-11-25 basic/transports#session-management: visible ASCII, globally unique."""
    target = make_http_app()
    answers = [await fetch(target, headers=legacy_head(), body=INITIALIZE) for _ in range(2)]
    names = [answer.header("mcp-session-id") for answer in answers]

    assert [200, 200] == [answer.status for answer in answers]
    assert OLD == answers[0].json["result"]["protocolVersion"]
    assert 2 == len(set(names))
    assert all(len(name) < 600 and set(name) <= set(map(chr, range(0x21, 0x7F))) for name in names)
    await target.close()


async def test_an_initialize_that_fails_opens_nothing():
    """There is no session to name."""
    target = make_http_app()
    for params in ({}, {"protocolVersion": 1}, None):
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await fetch(target, headers=legacy_head(), body=body)
        assert "error" in answer.json
        assert answer.header("mcp-session-id") is None

    assert 0 == len(target._book)
    await target.close()


@pytest.mark.parametrize("accept", ["text/event-stream", BOTH])
async def test_initialize_names_the_session_in_its_head_however_long_it_takes(accept):
    """A client reads the id with the first byte; no heartbeat may come before it."""
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slowly(inbound, call_next):
        if inbound.method == "initialize":
            arrived.set()
            await go.wait()
        return await call_next(inbound)

    gate = Gate()
    target = HttpApp(make_router(middleware=[slowly], gate=gate), heartbeat=0.01)
    head = legacy_head(accept=accept)
    exchange = Exchange(target, headers=head, body=INITIALIZE)
    await arrived.wait()
    other = begin_modern_call(target, "gate")
    await other.bytes_sent(b":\n\n:\n\n")
    gate.open.set()
    await other.done()

    go.set()
    await exchange.done()

    assert exchange.header("mcp-session-id") is not None
    answer = exchange.json if accept == BOTH else exchange.events[0]
    assert OLD == answer["result"]["protocolVersion"]
    await target.close()


@pytest.mark.covers("sessions.initialize.twice-refused")
async def test_a_second_initialize_on_a_live_session_is_refused_and_changes_nothing():
    """The session goes on as it was."""
    target = make_http_app(hello=hello)
    session = await open_legacy_session(target)

    again = await send(target, session, {**INITIALIZE, "id": 9})

    assert (9, -32600) == (again.json["id"], again.json["error"]["code"])
    assert 1 == len(target._book)
    assert "hello" == read_tool_text((await begin_legacy_call(target, session).done()).json)
    await target.close()


@pytest.mark.covers("sessions.missing.400")
async def test_a_request_without_a_session_is_400():
    """2025-11-25 basic/transports#session-management, point 2; the message says what to do."""
    answer = await fetch(make_http_app(), headers=legacy_head(), body=legacy_call_body(id=5))

    assert (400, 5) == (answer.status, answer.json["id"])
    assert "initialize" in answer.json["error"]["message"]


@pytest.mark.covers("sessions.missing.400")
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_get_and_delete_without_a_session_are_400(verb):
    """Both are about a session."""
    assert 400 == (await fetch(make_http_app(), verb, headers=legacy_head())).status


@pytest.mark.covers("sessions.unknown.404")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_an_unknown_session_is_404(verb):
    """2025-11-25 basic/transports#session-management, point 3."""
    answer = await fetch(
        make_http_app(), verb, headers=legacy_head("0" * 48), body=legacy_call_body()
    )

    assert 404 == answer.status


@pytest.mark.covers("sessions.version.invalid-400")
async def test_the_version_header_may_be_missing_and_must_not_be_wrong():
    """2025-06-18 basic/transports#protocol-version-header."""
    target = make_http_app(hello=hello)
    session = await open_legacy_session(target)
    head = legacy_head(session)
    del head["mcp-protocol-version"]

    assert 200 == (await fetch(target, headers=head, body=legacy_call_body())).status
    head["mcp-protocol-version"] = "1999-01-01"
    assert 400 == (await fetch(target, headers=head, body=legacy_call_body())).status
    await target.close()


async def test_a_modern_request_does_not_disturb_the_sessions():
    """One endpoint serves both at once."""
    target = make_http_app(hello=hello)
    session = await open_legacy_session(target)

    assert 200 == (await begin_modern_call(target).done()).status
    assert 200 == (await begin_legacy_call(target, session).done()).status
    await target.close()


# Answers


@pytest.mark.covers("http.call.either-form")
async def test_a_call_is_answered_with_json_unless_something_comes_before():
    """Both forms are right; the plain one is cheaper."""
    target = make_http_app(hello=hello, report=report)
    session = await open_legacy_session(target)

    plain = await begin_legacy_call(target, session).done()
    streamed = await begin_legacy_call(target, session, "report", progressToken="t").done()

    assert ("application/json", "hello") == (
        plain.header("content-type"),
        read_tool_text(plain.json),
    )
    assert "text/event-stream" == streamed.header("content-type")
    assert "t" == streamed.events[0]["params"]["progressToken"]
    assert "reported" == read_tool_text(streamed.events[1])
    await target.close()


@pytest.mark.covers("http.call.either-form")
async def test_answers_are_streams_where_that_is_asked_for():
    """Some clients of old revisions know nothing else."""
    target = make_http_app({"stream_answers": True}, hello=hello)
    session = await open_legacy_session(target)

    answer = await begin_legacy_call(target, session).done()

    assert "text/event-stream" == answer.header("content-type")
    assert "hello" == read_tool_text(answer.events[0])
    await target.close()


async def test_an_error_is_an_answer_with_status_200():
    """Errors of requests are JSON-RPC's business up to 2025-11-25."""
    target = make_http_app()
    session = await open_legacy_session(target)

    answer = await send(target, session, {"jsonrpc": "2.0", "id": 3, "method": "acme/none"})

    assert (200, -32601) == (answer.status, answer.json["error"]["code"])
    await target.close()


@pytest.mark.covers("http.notification.202")
async def test_notifications_are_accepted_without_a_body():
    """2025-11-25 basic/transports#sending-messages-to-the-server, point 4."""
    target = make_http_app()
    session = await open_legacy_session(target)

    answer = await send(target, session, INITIALIZED)

    assert (202, b"") == (answer.status, answer.body)
    await target.close()


async def test_concurrent_calls_of_one_session_each_get_their_own_answer():
    """Several POSTs may be open at once."""
    gate = Gate()
    target = make_http_app(gate=gate)
    session = await open_legacy_session(target)
    exchanges = [begin_legacy_call(target, session, "gate", id=i) for i in (1, "1", 2)]
    await gate.arrived.acquire()

    gate.open.set()
    for exchange in exchanges:
        await exchange.done()

    expected = ["through with 1", "through with 1", "through with 2"]
    assert expected == [read_tool_text(exchange.json) for exchange in exchanges]
    assert [1, "1", 2] == [exchange.json["id"] for exchange in exchanges]
    await target.close()


@pytest.mark.covers("messages.ids.in-flight")
async def test_an_id_in_flight_is_refused_and_the_first_call_goes_on():
    """JSON-RPC: an id stands for one request; the refusal must not reach the first."""
    gate = Gate()
    target = make_http_app(gate=gate)
    session = await open_legacy_session(target)
    first = begin_legacy_call(target, session, "gate", id=7)
    await gate.arrived.acquire()

    second = await begin_legacy_call(target, session, "gate", id=7).done()
    gate.open.set()
    await first.done()

    assert -32600 == second.json["error"]["code"]
    assert "through with 7" == read_tool_text(first.json)
    await target.close()


@pytest.mark.covers("sessions.isolation.same-ids")
async def test_two_sessions_with_the_same_ids_never_mix():
    """Isolation: ids belong to their session."""
    target = make_http_app(ask=ask)
    sessions = [await open_legacy_session(target) for _ in range(2)]
    calls = [begin_legacy_call(target, session, "ask", id=1) for session in sessions]
    questions = [await call.event() for call in calls]
    assert questions[0]["id"] != questions[1]["id"]  # a node gives each of its ids once

    actions = ["accept", "decline"]
    for session, question, action in zip(sessions, questions, actions, strict=True):
        result = await send(target, session, answer_to(question, {"action": action}))
        assert 202 == result.status

    assert actions == [read_tool_text(await call.event()) for call in calls]
    await target.close()


@pytest.mark.covers("http.post.refused")
@pytest.mark.parametrize(
    ("body", "code"),
    [(b"", -32700), (b"{", -32700), (b"\xff", -32700), (b"3", -32600), (b"{}", -32600)],
)
async def test_what_is_no_message_is_refused_and_the_session_goes_on(body, code):
    """2025-11-25 basic/transports#sending-messages-to-the-server, point 4: an HTTP error status."""
    target = make_http_app(hello=hello)
    session = await open_legacy_session(target)

    answer = await fetch(target, headers=legacy_head(session), body=body)

    assert (400, code) == (answer.status, answer.json["error"]["code"])
    assert 200 == (await begin_legacy_call(target, session, "hello").done()).status
    await target.close()


async def test_a_batch_is_refused_in_one_piece():
    """2025-06-18 and later have none."""
    target = make_http_app()
    session = await open_legacy_session(target)

    answer = await send(target, session, [legacy_call_body(), legacy_call_body(id=2)])

    assert (400, -32600) == (answer.status, answer.json["error"]["code"])
    await target.close()


# Questions from the server


async def test_a_question_travels_on_the_stream_of_the_call_it_is_about():
    """2025-11-25: messages on a POST's stream relate to its request."""
    target = make_http_app(ask=ask)
    session = await open_legacy_session(target)
    standing = listen(target, session)
    call = begin_legacy_call(target, session, "ask")

    question = await call.event()
    assert "elicitation/create" == question["method"]
    await send(target, session, answer_to(question, {"action": "accept", "content": {}}))
    await call.done()

    assert "accept" == read_tool_text(call.events[-1])
    assert [] == standing.events
    await target.close()


@pytest.mark.covers("http.get.stream-or-405")
async def test_a_question_about_no_call_travels_on_the_standing_stream():
    """2025-11-25: what is unrelated goes to the GET stream."""
    target = make_http_app(roots=roots)
    session = await open_legacy_session(target)
    standing = listen(target, session)
    call = begin_legacy_call(target, session, "roots")

    question = await standing.event()
    assert "roots/list" == question["method"]
    await send(target, session, answer_to(question, {"roots": []}))
    await call.done()

    assert ("application/json", "0") == (call.header("content-type"), read_tool_text(call.json))
    await target.close()


async def test_what_finds_no_standing_stream_waits_for_one():
    """A client may open its stream late."""

    async def tell(inbound):
        await inbound.link.note(
            "notifications/progress", ProgressParams(progress_token=0, progress=1)
        )
        return "told"

    target = make_http_app(tell=tell)
    session = await open_legacy_session(target)
    assert "told" == read_tool_text((await begin_legacy_call(target, session, "tell").done()).json)

    standing = listen(target, session)

    assert "notifications/progress" == (await standing.event())["method"]
    await target.close()


async def test_what_waits_is_bounded_and_the_oldest_gives_way():
    """A client that never listens costs a bounded amount."""

    async def chatter(inbound):
        for number in range(100):
            await inbound.link.note(
                "notifications/progress", ProgressParams(progress_token=0, progress=number)
            )
        return "said"

    target = make_http_app(chatter=chatter)
    session = await open_legacy_session(target)
    await begin_legacy_call(target, session, "chatter").done()

    standing = listen(target, session)
    heard = [(await standing.event())["params"]["progress"] for _ in range(64)]

    assert list(range(36, 100)) == heard
    await target.close()


async def test_a_question_to_a_client_that_takes_no_streams_goes_to_the_standing_one():
    """A question must reach somebody."""
    target = make_http_app(ask=ask)
    session = await open_legacy_session(target)
    standing = listen(target, session)
    head = legacy_head(session, accept="application/json")
    call = Exchange(target, headers=head, body=legacy_call_body("ask"))

    question = await standing.event()
    await send(target, session, answer_to(question, {"action": "cancel"}))
    await call.done()

    assert "cancel" == read_tool_text(call.json)
    await target.close()


async def test_progress_for_a_client_that_takes_no_streams_is_left_out():
    """It would have no stream to be on."""
    target = make_http_app(report=report)
    session = await open_legacy_session(target)
    standing = listen(target, session)
    head = legacy_head(session, accept="application/json")

    answer = await fetch(target, headers=head, body=legacy_call_body("report", progressToken=1))

    assert "reported" == read_tool_text(answer.json)
    assert [] == standing.events
    await target.close()


# Standing streams


@pytest.mark.covers("http.get.stream-or-405")
async def test_a_standing_stream_opens_at_once():
    """A client waits for the head before it goes on."""
    target = make_http_app()
    standing = listen(target, await open_legacy_session(target))

    await standing.started.wait()

    assert (200, "text/event-stream") == (standing.status, standing.header("content-type"))
    await target.close()


@pytest.mark.covers("http.heartbeat.all-streams")
async def test_a_standing_stream_shows_signs_of_life():
    """Users' pain 21: idle streams are cut by what lies between."""
    target = make_http_app({"heartbeat": 0.01})
    standing = listen(target, await open_legacy_session(target))

    await standing.bytes_sent(b":\n\n:\n\n")
    await target.close()


@pytest.mark.covers("http.streams.never-broadcast")
async def test_each_message_is_on_one_stream_only_and_the_newest_is_taken():
    """2025-11-25 basic/transports#multiple-connections: never broadcast."""
    target = make_http_app(roots=roots)
    session = await open_legacy_session(target)
    older = listen(target, session)
    await older.started.wait()
    newer = listen(target, session)
    call = begin_legacy_call(target, session, "roots")

    question = await newer.event()
    await send(target, session, answer_to(question, {"roots": []}))
    await call.done()

    assert [] == older.events
    assert not older.complete.is_set()
    await target.close()


async def test_a_session_has_few_streams_and_the_oldest_gives_way():
    """A client that lost its connection is not locked out by the ghost of it."""
    target = make_http_app()
    session = await open_legacy_session(target)
    streams = []
    for _ in range(5):
        streams.append(listen(target, session))
        await streams[-1].started.wait()

    await streams[0].done()

    assert [True, False, False, False, False] == [one.complete.is_set() for one in streams]
    await target.close()


async def test_a_client_that_leaves_its_standing_stream_can_come_back():
    """The session outlives its streams."""
    target = make_http_app(roots=roots)
    session = await open_legacy_session(target)
    first = listen(target, session)
    await first.started.wait()
    first.leave()
    await first.done()

    second = listen(target, session)
    call = begin_legacy_call(target, session, "roots")
    await send(target, session, answer_to(await second.event(), {"roots": []}))
    await call.done()

    assert [] == first.events
    await target.close()


@pytest.mark.covers("http.get.stream-or-405")
async def test_a_stream_must_be_acceptable_to_the_client():
    """2025-11-25: a GET accepts text/event-stream."""
    target = make_http_app()
    session = await open_legacy_session(target)

    exchange = listen(target, session, accept="application/json")

    assert 406 == (await exchange.done()).status
    await target.close()


# Clients that leave, and cancel


@pytest.mark.covers("cancellation.disconnect.legacy")
async def test_a_client_that_leaves_does_not_cancel_its_call():
    """2025-11-25: disconnection SHOULD NOT be interpreted as cancellation."""
    gate = Gate()
    target = make_http_app({"heartbeat": 0.01}, gate=gate)
    session = await open_legacy_session(target)
    exchange = begin_legacy_call(target, session, "gate")
    await exchange.bytes_sent(b":\n\n:\n\n")

    exchange.leave()
    gate.open.set()
    await exchange.done()

    assert ["answered"] == gate.ended
    await target.close()


async def test_a_cancelled_call_stops_and_its_response_ends_without_an_answer():
    """2025-11-25 basic/utilities/cancellation: never answer a cancelled request."""
    gate = Gate()
    target = make_http_app(gate=gate)
    session = await open_legacy_session(target)
    exchange = begin_legacy_call(target, session, "gate", id=4)
    await gate.arrived.acquire()

    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 4},
    }
    await send(target, session, cancel)
    await exchange.done()

    assert ["cancelled"] == gate.ended
    assert (202, b"") == (exchange.status, exchange.body)
    assert 0 == exchange.task.cancelling()
    assert "through with 4" == read_tool_text(await reopened(target, session, gate))
    await target.close()


async def reopened(target, session, gate):
    """Let the next call of the gate through; returns its answer."""
    gate.open.set()
    return (await begin_legacy_call(target, session, "gate", id=4).done()).json


# Ending


@pytest.mark.covers("sessions.delete.ends-streams", "sessions.unknown.404")
async def test_delete_ends_a_session_and_its_streams():
    """2025-11-25 basic/transports#session-management, point 5; later requests are 404."""
    target = make_http_app(hello=hello)
    session = await open_legacy_session(target)
    standing = listen(target, session)
    await standing.started.wait()

    answer = await fetch(target, "DELETE", headers=legacy_head(session))
    await standing.done()

    assert 200 == answer.status
    assert standing.complete.is_set()
    assert 404 == (await begin_legacy_call(target, session).done()).status
    assert 404 == (await fetch(target, "DELETE", headers=legacy_head(session))).status
    await target.close()


@pytest.mark.covers("sessions.delete.ends-streams")
async def test_delete_cuts_short_the_calls_of_its_session_and_no_others():
    """Work for a session that is gone is work for nobody."""
    gate = Gate()
    target = make_http_app(gate=gate)
    mine, other = await open_legacy_session(target), await open_legacy_session(target)
    exchanges = [begin_legacy_call(target, session, "gate") for session in (mine, other)]
    for _ in exchanges:
        await gate.arrived.acquire()

    await fetch(target, "DELETE", headers=legacy_head(mine))
    await exchanges[0].done()
    gate.open.set()
    await exchanges[1].done()

    assert ["cancelled", "answered"] == gate.ended
    assert 404 == exchanges[0].status
    assert "ended" in exchanges[0].json["error"]["message"]
    assert "through with 1" == read_tool_text(exchanges[1].json)
    await target.close()


async def test_a_tool_that_does_not_mind_the_end_of_its_session_leaves_its_task_clean():
    """The request's task belongs to the server that runs us."""
    running = asyncio.Event()

    async def deaf(_inbound):
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "never mind"

    target = make_http_app(deaf=deaf)
    session = await open_legacy_session(target)
    exchange = begin_legacy_call(target, session, "deaf")
    await running.wait()

    await fetch(target, "DELETE", headers=legacy_head(session))
    await exchange.done()

    assert 0 == exchange.task.cancelling()
    assert b"never mind" not in exchange.body
    await target.close()


async def test_a_question_of_an_ended_session_fails_at_once():
    """Decision D20: every pending call ends, with one typed error."""
    caught = []

    async def patient(inbound):
        try:
            return await roots(inbound)
        except (ConnectionLost, asyncio.CancelledError) as error:
            caught.append(type(error))
            raise

    target = make_http_app(patient=patient)
    session = await open_legacy_session(target)
    call = begin_legacy_call(target, session, "patient")
    standing = listen(target, session)
    await standing.event()

    await fetch(target, "DELETE", headers=legacy_head(session))
    await call.done()

    assert 1 == len(caught)
    await target.close()


def end_of(target, session):
    """An event that happens when a session ends."""
    ended = asyncio.Event()
    target._book.find(session).peer.on_close(ended.set)
    return ended


def is_held(target, session):
    """Whether a session is in memory, and need not be adopted to be used."""
    return target._book.find(session) is not None


async def test_an_ended_session_takes_no_messages():
    """The channel says that it is over, as every channel does."""
    target = make_http_app()
    name = await open_legacy_session(target)
    session = target._book.find(name)

    await session.close()
    await session.close()

    with pytest.raises(ConnectionLost):
        await session.send(Outgoing(b"{}"))
    assert await session.receive() is None
    assert not session.abandon(1)
    await target.close()


async def test_the_memory_of_idle_sessions_is_given_back_and_used_ones_stay():
    """Ours: one timer looks after all sessions, and an id goes on being good."""
    target = make_http_app({"session_idle": 0.02}, hello=hello)
    listening, idle = await open_legacy_session(target), await open_legacy_session(target)
    standing = listen(target, listening)
    await standing.started.wait()

    await end_of(target, idle).wait()

    assert [False, True] == [is_held(target, idle), is_held(target, listening)]
    assert 200 == (await begin_legacy_call(target, idle).done()).status
    assert 200 == (await begin_legacy_call(target, listening).done()).status
    await target.close()


async def test_a_call_whose_client_left_does_not_keep_its_session_for_ever():
    """Ours: a question that nobody will answer ends with the idle time of its session."""
    target = make_http_app({"session_idle": 0.02}, ask=ask)
    session = await open_legacy_session(target)
    exchange = begin_legacy_call(target, session, "ask")
    await exchange.event()

    exchange.leave()
    await exchange.done()

    assert 0 == len(target._book)
    await target.close()


async def test_sessions_whose_clients_left_give_way_to_new_ones():
    """Ours: whoever leaves its calls behind cannot fill the table with them."""
    target = make_http_app({"max_sessions": 1}, ask=ask)
    exchange = begin_legacy_call(target, await open_legacy_session(target), "ask")
    await exchange.event()
    await exchange.watched.wait()
    exchange.leave()
    for _ in range(5):
        await asyncio.sleep(0)  # turns of the loop, for the watch to see it

    answer = await fetch(target, headers=legacy_head(), body=INITIALIZE)
    await exchange.done()

    assert 200 == answer.status
    await target.close()


async def test_the_timer_rests_when_there_are_no_sessions():
    """An idle server does nothing at all."""
    target = make_http_app({"session_idle": 0.01})

    await end_of(target, await open_legacy_session(target)).wait()

    assert 0 == len(target._book)
    assert target._book._timer is None
    await target.close()


@pytest.mark.covers("sessions.bounded")
async def test_abandoned_newcomers_do_not_push_out_sessions_in_use():
    """Users' pain 20: the table is bounded, and a flood of initializes hurts itself."""
    target = make_http_app({"max_sessions": 10}, hello=hello)
    settled = [await open_legacy_session(target) for _ in range(5)]

    for _ in range(500):
        await fetch(target, headers=legacy_head(), body=INITIALIZE)

    assert 10 == len(target._book)
    assert [True] * 5 == [is_held(target, session) for session in settled]
    await target.close()


async def test_the_session_used_longest_ago_gives_way_to_a_new_one():
    """LRU among those that are settled."""
    target = make_http_app({"max_sessions": 3}, hello=hello)
    sessions = [await open_legacy_session(target) for _ in range(3)]
    await begin_legacy_call(target, sessions[0]).done()

    newest = await open_legacy_session(target)

    assert [True, False, True, True] == [is_held(target, one) for one in (*sessions, newest)]
    await target.close()


async def test_where_all_sessions_are_busy_a_new_one_is_refused():
    """Nobody is thrown out in the middle of a call."""
    target = make_http_app({"max_sessions": 1})
    standing = listen(target, await open_legacy_session(target))
    await standing.started.wait()

    answer = await fetch(target, headers=legacy_head(), body=INITIALIZE)

    assert 503 == answer.status
    assert "max_sessions" in answer.json["error"]["message"]
    await target.close()


async def test_where_there_may_be_no_session_none_is_opened():
    """Ours: none is there that could give way."""
    answer = await fetch(make_http_app({"max_sessions": 0}), headers=legacy_head(), body=INITIALIZE)

    assert 503 == answer.status


@pytest.mark.covers("sessions.principal.indistinguishable")
async def test_a_session_belongs_to_who_opened_it():
    """Somebody else cannot tell it from one that does not exist."""
    target = make_http_app()
    await open_legacy_session(target)
    book = target._book
    (session,) = book._settled.values()
    session.principal = "alice"

    assert session is book.find(session.id, "alice")
    assert book.find(session.id, "bob") is None
    assert book.find(session.id) is None
    await target.close()


async def test_stopping_ends_sessions_and_their_streams():
    """The client sees the end of the stream, not a reset."""
    target = make_http_app()
    standing = listen(target, await open_legacy_session(target))
    await standing.started.wait()

    await target.close()

    assert standing.complete.is_set()
    assert 0 == len(target._book)


async def test_a_handler_knows_the_session_its_request_came_in():
    """For whoever keeps state by session."""
    seen = []

    async def look(inbound):
        seen.append(inbound.origin)
        return "seen"

    target = make_http_app(look=look)
    session = await open_legacy_session(target)
    await begin_legacy_call(target, session, "look").done()

    assert session == seen[0].session
    await target.close()


def from_address(host):
    """What the scope says of a client at an address."""
    return {"client": (host, 50_000)}


@pytest.mark.parametrize("used", [False, True])
async def test_a_flood_from_one_address_pushes_out_its_own_sessions(used):
    """Ours: sessions that it also uses, so that they are no newcomers."""
    target = make_http_app({"max_sessions": 10}, hello=hello)
    other = [await open_legacy_session(target, scope=from_address("192.0.2.1")) for _ in range(3)]
    flood = []
    for _ in range(50):
        scope = from_address("192.0.2.99")
        answer = await fetch(target, headers=legacy_head(), body=INITIALIZE, scope=scope)
        flood.append(answer.header("mcp-session-id"))
        if used:
            await fetch(target, headers=legacy_head(flood[-1]), body=INITIALIZED, scope=scope)

    assert 10 == len(target._book)
    assert [True] * 3 == [is_held(target, session) for session in other]
    assert [False] * 43 + [True] * 7 == [is_held(target, session) for session in flood]
    await target.close()


async def test_a_new_caller_gets_its_place_from_whoever_has_the_most():
    """Ours: nobody is kept out by a flood, and nobody else pays for it."""
    target = make_http_app({"max_sessions": 10}, hello=hello)
    other = await open_legacy_session(target, scope=from_address("192.0.2.1"))
    for _ in range(20):
        await open_legacy_session(target, scope=from_address("2001:db8:0:1::99"))
    newest = [
        await open_legacy_session(target, scope=from_address(f"192.0.2.{n}")) for n in range(2, 5)
    ]

    assert [True] * 4 == [is_held(target, session) for session in (other, *newest)]
    assert 10 == len(target._book)
    await target.close()
    assert {} == target._book._callers


async def test_the_addresses_of_one_network_are_one_caller():
    """Ours: whoever has an IPv6 network has all its addresses."""
    target = make_http_app({"max_sessions": 4}, hello=hello)
    other = [await open_legacy_session(target, scope=from_address("192.0.2.1")) for _ in range(2)]
    for n in range(20):
        await open_legacy_session(target, scope=from_address(f"2001:db8:0:1::{n}"))

    for session in other:
        assert 200 == (await begin_legacy_call(target, session).done()).status
    await target.close()
