"""Nodes that were taken for dead and go on, and leases that all ended at once."""

import asyncio

from isthmus.errors import StoreUnavailable
from isthmus.nodes.node import NODE_TTL_S, Node
from isthmus.store.memory_store import MemoryStore
from isthmus.testing import VirtualLoop


def run(work):
    """Run a coroutine on a clock that does not wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


async def join_nodes(count):
    """Nodes over one store whose time is the loop's, and the store."""
    store = MemoryStore(asyncio.get_running_loop().time)
    nodes = [Node(store, name="s") for _ in range(count)]
    for node in nodes:
        await node.join()
    for node in nodes:
        assert len(nodes) >= len(await node.list_living())
    await asyncio.sleep(3)  # each has looked at the others once
    return store, nodes


async def leave_nodes(nodes):
    for node in nodes:
        await node.leave()


def test_a_node_that_lost_its_lease_is_told_when_it_goes_on():
    """Ours: what it held may be another's by now."""

    async def lives():
        store, nodes = await join_nodes(2)
        told = []

        async def note():
            told.append(nodes[0].id)

        nodes[0].on_return(note)
        await store.kv.delete(f"lease/node/{nodes[0].id}")
        await asyncio.sleep(3)
        living = await nodes[1].list_living()
        await leave_nodes(nodes)
        return told == [nodes[0].id], nodes[0].id in living

    assert (True, True) == run(lives)


def test_no_node_is_taken_for_dead_where_all_leases_ended_at_once():
    """Ours: a store that was away for longer than a lease has killed nobody."""

    async def lives():
        store, nodes = await join_nodes(3)
        died = []

        async def note(id):
            died.append(id)

        for node in nodes:
            node.on_death(note)
        for node in nodes:
            await store.kv.delete(f"lease/node/{node.id}")
        # whoever renews first sees none of the others
        await asyncio.sleep(2 * NODE_TTL_S)
        alive = [await nodes[0].is_alive(node.id) for node in nodes]
        await leave_nodes(nodes)
        return died, alive

    assert ([], [True, True, True]) == run(lives)


def test_a_node_that_ends_after_an_outage_is_found_dead():
    """Ours: doubt about leases ends, too."""

    async def lives():
        store, nodes = await join_nodes(2)
        died = []

        async def note(id):
            died.append(id)

        nodes[0].on_death(note)
        cas, store.kv.cas = store.kv.cas, refuse
        await asyncio.sleep(3)
        store.kv.cas = cas
        nodes[1]._renewing.cancel()
        await asyncio.sleep(3 * NODE_TTL_S)
        gone = nodes[1].id
        await nodes[0].leave()
        return died == [gone]

    assert run(lives)


async def refuse(*_arguments):
    """A store that is away."""
    raise StoreUnavailable("it is away")
