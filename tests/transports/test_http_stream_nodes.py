"""Streams over nodes, by HTTP: a client comes back anywhere, and no call is waited for in vain."""

import asyncio

import pytest

from isthmus.nodes.node import OUTCOME_UNKNOWN
from isthmus.testing import VirtualLoop
from support.http.fleet import Fleet, FleetClient
from support.http.messages import read_tool_text

RESUMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]

CALL_END_TIMEOUT_S = 8.0  # from the end of a node to the error at its caller


def play(scene, *arguments):
    """Run a scene on a clock that passes when nothing else happens."""

    async def run():
        async with asyncio.timeout(200):
            return await scene(*arguments)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def read_progress(*exchanges):
    """The progress on some responses, in order."""
    return [
        event["params"]["progress"]
        for exchange in exchanges
        for event in exchange.events
        if event.get("method") == "notifications/progress"
    ]


async def leave(exchange):
    """The client's connection breaks, and the server notices."""
    await exchange.watched.wait()
    exchange.leave()
    await asyncio.sleep(0.001)


@pytest.mark.parametrize("revision", RESUMABLE)
def test_a_stream_goes_on_at_another_node(revision):
    """2025-11-25 basic/transports#resumability-and-redelivery: messages after the last event id."""

    async def scene():
        async with Fleet(3) as fleet:
            here, there, _ = fleet.nodes
            client = await FleetClient.connect(here, revision)
            call = client.call(here)
            await here.steps.tell(1, 2)
            await call.event()
            await call.event()
            await leave(call)
            again = client.get(there, call.ids[-1])
            await again.started.wait()
            await here.steps.tell(3)
            here.steps.end()
            await again.done()
            return call, again

    call, again = play(scene)

    assert [1, 2] == read_progress(call)
    assert [3] == read_progress(again)
    assert "done" == read_tool_text(again.events[-1])
    places = [int(id.rpartition("-")[2]) for id in call.ids + again.ids]
    assert places == sorted(set(places))


def test_a_stream_that_is_over_is_told_anywhere():
    """2025-11-25 basic/transports#resumability-and-redelivery: also the answer."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here)
            call = client.call(here)
            await here.steps.tell(1)
            here.steps.end()
            await call.done()
            return await client.get(there, call.ids[0]).done()

    again = play(scene)

    assert [1] == read_progress(again)
    assert "done" == read_tool_text(again.events[-1])


def test_a_call_whose_node_dies_ends_for_its_caller():
    """Ours: exactly once, with an error that says what is not known."""

    async def scene():
        async with Fleet(3) as fleet:
            here, there, yonder = fleet.nodes
            client = await FleetClient.connect(here)
            call = client.call(here, id="the-call")
            await here.steps.tell(1)
            await call.event()
            began = asyncio.get_running_loop().time()
            await here.kill()
            again, beside = (client.get(node, call.ids[-1]) for node in (there, yonder))
            await again.done()
            await beside.done()
            took = asyncio.get_running_loop().time() - began
            return again, beside, took

    again, beside, took = play(scene)

    error = {"code": -32603, "message": OUTCOME_UNKNOWN}
    assert [("the-call", error)] == [(one["id"], one["error"]) for one in again.events]
    assert again.events == beside.events
    assert again.ids == beside.ids
    assert took <= CALL_END_TIMEOUT_S


def test_a_node_that_was_taken_for_dead_says_nothing_more_on_the_stream():
    """Ours: the log refuses its writes; it goes on serving."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here)
            call = client.call(here)
            await here.steps.tell(1)
            await call.event()
            here.pause()
            again = await client.get(there, call.ids[-1]).done()
            await here.steps.tell(2)
            here.steps.end()
            await call.done()
            hello = await client.call(here, "hello", id=2).done()
            return call, again, hello

    call, again, hello = play(scene)

    assert [1] == read_progress(call)
    assert 1 == len(call.events)
    assert OUTCOME_UNKNOWN == again.events[-1]["error"]["message"]
    assert "hello" == read_tool_text(hello.json)


def test_a_client_that_was_let_go_polls_any_node():
    """2025-11-25 basic/transports#sending-messages-to-the-server: the client SHOULD poll the stream."""

    async def scene():
        async with Fleet(3) as fleet:
            here, there, yonder = fleet.nodes
            client = await FleetClient.connect(here)
            call = client.call(here)
            await here.steps.tell("let go")
            await call.complete.wait()
            again = client.get(there, call.ids[-1])
            await again.started.wait()
            await here.steps.tell(1)
            await again.event()
            again.leave()
            last = client.get(yonder, again.ids[-1])
            here.steps.end()
            await last.done()
            return call, again, last

    call, again, last = play(scene)

    assert b"retry: 0" in call.body
    assert [1] == read_progress(again)
    assert "done" == read_tool_text(last.events[-1])


@pytest.mark.parametrize("revision", RESUMABLE)
def test_the_newest_standing_stream_takes_the_session_over(revision):
    """2025-11-25 basic/transports#multiple-connections: on one stream only, wherever it is."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here, revision)
            first = client.get(here)
            await first.started.wait()
            here.server._changes.announce_tools()
            await first.event()
            second = client.get(there)
            await second.started.wait()
            await first.done()
            here.server._changes.announce_tools()
            await second.event()
            await asyncio.sleep(1)
            return first, second

    first, second = play(scene)

    assert 200 == second.status
    assert 1 == len(first.events)
    assert 1 == len(second.events)


def test_what_was_kept_for_a_standing_stream_is_handed_over():
    """Ours: it was said when no stream was open, and the stream opens elsewhere."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here)
            here.server._changes.announce_tools()
            await asyncio.sleep(1)
            standing = client.get(there)
            return await standing.event()

    assert "notifications/tools/list_changed" == play(scene)["method"]


@pytest.mark.parametrize("revision", RESUMABLE)
def test_a_standing_stream_is_resumed_elsewhere_with_all_that_was_said(revision):
    """2025-11-25 basic/transports#resumability-and-redelivery: also for a standing stream."""

    async def scene():
        async with Fleet(3) as fleet:
            here, there, yonder = fleet.nodes
            client = await FleetClient.connect(here, revision)
            first = client.get(here)
            await first.started.wait()
            here.server._changes.announce_tools()
            await first.event()
            await leave(first)
            here.server._changes.announce_resources()
            await asyncio.sleep(1)
            second = client.get(there, first.ids[-1])
            await second.event()
            await leave(second)
            there.server._changes.announce_prompts()
            await asyncio.sleep(1)
            # after an event of the first stream, though the second continues it
            third = client.get(yonder, first.ids[-1])
            await third.event()
            await third.event()
            return first, second, third

    first, second, third = play(scene)

    methods = [event["method"].split("/")[1] for event in (*first.events, *third.events)]
    assert ["tools", "resources", "prompts"] == methods
    assert ["resources"] == [event["method"].split("/")[1] for event in second.events]


def test_a_standing_stream_of_a_dead_node_says_that_lists_may_have_changed():
    """Ours: nobody knows what the node would have said."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here)
            first = client.get(here)
            await first.bytes_sent(b"id: ")
            await here.kill()
            second = client.get(there, first.ids[-1])
            events = [await second.event() for _ in range(3)]
            return {event["method"].split("/")[1] for event in events}

    assert {"tools", "prompts", "resources"} == play(scene)


def test_an_event_id_of_another_session_is_worth_nothing():
    """Ours: the log is looked into under the session's own mark alone."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            one, other = [await FleetClient.connect(here) for _ in range(2)]
            call = one.call(here)
            await here.steps.tell(1)
            await call.event()
            answer = await other.get(there, call.ids[-1]).done()
            here.steps.end()
            return answer

    answer = play(scene)

    assert 400 == answer.status


def test_without_the_store_nothing_is_resumed_and_plain_calls_go_on():
    """Ours: what needs the store is refused (503); nothing falls back to memory."""

    async def scene():
        async with Fleet(2) as fleet:
            here, there = fleet.nodes
            client = await FleetClient.connect(here)
            await client.call(there, "hello").done()
            call = client.call(here)
            await here.steps.tell(1)
            await call.event()
            there.store.cut()
            refused = await client.get(there, call.ids[-1]).done()
            hello = await client.call(there, "hello", id=2).done()
            here.store.cut()
            await here.steps.tell(2)
            here.steps.end()
            await call.done()
            there.store.mend()
            here.store.mend()
            lost = await client.get(there, call.ids[-1]).done()
            return refused, hello, call, lost

    refused, hello, call, lost = play(scene)

    assert 503 == refused.status
    assert refused.header("retry-after")
    assert "hello" == read_tool_text(hello.json)
    assert [1, 2] == read_progress(call)
    assert "done" == read_tool_text(call.events[-1])
    assert 400 == lost.status or b"not kept" in lost.body
