"""Limits, as callers meet them: clear errors, and nothing else is harmed."""

import asyncio
import json
from typing import Any, ClassVar

import pydantic
import pytest

from isthmus.errors import UsageError
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server import Context, Limits, Rate, Server
from isthmus.server.guard.limits import Limiters
from isthmus.store.meter import MemoryMeter
from isthmus.testing import connect
from isthmus.wire import InitializedParams
from isthmus.wire.jsonrpc import is_nested_deeper
from support.event_loop import run_turns
from support.profiling import profile_calls
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


def test_a_tool_that_tells_a_lot_meets_no_default_rate():
    """A thousand messages in each of fifty calls are sent at once, and as many reports in each."""
    assert Limiters(Limits()).log_messages.spare >= 50_000
    assert Limits().progress.amount >= 1_000


def test_progress_is_held_to_a_rate_of_each_call_and_not_to_a_shared_meter():
    """A meter would be asked at every report; what is wrong is said where it is written."""
    with pytest.raises(UsageError, match="it is counted in each call, so it takes a Rate"):
        Limits(progress=MemoryMeter(Rate(1)))


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


def chain(levels, inner="1"):
    return "[" * levels + inner + "]" * levels


DEPTH_SERVER_LIMIT = 20
OPEN_SCHEMA = {"type": "object", "properties": {"value": {}}}


def make_depth_server():
    server = Server("deep", limits=Limits(depth=DEPTH_SERVER_LIMIT))

    @server.tool
    def anything(value: Any) -> str:
        return "done"

    @server.tool
    def typed(value: list[list[int]]) -> str:
        return "done"

    @server.tool(input_schema=OPEN_SCHEMA)
    def by_hand(value: list[list[int]]) -> str:
        return "done"

    @server.tool
    def model(value: DeepModel) -> str:
        return "done"

    return server


class DeepModel(pydantic.BaseModel):
    """Open, and read by pydantic."""

    inner: Any


def pad(text):
    """More than is looked at as a whole, so that arguments are apart from the rest."""
    return text + " " * 2_000


@pytest.mark.parametrize("enlarge", [str, pad])
@pytest.mark.parametrize(
    ("tool", "around"),
    [("anything", "%s"), ("typed", "%s"), ("by_hand", "%s"), ("model", '{"inner":%s}')],
)
async def test_the_level_beyond_the_limit_is_refused_and_the_one_at_it_is_not(
    tool, around, enlarge
):
    """Ours: by whichever way a tool reads its arguments, and however many they are."""
    client = EraClient(make_depth_server())
    room = DEPTH_SERVER_LIMIT - 2 - (around != "%s")  # parameters and arguments are a level each

    async def call(levels):
        value = enlarge(around % chain(levels))
        raw = f'{{"name":"{tool}","arguments":{{"value":{value}}}}}'
        return await client.raw("tools/call", raw)

    within, beyond = await call(room), await call(room + 1)

    if tool in ("anything", "model"):
        assert "done" == tool_text(within)
    else:
        assert within["isError"]  # it does not fit the type, and that is what is said
    assert -32602 == beyond.code
    assert "Invalid params: nested more than 20 levels deep" == beyond.message


@pytest.mark.parametrize("size", [0, 2_000])
async def test_what_stands_beside_the_arguments_is_measured_too(size):
    """Ours: ``_meta`` takes anything, whatever the tool takes."""
    client = EraClient(make_depth_server())

    async def call(levels):
        meta, value = chain(levels), "[" + " " * size + "[1]]"
        return await client.raw(
            "tools/call",
            f'{{"name":"typed","arguments":{{"value":{value}}},"_meta":{{"x.y/z":{meta}}}}}',
        )

    assert "done" == tool_text(await call(DEPTH_SERVER_LIMIT - 2))
    assert "nested more than 20 levels deep" in (await call(DEPTH_SERVER_LIMIT - 1)).message


async def test_json_in_a_string_is_no_way_round_the_limit():
    """Ours: it is unquoted for models that quote too often, and not where it is too deep."""
    server = make_depth_server()

    @server.tool
    def listed(value: list) -> str:
        return "done"

    client = EraClient(server)
    room = DEPTH_SERVER_LIMIT - 2

    assert "done" == tool_text(await client.call("listed", {"value": chain(room)}))
    for levels in (room + 1, 600, 100_000):
        result = await client.call("listed", {"value": chain(levels)})
        assert result["isError"]
        assert "value: expected a list, got" in tool_text(result)


async def test_a_type_that_bounds_the_depth_has_nothing_measured():
    """Ours: measuring takes longer than reading does, of a large list."""
    server = make_depth_server()

    @server.tool
    def rows(value: list[dict[str, int]]) -> str:
        return "done"

    @server.tool
    def loose(value: list[dict]) -> str:
        return "done"

    client = EraClient(server)
    arguments = {"value": [{"a": 1}] * 5_000}

    assert [] == [
        size for size in await list_measured_sizes(client, "rows", arguments) if size > 2_000
    ]
    assert [50_011] == [
        size for size in await list_measured_sizes(client, "loose", arguments) if size > 2_000
    ]


async def list_measured_sizes(client, tool, arguments):
    """The sizes of what a call has had measured."""
    sizes = []

    def see(frame, event, _argument):
        if event == "call" and frame.f_code is is_nested_deeper.__code__:
            sizes.append(len(frame.f_locals["data"]))

    with profile_calls(see):
        assert "done" == tool_text(await client.call(tool, arguments))
    return sizes


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


@pytest.mark.parametrize("transport", ["memory", "stdio"])
async def test_more_than_a_thousand_calls_in_one_session_are_all_served(transport):
    """By the defaults of both sides; a thousand of them ask the client at the same time."""
    server, there, all_there = Server("busy"), [], asyncio.Event()
    asked, all_asked = [], asyncio.Event()

    async def find_roots():
        asked.append(None)
        if len(asked) == 1_000:
            all_asked.set()
        await all_asked.wait()
        return []

    @server.tool
    async def wait(number: int, ctx: Context) -> int:
        """Wait for all the others."""
        there.append(number)
        if len(there) == 1_500:
            all_there.set()
        await all_there.wait()
        if number < 1_000:
            await ctx.roots()
        return number

    way = {"transport": transport, "revision": LEGACY, "roots": find_roots}
    async with connect(server, **way) as client:
        calls = [client.call_tool("wait", {"number": number}) for number in range(1_500)]
        assert [str(n) for n in range(1_500)] == [one.text for one in await asyncio.gather(*calls)]
