"""Standing streams that are opened at several nodes at once, over a store that takes its time."""

import asyncio
import random

import pytest

from isthmus.server import subscriptions
from support.event_loop import run_turns, run_until
from support.http.cluster import LEGACY_REVISIONS, Cluster

TOOLS = "notifications/tools/list_changed"

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
