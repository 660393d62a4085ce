"""Servers that leave open whether they did what they were asked: nothing is sent twice, or thought undone."""

import asyncio
import json

import msgspec
import pytest
from msgspec import structs

from isthmus import Context, Refuse, Server, ToolError
from isthmus.client.targets import resolve_target
from isthmus.errors import HttpRefused, Refused
from isthmus.host import Host
from isthmus.host.model.entries import Timeouts
from isthmus.host.model.errors import OutcomeUnknown, ServerUnavailable
from isthmus.testing.faults import Faulty, break_after
from support.http.local_web import make_json_response, make_response, serve_responses

RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "s", "version": "1"},
        "capabilities": {"tools": {}},
    },
    "tools/list": {"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]},
}


def shop(said, calls):
    """A server that answers calls with what the test says, and counts them."""

    def handle(asked):
        if asked.method != "POST":
            return make_response(status=405)
        message = json.loads(asked.body)
        method, id = message.get("method"), message.get("id")
        if method == "tools/call":
            calls.append(message)
            return said
        if id is None:
            return make_response(status=202)
        return make_json_response({"jsonrpc": "2.0", "id": id, "result": RESULTS.get(method, {})})

    return handle


@pytest.mark.covers("hostservers.call.ambiguous")
@pytest.mark.parametrize("status", [202, 204, 500, 502, 503, 504])
async def test_a_status_that_does_not_say_that_nothing_was_done_leaves_it_open(status):
    """Ours: a gateway that waited no longer does not know whether the server went on."""
    calls = []
    async with serve_responses(shop(make_response(status=status), calls)) as web:
        host = Host(approver=lambda _: True)
        host.add("shop", f"{web.url}/mcp", era="legacy")
        async with host:
            with pytest.raises(OutcomeUnknown, match=f"HTTP {status}") as caught:
                await host.call("shop__buy")
            (row,) = [row for row in await host.audit.tail(9) if row.kind == "outcome"]

    assert (1, "outcome-unknown", row.call) == (len(calls), row.error, caught.value.call)


@pytest.mark.covers("hostservers.call.ambiguous")
@pytest.mark.parametrize("status", [307, 400, 403, 413, 429])
async def test_a_status_that_says_that_nothing_was_done_is_told_as_it_is(status):
    """Ours: who knows that nothing happened may try again."""
    calls = []
    async with serve_responses(shop(make_response(status=status), calls)) as web:
        host = Host(approver=lambda _: True)
        host.add("shop", f"{web.url}/mcp", era="legacy")
        async with host:
            with pytest.raises(HttpRefused, match=f"HTTP {status}"):
                await host.call("shop__buy")

    assert 1 == len(calls)


@pytest.mark.covers("hostservers.call.ambiguous")
async def test_a_call_whose_time_is_up_may_have_been_done():
    """Ours: the server was told to stop; whether it did, nobody can tell."""
    server, never = Server("shop"), asyncio.Event()

    @server.tool
    async def buy() -> str:
        await never.wait()
        return "bought"

    host = Host(approver=lambda _: True)
    host.add("shop", server, timeouts=Timeouts(call=0.01))
    async with host:
        with pytest.raises(OutcomeUnknown, match="nobody can tell"):
            await host.call("shop__buy")


@pytest.mark.covers("hostservers.call.ambiguous")
@pytest.mark.parametrize("at", range(2, 12))
async def test_wherever_a_connection_breaks_each_call_is_made_once_at_most(at):
    """Ours: and what the host says of it is what the server has counted."""
    server, done = Server("shop"), []

    @server.tool
    async def buy(number: int) -> str:
        done.append(number)
        return "bought"

    target, dialled = resolve_target(server, None, 5.0), []

    async def dial():
        channel = await target.dial()
        dialled.append(channel)
        return Faulty(channel, break_after(at)) if len(dialled) == 1 else channel

    host = Host(approver=lambda _: True)
    host.add("shop", structs.replace(target, dial=dial))
    said = {}
    async with host:
        for number in range(12):
            try:
                await host.call("shop__buy", {"number": number})
                said[number] = (1,)
            except OutcomeUnknown:
                said[number] = (0, 1)
            except ServerUnavailable:
                said[number] = (0,)

    assert [] == [n for n, times in said.items() if done.count(n) not in times]
    assert (1,) == said[11]


def odd(tool):
    """What answers as the shop, with this tool."""

    def handle(asked):
        message = json.loads(asked.body) if asked.method == "POST" else {}
        if message.get("method") != "tools/list":
            return shop(make_json_response(call_answer(message.get("id"))), [])(asked)
        return make_json_response(
            {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [tool]}}
        )

    return handle


def call_answer(id):
    """The answer to a call."""
    return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "yes"}]}}


def nested(depth):
    """Lists within lists."""
    return [] if not depth else [nested(depth - 1)]


@pytest.mark.covers("hostchat.catalog.odd-numbers")
@pytest.mark.parametrize(
    "more",
    [
        {"minProperties": -(10**30)},
        {"maxProperties": 10**30},
        {"default": 10**400},
        {"x": nested(400)},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:1/never"}}},
    ],
    ids=range(6),
)
async def test_a_tool_whose_definition_has_odd_values_can_be_called(tmp_path, more):
    """Ours: a number that a store cannot hold is no reason not to have the tool."""
    tool = {"name": "buy", "inputSchema": {"type": "object", **more}, "_meta": {"n": 10**30}}
    async with serve_responses(odd(tool)) as web:
        host = Host(approver=lambda _: True, state=tmp_path)
        host.add("shop", f"{web.url}/mcp", era="legacy")
        async with host:
            assert "yes" == (await host.call("shop__buy")).text
            assert "yes" == (await host.call("shop__buy")).text


@pytest.mark.covers("hostservers.flood.bounded")
async def test_who_watches_is_told_the_beginning_of_what_a_server_says():
    """Ours: a thousand events wait for a face that is slow, and each may be of megabytes."""
    server = Server("shop")

    @server.tool
    async def buy(ctx: Context) -> str:
        await ctx.progress(1, message="m" * 100_000)
        raise ToolError("e" * 100_000)

    @server.prompt
    def order() -> str:
        raise Refuse(-32001, "e" * 100_000)

    host = Host(approver=lambda _: True)
    host.add("shop", server)
    async with host:
        events = host.events()
        await host.call("shop__buy")
        with pytest.raises(Refused):
            await host.prompt("shop__order")
        await events.aclose()
        heard = [event async for event in events]

    sizes = {type(event).__name__: len(msgspec.json.encode(event)) for event in heard}
    assert {"AttemptProgressed", "AttemptEnded"} <= set(sizes)
    assert [] == [name for name, size in sizes.items() if size > 5_000]
