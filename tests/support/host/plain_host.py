"""A host without policy, for tests of conversations: its servers are in this process."""

import time
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

from isthmus import Client
from isthmus.host.catalog.catalog import HostCatalog
from isthmus.host.model.entries import HostConfig, ServerEntry
from isthmus.host.model.errors import Denied
from isthmus.host.model.events import HostEvents
from isthmus.host.model.interaction import CallAsked
from isthmus.host.model.tokens import TokenEstimators
from isthmus.host.pipeline.runs import Budget, Runs
from support.host.waiting_host import WaitingHost, make_interaction


class View(WaitingHost):
    """The view that a terminal has of the host."""

    async def grants(self):
        """None."""
        return []

    async def revoke(self, id, *, by=""):
        """There are none."""
        del id, by
        return False


class PlainHost:
    """Calls go straight to their server.

    ``refusals`` has errors for some tools, by name; ``consents`` names those that are asked about.
    """

    def __init__(self, **servers):
        self.servers = servers
        self.refusals = {}
        self.consents = set()
        self.view = View()
        self.config = HostConfig()
        self.core = SimpleNamespace(pipeline=SimpleNamespace(policy=SimpleNamespace(broken=())))
        self.calls = []
        self.estimators = TokenEstimators()
        self.told = HostEvents()
        self._runs = Runs(time.monotonic)
        self._clients = {}
        self._stack = AsyncExitStack()
        entries = {name: ServerEntry(name=name, command=(name,)) for name in servers}
        self.catalog = HostCatalog(entries, self._use)

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

    def run(self, principal="user:local", *, budget=None):
        """A new run."""
        return self._runs.begin(principal, budget=budget or Budget())

    def events(self):
        """The events from now on."""
        return self.told.listen()

    async def call(self, name, arguments, *, principal, run, timeout=None, on_progress=None):
        """Call a tool, or raise what the test has for it."""
        self.calls.append((name, arguments, principal, run.id))
        if name in self.refusals:
            raise self.refusals[name]
        server, own = await self.catalog.find(name)
        if name in self.consents:
            arguments = await self._consent(server, own, arguments)
        client = self._clients[server]
        return await client.call_tool(own, arguments, timeout=timeout, on_progress=on_progress)

    async def _consent(self, server, own, arguments):
        payload = CallAsked(tool=self.catalog.tool(server, own), arguments=arguments)
        events, id = self.view.events(), f"q{len(self.calls)}"
        self.view.ask(make_interaction(id, payload, server=server, object=own))
        async for event in events:
            if getattr(event, "decision", None) is not None and event.id == id:
                events.close()
                if event.decision.verdict != "allow":
                    raise Denied("the user said no", by="chat")
                return event.decision.edited or arguments
        return None

    async def complete(self, server, ref, argument, value="", *, context=None, principal=""):
        """Completions for a blank."""
        del principal
        return await self._clients[server].complete(ref, argument, value, context=context)

    async def read(self, uri, *, server, principal, run):
        """Read a resource."""
        del principal, run
        return await self._clients[server].read_resource(uri)

    async def prompt(self, name, arguments, *, principal, run):
        """Get a prompt."""
        del principal, run
        server, own = await self.catalog.find_prompt(name)
        return await self._clients[server].get_prompt(own, arguments)
