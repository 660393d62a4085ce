"""Rates over nodes: they count together where a store is shared, and refuse where it is away."""

import asyncio

from isthmus import Context, Server
from isthmus.runtime.channel import Origin
from isthmus.server.guard.limits import Limits
from isthmus.store.meter import Rate
from isthmus.wire.jsonrpc import ErrorBody
from support.server.both_eras import LEGACY, EraClient
from support.tasks.task_fleet import TaskFleet, run


def declare(server, _node):
    async def t() -> str:
        return "done"

    server.add_tool(t)


async def call_all(node, count, **how):
    """How many of so many calls are served, and the last refusal."""
    client = node.client(principal=how.pop("principal", "ann"))
    answers = [await client.call("t", **how) for _ in range(count)]
    refused = [answer for answer in answers if isinstance(answer, ErrorBody)]
    return count - len(refused), refused[-1] if refused else None


def test_a_rate_counts_the_calls_of_all_nodes_together():
    """Spec 2026-07-28 server/tools#security-considerations: MUST; ours: over all nodes."""

    async def lives():
        fleet = TaskFleet(declare, Limits(tool_calls=Rate(4, 60)))
        first, second = await fleet.start(2)
        served = [await call_all(first, 3), await call_all(second, 3)]
        other = await call_all(second, 1, principal="bob")
        await fleet.close()
        return [count for count, _ in served], served[1][1], other[0]

    counts, refused, other = run(lives)

    assert counts == [3, 1]
    assert (refused.code, refused.data["limit"]) == (-31429, "tool_calls")
    assert 0 < refused.data["retryAfterMs"] <= 15_000
    assert other == 1


def test_a_session_has_one_name_at_all_nodes_and_a_connection_is_counted_where_it_ends():
    """Ours: what one node calls a connection is another one elsewhere."""

    async def lives():
        fleet = TaskFleet(declare, Limits(tool_calls=Rate(2, 60)))
        nodes = await fleet.start(2)
        in_session = Origin("http", session="sealed")
        on_socket = Origin("tcp", session="tcp-1")
        served = [
            await call_all(node, 2, principal=None, origin=origin)
            for origin in (in_session, on_socket)
            for node in nodes
        ]
        await fleet.close()
        return [count for count, _ in served]

    assert [2, 0, 2, 2] == run(lives)


def test_the_default_rates_ask_no_store():
    """Ours: a plain call does no operation of the store."""

    async def lives():
        fleet = TaskFleet(declare)
        (node,) = await fleet.start()
        before = node.store.gate.operations
        served, _ = await call_all(node, 100)
        after = node.store.gate.operations
        await fleet.close()
        return served, after - before

    assert (100, 0) == run(lives)


def test_a_rate_that_cannot_be_counted_refuses():
    """Ours: nothing is counted in silence here, and whoever calls is told when to come again."""

    async def lives():
        fleet = TaskFleet(declare, Limits(tool_calls=Rate(4, 60)))
        (node,) = await fleet.start()
        node.store.gate.lose_store()
        served, refused = await call_all(node, 1)
        node.alive = False
        await fleet.close()
        return served, refused.code, refused.data

    assert (0, -31503, {"retryAfterMs": 2000}) == run(lives)


def test_log_messages_that_cannot_be_counted_are_dropped_and_the_call_is_served():
    """Ours: a call does not fail because of what it logs."""

    def log(server, _node):
        async def t(ctx: Context) -> str:
            ctx.log.info("hello")
            await asyncio.sleep(0.01)
            return "done"

        server.add_tool(t)

    async def lives():
        fleet = TaskFleet(log, Limits(log_messages=Rate(4, 60)))
        (node,) = await fleet.start()
        node.store.gate.lose_store()
        client = node.client()
        answer = await client.call("t")
        said = [params["data"] for params in client.link.said("notifications/message")]
        node.alive = False
        await fleet.close()
        return answer["content"][0]["text"], said

    text, said = run(lives)

    assert text == "done"
    assert "hello" not in said


def test_without_a_store_a_rate_counts_in_this_process():
    """Ours: as ever."""

    async def lives():
        server = Server("s", limits=Limits(tool_calls=Rate(2, 60)))
        declare(server, None)
        client = EraClient(server, LEGACY, principal="ann")
        answers = [await client.call("t") for _ in range(3)]
        return sum(isinstance(answer, ErrorBody) for answer in answers)

    assert 1 == run(lives)
