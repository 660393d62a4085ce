"""What a client posts at one node reaches the node that it is meant for."""

import json

import msgspec
import pytest

from isthmus.core.principal import Principal
from isthmus.store.mailbox import MailRefused
from isthmus.testing.faults import until
from isthmus.transports.http.sessions.session_mail import (
    MESSAGE_TOPIC,
    SESSIONS_CHANNEL,
    SessionLetter,
    SessionNews,
)
from support.event_loop import run_turns
from support.http.cluster import LEGACY_REVISIONS, Cluster
from support.http.messages import read_tool_text

CANCELLED = "notifications/cancelled"


def note(method, **params):
    """A notification of a client."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


async def read_answer(exchange):
    """The text that a call was answered with, however many events came before."""
    while True:
        message = await exchange.event()
        if "result" in message:
            return read_tool_text(message)


def find_session(node, client):
    """The session of a client at a node that holds it."""
    return node.book.find(client.session)


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("at", [0, 1, 2])
async def test_an_answer_posted_at_any_node_ends_the_question(revision, at):
    """Spec 2025-11-25 basic/transports#sending-messages-to-the-server: an accepted response is 202."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision)
        call = client.call("ask", 1, at=0)
        question = await call.event()
        status = await client.answer(question, "file:///a", at)

        assert question["id"].startswith(f"{cluster.nodes[0].id}.")
        assert 202 == status
        assert "file:///a" == await read_answer(call)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_ten_of_ten_questions_are_answered_over_nodes_in_any_order(revision):
    """Ours: calls, answers and everything else of one client go to any node."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision, seed=7)
        calls = [client.call("ask", number) for number in range(1, 11)]
        questions = [await call.event() for call in calls]
        assert 10 == len({question["id"] for question in questions})
        order = [3, 9, 0, 5, 1, 8, 2, 7, 6, 4]
        for number in order:
            assert 202 == await client.answer(questions[number], f"file:///{number}")

        assert [f"file:///{number}" for number in range(10)] == [
            await read_answer(call) for call in calls
        ]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_an_answer_that_is_an_error_reaches_whoever_asked(revision):
    """JSON-RPC: a request is answered by a result or an error."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        call = client.call("ask", 1, at=0)
        question = await call.event()
        error = {"code": -1, "message": "The user has none"}
        await client.say({"jsonrpc": "2.0", "id": question["id"], "error": error}, at=1)
        answer = await call.event()

        assert "Tool 'ask' failed: Refused" == read_tool_text(answer)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_second_answer_means_nothing(revision):
    """Ours: whichever comes first counts, at whichever node."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        call = client.call("ask", 1, at=0)
        question = await call.event()
        statuses = [
            await client.answer(question, uri, at)
            for uri, at in [("file:///a", 1), ("file:///b", 1), ("file:///c", 0)]
        ]

        assert [202, 202, 202] == statuses
        assert "file:///a" == await read_answer(call)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_an_answer_for_a_dead_node_is_accepted_and_means_nothing(revision):
    """Ours: as an answer that comes too late always has."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        call = client.call("ask", 1, at=0)
        question = await call.event()
        await cluster.nodes[0].kill()

        assert 202 == await client.answer(question, "file:///a", at=1)
        assert "hello" == read_tool_text((await client.call("hello", 2, at=1).done()).json)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_an_answer_for_a_node_out_of_reach_is_to_be_sent_again(revision):
    """Ours: while its lease lasts, the node that asked may still want the answer."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        call = client.call("ask", 1, at=0)
        question = await call.event()
        await cluster.nodes[0].kill(is_seen=False)

        assert 503 == await client.answer(question, "file:///a", at=1)


@pytest.mark.parametrize("id", ["n0123456789.1", "n0.1", "x", "../x.1", "n0123456789.", ".", 7, -1])
async def test_an_answer_to_nobodys_question_is_accepted(id):
    """Ours: ids of our own making lead nowhere else."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-06-18")

        assert 202 == await client.say({"jsonrpc": "2.0", "id": id, "result": {}}, at=1)


async def test_an_answer_while_the_store_is_lost_can_be_said_again():
    """Ours: 503 with Retry-After, and nothing has happened."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        call = client.call("ask", 1, at=0)
        question = await call.event()
        await client.call("hello", 2, at=1).done()
        cluster.store.is_lost = True
        result = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "a:///"}]}}
        refused = await client.begin(result, at=1).done()
        plain = await client.call("hello", 3, at=1).done()
        cluster.store.is_lost = False

        assert 503 == refused.status
        assert "2" == refused.header("retry-after")
        assert "hello" == read_tool_text(plain.json)
        assert 202 == await client.answer(question, "file:///a", at=1)
        assert "file:///a" == await read_answer(call)


async def test_a_batch_of_answers_is_taken_apart():
    """Spec 2025-03-26 basic#batching: each member goes where it belongs."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client("2025-03-26")
        calls = [client.call("ask", at + 1, at=at) for at in range(3)]
        questions = [await call.event() for call in calls]
        batch = [
            {
                "jsonrpc": "2.0",
                "id": question["id"],
                "result": {"roots": [{"uri": f"file:///{at}"}]},
            }
            for at, question in enumerate(questions)
        ]

        assert 202 == await client.say(batch, at=1)
        assert ["file:///0", "file:///1", "file:///2"] == [
            await read_answer(call) for call in calls
        ]


async def test_a_batch_of_answers_for_elsewhere_alone_is_accepted():
    """Spec 2025-03-26 basic/transports: 202 where there were only responses."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-03-26")
        call = client.call("ask", 1, at=0)
        question = await call.event()
        result = {"roots": [{"uri": "file:///a"}]}

        assert 202 == await client.say(
            [{"jsonrpc": "2.0", "id": question["id"], "result": result}], at=1
        )
        assert "file:///a" == await read_answer(call)


# --- cancellation and other notifications -------------------------------------------------------


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("at", [0, 1])
async def test_a_call_is_cancelled_from_any_node(revision, at):
    """Spec 2025-11-25 basic/utilities/cancellation: the receiver SHOULD stop processing."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        call = client.call("wait", "c", at=0, name="it")
        await until(lambda: find_session(cluster.nodes[0], client).is_serving("c"))
        published = cluster.store.channels.count(SESSIONS_CHANNEL)
        status = await client.say(note(CANCELLED, requestId="c"), at)
        await call.done()

        assert 202 == status
        assert 202 == call.status
        assert ["it"] == cluster.nodes[0].cancelled
        told = cluster.store.channels.count(SESSIONS_CHANNEL) - published
        assert at == told, "what is here is cancelled without telling anybody"


async def test_a_cancellation_in_the_middle_of_a_question_elsewhere():
    """Spec 2025-11-25 basic/utilities/cancellation: the call ends, and its question with it."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client("2025-11-25")
        call = client.call("ask", 4, at=0)
        question = await call.event()
        await client.say(note(CANCELLED, requestId=4), at=1)
        await call.done()

        assert 202 == await client.answer(question, "file:///late", at=2)
        assert not [one for one in call.events if "result" in one]


async def test_a_cancellation_that_comes_before_its_call_is_not_kept():
    """Ours: as on one node."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        await client.say(note(CANCELLED, requestId=1), at=1)
        await run_turns()

        assert "hello" == read_tool_text((await client.call("hello", 1, at=0).done()).json)


async def test_a_cancellation_reaches_nobody_elses_call():
    """Ours: ids are of one session."""
    async with Cluster() as cluster:
        client, other = [await cluster.open_client("2025-11-25") for _ in range(2)]
        call = client.call("wait", 1, at=0, name="mine")
        await until(lambda: find_session(cluster.nodes[0], client).is_serving(1))
        await other.say(note(CANCELLED, requestId=1), at=1)
        await run_turns(20)
        still = list(cluster.nodes[0].cancelled)
        await client.say(note(CANCELLED, requestId=1), at=1)
        await call.done()

        assert [] == still


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_notification_of_ones_own_is_handled_once_where_it_arrives(revision):
    """Ours: nothing at another node depends on it."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision)
        await client.say(note("acme/moved", to="here"), at=1)
        await client.say(note("notifications/roots/list_changed"), at=1)
        await run_turns(20)

        assert [[], ["here"], []] == [node.noted for node in cluster.nodes]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_session_that_was_opened_elsewhere_may_be_asked_where_it_began(revision):
    """Spec 2025-11-25 basic/lifecycle: a server SHOULD NOT ask before notifications/initialized."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        await client.say({"jsonrpc": "2.0", "method": "notifications/initialized"}, at=1)
        call = client.call("ask", 1, at=0)
        question = await call.event()
        await client.answer(question, "file:///a", at=0)

        assert "file:///a" == await read_answer(call)


@pytest.mark.parametrize(
    "malformed", [{}, {"requestId": {}}, {"requestId": None}, {"requestId": 1.5}]
)
async def test_malformed_cancellations_are_ignored(malformed):
    """Spec 2025-11-25 basic/utilities/cancellation#error-handling: SHOULD be ignored."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        published = len(cluster.store.channels)

        assert 202 == await client.say(note(CANCELLED, **malformed), at=1)
        assert published == len([one for one in cluster.store.channels if one != SESSIONS_CHANNEL])


# --- who may say what ---------------------------------------------------------------------------


async def test_an_answer_to_anothers_question_is_not_taken_in():
    """Ours: the mark of the session that posts goes with the letter, and must fit."""
    async with Cluster() as cluster:
        victim, attacker = [await cluster.open_client("2025-11-25") for _ in range(2)]
        call = victim.call("ask", 1, at=0)
        question = await call.event()
        await attacker.call("hello", 1, at=0).done()
        stolen = [await attacker.answer(question, "file:///evil", at) for at in (0, 1)]
        await victim.answer(question, "file:///good", at=1)

        assert [202, 202] == stolen
        assert "file:///good" == await read_answer(call)


def seal(kind, **fields):
    return msgspec.msgpack.encode(kind(**fields))


async def test_a_letter_of_another_owner_is_refused():
    """Ours: mark and owner must fit."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        call = client.call("ask", 1, at=0)
        question = await call.event()
        session = find_session(cluster.nodes[0], client)
        body = json.dumps(
            {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
        ).encode()
        letter = seal(SessionLetter, mark=session.mark, owner=b"o" * 16, body=body)
        with pytest.raises(MailRefused):
            await cluster.nodes[1].app.node.mailbox.send(cluster.nodes[0].id, MESSAGE_TOPIC, letter)
        session.principal = Principal(issuer="i", subject="s")
        letter = seal(SessionLetter, mark=session.mark, owner=None, body=body)
        with pytest.raises(MailRefused):
            await cluster.nodes[1].app.node.mailbox.send(cluster.nodes[0].id, MESSAGE_TOPIC, letter)

        assert session.peer._waiting


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode(["mark", None]),
        msgspec.msgpack.encode(["mark", None, b"{}", "more"]),
        msgspec.msgpack.encode([1, None, b"{}"]),
    ],
)
async def test_letters_and_news_of_another_shape_do_nothing(data):
    """Ours: what comes from elsewhere is decoded strictly."""
    async with Cluster() as cluster:
        node = cluster.nodes[1].app.node
        with pytest.raises(MailRefused):
            await node.mailbox.send(cluster.nodes[0].id, MESSAGE_TOPIC, data)
        await node.bus.publish(SESSIONS_CHANNEL, data)
        await run_turns()
        client = await cluster.open_client("2025-11-25")

        assert "hello" == read_tool_text((await client.call("hello", 1, at=0).done()).json)


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "hello"}},
        {"jsonrpc": "2.0", "method": "acme/moved", "params": {"to": "there"}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "hello"}},
        [{"jsonrpc": "2.0", "id": 9, "method": "ping"}],
        "text",
    ],
)
async def test_no_request_and_no_other_notification_is_taken_in_by_mail(body):
    """Ours: only what must find another node travels."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        session = find_session(cluster.nodes[0], client)
        data = json.dumps(body).encode()
        letter = seal(SessionLetter, mark=session.mark, owner=None, body=data)
        news = SessionNews(cluster.nodes[1].id, "message", session.mark, None, data)
        node = cluster.nodes[1].app.node
        await node.mailbox.send(cluster.nodes[0].id, MESSAGE_TOPIC, letter)
        await node.bus.publish(SESSIONS_CHANNEL, msgspec.msgpack.encode(news))
        await run_turns(20)

        assert [] == cluster.nodes[0].noted
        assert [] == session.peer.outbox
        assert not session.peer._serving


# --- without a store ----------------------------------------------------------------------------


async def test_without_a_store_there_is_no_mail():
    """Ours: one process is as it was."""
    async with Cluster(1, None) as cluster:
        client = await cluster.open_client("2025-11-25")
        call = client.call("ask", 1)
        question = await call.event()
        await client.answer(question, "file:///a")

        assert cluster.nodes[0].book.shared.mail is None
        assert "file:///a" == await read_answer(call)
