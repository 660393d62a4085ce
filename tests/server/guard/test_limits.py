"""Limits, as callers meet them: clear errors, and nothing else is harmed."""

import asyncio
import json
from typing import ClassVar

import pytest

from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server import Limits, Rate, Server
from isthmus.server.guard.limits import Limiters
from isthmus.wire import InitializedParams
from support.event_loop import run_turns
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

both = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def counting(**limits):
    """A server that counts."""
    server = Server("counting", limits=Limits(**limits))
    server.add_tool(lambda: "done", name="tool")
    server.add_resource(lambda: "", "a://b", name="r")
    return server


@pytest.mark.parametrize("name", ["tool_calls", "completions"])
def test_a_client_at_full_speed_meets_no_default_rate(name):
    """A million calls in one moment, more than any client makes in a second, are not counted yet."""
    assert getattr(Limiters(Limits()), name).spare > 1_000_000


@pytest.mark.parametrize("name", ["log_messages", "progress"])
def test_a_tool_that_tells_a_lot_meets_no_default_rate(name):
    """A thousand messages in each of fifty calls are sent at once."""
    assert getattr(Limiters(Limits()), name).spare >= 50_000


@both
@pytest.mark.covers("limits.tool-calls.refused")
async def test_too_many_calls_are_refused_until_their_time_has_come(revision):
    """The spec: servers MUST rate limit tool invocations."""
    client = EraClient(counting(tool_calls=Rate(2, 60)), revision)

    first, second, third = [await client.call("tool") for _ in range(3)]

    assert ["done", "done"] == [tool_text(first), tool_text(second)]
    assert -31429 == third.code
    assert "Too many tool calls (2 in 60 s for each caller): try again in" in third.message
    assert "tool_calls" == third.data["limit"]
    assert 29_000 <= third.data["retryAfterMs"] <= 30_000


@pytest.mark.covers("limits.tool-calls.refused")
async def test_one_caller_does_not_use_up_what_another_has():
    """Ours: counted for each session, or for each principal wherever it comes from."""
    server = counting(tool_calls=Rate(1, 60))

    callers = []  # kept: who has gone may be taken for who came after

    def caller(**given):
        callers.append(EraClient(server, LEGACY, **given))
        return callers[-1]

    assert "done" == tool_text(await caller().call("tool"))
    assert "done" == tool_text(await caller().call("tool"))
    assert "done" == tool_text(await caller(principal="ada").call("tool"))
    assert -31429 == (await caller(principal="ada").call("tool")).code
    for session in ("a", "b"):
        assert "done" == tool_text(
            await caller().call("tool", origin=Origin("http", session=session))
        )
    for port in (1, 2):
        there = Origin("http", peer=("10.0.0.1", port))
        assert "done" == tool_text(await caller().call("tool", origin=there))
        assert -31429 == (await caller().call("tool", origin=there)).code


async def test_a_meter_of_ones_own_may_do_the_counting():
    """Ours: one that several processes share, say."""

    class Full:
        asked: ClassVar[list[str]] = []

        async def take(self, key, cost=1.0):
            self.asked.append(key)
            return 1.5

    error = await EraClient(counting(tool_calls=Full()), principal="ada").call("tool")

    assert (["principal ada"], 1500) == (Full.asked, error.data["retryAfterMs"])
    assert "try again in 1.5 s" in error.message


@both
async def test_limits_can_be_switched_off(revision):
    """Ours: None is no limit."""
    client = EraClient(counting(tool_calls=None, completions=None, depth=None), revision)

    assert {"done"} == {tool_text(await client.call("tool")) for _ in range(20)}


@both
@pytest.mark.covers("limits.depth.refused")
async def test_parameters_nested_too_deeply_are_refused_by_the_limit(revision):
    """Ours: before anything walks into them; honest ones pass."""
    server = Server("deep", limits=Limits(depth=20))

    @server.tool
    def keep(value: list) -> str:
        return json.dumps(value)

    client = EraClient(server, revision)

    def nested(levels):
        return json.loads("[" * levels + "]" * levels)

    assert "[[[]]]" == tool_text(await client.call("keep", {"value": nested(3)}))
    error = await client.call("keep", {"value": nested(50)})
    assert -32602 == error.code
    assert "more than 20 levels deep" in error.message
    wide = [[0]] * 500
    assert json.dumps(wide) == tool_text(await client.call("keep", {"value": wide}))


@pytest.mark.covers("limits.subscriptions.bounded")
async def test_a_session_subscribes_to_so_many_resources_and_no_more():
    """Ours: unsubscribing makes room, and subscribing twice takes none."""
    client = EraClient(counting(subscriptions=2), LEGACY)

    async def subscribe(uri, method="resources/subscribe"):
        return await client.once(method, {"uri": uri})

    assert [{}, {}, {}] == [await subscribe(uri) for uri in ("a://1", "a://2", "a://1")]
    error = await subscribe("a://3")
    assert (-31429, {"limit": "subscriptions", "most": 2}) == (error.code, error.data)
    await subscribe("a://1", "resources/unsubscribe")
    assert {} == await subscribe("a://3")


@pytest.mark.covers("limits.subscriptions.bounded")
async def test_a_stream_hears_of_so_many_resources_and_no_more():
    """Ours: the same since 2026-07-28."""
    client = EraClient(counting(subscriptions=2))
    uris = [f"a://{n}" for n in range(3)]

    error = await client.once(
        "subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}
    )

    assert -31429 == error.code
    assert [] == client.link.notes


@pytest.mark.covers("limits.streams.bounded")
async def test_a_caller_has_so_many_streams_open_and_no_more():
    """Ours: each costs a connection; one that ended makes room."""
    server = counting(streams=2)
    clients = [EraClient(server, principal="ada") for _ in range(4)]

    def listen(client):
        params = {"notifications": {"toolsListChanged": True}}
        return client.once("subscriptions/listen", params)

    tasks = [asyncio.create_task(listen(client)) for client in clients[:2]]
    await run_turns(20)
    assert (-31429, "streams") == (
        (error := await listen(clients[2])).code,
        error.data["limit"],
    )
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    tasks[0] = asyncio.create_task(listen(clients[3]))
    await run_turns(20)
    await server.close()
    await asyncio.gather(*tasks)


def test_a_session_that_has_gone_leaves_nothing_behind():
    """Ours: memory is for who is there."""

    async def visit():
        server = counting()
        client = EraClient(server, LEGACY)
        inbound = Inbound(0, "", None, client.caller, client.link)
        server._changes.add_session(InitializedParams(), inbound)
        assert 1 == len(server._changes._sessions)
        client.link.close()
        return server._changes._sessions

    assert {} == asyncio.run(visit())
