"""As much of a host as a conversation needs, without policy: its servers are in this process."""

import time
from contextlib import AsyncExitStack, asynccontextmanager

from isthmus import Client
from isthmus.host.catalog.catalog import Catalog
from isthmus.host.config.entries import ServerEntry
from isthmus.host.events import Events
from isthmus.host.runs import Runs


class PlainHost:
    """Calls go straight to their server; ``refusals`` has errors for some tools, by name."""

    def __init__(self, **servers):
        self.servers = servers
        self.refusals = {}
        self.calls = []
        self.told = Events()
        self._runs = Runs(time.monotonic)
        self._clients = {}
        self._stack = AsyncExitStack()
        entries = {name: ServerEntry(name=name, command=(name,)) for name in servers}
        self.catalog = Catalog(entries, self._use)

    async def __aenter__(self):
        for name, server in self.servers.items():
            self._clients[name] = await self._stack.enter_async_context(Client(server))
        return self

    async def __aexit__(self, *_):
        await self.catalog.close()
        self.told.close()
        await self._stack.aclose()

    @asynccontextmanager
    async def _use(self, server, _isolation):
        yield self._clients[server]

    def run(self, **more):
        """A new run."""
        return self._runs.begin(**more)

    def events(self):
        """What happens from now on."""
        return self.told.listen()

    async def call(self, name, arguments, *, principal, run, timeout=None, on_progress=None):
        """Call a tool, or raise what the test has for it."""
        self.calls.append((name, arguments, principal, run.id))
        if name in self.refusals:
            raise self.refusals[name]
        server, own = await self.catalog.find(name)
        client = self._clients[server]
        return await client.call_tool(own, arguments, timeout=timeout, on_progress=on_progress)

    async def read(self, uri, *, server, principal, run):
        """Read a resource."""
        del principal, run
        return await self._clients[server].read_resource(uri)

    async def prompt(self, name, arguments, *, principal, run):
        """Get a prompt."""
        del principal, run
        server, own = await self.catalog.find_prompt(name)
        return await self._clients[server].get_prompt(own, arguments)
