"""The session: bytes in, events out, nothing raised."""

import json

import pytest

from isthmus.core.batch import MAX_TAKEN_MEMBERS
from isthmus.core.events import (
    CallAnswered,
    CallExpired,
    CallFailed,
    CallProgressed,
    LateAnswer,
    MessageDropped,
    NotificationReceived,
    RequestReceived,
    RequestWithdrawn,
    SendBytes,
)
from isthmus.core.session import MAX_IN_FLIGHT, Session
from isthmus.wire.jsonrpc import ErrorBody

MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


def acted_on(events):
    """The events that something comes of."""
    return [event for event in events if not isinstance(event, MessageDropped)]


def frame(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def open_session():
    """A server session after its handshake."""
    session = Session("server")
    session.receive(frame(id="i", method="initialize", params={}))
    session.answer("i", b"{}")
    session.receive(frame(method="notifications/initialized"))
    return session


def only(events):
    assert 1 == len(events)
    return events[0]


def test_a_request_is_called_with_its_facts():
    """The envelope is read once, with the request (our promise)."""
    called = only(Session("server").receive(frame(id=1, method="tools/list", params=MODERN)))

    assert isinstance(called, RequestReceived)
    assert called.enveloped
    assert "2026-07-28" == called.envelope.meta.protocol_version


@pytest.mark.covers("messages.answers.same-id")
def test_an_answer_carries_the_requests_id_and_type():
    """The response MUST have the same id (spec: responses)."""
    session = open_session()
    session.receive(frame(id="7", method="ping"))

    assert {"jsonrpc": "2.0", "id": "7", "result": {}} == json.loads(session.answer("7", b"{}"))


@pytest.mark.covers("lifecycle.opening.only-pings")
def test_plain_requests_before_the_handshake_are_refused_with_the_mend():
    """Neither a session nor facts of its own: it says which of both to send (our promise)."""
    refusal = json.loads(only(Session("server").receive(frame(id=1, method="tools/list"))).data)

    assert 1 == refusal["id"]
    assert -32602 == refusal["error"]["code"]
    assert "initialize" in refusal["error"]["message"]
    assert "_meta" in refusal["error"]["message"]


@pytest.mark.covers("lifecycle.initialize.twice-refused")
def test_an_open_session_is_not_initialized_again():
    """An initialize is the first interaction and the only one (spec: lifecycle)."""
    session = open_session()
    refused = only(session.receive(frame(id=2, method="initialize", params={})))

    assert isinstance(refused, SendBytes)
    assert -32600 == json.loads(refused.data)["error"]["code"]
    assert isinstance(only(session.receive(frame(id=3, method="tools/list"))), RequestReceived)


def test_a_refused_handshake_may_be_tried_again():
    """A failed initialize leaves the session as it was (our promise)."""
    session = Session("server")
    session.receive(frame(id=1, method="initialize", params={}))
    session.fail(1, ErrorBody(code=-32602, message="no"))

    assert isinstance(only(session.receive(frame(id=2, method="initialize"))), RequestReceived)


@pytest.mark.covers("messages.ids.kinds", "messages.errors.shape")
@pytest.mark.parametrize(
    ("data", "code", "id"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"3", -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":3}}', -32602, 1),
        (b'{"jsonrpc":"2.0"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}', -32600, 1),
    ],
)
def test_bad_input_is_answered_and_the_session_lives(data, code, id):
    """Malformed input gets an error, with its id where it was legible (spec: responses)."""
    session = open_session()
    answer = json.loads(only(session.receive(data)).data)

    assert code == answer["error"]["code"]
    assert id == answer["id"]
    assert isinstance(only(session.receive(frame(id=99, method="ping"))), RequestReceived)


@pytest.mark.covers("messages.ids.in-flight")
def test_an_id_in_flight_is_refused_and_the_first_still_answered():
    """Duplicate ids in flight are refused (spec: requests)."""
    session = open_session()
    session.receive(frame(id=1, method="ping"))

    assert (
        -32600
        == json.loads(only(session.receive(frame(id=1, method="ping"))).data)["error"]["code"]
    )
    assert session.answer(1, b"{}") is not None


@pytest.mark.covers("interaction.in-flight.bounded")
def test_more_requests_than_may_be_in_flight_are_refused_one_by_one():
    """Everything is bounded, and what is over the limit is told so (our promise)."""
    session = open_session()
    for number in range(MAX_IN_FLIGHT):
        session.receive(frame(id=number, method="ping"))
    refused = json.loads(only(session.receive(frame(id="more", method="ping"))).data)
    session.answer(0, b"{}")

    assert ("more", -32603) == (refused["id"], refused["error"]["code"])
    assert isinstance(only(session.receive(frame(id="more", method="ping"))), RequestReceived)


@pytest.mark.covers("cancellation.received.unanswered")
def test_a_withdrawn_call_is_reported_and_never_answered():
    """No response for a cancelled request (spec: cancellation)."""
    session = open_session()
    session.receive(frame(id=1, method="tools/call", params={"name": "x"}))
    event = only(
        session.receive(
            frame(method="notifications/cancelled", params={"requestId": 1, "reason": "bored"})
        )
    )

    assert RequestWithdrawn(1, "bored") == event
    assert session.withdrawn(1)
    assert None is session.answer(1, b"{}")


@pytest.mark.covers("cancellation.sent.never-opening")
def test_initialize_cannot_be_withdrawn():
    """The initialize request MUST NOT be cancelled (spec 2025-11-25: cancellation)."""
    session = Session("server")
    session.receive(frame(id=1, method="initialize", params={}))

    assert [] == session.receive(frame(method="notifications/cancelled", params={"requestId": 1}))
    assert session.answer(1, b"{}") is not None


@pytest.mark.covers("cancellation.received.senseless-ignored")
@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"requestId": 77}, {"requestId": []}])
def test_a_senseless_cancellation_is_ignored(params):
    """Invalid cancellations SHOULD be ignored (spec: cancellation error handling)."""
    assert [] == acted_on(
        open_session().receive(frame(method="notifications/cancelled", params=params))
    )


def test_our_call_is_answered_once():
    """Late and repeated answers answer no call (our promise)."""
    session = Session("client")
    id, data = session.call("ping")
    answer = frame(id=id, result={"ok": 1})

    assert "ping" == json.loads(data)["method"]
    event = only(session.receive(answer))
    assert isinstance(event, CallAnswered)
    assert b'{"ok": 1}' == bytes(event.result)
    late = only(session.receive(answer))
    assert isinstance(late, LateAnswer)
    assert (id, b'{"ok": 1}') == (late.id, bytes(late.result))


def test_our_call_fails_with_the_other_sides_words():
    """Code, message and data arrive as they were sent (spec: errors)."""
    session = Session("client")
    id, _ = session.call("tools/list")
    error = {"code": -32601, "message": "no", "data": {"a": 1}}

    assert CallFailed(id, ErrorBody(**error)) == only(session.receive(frame(id=id, error=error)))


@pytest.mark.covers("messages.errors.null-id-heard")
def test_an_error_without_id_reaches_the_only_caller():
    """Error responses with a null id reach the caller (conformance.md, divergences)."""
    session = Session("client")
    id, _ = session.call("tools/list")
    event = only(session.receive(frame(id=None, error={"code": -32700, "message": "what?"})))

    assert id == event.id


@pytest.mark.covers("messages.errors.null-id-heard")
def test_an_error_without_id_is_dropped_where_it_could_be_anyones():
    """With several calls in flight nobody can say whose it is (our promise)."""
    session = Session("client")
    session.call("tools/list")
    session.call("tools/list")

    assert [] == acted_on(
        session.receive(frame(id=None, error={"code": -32700, "message": "what?"}))
    )


def test_progress_reaches_its_call_and_moves_the_deadline():
    """Progress is matched by token and extends the wait (spec: progress, timeouts)."""
    session = Session("client")
    id, _ = session.call("tools/call", now=0.0, timeout=5.0, max_timeout=100.0)
    note = frame(method="notifications/progress", params={"progressToken": id, "progress": 1})
    event = only(session.receive(note, now=4.0))

    assert isinstance(event, CallProgressed)
    assert 1 == event.params.progress
    assert 9.0 == session.next_deadline()


@pytest.mark.covers("progress.token.asked-for-only")
@pytest.mark.parametrize("params", [{}, {"progressToken": 5}, {"progressToken": []}])
def test_senseless_progress_is_ignored(params):
    """Progress that says nothing is dropped (our promise)."""
    assert [] == acted_on(
        Session("client").receive(frame(method="notifications/progress", params=params))
    )


@pytest.mark.parametrize(("side", "heard"), [("client", [NotificationReceived]), ("server", [])])
def test_progress_of_no_call_is_handed_on_to_clients(side, heard):
    """A task's token outlives its call (spec: tasks); a server asks for none (ours)."""
    note = frame(method="notifications/progress", params={"progressToken": 5, "progress": 1})

    assert heard == [type(event) for event in Session(side).receive(note)]


def test_silence_expires_with_the_words_to_withdraw():
    """On a timeout the sender SHOULD cancel the request (spec: timeouts)."""
    session = Session("client")
    id, _ = session.call("tools/call", now=1.0, timeout=2.0)

    assert [] == session.tick(2.9)
    event = only(session.tick(3.0))
    assert isinstance(event, CallExpired)
    assert id == json.loads(event.data)["params"]["requestId"]
    assert isinstance(only(session.receive(frame(id=id, result={}))), LateAnswer)


def test_a_call_is_given_up_whatever_the_reason_says():
    """Ours: a reason is text from anywhere, and need not fit into JSON."""
    session = Session("client")
    id, _ = session.call("tools/call")

    note = json.loads(session.cancel(id, "moved to /\udcff"))

    assert {"requestId": id, "reason": "moved to /?"} == note["params"]


@pytest.mark.covers("cancellation.sent.never-opening")
@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_an_expired_opening_is_not_cancelled_on_the_wire(method):
    """A client MUST NOT cancel initialize (spec 2025-11-25), and a probe may meet a legacy server."""
    session = Session("client")
    session.call(method, timeout=1.0)

    assert None is only(session.tick(5.0)).data


def test_a_server_that_waits_for_our_answer_is_not_silent():
    """While we answer its question, its call does not expire, up to the limit (our promise)."""
    session = Session("client")
    id, _ = session.call("tools/call", now=0.0, timeout=2.0, max_timeout=10.0)
    session.receive(frame(id="q", method="elicitation/create", params={}), now=1.0)

    assert [] == session.tick(5.0)
    assert 7.0 == session.next_deadline()
    session.answer("q", b"{}")
    assert id == only(session.tick(7.0)).id


def test_a_question_does_not_lift_the_limit():
    """The maximum is enforced whatever happens (spec 2025-11-25 basic/lifecycle#timeouts)."""
    session = Session("client")
    session.call("tools/call", now=0.0, timeout=2.0, max_timeout=3.0)
    session.receive(frame(id="q", method="elicitation/create", params={}), now=1.0)

    assert [] == session.tick(2.0)
    assert isinstance(only(session.tick(3.0)), CallExpired)


@pytest.mark.covers("rounds.no-requests.client")
@pytest.mark.parametrize("data", [b"{", b"hello", b"[]", b"[1]", b"{}", b"7"])
def test_a_client_answers_no_garbage(data):
    """The client MUST NOT write responses (spec 2026-07-28: stdio), least of all to a banner."""
    assert [] == acted_on(Session("client").receive(data))


def test_a_client_takes_no_more_out_of_an_array_than_it_may_have_to_answer():
    """Ours: it cannot refuse one, and each of its members may cost a task."""
    ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    few, many = (b"[%b]" % b",".join(ping % n for n in range(c)) for c in (MAX_TAKEN_MEMBERS, 1001))

    assert MAX_TAKEN_MEMBERS == len(Session("client", in_flight=None).receive(few))
    assert [] == acted_on(Session("client", in_flight=None).receive(many))


def test_a_client_takes_a_batch_apart():
    """Implementations MUST support receiving batches (spec 2025-03-26 basic)."""
    session = Session("client")
    one, _ = session.call("ping")
    two, _ = session.call("ping")
    answers = [{"jsonrpc": "2.0", "id": id, "result": {}} for id in (two, one)]

    assert [two, one] == [event.id for event in session.receive(json.dumps(answers).encode())]


@pytest.mark.covers("cancellation.sent.once")
def test_giving_up_says_so_once():
    """A cancelled call is withdrawn on the wire once (spec: cancellation)."""
    session = Session("client")
    id, _ = session.call("tools/call")

    assert "why" == json.loads(session.cancel(id, "why"))["params"]["reason"]
    assert None is session.cancel(id)


@pytest.mark.covers("cancellation.listen.only-what-a-server-cancels")
def test_a_server_may_tear_down_a_listen_stream_and_nothing_else():
    """Server-sent cancellation MUST reference a listen request (spec 2026-07-28: cancellation)."""
    session = Session("client")
    listen, _ = session.call("subscriptions/listen")
    call, _ = session.call("tools/call")

    def cancelled(id):
        return session.receive(frame(method="notifications/cancelled", params={"requestId": id}))

    assert isinstance(only(cancelled(listen)), CallAnswered)
    assert [] == cancelled(call)
    assert isinstance(only(session.receive(frame(id=call, result={}))), CallAnswered)


def test_other_notifications_are_passed_on():
    """What the session has no use for is the router's (our promise)."""
    event = only(open_session().receive(frame(method="notifications/roots/list_changed")))

    assert NotificationReceived("notifications/roots/list_changed", None) == event


def test_closing_names_the_calls_that_will_never_be_answered():
    """Each call ends exactly once, also at the end (decision D20)."""
    session = Session("client")
    id, _ = session.call("ping")

    assert [id] == session.close()
    assert isinstance(only(session.receive(frame(id=id, result={}))), LateAnswer)


def test_a_closed_server_serves_nothing():
    """After the end every request is refused (our promise)."""
    session = open_session()
    session.close()

    assert isinstance(only(session.receive(frame(id=1, method="ping"))), SendBytes)


def test_a_client_takes_requests_in_any_phase():
    """Which requests a client serves is the router's and the revision's business."""
    assert isinstance(only(Session("client").receive(frame(id=1, method="ping"))), RequestReceived)


DROPPED = {
    "a request where none may be sent": (
        frame(id=5, method="roots/list"),
        "a request for 'roots/list', which servers of this revision do not send",
    ),
    "a banner": (b"hello", "what is no message: "),
    "an answer to nothing": (frame(id=77, result={}), "an answer to 77, the id of no request"),
    "an error about nothing": (
        frame(id=None, error={"code": -32700, "message": "\x1b[2Jwhat?"}),
        "an error that names no request: '\\x1b[2Jwhat?'",
    ),
    "malformed progress": (
        frame(method="notifications/progress", params={}),
        "a malformed notifications/progress",
    ),
}


@pytest.mark.parametrize("name", DROPPED)
def test_a_dropped_message_is_reported_in_words(name):
    """Ours: what is dropped can be logged, with nothing in it that a terminal obeys."""
    data, words = DROPPED[name]
    session = Session("client")
    session.deaf = True

    event = only(session.receive(data))

    assert isinstance(event, MessageDropped)
    assert event.what.startswith(words)
    assert event.what.isprintable()


def test_a_dropped_message_is_repeated_in_part():
    """Ours: the other side does not fill our log."""
    session = Session("client")
    session.deaf = True

    event = only(session.receive(frame(id=1, method="x" * 10_000)))

    assert len(event.what) < 200


def test_a_large_result_is_enclosed_without_being_copied():
    """Ours: what stands around it is what an answer has around it; of a withdrawn call, nothing."""
    plain, apart = Session("server"), Session("server")
    for session in (plain, apart):
        session.receive(b'{"jsonrpc":"2.0","id":"a","method":"ping"}')

    before, behind = apart.enclose("a")

    assert plain.answer("a", b'{"x":1}') == before + b'{"x":1}' + behind
    assert apart.enclose("a") is None
