"""Reloads of a gateway: clients that are connected see another configuration at once, and calls under way end."""

import asyncio
import contextlib

import pytest
from msgspec import structs

from isthmus import Accepted, Client, Server
from isthmus.errors import IsthmusError
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.model.entries import HostConfig, ServerEntry, ToolSelection
from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile, ParkingOptions
from support.gateway.asking_shop import make_asker
from support.gateway.small_gateway import make_allowing_host
from support.http.uvicorn_server import serve_uvicorn

BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
PATIENCE_S = 10


class Town:
    """Two servers over HTTP, ``a`` and ``b``, as entries; calls of ``wait`` wait for ``go``."""

    def __init__(self):
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.entries = {}

    def make_server(self, name):
        """Make a server with two tools."""
        server = Server(name)

        @server.tool
        def hello() -> str:
            """Say hello."""
            return name

        @server.tool
        async def wait() -> str:
            """Wait."""
            self.began.set()
            await self.go.wait()
            return name

        return server

    def configure(self, *names, **gateway):
        """Make a configuration with some of the servers, and with options of the gateway."""
        config = HostConfig(servers={name: self.entries[name] for name in names})
        options = structs.replace(config.options, gateway=GatewayOptions(**gateway))
        return structs.replace(config, options=options)


@contextlib.asynccontextmanager
async def open_town():
    """Serve the servers."""
    town = Town()
    async with contextlib.AsyncExitStack() as stack:
        for name in "ab":
            app = town.make_server(name).asgi()
            port = await stack.enter_async_context(serve_uvicorn(app, "auto"))
            url = f"http://127.0.0.1:{port}/mcp"
            town.entries[name] = ServerEntry(name=name, kind="http", url=url)
        yield town


async def list_names(client):
    """The names of the tools that a client is shown."""
    return [tool.name for tool in await client.list_tools()]


@BOTH
async def test_a_server_that_is_added_appears_and_clients_are_told(revision):
    """Ours: without a new connection, in both eras."""
    async with open_town() as town:
        gateway, told = Gateway(make_allowing_host(config=town.configure("a"))), asyncio.Event()
        async with (
            gateway,
            Client(gateway.server, revision=revision, on_change=lambda _: told.set()) as user,
            contextlib.AsyncExitStack() as stack,
        ):
            if revision == "2026-07-28":
                await stack.enter_async_context(user.listen(tools=True))
            assert ["a__hello", "a__wait"] == await list_names(user)
            await gateway.host.reload(town.configure("a", "b"))
            await asyncio.wait_for(told.wait(), PATIENCE_S)
            assert {"a__hello", "b__hello"} <= set(await list_names(user))
            assert "b" == (await user.call_tool("b__hello")).text


@BOTH
async def test_a_server_that_is_removed_is_unknown_and_its_calls_end(revision):
    """Ours: what was begun is answered; what comes after it is not known."""
    async with open_town() as town:
        gateway = Gateway(make_allowing_host(config=town.configure("a", "b")))
        async with gateway, Client(gateway.server, revision=revision) as user:
            assert "b__wait" in await list_names(user)
            call = asyncio.create_task(user.call_tool("b__wait"))
            await asyncio.wait_for(town.began.wait(), PATIENCE_S)
            reload = asyncio.create_task(gateway.host.reload(town.configure("a")))
            town.go.set()
            assert "b" == (await asyncio.wait_for(call, PATIENCE_S)).text
            await asyncio.wait_for(reload, PATIENCE_S)
            assert ["a__hello", "a__wait"] == [
                tool.name for tool in await user.list_tools(fresh=True)
            ]
            with pytest.raises(IsthmusError, match="b__hello"):
                await user.call_tool("b__hello")
            assert not gateway.has_endpoint("/mcp/b")


async def test_another_profile_counts_at_once():
    """Ours: for clients that are connected, too; one that is gone serves nothing."""
    async with open_town() as town:
        one = GatewayProfile(servers=("a",), include=("a__hello",))
        first = town.configure("a", "b", profiles={"one": one})
        gateway = Gateway(make_allowing_host(config=first))
        async with gateway, Client(gateway.find_server("/mcp/p/one")) as user:
            assert ["a__hello"] == await list_names(user)
            other = GatewayProfile(servers=("b",), include=("b__hello",))
            await gateway.host.reload(town.configure("a", "b", profiles={"one": other}))
            assert ["b__hello"] == [tool.name for tool in await user.list_tools(fresh=True)]
            assert "b" == (await user.call_tool("b__hello")).text
            with pytest.raises(IsthmusError, match="a__hello"):
                await user.call_tool("a__hello")
            await gateway.host.reload(town.configure("a", "b"))
            assert not gateway.has_endpoint("/mcp/p/one")
            with pytest.raises(IsthmusError):
                await user.call_tool("b__hello")


RULE = """
[[rule]]
id = "calls"
effect = "{}"
when = {{ action = "tool.call" }}

[[rule]]
id = "servers"
effect = "allow"
when = {{ action = "server.connect" }}
"""


async def test_another_policy_counts_at_once(tmp_path):
    """Ours: a client that is connected is refused by the rule that was saved last."""
    paths = {effect: tmp_path / f"{effect}.toml" for effect in ("allow", "deny")}
    for effect, path in paths.items():
        path.write_text(RULE.format(effect))
    async with open_town() as town:
        config = town.configure("a")
        allow, deny = (
            structs.replace(config, options=structs.replace(config.options, policy=str(path)))
            for path in paths.values()
        )
        gateway = Gateway(Host(allow))
        async with gateway, Client(gateway.server) as user:
            assert "a" == (await user.call_tool("a__hello")).text
            await gateway.host.reload(deny)
            with pytest.raises(IsthmusError):
                await user.call_tool("a__hello")
            await gateway.host.reload(allow)
            assert "a" == (await user.call_tool("a__hello")).text


async def test_other_options_of_an_entry_and_of_the_gateway_count_at_once():
    """Ours: a tool that is left out is unknown; another rate is the one that counts."""
    async with open_town() as town:
        gateway = Gateway(make_allowing_host(config=town.configure("a")))
        async with gateway, Client(gateway.server) as user:
            assert "a__hello" in await list_names(user)
            options = structs.replace(
                town.entries["a"].options, tools=ToolSelection(exclude=("wait",))
            )
            town.entries["a"] = structs.replace(town.entries["a"], options=options)
            limits = structs.replace(gateway.options.limits, calls=1.0)
            await gateway.host.reload(town.configure("a", limits=limits))
            assert ["a__hello"] == [tool.name for tool in await user.list_tools(fresh=True)]
            assert "a" == (await user.call_tool("a__hello")).text
            with pytest.raises(IsthmusError, match="minute"):
                await user.call_tool("a__hello")


@BOTH
async def test_other_instructions_are_given_to_whoever_connects(revision):
    """Ours: at all endpoints; the name stays, since stores and caches of clients go by it."""
    async with open_town() as town:
        profile = GatewayProfile(servers=("a",), instructions="Say hello once.")
        first = town.configure("a", instructions="Say hello.", profiles={"one": profile})
        gateway = Gateway(make_allowing_host(config=first))
        async with gateway:
            assert ["Say hello.", "Say hello once."] == await read_instructions(gateway, revision)
            other = structs.replace(profile, instructions="Say goodbye once.")
            second = town.configure(
                "a", name="other", instructions="Say goodbye.", profiles={"one": other}
            )
            await gateway.host.reload(second)
            said = await read_instructions(gateway, revision)
            assert ["Say goodbye.", "Say goodbye once."] == said
            assert "isthmus-gateway" == gateway.server.info.name
            await gateway.host.reload(town.configure("a", profiles={"one": other}))
            assert "goodbye" not in str((await read_instructions(gateway, revision))[0])


async def read_instructions(gateway, revision):
    """The instructions that clients of all, and of a profile, get."""
    said = []
    for path in ("/mcp", "/mcp/p/one"):
        async with Client(gateway.find_server(path), revision=revision) as user:
            said.append(user.instructions)
    return said


async def test_other_limits_of_parked_calls_count_at_once():
    """Ours: for the next call that asks."""
    shop = make_asker("2025-11-25")
    async with serve_uvicorn(shop.asgi(), "auto") as port:
        entry = ServerEntry(name="shop", kind="http", url=f"http://127.0.0.1:{port}/mcp")
        town = Town()
        town.entries["shop"] = entry
        gateway = Gateway(make_allowing_host(config=town.configure("shop")))
        async with (
            gateway,
            Client(gateway.server, elicit=lambda _: Accepted({"value": "7"})) as user,
        ):
            assert "hat: 7" == (await user.call_tool("shop__order", {"item": "hat"})).text
            none = town.configure("shop", parking=ParkingOptions(calls=0))
            await gateway.host.reload(none)
            with pytest.raises(IsthmusError, match="Too many calls wait"):
                await user.call_tool("shop__order", {"item": "hat"})
