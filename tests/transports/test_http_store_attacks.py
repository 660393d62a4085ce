"""Attacks on several nodes by somebody who reads and writes their store, and has not their secret."""

import msgspec
import pytest

from isthmus import Server
from isthmus.store import MemoryStore
from support.event_loop import run_turns
from support.http.cluster import Cluster
from support.http.messages import legacy_call_body, read_tool_text
from support.http.sse_visitor import Visitor


async def test_a_letter_that_is_said_again_runs_no_tool_twice():
    """Ours: a sealed message that was recorded on the bus is good for one call."""
    store, calls, recorded = MemoryStore(), [], []

    def make_app():
        server = Server("nodes", secret=b"s" * 32, store=store)

        @server.tool
        async def pay() -> str:
            calls.append("pay")
            return "paid"

        return server.asgi()

    apps = [make_app(), make_app()]
    for app in apps:
        await app.start()
    visitor = Visitor(apps[0])
    await visitor.open()
    mail = f"mail/{apps[0].node.id}"
    await store.bus.subscribe(mail, recorded.append)
    visitor.target = apps[1]
    await visitor.say(legacy_call_body("pay"))
    assert "paid" == read_tool_text(await visitor.message())
    for message in [*recorded]:
        await store.bus.publish(mail, message)
    await run_turns(50)

    assert ["pay"] == calls
    await visitor.leave()
    for app in apps:
        await app.close()


@pytest.mark.parametrize(
    "hostile",
    [
        [False, "evil", []],
        [False, 5, []],
        [False, None, "a://b"],
        [False, None, [1]],
        [0, None, []],
        [False, None, [], "more"],
        {"ended": False},
        "text",
    ],
)
async def test_a_session_whose_record_is_hostile_has_ended(hostile):
    """Ours: what is no record is not acted on, and its client is told to begin anew."""
    async with Cluster(2) as cluster:
        client = await cluster.open_client("2025-11-25")
        (mark,) = cluster.nodes[0].book._marks
        for session in [*cluster.nodes[1].book.list_all()]:
            cluster.nodes[1].book._release(session)
        await cluster.store.kv.put(f"session/{mark}", msgspec.msgpack.encode(hostile))

        assert 404 == (await client.call("log", 1, at=1).done()).status
