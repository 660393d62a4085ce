"""Changes at one node, as clients of the others hear of them: each once."""

import asyncio

import pytest

from isthmus.server import subscriptions
from isthmus.testing.faults import until
from support.event_loop import run_turns
from support.http.asgi_driver import Exchange
from support.http.cluster import LEGACY_REVISIONS, Cluster
from support.http.messages import modern_body, modern_head, read_tool_text

TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
COMPLETE = "notifications/elicitation/complete"


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Changes of lists are told in the next turns of the loop."""
    monkeypatch.setattr(subscriptions, "LIST_CHANGE_DELAY_S", 0)


async def hold_everywhere(cluster, client):
    """Have each node hold the session."""
    for at in range(len(cluster.nodes)):
        answer = await client.call("hello", f"hold {at}", at=at).done()
        assert "hello" == read_tool_text(answer.json)


def find_methods(stream):
    """The methods that a stream has told so far."""
    return [event.get("method") for event in stream.events]


async def wait_until_open(stream):
    """Wait until a standing stream has begun, and its home is settled."""
    await stream.started.wait()
    await run_turns(50)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("changed_at", [0, 1, 2])
async def test_a_changed_list_is_told_once_by_the_home(revision, changed_at):
    """Spec 2025-11-25 basic/transports#multiple-connections: on one stream only."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision)
        await hold_everywhere(cluster, client)
        stream = client.listen(1)
        await wait_until_open(stream)
        before = find_methods(stream).count(TOOLS)
        cluster.nodes[changed_at].server.add_tool(lambda: None, name="new")
        await until(lambda: TOOLS in find_methods(stream)[before:])
        await run_turns(50)

        assert 1 == find_methods(stream).count(TOOLS) - before
        kept = [node.book.find(client.session)._kept for node in cluster.nodes]
        assert not any(kept)
        stream.leave()
        await stream.done()


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_resource_subscribed_to_elsewhere_is_told_by_the_home(revision):
    """Spec 2025-11-25 server/resources#subscriptions: whichever node it was subscribed at, or changed at."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision)
        await hold_everywhere(cluster, client)
        stream = client.listen(1)
        await wait_until_open(stream)
        subscribe = {"jsonrpc": "2.0", "id": "s", "method": "resources/subscribe"}
        await client.begin({**subscribe, "params": {"uri": "a://b"}}, at=2).done()
        await run_turns(50)
        cluster.nodes[0].server.notify_resource_updated("a://b")
        cluster.nodes[0].server.notify_resource_updated("a://c")
        await until(lambda: UPDATED in find_methods(stream))
        await run_turns(50)

        told = [event for event in stream.events if event.get("method") == UPDATED]
        assert [{"uri": "a://b"}] == [event["params"] for event in told]
        stream.leave()
        await stream.done()


async def test_the_end_of_a_page_is_told_where_the_client_listens():
    """Spec 2025-11-25 client/elicitation: asked at one node, dealt with at another, told at a third."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client("2025-11-25")
        await hold_everywhere(cluster, client)
        stream = client.listen(1)
        await wait_until_open(stream)
        asking = cluster.nodes[0]
        asking.server._changes.add_page(asking.book.find(client.session).peer, "e-1")
        cluster.nodes[2].server.notify_elicitation_complete("e-1")
        await until(lambda: COMPLETE in find_methods(stream))
        await run_turns(50)

        told = [event for event in stream.events if event.get("method") == COMPLETE]
        assert [{"elicitationId": "e-1"}] == [event["params"] for event in told]
        stream.leave()
        await stream.done()


async def test_a_modern_stream_hears_of_changes_at_other_nodes():
    """Spec 2026-07-28 basic/patterns/subscriptions: each stream, at whichever node it is open."""
    async with Cluster(2) as cluster:
        body = modern_body(
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}},
        )
        stream = Exchange(
            cluster.nodes[1].app, headers=modern_head("subscriptions/listen", None), body=body
        )
        await stream.event()
        cluster.nodes[0].server.add_tool(lambda: None, name="new")
        cluster.nodes[0].server.notify_resource_updated("a://b")
        told = {(await stream.event())["method"] for _ in range(2)}

        assert {TOOLS, UPDATED} == told
        stream.leave()
        await asyncio.gather(stream.task, return_exceptions=True)


async def test_a_ping_is_answered_at_any_node():
    """Spec 2025-11-25 basic/utilities/ping: the answer reaches the node that waits for it."""
    async with Cluster(2) as cluster:
        client = await cluster.open_client("2025-11-25")
        await hold_everywhere(cluster, client)
        stream = client.listen(0)
        await wait_until_open(stream)
        from isthmus.server.features.lifecycle import _send_ping

        ping = asyncio.create_task(
            _send_ping(cluster.nodes[0].book.find(client.session).peer, timeout=5)
        )
        asked = next(event for event in [await stream.event()] if event.get("method") == "ping")
        await client.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}}, at=1)

        assert None is await ping
        stream.leave()
        await stream.done()


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("nodes", [(1, 2), (2, 1), (0, 1), (1, 0), (1, 1, 2), (1, 2, 1), (0, 1, 2)])
async def test_standing_streams_opened_at_once_leave_one_home(revision, nodes):
    """Spec 2025-11-25 basic/transports#multiple-connections: on one stream only."""
    async with Cluster(3) as cluster:
        client = await cluster.open_client(revision)
        await hold_everywhere(cluster, client)
        streams = [client.listen(at) for at in nodes]
        for stream in streams:
            await wait_until_open(stream)
        before = [find_methods(stream).count(TOOLS) for stream in streams]
        cluster.nodes[0].server.add_tool(lambda: None, name="new")
        homes = [node for node in cluster.nodes if node.book.find(client.session).is_home]

        assert 1 == len(homes)
        await until(lambda: [find_methods(one).count(TOOLS) for one in streams] != before)
        await run_turns(50)
        told = sum(find_methods(stream).count(TOOLS) for stream in streams) - sum(before)
        assert 1 == told
        away = [
            s for s, at in zip(streams, nodes, strict=True) if cluster.nodes[at] is not homes[0]
        ]
        assert all(stream.complete.is_set() for stream in away)
        assert {} == homes[0].book.homes._under_way
        for stream in streams:
            stream.leave()
