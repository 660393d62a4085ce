"""Several servers of one configuration as one client."""

import asyncio
import sys

import pytest

from isthmus import Client, Context, Server
from isthmus.bridge.group import make_group_target
from isthmus.bridge.proxy import CAPABILITIES_WAIT_S
from isthmus.client.targets import Target
from isthmus.core.answers import Accepted
from isthmus.errors import Refused, UsageError
from isthmus.testing import serving
from support.clock import run_in_virtual_time

LEGACY, MODERN = "2025-11-25", "2026-07-28"
DEAD = {"url": "http://127.0.0.1:9/mcp"}

SCRIPT = """
from isthmus import Server

server = Server("launched")

@server.tool
def double(x: int) -> int:
    return 2 * x

@server.prompt
def greet() -> str:
    return "Hello"

@server.resource("notes://all")
def notes() -> str:
    return "all notes"

server.run()
"""


def make_asking(revision):
    """A server that asks."""
    server = Server("asking", revisions=[revision])

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str)).value

    return server


def answer(question):
    """Answer with the question itself."""
    return Accepted({"value": question.message})


@pytest.mark.parametrize("inner", [LEGACY, MODERN])
@pytest.mark.parametrize("outer", [LEGACY, MODERN])
async def test_several_servers_are_one_client(tmp_path, outer, inner):
    """Names begin with the server's; questions reach the client, whatever each server speaks."""
    script = tmp_path / "app.py"
    script.write_text(SCRIPT)
    async with serving(make_asking(inner)) as url:
        entries = {
            "calc": {"command": sys.executable, "args": [str(script)]},
            "form": {"url": url},
            "gone": DEAD,
        }
        client = Client({"mcpServers": entries}, revision=outer, elicit=answer)
        async with client:
            assert ["calc_double", "form_ask"] == [one.name for one in await client.list_tools()]
            assert "4" == (await client.call_tool("calc_double", {"x": 2})).text
            assert "Name?" == (await client.call_tool("form_ask")).text
            assert ["calc_greet"] == [one.name for one in await client.list_prompts()]
            (uri,) = [one.uri for one in await client.list_resources()]
            assert "notes://calc/all" == uri
            assert "all notes" == (await client.read_resource(uri)).contents[0].text
            with pytest.raises(Refused, match=r"'gone' behind this one cannot be reached.*refused"):
                await client.call_tool("gone_x")
            states = dict(client.servers)
            assert (None, None) == (states["calc"], states["form"])
            assert "Connection refused" in states["gone"]


async def test_one_entry_is_a_client_of_that_server():
    """Its names have no prefix."""
    async with (
        serving(make_asking(MODERN)) as url,
        Client({"mcpServers": {"form": {"url": url}}}, elicit=answer) as client,
    ):
        assert ["ask"] == [one.name for one in await client.list_tools()]
        assert {} == client.servers


def test_credentials_for_several_servers_are_refused():
    """They would go to every one of them."""
    with pytest.raises(UsageError, match="headers= and auth= are for one server"):
        Client({"mcpServers": {"a": DEAD, "b": DEAD}}, headers={"Authorization": "Bearer x"})


def test_a_name_that_cannot_begin_a_tools_name_is_refused():
    """The message says which, and what is allowed."""
    with pytest.raises(UsageError, match="'my server' is no prefix"):
        Client({"mcpServers": {"my server": DEAD, "b": DEAD}})


def test_an_entry_without_a_target_is_refused():
    """When the client is made, not when it is first used."""
    with pytest.raises(UsageError, match="has a command or a url"):
        Client({"mcpServers": {"a": {}, "b": DEAD}})


@run_in_virtual_time
async def test_a_server_that_hangs_does_not_hold_up_the_others():
    """The client opens, and lists what is there, while another one is still being connected to."""
    opened = []

    async def hang():
        opened.append(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

    servers = {"form": make_asking(MODERN), "hang": Target("hang", hang)}
    target = make_group_target(servers, connect_timeout=30)
    async with Client(target, elicit=answer) as client:
        assert "Name?" == (await client.call_tool("form_ask")).text
        assert CAPABILITIES_WAIT_S >= asyncio.get_running_loop().time()
        assert ["form_ask"] == [one.name for one in await client.list_tools()]
    assert [0] == opened
