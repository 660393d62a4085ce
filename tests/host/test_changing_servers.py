"""Servers of a host that are switched off, and that say that what they have is something else."""

import asyncio

import pytest

from isthmus import Server
from isthmus.host import Host, ServerUnavailable
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.wire import ListToolsResult, ServerCapabilities, ToolsCapability
from support.client.small_server import SmallServer, any_tool
from support.host.audit_rows import wait_until

ASK = '[[rule]]\nid = "all"\neffect = "ask"\nwhen = { action = "*" }\n'
ALLOW = ASK.replace('"ask"', '"allow"')


def make_host(policy=ALLOW, **servers):
    """A host of servers in this process, and a person who says yes to all."""
    host = Host(approver=lambda _: True, policy=Policy.of(read_layers(policy, "user")))
    for name, (server, options) in servers.items():
        host.add(name, server, **options)
    return host


def desk():
    """A server with a tool."""
    server = Server("desk", instructions="Write it down.")

    @server.tool
    async def note(text: str) -> str:
        """Keep a note."""
        return text

    return server


async def call_finders(host):
    """What the tools that find tools say of notes."""
    search = await host.call("search_tools", {"query": "keep a note"})
    servers = await host.call("list_servers", {})
    return search.text, servers.text


@pytest.mark.covers("hostchat.catalog.switched")
async def test_the_tools_of_a_server_that_was_switched_off_are_nowhere():
    """Ours: not in the catalog, nor in an offer, nor in search or list_servers; a call says why."""
    host = make_host(desk=(desk(), {}), other=(desk(), {}))
    async with host:
        await host.catalog.load()
        before = await call_finders(host)
        await host.servers["desk"].disable()
        off = await call_finders(host)
        offer = await host.catalog.for_model()
        status = host.servers["desk"].status()
        for words in ({"name": "desk__note"}, {"name": "note", "server": "desk"}):
            with pytest.raises(ServerUnavailable, match="isthmus servers enable desk"):
                await host.call(arguments={"text": "x"}, **words)
        await host.servers["desk"].enable()
        after = await call_finders(host)
        text = (await host.call("desk__note", {"text": "x"})).text

    assert "desk__note" in before[0]
    assert "- desk:" in before[1]
    assert not [words for words in off if "desk" in words]
    assert ["other__note"] == [one.name for one in offer.tools]
    assert "disabled" == status.state
    assert ("x", before) == (text, after)


@pytest.mark.covers("hostchat.catalog.asked-again")
@pytest.mark.parametrize("tells", [True, False])
async def test_a_call_that_is_asked_about_lists_the_tools_no_second_time(tells):
    """Ours: nor does the thirty-first within a minute wait for its turn to."""
    listed = []

    async def lists(_params, _inbound):
        listed.append(1)
        return ListToolsResult(tools=[any_tool("buy")])

    offers = ServerCapabilities(tools=ToolsCapability(list_changed=tells))
    server = SmallServer({"tools/list": lists}, capabilities=offers)
    host = make_host(ASK, shop=(server, {"era": "legacy"}))
    async with host:
        async with asyncio.timeout(30.0):
            for _ in range(50):
                await host.call("shop__buy")

    assert 50 == len(server.calls)
    assert [1] == listed


@pytest.mark.covers("hostchat.catalog.one-pending")
async def test_a_storm_of_changes_makes_no_task_for_each_and_leaves_the_others_alone():
    """Ours: one round is pending for the server, and the others are asked nothing."""
    host = make_host(restless=(desk(), {}), calm=(desk(), {}))
    async with host:
        await host.catalog.load()
        calm = host.catalog.listed("calm")
        before = len(host.core.background.tasks)
        tasks = len(asyncio.all_tasks())
        for _ in range(1_000):
            host.parts.catalog.changed("restless", "tools")
        more = len(host.core.background.tasks) - before, len(asyncio.all_tasks()) - tasks
        text = (await host.call("calm__note", {"text": "x"})).text

    assert "x" == text
    assert (0, 1) == more
    assert host.catalog.listed("calm") is calm


@pytest.mark.covers("hostchat.catalog.own-connections")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_change_on_a_connection_of_ones_own_is_heard_there(era):
    """Ours: what somebody's own connection says is about what they see."""
    server = desk()
    host = make_host(desk=(server, {"instance": "per-user", "era": era}))
    async with host:
        await host.call("desk__note", {"text": "x"}, principal="user:ada")

        @server.tool
        async def shred() -> str:
            """Shred it."""
            return "gone"

        def names():
            return [item.name for item in host.catalog.tools("user:ada")]

        await wait_until(lambda: len(names()) == 2)

    assert ["desk__note", "desk__shred"] == sorted(names())


async def test_a_connection_of_ones_own_that_ends_is_forgotten():
    """Ours: nobody asks it any more."""
    host = make_host(desk=(desk(), {"instance": "per-user"}))
    async with host:
        await host.call("desk__note", {"text": "x"}, principal="user:ada")
        there = set(host.catalog._clients)
        await host.servers["desk"].stop()
        left = set(host.catalog._clients)

    assert {("desk", "user:ada")} == there
    assert set() == left
