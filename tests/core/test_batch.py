"""Batches: arrays of messages, and the arrays that answer them."""

import json

import pytest

from isthmus.core.batch import MAX_BATCH_MEMBERS, IncomingBatch, find_batch_flaw, join_messages
from isthmus.core.events import NotificationReceived, RequestReceived, RequestWithdrawn, SendBytes
from isthmus.core.session import Session
from isthmus.wire.jsonrpc import ErrorBody

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(**members):
    """One message."""
    return {"jsonrpc": "2.0", **members}


def array(*members):
    """Members as bytes."""
    return json.dumps(members).encode()


def open_session(*, batches=True):
    """A server session after its handshake, in a revision with batches or without."""
    session = Session("server")
    session.receive(json.dumps(message(id="i", method="initialize", params={})).encode())
    session.batches = batches
    session.answer("i", b"{}")
    session.receive(json.dumps(message(method="notifications/initialized")).encode())
    return session


def ids(data):
    """The ids in an array of answers, in order."""
    return [answer["id"] for answer in json.loads(data)]


@pytest.mark.covers("batching.received.answered-as-array")
def test_an_array_is_answered_by_one_array_when_the_last_member_is_settled():
    """MUST support receiving batches (spec 2025-03-26 basic#batching)."""
    session = open_session()
    events = session.receive(array(*(message(id=i, method="ping") for i in (1, "1", 2))))

    assert [1, "1", 2] == [event.id for event in events]
    assert session.answer(2, b"{}") is None
    assert session.fail("1", ErrorBody(code=-32603, message="no")) is None
    answers = json.loads(session.answer(1, b"{}"))
    assert [2, "1", 1] == [answer["id"] for answer in answers]
    assert -32603 == answers[1]["error"]["code"]


def test_an_array_of_one_is_answered_by_an_array_of_one():
    """JSON-RPC 2.0: an array is answered by an array."""
    session = open_session()
    session.receive(array(message(id=1, method="ping")))

    assert [1] == ids(session.answer(1, b"{}"))


def test_messages_beside_an_array_are_answered_by_themselves():
    """Ours: an array holds up nobody else."""
    session = open_session()
    session.receive(array(message(id=1, method="ping")))
    session.receive(json.dumps(message(id=2, method="ping")).encode())

    assert 2 == json.loads(session.answer(2, b"{}"))["id"]
    assert [1] == ids(session.answer(1, b"{}"))


@pytest.mark.covers("batching.notes.202")
def test_an_array_of_notifications_has_no_answer():
    """JSON-RPC 2.0: nothing at all, and no empty array."""
    events = open_session().receive(array(message(method="notifications/roots/list_changed")))

    assert [NotificationReceived("notifications/roots/list_changed", None)] == events


@pytest.mark.covers("batching.initialize.refused")
def test_an_initialize_in_an_array_is_refused_and_the_rest_is_served():
    """MUST NOT be part of a batch (spec 2025-03-26 basic/lifecycle)."""
    session = open_session()
    events = session.receive(
        array(message(id=1, method="initialize", params={}), message(id=2, method="ping"))
    )

    assert [2] == [event.id for event in events]
    refused, answered = json.loads(session.answer(2, b"{}"))
    assert (1, -32600) == (refused["id"], refused["error"]["code"])
    assert 2 == answered["id"]


@pytest.mark.covers("batching.empty.refused")
def test_an_empty_array_is_refused_by_one_error():
    """JSON-RPC 2.0: an error object, and no array."""
    (event,) = open_session().receive(b"[]")
    error = json.loads(event.data)

    assert (None, -32600) == (error["id"], error["error"]["code"])


@pytest.mark.covers("batching.members.each-answered")
def test_each_flawed_member_is_answered_for_itself():
    """JSON-RPC 2.0: [1, 2] is answered by two errors."""
    session = open_session()
    junk = [1, "x", None, [], [message(id=8, method="ping")], {"jsonrpc": "1.0", "id": 3}]
    events = session.receive(
        array(*junk, message(id=7, method="ping"), message(id=7, method="ping"))
    )

    assert [7] == [event.id for event in events]
    answers = json.loads(session.answer(7, b"{}"))
    assert [None, None, None, None, None, 3, 7, 7] == [answer["id"] for answer in answers]
    assert all(-32600 == answer["error"]["code"] for answer in answers[:-1])
    assert {} == answers[-1]["result"]


def test_an_array_of_flaws_alone_is_answered_at_once():
    """JSON-RPC 2.0: an array of errors."""
    (event,) = open_session().receive(b"[1,2,3]")

    assert isinstance(event, SendBytes)
    assert [None, None, None] == ids(event.data)


@pytest.mark.covers("batching.members.bounded")
def test_an_array_of_too_many_is_refused_in_one_piece():
    """Ours: all members are served at once, so there is a most."""
    session = open_session()
    many = [message(id=i, method="ping") for i in range(MAX_BATCH_MEMBERS + 1)]
    (event,) = session.receive(array(*many))

    error = json.loads(event.data)
    assert (None, -32600) == (error["id"], error["error"]["code"])
    assert str(MAX_BATCH_MEMBERS) in error["error"]["message"]
    assert MAX_BATCH_MEMBERS == len(session.receive(array(*many[:-1])))


@pytest.mark.covers("batching.elsewhere.refused")
@pytest.mark.parametrize("body", [b"[]", array(message(id=1, method="ping")), b"[1]"])
def test_a_revision_without_batches_refuses_any_array_once(body):
    """Batching was removed (spec 2025-06-18 changelog), and 2024-11-05 had none."""
    for session in (open_session(batches=False), Session("server")):
        (event,) = session.receive(body)
        error = json.loads(event.data)

        assert (None, -32600) == (error["id"], error["error"]["code"])


@pytest.mark.covers("batching.cancelled.left-out")
def test_a_cancelled_member_is_left_out_and_not_waited_for():
    """A cancelled request is never answered (spec 2025-03-26: cancellation)."""
    session = open_session()
    session.receive(array(message(id=1, method="ping"), message(id=2, method="ping")))
    cancel = message(method="notifications/cancelled", params={"requestId": 1})
    (event,) = session.receive(json.dumps(cancel).encode())

    assert RequestWithdrawn(1, None) == event
    assert session.answer(2, b"{}") is None
    assert [2] == ids(session.fail(1, ErrorBody(code=-32603, message="gone")))


@pytest.mark.covers("batching.cancelled.left-out")
def test_an_array_whose_members_are_all_cancelled_is_not_answered():
    """JSON-RPC 2.0: no empty array is sent."""
    session = open_session()
    cancel = message(method="notifications/cancelled", params={"requestId": 1})
    events = session.receive(array(message(id=1, method="ping"), cancel))

    assert [RequestReceived, RequestWithdrawn] == [type(event) for event in events]
    assert session.answer(1, b"{}") is None


def test_a_modern_request_in_an_array_is_refused():
    """Ours: what states its own facts is of a revision without batches."""
    session = open_session()
    (event,) = session.receive(
        array(message(id=1, method="tools/list", params={"_meta": ENVELOPE}))
    )

    (error,) = json.loads(event.data)
    assert (1, -32600) == (error["id"], error["error"]["code"])
    again = session.receive(json.dumps(message(id=1, method="ping")).encode())
    assert [1] == [event.id for event in again]


@pytest.mark.covers("batching.responses.both-ways")
def test_a_server_takes_responses_in_an_array():
    """An array of responses is one of the bodies of a POST (spec 2025-03-26)."""
    session = open_session()
    asked = [session.call("roots/list")[0] for _ in range(2)]
    events = session.receive(array(*(message(id=id, result={}) for id in asked)))

    assert asked == [event.id for event in events]


@pytest.mark.covers("batching.responses.both-ways")
def test_a_client_answers_an_array_of_requests_by_an_array():
    """Implementations MUST support receiving batches: servers send requests, too."""
    session = Session("client")
    session.batches = True
    called = session.receive(array(*(message(id=i, method="roots/list") for i in (1, 2)), 5))

    assert [1, 2] == [event.id for event in called if isinstance(event, RequestReceived)]
    assert session.answer(1, b"{}") is None
    assert [1, 2] == ids(session.answer(2, b"{}"))


def test_a_client_answers_one_by_one_where_there_are_no_batches():
    """Ours: it takes apart what it cannot refuse, and sends none itself."""
    session = Session("client")
    session.receive(array(message(id=1, method="roots/list")))

    assert 1 == json.loads(session.answer(1, b"{}"))["id"]


def test_a_batch_alone():
    """The parts of it, without a session."""
    batch = IncomingBatch()
    assert batch.whole() is None
    batch.add(b"1")
    batch.expect()
    assert batch.whole() is None
    assert b"[1]" == batch.settle(None)
    assert b"[1,2]" == join_messages([b"1", b"2"])
    assert find_batch_flaw([1], accepted=True) is None
