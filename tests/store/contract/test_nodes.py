"""Contract of nodes: they join, leave, and find out who has ended."""

import asyncio

import pytest

from isthmus.errors import UsageError
from isthmus.nodes.node import Node
from isthmus.store.mailbox import MailUndelivered
from isthmus.store.store import StoreUnavailable
from support.store.cut_store import CutStore

TTL_S = 0.6  # so short that a test can wait for it, and no shorter than a busy machine needs


@pytest.fixture
async def join_node(engine):
    """Has nodes join, each with a store of its own whose way to the engine can be cut."""
    joined = []

    async def join(name="shop", **options):
        store = CutStore(engine.make_store(real=True))
        node = Node(store, name=name, ttl=TTL_S, **options)
        joined.append((node, store))
        await node.join()
        return node, store

    yield join
    for node, store in joined:
        store.mend()
        await node.leave()


def hear_deaths(node):
    """The ids of the nodes that one is told have died."""
    dead = asyncio.Queue()
    node.on_death(dead.put)
    return dead


async def test_nodes_know_of_each_other(join_node):
    """Ours: who joined is there for all, and for itself."""
    (one, _), (other, _) = await join_node(), await join_node()
    await one.join()

    assert sorted([one.id, other.id]) == sorted(await one.list_living())
    assert await one.is_alive(other.id)
    assert await one.is_alive(one.id)
    assert not await one.is_alive("nobody")
    assert one.secrets == other.secrets


async def test_the_others_learn_that_a_node_has_left(join_node):
    """Ours: what a node had is looked after, whether it died or left."""
    (other, _), (one, _) = await join_node(), await join_node()
    dead = hear_deaths(one)
    await other.leave()

    assert not await one.is_alive(other.id)
    assert [one.id] == await one.list_living()
    assert other.id == await dead.get()


async def test_the_others_learn_that_a_node_has_died(join_node):
    """Ours: each of those who are left is told once."""
    (one, _), (two, _), (third, store) = [await join_node() for _ in range(3)]
    dead = [hear_deaths(one), hear_deaths(two)]
    store.cut()

    assert [third.id, third.id] == [await queue.get() for queue in dead]
    assert not await one.is_alive(third.id)
    assert all(queue.empty() for queue in dead)


async def test_a_callback_that_fails_or_takes_long_stops_nobody(join_node, caplog):
    """Ours: the next one is told all the same, and this node's own lease is renewed meanwhile."""
    (one, _), (other, _), (third, store) = [await join_node() for _ in range(3)]
    mine, others = asyncio.Queue(), hear_deaths(other)
    release = asyncio.Event()

    async def fail(id):
        raise ValueError(id)

    async def wait(id):
        await mine.put(id)
        await release.wait()

    one.on_death(fail)
    one.on_death(wait)
    store.cut()
    assert third.id == await mine.get()
    assert third.id == await others.get()
    with pytest.raises(TimeoutError):  # nobody else dies for longer than a lease lasts
        await asyncio.wait_for(others.get(), 1.5 * TTL_S)
    release.set()

    assert f"the end of node {third.id}" in caplog.text


async def test_a_node_that_was_taken_for_dead_comes_back(join_node, caplog):
    """Ours: it finds out by itself, and serves on under its id."""
    (one, _), (other, store) = await join_node(), await join_node()
    dead = hear_deaths(one)
    store.cut()
    assert other.id == await dead.get()
    store.mend()
    await wait_until_living(one, other.id)
    assert f"node {other.id} was taken for dead, and comes back" in caplog.text
    store.cut()

    assert other.id == await dead.get()


async def test_an_answer_that_is_lost_makes_nobody_dead(join_node, caplog):
    """Ours: a renewal that was done and not heard of is found out, and the node lives on."""
    (one, _), (other, store) = await join_node(), await join_node()
    returned, dead = asyncio.Queue(), hear_deaths(one)
    other.on_return(lambda: returned.put(1))
    store.lose_answer("cas")
    name = f"node/{other.id}"
    versions = {(await one.leases.find(name)).version}
    while len(versions) < 4:
        versions.add((await one.leases.find(name)).version)
        await asyncio.sleep(0.01)

    assert f"node {other.id} cannot renew its lease: the answer of the store is lost" in caplog.text
    assert "comes back" not in caplog.text
    assert returned.empty()
    assert dead.empty()


async def wait_until_living(node, id):
    """Wait until a node is listed."""
    async with asyncio.timeout(10):
        while id not in await node.list_living():  # noqa: ASYNC110 - a lease tells nobody
            await asyncio.sleep(0.01)


async def test_nodes_write_to_each_other(join_node):
    """Ours: the mailbox of a node is open as long as it is one."""
    (one, _), (other, _) = await join_node(), await join_node()

    async def take(body):
        return body + b"!"

    other.mailbox.handle("shout", take)
    assert b"a!" == await one.mailbox.send(other.id, "shout", b"a")
    await other.leave()
    with pytest.raises(MailUndelivered):
        await one.mailbox.send(other.id, "shout", b"a", 0.05)


async def test_a_node_that_may_not_join_leaves_nothing_behind(join_node, engine):
    """Ours: nobody takes it for alive, writes to it, or hears of its death."""
    one, _ = await join_node()
    dead = hear_deaths(one)
    with pytest.raises(UsageError, match="belongs to"):
        await join_node("another")

    store = CutStore(engine.make_store(real=True))
    node = Node(store, name="shop", ttl=TTL_S)
    store.cut_after("subscribe")
    with pytest.raises(StoreUnavailable):
        await node.join()
    assert store.is_closed
    store.mend()
    assert [one.id] == await one.list_living()
    assert dead.empty()
    await node.join()
    assert await one.is_alive(node.id)
    await node.leave()


async def test_a_node_leaves_a_store_that_is_lost(join_node, caplog):
    """Ours: a process ends in any case."""
    node, store = await join_node()
    store.cut()
    await node.leave()
    await node.leave()

    assert "leaving the other nodes" in caplog.text
    assert store.is_closed


async def test_a_node_without_a_store_is_alone():
    """Ours: one process needs nothing."""
    node = Node()
    await node.join()

    assert await node.is_alive(node.id)
    assert node.mailbox is None
    with pytest.raises(StoreUnavailable, match="there is no store"):
        await node.list_living()
    await node.leave()
