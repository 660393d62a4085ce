"""Gateways that lead to each other, or to themselves: found in bounded time, told clearly, nobody else harmed."""

import sys
import time
from contextlib import AsyncExitStack

import pytest
from msgspec import Raw

from isthmus import Client, Command
from isthmus.bridge.upstream import HOPS_KEY
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.gateway.loops import MAX_HOPS, extend_trail, make_mark, read_trail
from isthmus.host import Host
from isthmus.host.model.entries import HostConfig, ServerEntry
from isthmus.wire.jsonrpc import encode
from support.clock import stretch_limit
from support.gateway.small_gateway import ALLOW_ALL, make_allowing_host, make_gateway, make_shop

MODERN, LEGACY = "2026-07-28", "2025-06-18"


async def test_a_request_counts_the_gateways_that_it_came_through():
    """Ours: four gateways in a row serve a call, the fifth refuses it."""
    first = make_gateway(shop=make_shop(MODERN))
    async with AsyncExitStack() as stack:
        last = await stack.enter_async_context(first)
        for _ in range(MAX_HOPS - 1):
            last = await stack.enter_async_context(make_gateway(next=last.server))
        name = "next__" * (MAX_HOPS - 1) + "shop__add"
        async with Client(last.server) as user:
            assert "3" == (await user.call_tool(name, {"a": 1, "b": 2})).text
        further = await stack.enter_async_context(make_gateway(next=last.server))
        async with Client(further.server) as user:
            with pytest.raises(Refused, match="4 proxies"):
                await user.call_tool(f"next__{name}", {"a": 1, "b": 2})


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_a_gateway_that_names_itself_says_so_and_serves_the_others(revision):
    """Ours: metamcp#133 started processes without end; here it is one clear error."""
    host = make_allowing_host()
    host.add("shop", make_shop(MODERN))
    gateway = Gateway(host)
    host.add("self", gateway.server)
    began = time.monotonic()
    async with gateway, Client(gateway.server, revision=revision) as user:
        assert ["shop__add", "shop__order"] == [tool.name for tool in await user.list_tools()]
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
        with pytest.raises(Refused):
            await user.call_tool("self__shop__add", {"a": 1, "b": 2})
    assert time.monotonic() - began < stretch_limit(5.0)


async def test_the_reason_why_a_gateway_does_not_serve_itself_is_told():
    """Ours: a notice names the server, and says that it leads back."""
    host = make_allowing_host()
    gateway = Gateway(host)
    host.add("self", gateway.server)
    async with gateway, Client(gateway.server) as user:
        with pytest.raises(Refused, match="reached through itself"):
            await user.read_resource("self+shop://catalogue")


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_a_subscription_does_not_lead_back(revision):
    """Attack: one that a gateway has at itself would hear of itself, and never end."""
    host = make_allowing_host()
    host.add("shop", make_shop(revision))
    gateway = Gateway(host)
    host.add("self", gateway.server)
    async with gateway, Client(gateway.server, revision=revision) as user:
        await user.list_tools()
        if revision == MODERN:
            async with user.listen(uris=["self+shop+shop://catalogue"]) as changes:
                assert not changes.granted.resource_subscriptions
        else:
            with pytest.raises(Refused, match="self tells nobody of shop"):
                await user.subscribe("self+shop+shop://catalogue")
        assert 0 == len(gateway._parts.updates)


async def test_a_gateway_that_launches_itself_starts_one_process(tmp_path):
    """Ours: the child has the same servers, and so the same mark: it starts none of its own."""
    config, log, rules = tmp_path / "mcp.json", tmp_path / "starts", tmp_path / "rules.toml"
    state, agreed = tmp_path / "state", tmp_path / "agreed"
    rules.write_text(ALLOW_ALL, encoding="utf-8")
    launcher = tmp_path / "launch.py"
    launcher.write_text(
        "import os, shutil, sys, tempfile\n"
        f"if not os.path.exists({str(agreed)!r}):\n"  # a gateway would start itself, and late at that
        "    from isthmus import Server\n"
        "    Server('empty').run()\n"
        "    sys.exit()\n"
        f"open({str(log)!r}, 'a').write('started\\n')\n"
        f"sys.argv = ['isthmus', 'gateway', '--stdio', '--config', {str(config)!r},\n"
        f"    '--state', shutil.copytree({str(state)!r}, tempfile.mkdtemp(dir={str(tmp_path)!r}) + '/state')]\n"
        "from isthmus.cli.main import main\n"
        "main()\n",
        encoding="utf-8",
    )
    command = [sys.executable, str(launcher)]
    itself = {"command": command[0], "args": command[1:]}
    config.write_bytes(encode({"mcpServers": {"self": itself}, "host": {"policy": str(rules)}}))
    async with Host.from_config(config, approver=lambda _: True, state=state) as host:
        await host.servers["self"].start()  # a person has agreed that it may be launched
    agreed.touch()

    # Where a busy machine answers late, it would be taken for a server before 2026-07-28, and so would the
    # child: a session there has a process of its own.
    async with Client(Command(*command), revision=MODERN) as user:
        assert [] == await user.list_tools()
        assert [] == await user.list_prompts()
        with pytest.raises(Refused, match="reached through itself"):
            await user.read_resource("self+shop://catalogue")

    assert 2 == log.read_text(encoding="utf-8").count("started")


def test_a_mark_is_made_of_what_stands_in_the_files():
    """Ours: processes with one configuration have one mark; a server in memory is nobody else's."""
    one = HostConfig(servers={"a": ServerEntry(name="a", url="https://example.com/mcp")})
    same = HostConfig(servers={"a": ServerEntry(name="a", url="https://example.com/mcp")})
    other = HostConfig(servers={"a": ServerEntry(name="a", url="https://example.org/mcp")})
    inside = HostConfig(servers={"a": ServerEntry(name="a")})

    assert make_mark(one, "x") == make_mark(same, "y")
    assert make_mark(one, "x") != make_mark(other, "x")
    assert make_mark(inside, "x") != make_mark(inside, "y")


@pytest.mark.parametrize(
    "meta",
    [
        {HOPS_KEY: "many", "io.github.isthmus/gateways": {"a": 1}},
        Raw(b'{"io.github.isthmus/proxy-hops": [], "io.github.isthmus/gateways": [1]}'),
        Raw(b'{"io.github.isthmus/proxy-hops": -7}'),
        Raw(b"{}"),
    ],
)
def test_a_trail_that_makes_no_sense_is_none(meta):
    """Ours: a client can write what it likes there, and harms only its own request."""
    assert (0, ()) == read_trail(meta)


def test_a_trail_grows_by_the_gateway_that_passes_it_on():
    """Ours: the count of proxies and the marks of gateways."""
    meta = Raw(encode({HOPS_KEY: 2, "io.github.isthmus/gateways": ["a"]}))

    assert {HOPS_KEY: 3, "io.github.isthmus/gateways": ["a", "b"]} == extend_trail(meta, "b")
