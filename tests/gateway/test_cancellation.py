"""Cancellation, lost servers, progress, pings and unknown methods through a gateway."""

import asyncio

import pytest

from isthmus import Client, Context, Server
from isthmus.errors import CallTimedOut, MethodNotFound
from isthmus.gateway import Gateway
from isthmus.host.model.entries import ServerLimits
from support.gateway.small_gateway import REVISION_NAMES, make_allowing_host, make_gateway
from support.gateway.task_kitchen import Kitchen

EVERY_CELL = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in REVISION_NAMES for other in REVISION_NAMES]
)
EVERY_SERVER = pytest.mark.parametrize("server", REVISION_NAMES)
EVERY_CLIENT = pytest.mark.parametrize("client", REVISION_NAMES)
ROAST = "kitchen__roast", {"dish": "goose"}


async def wait_quiet(gateway, tries=2000):
    """Wait until nothing is under way at the servers behind a gateway; whether that is so."""
    for _ in range(tries):
        if not any(one.in_flight for one in gateway.host.servers.values()):
            return True
        await asyncio.sleep(0)
    return False


@EVERY_CELL
@pytest.mark.parametrize("task", [None, "required"])
async def test_a_call_that_its_client_cancels_ends_at_the_server_behind(client, server, task):
    """Ours: in all pairings, also where the call is a task behind."""
    kitchen = Kitchen(server, task)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision=client) as user:
        call = asyncio.ensure_future(user.call_tool(*ROAST))
        await kitchen.begun.wait()
        for _ in range(2):  # what was answered by now, with a task, has arrived
            await user.ping()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await kitchen.cancelled.wait()

        assert await wait_quiet(gateway)
    assert 1 == kitchen.calls


@EVERY_CLIENT
async def test_a_call_that_waits_for_a_place_is_cancelled_before_it_is_made(client):
    """Ours: what nobody waits for any more is never begun."""
    kitchen = Kitchen("2025-06-18", task=None)
    host = make_allowing_host()
    host.add("kitchen", kitchen.server, limits=ServerLimits(concurrency=1))
    gateway = Gateway(host)
    async with gateway, Client(gateway.server, revision=client) as user:
        first = asyncio.ensure_future(user.call_tool(*ROAST))
        await kitchen.begun.wait()
        second = asyncio.ensure_future(user.call_tool(*ROAST))
        await user.ping()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        kitchen.ready.set()
        await first
        assert await wait_quiet(gateway)

    assert 1 == kitchen.calls


@EVERY_CELL
async def test_the_deadline_of_a_client_ends_its_call_behind_the_gateway(client, server):
    """Ours: a client that gives up takes the call with it."""
    kitchen = Kitchen(server, task=None)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision=client) as user:
        await user.list_tools()
        with pytest.raises(CallTimedOut):
            await user.call_tool(*ROAST, timeout=0.2)
        assert kitchen.begun.is_set()
        await kitchen.cancelled.wait()

    assert 1 == kitchen.calls


@EVERY_CELL
async def test_progress_goes_up_and_ends_with_the_result(client, server):
    """Spec 2026-07-28 basic/patterns/progress: MUST increase, and stop with the answer."""
    cook = Server("cook", revisions=[server])

    @cook.tool
    async def stir(ctx: Context) -> str:
        """Stir."""
        for turn in (1, 2, 3):
            await ctx.progress(turn, 3, f"turn {turn}")
        return "stirred"

    gateway, heard = make_gateway(cook=cook), []
    async with gateway, Client(gateway.server, revision=client) as user:
        await user.call_tool("cook__stir", on_progress=heard.append)
        at_the_end = len(heard)
        await user.ping()

    assert [1, 2, 3] == [one.progress for one in heard]
    assert {3} == {one.total for one in heard}
    if client != "2024-11-05":  # which has no messages
        has = server != "2024-11-05"
        assert [f"turn {turn}" for turn in (1, 2, 3)] == [one.message for one in heard] or not has
    assert at_the_end == len(heard)


@EVERY_CELL
async def test_a_method_that_nobody_knows_is_refused_and_not_passed_on(client, server):
    """Ours: what a gateway cannot judge it does not forward, although the server behind has it."""
    asked = []
    odd = Server("odd", revisions=[server])

    @odd.method("acme/secret", params=dict)
    async def secret(params: dict) -> dict:
        """Tell."""
        asked.append(params)
        return {}

    @odd.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    gateway = make_gateway(odd=odd)
    async with gateway, Client(gateway.server, revision=client) as user:
        with pytest.raises(MethodNotFound):
            await user.request("acme/secret", {}, dict)
        assert "3" == (await user.call_tool("odd__add", {"a": 1, "b": 2})).text

    assert [] == asked


@EVERY_CLIENT
async def test_a_ping_is_answered_by_the_gateway(client):
    """Ours: also while no server behind it can be reached."""
    host = make_allowing_host()
    host.add("gone", "http://127.0.0.1:9/mcp")
    gateway = Gateway(host)
    async with gateway, Client(gateway.server, revision=client) as user:
        await user.ping()
