"""Servers that list what a test says, and what lends their clients to a catalog."""

import asyncio
from contextlib import asynccontextmanager

from isthmus import Client, Server
from isthmus.host.catalog.catalog import HostCatalog
from isthmus.host.model.entries import ServerEntry, ServerOptions
from isthmus.wire import Tool


class ListedServer:
    """A server whose lists the test states: for lists that no server of ours would send."""

    instructions = None

    def __init__(self, *tools):
        self.tools = list(tools)
        self.asked = 0

    async def list_tools(self, *, fresh=False):
        """The tools, or the error that is to be raised, or never anything."""
        del fresh
        self.asked += 1
        if self.tools and isinstance(self.tools[0], Exception):
            raise self.tools[0]
        if self.tools == [...]:
            await asyncio.Event().wait()
        return list(self.tools)

    async def list_prompts(self, *, fresh=False):
        """None."""
        del fresh
        return []

    list_resources = list_resource_templates = list_prompts


class ClientShelf:
    """Lends clients, and counts how often each was asked for."""

    def __init__(self, **servers):
        self.servers = servers
        self.lent = []

    @asynccontextmanager
    async def __call__(self, server, isolation):
        self.lent.append((server, isolation))
        target = self.servers[server]
        if isinstance(target, Exception):
            raise target
        if isinstance(target, Server):
            async with Client(target) as client:
                yield client
        else:
            yield target


def plain_tool(name, **more):
    """A tool without parameters."""
    return Tool(name=name, input_schema={"type": "object"}, **more)


def server_entry(name, **options):
    """A server in the configuration."""
    return ServerEntry(name=name, command=(name,), options=ServerOptions(**options))


def make_catalog(shelf, *entries, **more):
    """A catalog of these servers, and of those on the shelf that have no entry."""
    known = {e.name: e for e in entries}
    return HostCatalog({name: server_entry(name) for name in shelf.servers} | known, shelf, **more)
