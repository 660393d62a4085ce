"""Lists of a gateway: by principal, told of when they change, and whole while a server is down."""

import asyncio
import sys
import time
from contextlib import suppress

import pytest

from isthmus import Client, Context, Server
from isthmus.errors import Refused
from isthmus.gateway import Gateway, GatewayOptions
from isthmus.gateway.offers.lists import STATES_KEY, ViewLists
from isthmus.gateway.offers.views import MergedView
from isthmus.host import Host
from isthmus.host.model.errors import ServerUnavailable
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.transports.command import Command
from support.clock import stretch_limit
from support.gateway.small_gateway import ALLOW_ALL, REVISION_NAMES, make_gateway, make_shop

NO_ORDERS = """
[[rule]]
id = "no-orders"
effect = "deny"
when.tool = "order"
"""

BARRED = """
[[rule]]
id = "no-orders"
effect = "deny"
when.tool = "order"
when.principal = "user:local"

[[rule]]
id = "no-catalogue"
effect = "deny"
when.uri = "shop://catalogue"

[[rule]]
id = "no-praise"
effect = "deny"
when.prompt = "praise"
"""


def make_policy(text):
    """A policy that allows what it does not deny."""
    return Policy.of(read_layers(ALLOW_ALL + text, "user"))


@pytest.mark.parametrize("server", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("client", REVISION_NAMES)
async def test_what_is_barred_stands_in_no_list_and_is_refused_as_unknown(client, server):
    """Ours: the same words as for what does not exist."""
    host = Host(policy=make_policy(BARRED))
    host.add("shop", make_shop(server))
    gateway = Gateway(host)
    async with gateway, Client(gateway.server, revision=client) as user:
        assert ["shop__add"] == [tool.name for tool in await user.list_tools()]
        assert [] == await user.list_resources()
        assert [] == await user.list_prompts()
        with pytest.raises(Refused) as barred:
            await user.call_tool("shop__order", {"item": "shoe"})
        with pytest.raises(Refused) as unknown:
            await user.call_tool("shop__oxden", {"item": "shoe"})
        assert str(unknown.value).replace("oxden", "order") == str(barred.value)
        with pytest.raises(Refused, match="Resource not found"):
            await user.read_resource("shop+shop://catalogue")
        with pytest.raises(Refused, match="Unknown prompt"):
            await user.get_prompt("shop__praise", {"name": "shoes"})


async def next_change(changes):
    """The next change of a stream."""
    async with asyncio.timeout(10):
        return await anext(aiter(changes))


@pytest.mark.parametrize("server", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("client", REVISION_NAMES)
async def test_a_changed_list_of_a_server_is_told_to_clients_of_the_view(client, server):
    """Ours: of either era, from a server of either era."""
    shop = make_shop(server)
    gateway = make_gateway(shop=shop)
    async with gateway, Client(gateway.server, revision=client) as user:
        await user.list_tools()
        async with user.listen(tools=True) as changes:

            @shop.tool
            def weigh() -> int:
                """Weigh something."""
                return 1

            assert "tools" == (await next_change(changes)).kind
        names = [tool.name for tool in await user.list_tools(fresh=True)]
        assert "shop__weigh" in names


@pytest.mark.parametrize("client", REVISION_NAMES)
async def test_a_change_that_only_the_session_of_a_call_is_told_of_is_told_to_clients(client):
    """Ours: servers up to 2025-11-25 may say it on the connection of the call, not on the one that lists are from."""
    shop, opened = make_shop("2025-11-25"), []
    shop.visibility(lambda item, _: item.name != "order" or bool(opened), sessions=True)

    @shop.tool
    async def unlock(ctx: Context) -> str:
        """Offer more to everybody, and say so to one session."""
        opened.append(True)
        await ctx.session.disable("nothing")
        return "open"

    gateway = make_gateway(shop=shop)
    asked = {"sample": lambda _: "x"}  # a client that can be asked has a connection of its own
    async with gateway, Client(gateway.server, revision=client, **asked) as user:
        assert "shop__order" not in [tool.name for tool in await user.list_tools()]
        async with user.listen(tools=True) as changes:
            assert "open" == (await user.call_tool("shop__unlock")).text
            assert "tools" == (await next_change(changes)).kind
        assert "shop__order" in [tool.name for tool in await user.list_tools(fresh=True)]


async def test_another_policy_is_told_of_where_it_changes_a_list():
    """Ours: and only that list."""
    host = Host(policy=make_policy(""))
    host.add("shop", make_shop("2026-07-28"))
    gateway = Gateway(host)
    async with gateway, Client(gateway.server) as user:
        await user.list_tools()
        await user.list_prompts()
        async with user.listen(tools=True, prompts=True) as changes:
            host.policy.replace(make_policy(NO_ORDERS))
            assert "tools" == (await next_change(changes)).kind
        assert ["shop__add"] == [one.name for one in await user.list_tools(fresh=True)]


async def test_a_dead_server_hides_nothing_and_its_state_is_told(tmp_path):
    """Ours: the others are listed, its own calls say what is wrong, and it is told of when it is up."""
    script = tmp_path / "late.py"
    host = Host(policy=make_policy(""))
    host.add("shop", make_shop("2026-07-28"))
    host.add("late", Command(sys.executable, str(script)))
    gateway = Gateway(host)
    async with gateway, Client(gateway.server) as user:
        began = time.monotonic()
        assert ["shop__add", "shop__order"] == [tool.name for tool in await user.list_tools()]
        with pytest.raises(Refused, match="late"):
            await user.call_tool("late__hello", {})
        assert time.monotonic() - began < stretch_limit(25.0)
        lists = ViewLists(MergedView(host), host, lambda: "never")
        found = lists.find("tools/list", lists.find_viewer("user:local"))
        assert {"late"} == {*found.meta[STATES_KEY]}
        async with user.listen(tools=True) as changes:
            script.write_text(LATE_SERVER)
            with suppress(ServerUnavailable):  # the attempt before may still be ending
                await host.servers["late"].start()
            assert "tools" == (await next_change(changes)).kind
        assert "hello" == (await user.call_tool("late__hello", {})).text


LATE_SERVER = """
from isthmus import Server

server = Server("late")


@server.tool
def hello() -> str:
    return "hello"


server.run()
"""


async def test_ten_thousand_tools_are_listed():
    """Ours: of ten servers, once they are known in less time than one of them took."""
    host, wide = Host(policy=make_policy("")), make_wide_server(1_000)
    for number in range(10):
        host.add(f"s{number}", wide)
    gateway = Gateway(host, options=GatewayOptions(search="never"))
    async with gateway, Client(gateway.server) as user:
        assert 10_000 == len(await user.list_tools())
        assert 10_000 == len(await user.list_tools(fresh=True))


def make_wide_server(count):
    """A server with many tools."""
    server = Server("wide")
    for number in range(count):

        def tool(text: str, limit: int = 5) -> str:
            """Do one of the many things that there are."""
            return text

        server.tool(tool, name=f"tool_{number}")
    return server


async def measure(server, rounds=7):
    """The least seconds of CPU of a warm list."""
    best = 9e9
    async with Client(server) as user:
        await user.list_tools()
        for _ in range(rounds):
            began = time.process_time()
            await user.list_tools(fresh=True)
            best = min(best, time.process_time() - began)
    return best


async def test_a_list_of_many_servers_costs_about_as_much_as_that_of_one(record_property):
    """Ours: note A7 has a floor of twice; the list is encoded once."""
    host = Host(policy=make_policy(""))
    for number in range(10):
        host.add(f"s{number}", make_wide_server(50))
    gateway = Gateway(host, options=GatewayOptions(search="never"))
    direct = await measure(make_wide_server(500))
    async with gateway:
        through = await measure(gateway.server)
    ratio = through / direct
    record_property("ratio", ratio)
    assert ratio < 3, f"{ratio:.2f} x one server"
