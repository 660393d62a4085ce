"""Messages between nodes on each engine of a store, in real time."""

import asyncio

import pytest

from isthmus.testing.faults import until
from support.http.cluster import Cluster
from support.http.messages import legacy_call_body, read_tool_text
from support.http.sse_visitor import Visitor
from support.store.engines import ENGINE_PARAMS, ENGINES

CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"


@pytest.fixture(params=ENGINE_PARAMS)
def engine(request, tmp_path):
    """One engine, empty."""
    return ENGINES[request.param](tmp_path)


def open_cluster(engine, count=3):
    """Nodes that have each a store of their own over the engine."""
    return Cluster(stores=[engine.make_store(real=True) for _ in range(count)])


async def read_answer(exchange):
    """The text that a call was answered with."""
    while True:
        message = await exchange.event()
        if "result" in message:
            return read_tool_text(message)


async def test_ten_of_ten_questions_are_answered_in_any_order(engine):
    """Ours: calls and answers of one client go to any node."""
    async with asyncio.timeout(15), open_cluster(engine) as cluster:
        client = await cluster.open_client("2025-11-25", seed=3)
        calls = [client.call("ask", number) for number in range(10)]
        questions = [await call.event() for call in calls]
        for number in (3, 9, 0, 5, 1, 8, 2, 7, 6, 4):
            assert 202 == await client.answer(questions[number], f"file:///{number}")

        assert [f"file:///{number}" for number in range(10)] == [
            await read_answer(call) for call in calls
        ]


async def test_a_call_is_cancelled_from_another_node(engine):
    """Spec 2025-11-25 basic/utilities/cancellation: the receiver SHOULD stop processing."""
    async with asyncio.timeout(15), open_cluster(engine) as cluster:
        client = await cluster.open_client("2025-11-25")
        call = client.call("wait", "c", at=0, name="it")
        await until(lambda: cluster.nodes[0].book.find(client.session).is_serving("c"))
        note = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "c"}}

        assert 202 == await client.say(note, at=1)
        await call.done()
        assert ["it"] == cluster.nodes[0].cancelled


async def test_an_update_is_told_by_the_home(engine):
    """Spec 2025-11-25 server/resources#subscriptions: subscribed here, changed there, told elsewhere."""
    async with asyncio.timeout(15), open_cluster(engine) as cluster:
        client = await cluster.open_client("2025-11-25")
        stream = client.listen(1)
        await stream.started.wait()
        subscribe = {"jsonrpc": "2.0", "id": "s", "method": "resources/subscribe"}
        await client.begin({**subscribe, "params": {"uri": "a://b"}}, at=2).done()
        changes = cluster.nodes[1].server._changes
        await until(lambda: changes._topics.find((UPDATED, "a://b")), turns=1_000_000)
        cluster.nodes[0].server.notify_resource_updated("a://b")
        told = await stream.event()

        assert UPDATED == told["method"]
        stream.leave()
        await stream.done()


async def test_messages_of_http_sse_reach_their_stream(engine):
    """2024-11-05 basic/transports#http-with-sse: posted anywhere, answered on the stream."""
    async with asyncio.timeout(15), open_cluster(engine) as cluster:
        visitor = Visitor(cluster.nodes[0].app)
        await visitor.open()
        for at in (1, 2, 0):
            visitor.target = cluster.nodes[at].app
            await visitor.say(legacy_call_body("hello", id=at + 1))
            assert "hello" == read_tool_text(await visitor.message())
        await visitor.leave()
