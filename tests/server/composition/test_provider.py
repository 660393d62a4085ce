"""Providers: what a server offers beside its own declarations."""

import logging

import pytest

from isthmus import Refuse, Server
from isthmus.core.principal import NO_SCOPES
from isthmus.errors import UsageError
from isthmus.testing import connect, every_revision
from isthmus.wire import (
    CallToolResult,
    ServerCapabilities,
    TextContent,
    Tool,
    ToolsCapability,
)


class Fixed:
    """A provider of tools of fixed names, each of which says its own name."""

    def __init__(self, *names, label="fixed"):
        self.label = label
        self.tasks = None
        self.names = list(names)
        self.changed = None
        self.log = []

    async def capabilities(self, _inbound):
        return ServerCapabilities(tools=ToolsCapability(list_changed=True))

    def serves(self, method, key):
        return method == "tools/call" and key in self.names

    def guesses(self, _method, _key):
        return False

    async def list(self, method, _inbound):
        schema = {"type": "object"}
        return [
            Tool(name=name, input_schema=schema) for name in self.names if method == "tools/list"
        ]

    async def serve(self, _method, params, _inbound):
        return CallToolResult(content=[TextContent(text=f"{self.label} {params.name}")])

    def needs(self, _method, _params, _principal):
        return NO_SCOPES

    def fixed_scopes(self, _method, _key):
        return NO_SCOPES

    def known_scopes(self):
        return NO_SCOPES

    def attach(self, changed):
        self.changed = changed

    async def open(self):
        self.log.append("open")

    async def close(self):
        self.log.append("close")


def shop(*providers, **options):
    """A server with a tool of its own, and providers."""
    server = Server("shop", **options)

    @server.tool
    def b() -> str:
        return "own b"

    for provider in providers:
        server.add_provider(provider)
    return server


async def said(client, name):
    """The text that a tool answers."""
    return (await client.call_tool(name)).text


@every_revision
async def test_items_of_providers_follow_the_own_ones(revision):
    """Ours: the first that has a name serves it, beginning with the server itself."""
    fixed = Fixed("c", "a")
    async with connect(shop(fixed), revision=revision) as client:
        listed = [tool.name for tool in await client.list_tools()]
        answers = [await said(client, name) for name in listed]

    assert ["b", "c", "a"] == listed
    assert ["own b", "fixed c", "fixed a"] == answers
    assert ["open", "close"] == fixed.log


async def test_pages_lead_across_own_and_provided_items():
    """Ours: a cursor names the last item of its page, whosever it is."""
    server = shop(Fixed("e", "a"), Fixed("d", "c"), page_size=2)
    async with connect(server) as client:
        listed = [tool.name for tool in await client.list_tools()]

    assert ["a", "b", "c", "d", "e"] == listed


async def test_a_name_that_is_offered_twice_is_the_first_ones_and_logged_once(caplog):
    """Ours: nothing that comes later takes the place of what is there."""
    server = shop(Fixed("b", "x", label="one"), Fixed("x", label="two"))
    with caplog.at_level(logging.WARNING, logger="isthmus"):
        async with connect(server) as client:
            listed = [tool.name for tool in await client.list_tools()]
            await client.list_tools()
            answers = [await said(client, "b"), await said(client, "x")]

    assert ["b", "x"] == listed
    assert ["own b", "one x"] == answers
    assert 2 == sum("is offered twice" in record.message for record in caplog.records)


async def test_an_unknown_tool_is_unknown_as_ever():
    """Spec server/tools: an unknown tool is a protocol error."""
    async with connect(shop(Fixed("a"))) as client:
        with pytest.raises(Exception, match="Unknown tool: z"):
            await client.call_tool("z")


@every_revision
async def test_clients_hear_of_a_provider_that_changed(revision):
    """Ours: a change of a provider's list is one of the server's list."""
    fixed = Fixed("a")
    async with connect(shop(fixed), revision=revision) as client:
        await client.call_tool("a")
        async with client.listen(tools=True) as changes:
            fixed.names.append("new")
            fixed.changed(("notifications/tools/list_changed", None))
            heard = await anext(aiter(changes))
        listed = [tool.name for tool in await client.list_tools()]

    assert "tools" == heard.kind
    assert ["b", "a", "new"] == listed


async def test_a_provider_that_cannot_begin_stops_the_server():
    """Ours: what was opened before it is closed again."""
    good, bad = Fixed("a"), Fixed("c")

    async def fail():
        raise OSError("no route")

    bad.open = fail
    server = shop(good, bad)
    with pytest.raises(Exception, match="OSError"):
        await server.open()

    assert ["open", "close"] == good.log


async def test_the_rate_of_calls_counts_provided_tools_too():
    """Spec server/tools: invocations are limited, whoever serves them."""
    from isthmus.server import Limits, Rate

    server = shop(Fixed("a"), limits=Limits(tool_calls=Rate(2, 60.0)))
    async with connect(server) as client:
        await client.call_tool("a")
        await client.call_tool("b")
        with pytest.raises(Refuse.__mro__[1]) as refused:
            await client.call_tool("a")

    assert -31429 == refused.value.code


async def test_providers_come_before_the_server_serves():
    """Ours: capabilities were told by then."""
    server = shop()
    async with connect(server):
        with pytest.raises(UsageError, match="before the server"):
            server.add_provider(Fixed("a"))
