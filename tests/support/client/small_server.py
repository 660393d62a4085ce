"""A small server for the tests of clients, made of a real router; and a channel moved by hand."""

import json

from isthmus.core.caller import Caller
from isthmus.revisions import BY_NAME, LEGACY, REVISIONS
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.router import Router
from isthmus.transports.memory import open_pair
from isthmus.wire import (
    CallToolResult,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeResult,
    ListToolsResult,
    ServerCapabilities,
    TextContent,
    Tool,
    ToolsCapability,
)

NAMES = [revision.name for revision in REVISIONS]
"""Every revision by name, oldest first."""

LEGACY_NAME, MODERN_NAME = NAMES[-2:]
"""The newest of each era."""


def any_tool(name="add", **more):
    """A tool that takes anything."""
    return Tool(name=name, input_schema={"type": "object"}, **more)


def text_result(words, **more):
    """The result of a tool that says something."""
    return CallToolResult(content=[TextContent(text=words)], **more)


class SmallServer:
    """Answers what it is told to; its ``router`` makes it a target for a client.

    Args:
        capabilities: what it offers.
        routes: further handlers by method, or other ones.
        tools: what it lists.
        revisions: what it speaks, by name.

    Attributes:
        calls: the inbound of every call to a tool.
        noted: the method of every notification that came.
        links: the way back, one per opening.
    """

    def __init__(self, routes=None, *, capabilities=None, tools=(), revisions=NAMES):
        self.capabilities = capabilities or ServerCapabilities(tools=ToolsCapability())
        self.calls, self.noted, self.links = [], [], []
        self.tools = list(tools)
        self.spoken = tuple(BY_NAME[name] for name in revisions)
        basic = {
            "initialize": self.initialize,
            "server/discover": self.discover,
            "ping": self.ping,
            "tools/list": self.list_tools,
            "tools/call": self.call_tool,
        }
        heard = ("notifications/initialized", "notifications/roots/list_changed")
        self.router = Router(
            basic | (routes or {}),
            dict.fromkeys(heard, lambda _params, inbound: self.noted.append(inbound.method)),
            supported=self.spoken,
            server=Implementation(name="small", version="1"),
        )

    async def initialize(self, params, inbound):
        legacy = [revision for revision in self.spoken if revision in LEGACY]
        asked = BY_NAME.get(params.protocol_version)
        revision = asked if asked in legacy else legacy[-1]
        inbound.link.agree(Caller(revision=revision, capabilities=params.capabilities))
        self.links.append(inbound.link)
        return InitializeResult(
            protocol_version=revision.name,
            capabilities=self.capabilities,
            server_info=Implementation(name="small", version="1"),
            instructions="be brief",
        )

    async def discover(self, _params, inbound):
        self.links.append(inbound.link)
        return DiscoverResult(
            supported_versions=[revision.name for revision in self.spoken],
            capabilities=self.capabilities,
            instructions="be brief",
        )

    async def ping(self, _params, _inbound):
        return EmptyResult()

    async def list_tools(self, _params, _inbound):
        return ListToolsResult(tools=self.tools)

    async def call_tool(self, params, inbound):
        self.calls.append(inbound)
        return text_result(f"{params.name} {bytes(params.arguments).decode()}")


class PuppetChannel:
    """The far end of a client's channel, moved by hand: one frame at a time.

    Attributes:
        channel: what the client is pointed at.
    """

    def __init__(self):
        self.channel, self._mine = open_pair()

    async def heard(self):
        """The next message of the client, or None once it has gone."""
        delivery = await self._mine.receive()
        return None if delivery is None else json.loads(delivery.data)

    async def says(self, **members):
        """Send the client a message."""
        await self.raw(json.dumps({"jsonrpc": "2.0", **members}).encode())

    async def raw(self, data):
        """Send the client any bytes."""
        await self._mine.send(Outgoing(data))

    async def answers(self, *results):
        """Answer the next requests, and give back what they were."""
        asked = []
        for result in results:
            asked.append(await self.heard())
            await self.says(id=asked[-1]["id"], result=result)
        return asked

    async def discovered(self, **capabilities):
        """Answer the opening of a modern client."""
        result = {
            "supportedVersions": [MODERN_NAME],
            "capabilities": {"tools": {}, **capabilities},
            "resultType": "complete",
        }
        await self.answers(result)

    async def greeted(self, version=LEGACY_NAME, **capabilities):
        """Answer the opening of a client pinned to a legacy revision."""
        await self.answers(
            {
                "protocolVersion": version,
                "capabilities": {"tools": {}, **capabilities},
                "serverInfo": {"name": "puppet", "version": "1"},
            }
        )
        assert "notifications/initialized" == (await self.heard())["method"]

    async def leaves(self):
        """End the connection."""
        await self._mine.close()
