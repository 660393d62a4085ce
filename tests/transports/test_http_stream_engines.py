"""Streams over nodes on each engine of a store, in real time."""

import asyncio

import pytest

from isthmus.nodes.node import OUTCOME_UNKNOWN
from support.http.fleet import Fleet, FleetClient
from support.http.messages import read_tool_text
from support.store.engines import ENGINE_PARAMS, ENGINES


@pytest.fixture(params=ENGINE_PARAMS)
def engine(request, tmp_path):
    """One engine, empty."""
    return ENGINES[request.param](tmp_path)


def open_fleet(engine, count=3):
    """A fleet whose nodes have each a store of their own over the engine."""
    return Fleet(stores=[engine.make_store(real=True) for _ in range(count)])


async def test_a_stream_goes_on_at_other_nodes(engine):
    """2025-11-25 basic/transports#resumability-and-redelivery: messages after the last event id."""
    async with asyncio.timeout(15), open_fleet(engine) as fleet:
        here, there, yonder = fleet.nodes
        client = await FleetClient.connect(here)
        call = client.call(here)
        await here.steps.tell(1, 2)
        await call.event()
        await call.event()
        call.leave()
        again = client.get(there, call.ids[-1])
        await again.started.wait()
        await here.steps.tell(3)
        await again.event()
        last = client.get(yonder, again.ids[-1])
        await again.complete.wait()
        here.steps.end()
        await last.complete.wait()
        whole = client.get(there, call.ids[0])
        await whole.complete.wait()

    assert [3] == [event["params"]["progress"] for event in again.events]
    assert "done" == read_tool_text(last.events[-1])
    assert [*call.events, *again.events, *last.events] == whole.events


async def test_a_dead_nodes_call_ends_once_and_its_writer_is_refused(engine):
    """Ours: of several followers one writes the end; who was only stopped says nothing more."""
    async with asyncio.timeout(15), open_fleet(engine) as fleet:
        here, there, yonder = fleet.nodes
        client = await FleetClient.connect(here)
        call = client.call(here)
        await here.steps.tell(1)
        await call.event()
        await here.end_lease()
        clients = [client.get(node, call.ids[-1]) for node in (there, yonder)]
        for one in clients:
            await one.complete.wait()
        await here.steps.tell(2)
        here.steps.end()
        await call.done()

    assert [OUTCOME_UNKNOWN] == [event["error"]["message"] for event in clients[0].events]
    assert clients[0].events == clients[1].events
    assert clients[0].ids == clients[1].ids
    assert 1 == len(call.events)


async def test_a_standing_stream_is_continued_at_another_node(engine):
    """2025-11-25 basic/transports#multiple-connections: the newest carries everything."""
    async with asyncio.timeout(15), open_fleet(engine) as fleet:
        here, there, yonder = fleet.nodes
        client = await FleetClient.connect(here)
        first = client.get(here)
        await first.bytes_sent(b"id: ")
        second = client.get(there, first.ids[-1])
        await second.bytes_sent(b"id: ")
        await first.done()
        yonder.server._changes.announce_tools()
        await second.event()
        third = client.get(yonder, first.ids[-1])
        again = await third.event()

    assert "notifications/tools/list_changed" == again["method"]
    assert 1 == len(second.events)
