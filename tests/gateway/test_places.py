"""Places at a server behind a gateway: a call that waits for its client's answer takes none."""

import asyncio

import pytest

from isthmus import Accepted, Client, Context, Server
from isthmus.gateway import Gateway
from isthmus.host.model.entries import ServerLimits
from support.gateway.asking_shop import WITH_FORMS, make_host
from support.gateway.small_gateway import ALLOW_ALL

PAIRINGS = pytest.mark.parametrize(
    ("client", "server"), [(client, server) for client in WITH_FORMS for server in WITH_FORMS]
)


def make_shop(revision):
    """A server with a tool that asks, another that asks two things at once, and one that does not."""
    shop = Server("shop", revisions=[revision])

    @shop.tool
    async def order(item: str, ctx: Context) -> str:
        """Order something, of which the size is asked."""
        return f"{item}: {(await ctx.elicit('Which size?', str)).value}"

    @shop.tool
    async def pair(ctx: Context) -> str:
        """Ask two things at once."""
        left, right = await asyncio.gather(
            ctx.elicit("Which left?", str), ctx.elicit("Which right?", str)
        )
        return f"{left.value} {right.value}"

    @shop.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return shop


def make_narrow_gateway(revision):
    """A gateway whose server takes one call at a time."""
    limits = ServerLimits(concurrency=1)
    return Gateway(make_host(ALLOW_ALL, ("shop", make_shop(revision), {"limits": limits})))


@PAIRINGS
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [("order", {"item": "shoe"}, "shoe: red"), ("pair", {}, "red red")],
)
async def test_a_call_that_waits_for_an_answer_holds_nobody_up(
    client, server, tool, arguments, said
):
    """Ours: however long its user takes."""
    asked, decided = asyncio.Event(), asyncio.Event()

    async def think_long(_question):
        asked.set()
        await decided.wait()
        return Accepted({"value": "red"})

    async with (
        make_narrow_gateway(server) as gateway,
        asyncio.timeout(10),
        Client(gateway.server, revision=client, elicit=think_long) as slow,
        Client(gateway.server, revision=client) as other,
    ):
        waiting = asyncio.ensure_future(slow.call_tool(f"shop__{tool}", arguments))
        await asked.wait()
        assert "3" == (await other.call_tool("shop__add", {"a": 1, "b": 2})).text
        decided.set()
        assert said == (await waiting).text
        assert "5" == (await other.call_tool("shop__add", {"a": 2, "b": 3})).text


@PAIRINGS
async def test_calls_that_their_client_has_left_hold_nobody_up(client, server):
    """Ours: a client of 2026-07-28 may never come again with the answers."""
    asked = asyncio.Event()

    async def think_for_ever(_question):
        asked.set()
        await asyncio.Event().wait()

    async with (
        make_narrow_gateway(server) as gateway,
        asyncio.timeout(10),
        Client(gateway.server, revision=client, elicit=think_for_ever) as user,
    ):
        for item in ("shoe", "shirt"):
            asked.clear()
            left = asyncio.ensure_future(user.call_tool("shop__order", {"item": item}))
            await asked.wait()
            left.cancel()
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
