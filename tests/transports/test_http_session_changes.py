"""Changes of a session at one node, and its end: they count at all nodes."""

import pytest

from isthmus.testing.faults import until
from isthmus.transports.http.sessions.session_mail import SESSIONS_CHANNEL
from support.event_loop import run_turns
from support.http.cluster import LEGACY_REVISIONS, Cluster
from support.http.messages import read_tool_text

UPDATED = "notifications/resources/updated"


def request(method, id, **params):
    """A request of a client."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


async def hold_everywhere(cluster, client):
    """Have each node hold the session."""
    for at in range(len(cluster.nodes)):
        answer = await client.call("hello", f"hold {at}", at=at).done()
        assert "hello" == read_tool_text(answer.json)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("is_held", [True, False])
async def test_a_log_level_that_was_set_elsewhere_counts(revision, is_held):
    """Spec 2025-11-25 server/utilities/logging: from the level that the client set, at every node."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        if is_held:
            await hold_everywhere(cluster, client)
        await client.begin(request("logging/setLevel", 1, level="error"), at=0).done()
        await run_turns(20)
        call = await client.call("log", 2, at=1).done()

        logged = [one for one in call.events if one.get("method") == "notifications/message"]
        assert ["error"] == [one["params"]["level"] for one in logged]


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_subscription_made_elsewhere_is_known_here(revision):
    """Spec 2025-11-25 server/resources#subscriptions: the home tells, wherever it was subscribed to."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        await client.begin(request("resources/subscribe", 1, uri="a://b"), at=1).done()
        await run_turns(20)
        home = cluster.nodes[0].server._changes
        (listener,) = home._sessions.values()
        known = set(listener.topics)
        await client.begin(request("resources/unsubscribe", 2, uri="a://b"), at=1).done()
        await run_turns(20)

        assert {(UPDATED, "a://b")} == known
        assert set() == listener.topics


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_subscription_is_ended_by_a_node_that_has_not_heard_of_it_yet(revision):
    """Ours: what a client was answered at one node counts at the next, however slow the bus is."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        await hold_everywhere(cluster, client)
        cluster.nodes[1].book.shared.leave()  # it hears nothing
        await client.begin(request("resources/subscribe", 1, uri="a://b"), at=0).done()
        await client.begin(request("resources/unsubscribe", 2, uri="a://b"), at=1).done()
        await run_turns(20)
        mark = cluster.nodes[0].book.find(client.session).mark
        record = await cluster.nodes[0].book.shared._records.load(mark)

        assert () == record.subscriptions


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_subscription_is_made_again_by_a_node_that_takes_it_for_made(revision):
    """Ours: the same the other way round."""
    async with Cluster() as cluster:
        client = await cluster.open_client(revision)
        await client.begin(request("resources/subscribe", 1, uri="a://b"), at=1).done()
        await run_turns(20)
        cluster.nodes[1].book.shared.leave()
        await client.begin(request("resources/unsubscribe", 2, uri="a://b"), at=0).done()
        await client.begin(request("resources/subscribe", 3, uri="a://b"), at=1).done()
        mark = cluster.nodes[0].book.find(client.session).mark
        record = await cluster.nodes[0].book.shared._records.load(mark)

        assert ("a://b",) == record.subscriptions


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_session_that_is_deleted_ends_at_every_node(revision):
    """Spec 2025-11-25 basic/transports#session-management: MUST respond with 404 after that."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision)
        await hold_everywhere(cluster, client)
        call = client.call("wait", "w", at=0, name="it")
        await until(lambda: cluster.nodes[0].book.find(client.session).is_serving("w"))
        ended = await client.begin(b"", at=1, method="DELETE").done()
        await call.done()
        statuses = [(await client.call("hello", 5, at=at).done()).status for at in range(3)]

        assert 200 == ended.status
        assert 404 == call.status
        assert ["it"] == cluster.nodes[0].cancelled
        assert [404, 404, 404] == statuses


async def test_after_a_gap_the_records_are_read_again():
    """Ours: news that was lost is found in the record."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        await hold_everywhere(cluster, client)
        cluster.nodes[1].book.shared.leave()
        await client.begin(request("logging/setLevel", 1, level="error"), at=0).done()
        await cluster.nodes[1].book.shared.join()
        cluster.store.bus.report_gap()
        await run_turns(20)

        assert "error" == cluster.nodes[1].book.find(client.session).peer.caller.log_level


async def test_plain_calls_tell_nobody_anything():
    """Ours: a warm call publishes nothing."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        await hold_everywhere(cluster, client)
        before = len(cluster.store.channels)
        for at in (0, 1, 0, 1):
            await client.call("hello", f"warm {at}", at=at).done()

        assert before == len(cluster.store.channels)
        assert 0 == cluster.store.channels.count(SESSIONS_CHANNEL)


async def test_a_status_of_a_clients_task_reaches_the_node_that_asked():
    """Spec 2025-11-25 basic/utilities/tasks#task-status-notification: whoever waits for the task hears it."""
    async with Cluster() as cluster:
        client = await cluster.open_client("2025-11-25")
        await hold_everywhere(cluster, client)
        heard = []
        for node in cluster.nodes:
            tasks = node.server._settings.client_tasks()
            tasks._open[node.book.find(client.session).peer] = [Listener(heard, node)]
        status = {
            "taskId": "t",
            "status": "completed",
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z",
            "ttl": None,
        }
        note = {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": status}
        assert 202 == await client.say(note, at=1)
        await run_turns(20)

        assert {node.id for node in cluster.nodes} == set(heard)
        assert 2 == len(heard)


class Listener:
    """A question that has become a task of the client."""

    def __init__(self, heard, node):
        self._heard = heard
        self._node = node

    def hear(self, params):
        """Note who heard it."""
        self._heard.append(self._node.id)
