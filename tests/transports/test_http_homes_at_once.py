"""Standing streams that are opened at several nodes at once, over a store that takes its time."""

import asyncio
import random

import pytest

from isthmus.server import subscriptions
from support.event_loop import run_turns, run_until
from support.http.cluster import LEGACY_REVISIONS, Cluster

TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
COMPLETE = "notifications/elicitation/complete"

MAX_DELAY_TURNS = 6  # of the loop, before and after anything that the store does


def delay(store, order):
    """Have a store take a number of turns for all that homes ask of it."""

    def make_slow(method):
        async def call(*arguments):
            await run_turns(order.randrange(MAX_DELAY_TURNS))
            result = await method(*arguments)
            await run_turns(order.randrange(MAX_DELAY_TURNS))
            return result

        return call

    for part, names in ((store.kv, ("get", "put", "cas")), (store.bus, ("publish",))):
        for name in names:
            setattr(part, name, make_slow(getattr(part, name)))


@pytest.mark.parametrize("seed", range(30))
async def test_the_lease_names_the_one_home(seed, monkeypatch):
    """Spec 2025-11-25 basic/transports#multiple-connections: on one stream only."""
    monkeypatch.setattr(subscriptions, "LIST_CHANGE_DELAY_S", 0)
    order = random.Random(seed)  # noqa: S311 - the same order each time
    async with Cluster(3) as cluster:
        delay(cluster.store, order)
        client = await cluster.open_client(LEGACY_REVISIONS[seed % 3])
        for at in range(3):
            await client.call("hello", f"hold {at}", at=at).done()
        opened = []
        for _ in range(order.randrange(2, 8)):
            at = order.randrange(3)
            opened.append((at, client.listen(at)))
            await run_turns(order.randrange(12))
        books = [node.book for node in cluster.nodes]
        await asyncio.wait_for(
            asyncio.gather(*(stream.started.wait() for _, stream in opened)), timeout=10
        )
        await run_until(lambda: not any(book.homes._under_way for book in books))
        await run_turns(300)
        ((_, lease),) = await cluster.store.kv.scan("lease/standing/", "", 2)
        home = [node.id.encode() for node in cluster.nodes].index(lease.value)
        before = count_changes(opened)
        cluster.nodes[0].server.add_tool(lambda: None, name="new")
        await run_until(lambda: count_changes(opened) > before)
        await run_turns(300)

        assert [at == home for at in range(3)] == [b.find(client.session).is_home for b in books]
        assert before + 1 == count_changes(opened)
        assert all(stream.complete.is_set() for at, stream in opened if at != home)
        for _, stream in opened:
            stream.leave()


def count_changes(opened):
    """How often the streams have told that the list of tools changed."""
    return sum(event.get("method") == TOOLS for _, stream in opened for event in stream.events)


def hold_publishes(store, channel, *, first):
    """Have a bus hold the first of the messages on a channel; gives (held, release), two events."""
    held, release, publish, count = asyncio.Event(), asyncio.Event(), store.bus.publish, [0]

    async def publish_later(name, message):
        if name == channel:
            count[0] += 1
            if count[0] == first:
                held.set()
                await release.wait()
        return await publish(name, message)

    store.bus.publish = publish_later
    return held, release


async def test_what_is_said_while_the_home_moves_is_said_by_the_next_one():
    """Ours: a former home's words reach the stream, although the next home has not its letter yet."""
    async with Cluster(2) as cluster:
        client = await cluster.open_client("2025-11-25")
        await client.call("hello", "hold 1", at=1).done()
        asking, listening = cluster.nodes
        asking.server._changes.add_page(asking.book.find(client.session).peer, "e-1")
        handing, release = hold_publishes(cluster.store, f"mail/{listening.id}", first=1)
        stream = client.listen(1)
        await handing.wait()
        asking.server.notify_elicitation_complete("e-1")
        await run_turns(50)
        release.set()
        await stream.started.wait()
        await run_turns(50)

        assert [COMPLETE] == [event.get("method") for event in stream.events]
        stream.leave()


async def test_a_change_that_the_former_home_hears_late_is_told():
    """Ours: the next home may have heard of the change first, and of the subscription afterwards."""
    async with Cluster(2) as cluster:
        client = await cluster.open_client("2025-11-25")
        await client.call("hello", "hold 1", at=1).done()
        subscribe = {"jsonrpc": "2.0", "id": "s", "method": "resources/subscribe"}
        await client.begin({**subscribe, "params": {"uri": "a://b"}}, at=0).done()
        await run_turns(50)
        stream = client.listen(1)
        await stream.started.wait()
        await run_turns(50)
        cluster.nodes[0].server._changes.hear_change(
            UPDATED, "a://b"
        )  # the bus was slow to this node
        await run_turns(50)

        assert [UPDATED] == [event.get("method") for event in stream.events]
        stream.leave()
