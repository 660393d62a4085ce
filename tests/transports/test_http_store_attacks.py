"""Attacks on several nodes by somebody who reads and writes their store, and has not their secret."""

import asyncio

import msgspec
import pytest

from isthmus import Server
from isthmus.store import MemoryStore
from support.event_loop import run_turns
from support.http.asgi_driver import fetch
from support.http.cluster import Cluster
from support.http.messages import INITIALIZE, legacy_call_body, legacy_head, read_tool_text
from support.http.sse_visitor import Visitor
from support.store.cut_store import CutStore


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


async def test_a_start_without_the_store_is_refused_for_a_while_and_leaves_nothing():
    """Ours: each request tries again, 503 says when, and no attempt stays in memory."""
    store = MemoryStore()
    way = CutStore(store)
    server = Server("nodes", secret=b"s" * 32, store=way)
    app = server.asgi()
    await server.open()  # so that the store is lost between that and the sessions' first word
    way.cut()

    async def try_often():
        answers = [await fetch(app, headers=legacy_head(), body=INITIALIZE) for _ in range(4)]
        assert [503] * 4 == [answer.status for answer in answers]
        assert {"2"} == {answer.header("retry-after") for answer in answers}
        return len(asyncio.all_tasks()), len(store.bus._gaps)

    assert await try_often() == await try_often()
    way.mend()
    assert 200 == (await fetch(app, headers=legacy_head(), body=INITIALIZE)).status
    await app.close()


async def test_a_server_whose_store_was_never_there_says_when_to_come_again():
    """Ours: 503 with Retry-After, and the first request after that is served."""
    way = CutStore(MemoryStore())
    app = Server("nodes", secret=b"s" * 32, store=way).asgi()
    way.cut()
    refused = await fetch(app, headers=legacy_head(origin="http://localhost"), body=INITIALIZE)
    way.mend()
    served = await fetch(app, headers=legacy_head(), body=INITIALIZE)

    assert 503 == refused.status
    assert "2" == refused.header("retry-after")
    assert "http://localhost" == refused.header("access-control-allow-origin")
    assert -32603 == refused.json["error"]["code"]
    assert 200 == served.status
    await app.close()


@pytest.mark.parametrize("tells", ["DELETE", "level"])
async def test_what_is_told_while_a_session_is_adopted_is_not_missed(tells):
    """2025-11-25 basic/transports#session-management: what was ended is 404 from then on."""
    async with Cluster(2) as cluster:
        client = await cluster.open_client("2025-11-25")
        there = cluster.nodes[1]
        for session in [*there.book.list_all()]:
            there.book._release(session)
        await run_turns(30)
        read, reading, gate = cluster.store.kv.get, asyncio.Event(), asyncio.Event()

        async def read_slowly(key):
            entry = await read(key)
            cluster.store.kv.get = read
            reading.set()
            await gate.wait()
            return entry

        cluster.store.kv.get = read_slowly
        call = client.call("log", 1, at=1)
        await reading.wait()
        if tells == "level":
            await client.begin(SET_LEVEL_ERROR, 0).done()
        else:
            await client.begin(b"", 0, "DELETE").done()
        await run_turns(30)
        gate.set()
        await call.done()

        if tells == "level":
            assert [{"level": "error", "data": "coarse"}] == [e["params"] for e in call.events[:-1]]
        else:
            assert 404 == call.status
            assert 404 == (await client.call("log", 2, at=1).done()).status
        assert {} == there.book.shared._loading


SET_LEVEL_ERROR = {
    "jsonrpc": "2.0",
    "id": 9,
    "method": "logging/setLevel",
    "params": {"level": "error"},
}
