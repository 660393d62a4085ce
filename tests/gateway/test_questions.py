"""Questions of servers through a gateway, in all pairings of revisions: forms, pages, models, folders."""

import asyncio
from asyncio import FIRST_COMPLETED as FIRST

import pytest

from isthmus import Client, Context, Server
from isthmus.gateway import Gateway
from support.event_loop import run_until
from support.gateway.asking_shop import (
    CANCELLED,
    DECLINED,
    WITH_FORMS,
    WITH_PAGES,
    Answers,
    connect,
    make_asker,
    make_host,
)
from support.gateway.small_gateway import ALLOW_ALL, REVISION_NAMES
from support.server.both_eras import EraClient, tool_text

ACCEPTED = {"action": "accept", "content": {"value": "ann"}}


def make_cells(revisions):
    """All pairings of some revisions: of the client, and of the server."""
    pairs = [(client, server) for client in revisions for server in revisions]
    return pytest.mark.parametrize(("client", "server"), pairs)


EVERY_CELL = make_cells(REVISION_NAMES)
CELLS_WITH_FORMS = make_cells(WITH_FORMS)
CELLS_WITH_PAGES = make_cells(WITH_PAGES)


@CELLS_WITH_FORMS
async def test_a_form_is_filled_in_by_the_calling_client(client, server):
    """Ours: where both revisions have forms."""
    ann = Answers()
    async with connect(client, server, **ann.all) as (user, _):
        result = await user.call_tool("shop__order", {"item": "shoe"})

    assert "shoe: ann" == result.text
    assert ["Which size of shoe?"] == ann.asked


@CELLS_WITH_FORMS
@pytest.mark.parametrize(("verdict", "word"), [(DECLINED, "declined"), (CANCELLED, "cancelled")])
async def test_no_and_turning_away_reach_the_server(client, server, verdict, word):
    """Ours: as two things."""
    async with connect(client, server, **Answers(verdict=verdict).all) as (user, _):
        assert f"shoe: {word}" == (await user.call_tool("shop__order", {"item": "shoe"})).text


@CELLS_WITH_FORMS
@pytest.mark.parametrize(("tool", "said"), [("twice", "ann ann"), ("both", "ann ann")])
async def test_two_questions_of_one_call_are_answered(client, server, tool, said):
    """Ours: one after the other, and at once."""
    ann = Answers()
    async with connect(client, server, **ann.all) as (user, _):
        assert said == (await user.call_tool(f"shop__{tool}", {})).text

    assert 2 == len(ann.asked)


@pytest.mark.parametrize("server", ["2025-06-18", "2025-11-25"])
async def test_what_a_legacy_server_asks_at_once_is_one_result(server):
    """Ours: its requests come one after the other, and a client of 2026-07-28 gets all with one round."""
    shop = Server("shop", revisions=[server])

    @shop.tool
    async def both(ctx: Context) -> str:
        """Ask two things, the second one a little later."""

        async def ask_later():
            for _ in range(10):
                await asyncio.sleep(0)
            return await ctx.sample("Which right?", max_tokens=20)

        left, right = await asyncio.gather(ctx.elicit("Which left?", str), ask_later())
        return f"{left.value} {right.text}"

    gateway = Gateway(make_host(ALLOW_ALL, ("shop", shop, {})))
    async with gateway:
        result = await EraClient(gateway.server).once(
            "tools/call", {"name": "shop__both", "arguments": {}}
        )

    asked = {one["method"] for one in result["inputRequests"].values()}
    assert {"elicitation/create", "sampling/createMessage"} == asked


@CELLS_WITH_PAGES
async def test_a_page_is_opened_by_the_calling_client(client, server):
    """Ours: where both revisions have pages."""
    ann = Answers()
    async with connect(client, server, **ann.all) as (user, _):
        assert "Accepted" == (await user.call_tool("shop__pay", {})).text

    assert ["Pay here"] == ann.asked


@EVERY_CELL
async def test_the_model_of_the_calling_client_writes(client, server):
    """Ours: in every revision."""
    async with connect(client, server, **Answers().all) as (user, _):
        assert "written by ann" == (await user.call_tool("shop__think", {"about": "it"})).text


@EVERY_CELL
async def test_the_folders_of_the_calling_client_are_told(client, server):
    """Ours: in every revision."""
    async with connect(client, server, **Answers().all) as (user, _):
        assert "file:///home/ann" == (await user.call_tool("shop__look", {})).text


@EVERY_CELL
async def test_a_client_that_wants_every_log_message_is_asked_all_the_same(client, server):
    """Ours: asking for the level opens the connection, which has to offer what the client can answer."""
    own = {**Answers().all, "log_level": "debug", "on_log": print}
    async with connect(client, server, **own) as (user, _):
        assert "written by ann" == (await user.call_tool("shop__think", {"about": "it"})).text


@pytest.mark.parametrize("server", ["2025-06-18", "2025-11-25"])
async def test_questions_that_nobody_answers_leave_connections_to_other_calls(server):
    """Ours: by the defaults, all of one principal; those beyond are told how long it can take."""
    shop = make_asker(server)

    @shop.tool
    def count() -> int:
        """Count the hats."""
        return 3

    gateway = Gateway(make_host(ALLOW_ALL, ("shop", shop, {})))
    async with gateway, Client(gateway.server, **Answers().all) as user:
        params = {"name": "shop__order", "arguments": {"item": "hat"}}
        ended = [await EraClient(gateway.server).once("tools/call", params) for _ in range(20)]
        parked = [one for one in ended if isinstance(one, dict)]
        refused = [one for one in ended if not isinstance(one, dict)]

        assert [12, 8] == [len(parked), len(refused)]
        assert {-31429} == {one.code for one in refused}
        assert min(one.data["retryAfterMs"] for one in refused) > 300_000
        assert "3" == (await user.call_tool("shop__count")).text


@pytest.mark.parametrize("server", ["2025-06-18", "2025-11-25"])
async def test_calls_that_have_ended_leave_their_places_to_others(server):
    """Attack: a server that gives up its questions would have their clients refused for ten minutes."""
    shop, given_up = Server("shop", revisions=[server]), asyncio.Event()

    @shop.tool
    async def order(number: int, ctx: Context) -> str:
        """Ask, and give up."""
        asking = asyncio.ensure_future(ctx.elicit(f"{number}?", str))
        await asyncio.wait([asking, asyncio.ensure_future(given_up.wait())], return_when=FIRST)
        asking.cancel()
        return f"given up {number}"

    gateway = Gateway(make_host(ALLOW_ALL, ("shop", shop, {})))
    async with gateway:
        user, core = EraClient(gateway.server), gateway.host.core
        params = [{"name": "shop__order", "arguments": {"number": one}} for one in range(14)]
        asked = [await user.once("tools/call", one) for one in params[:12]]
        full = await user.once("tools/call", params[12])
        given_up.set()
        await run_until(lambda: not core.clients.all)
        given_up.clear()
        again = await user.once("tools/call", params[13])
        come = {**params[0], "requestState": asked[0]["requestState"]}
        lost = await user.once("tools/call", {**come, "inputResponses": {"q1": ACCEPTED}})
        assert 1 == len(gateway._parts.parked)

    assert -31429 == full.code
    assert "13?" == again["inputRequests"]["q1"]["params"]["message"]
    assert "may have happened" in lost.message


async def test_a_call_that_has_ended_is_told_how_as_long_as_there_is_room():
    """Ours: its client comes again, and gets the result that it came to."""
    shop, given_up = Server("shop", revisions=["2025-11-25"]), asyncio.Event()

    @shop.tool
    async def order(ctx: Context) -> str:
        """Ask, and give up."""
        asking = asyncio.ensure_future(ctx.elicit("?", str))
        await asyncio.wait([asking, asyncio.ensure_future(given_up.wait())], return_when=FIRST)
        asking.cancel()
        return "given up"

    gateway = Gateway(make_host(ALLOW_ALL, ("shop", shop, {})))
    async with gateway:
        user, params = EraClient(gateway.server), {"name": "shop__order", "arguments": {}}
        asked = await user.once("tools/call", params)
        given_up.set()
        await run_until(lambda: not gateway.host.core.clients.all)
        come = {**params, "requestState": asked["requestState"]}
        done = await user.once("tools/call", {**come, "inputResponses": {"q1": ACCEPTED}})

    assert "given up" == tool_text(done)
