"""Servers in memory that a supervisor starts, and that fail when a test wants them to."""

import asyncio

from isthmus import Client, Server
from isthmus.client.targets import Target
from isthmus.errors import ConnectFailed
from isthmus.host.model.entries import HostConfig, ServerEntry, ServerOptions
from isthmus.host.model.errors import ConfigError
from isthmus.runtime.peer import Peer
from isthmus.testing.clock import VirtualLoop
from isthmus.transports.memory import open_pair


def make_entries(*names, command=(), **options):
    """Entries of these names, all with the same options."""
    return {
        name: ServerEntry(name=name, command=command, options=ServerOptions(**options))
        for name in names
    }


def make_configuration(*names, command=(), **options):
    """A configuration of servers of these names, all with the same options."""
    return HostConfig(servers=make_entries(*names, command=command, **options))


def run_virtual(main):
    """Run a coroutine on a clock that jumps; what waits for ever fails after a virtual month."""

    async def bounded():
        async with asyncio.timeout(30 * 86400):
            return await main

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(bounded())


def make_bookshop(gate):
    """A server with a tool that answers at once, and one that waits for the gate."""
    server = Server("bookshop")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool
    async def wait() -> str:
        """Wait for the gate."""
        await gate.wait()
        return "done"

    return server


class Fleet:
    """Makes clients for a supervisor, and remembers what it was asked for.

    What ``plan[name]`` holds becomes of the next starts of that server, in turn: an exception is
    raised while it is dialled, ``"silent"`` never answers; without any left it comes up.
    """

    def __init__(self, **plan):
        self.plan = {name: list(steps) for name, steps in plan.items()}
        self.starts = []
        self.calls = []
        self.gate = asyncio.Event()
        self.deaf = False
        self._ends = {}

    def client_for(self, entry, isolation):
        """Make a client: a supervisor's ``client_for``."""
        steps = self.plan.get(entry.name)
        if steps and isinstance(steps[0], ConfigError):
            raise steps.pop(0)
        return Client(
            Target(entry.name, lambda: self._dial(entry.name, isolation)),
            connect_timeout=entry.options.timeouts.connect,
            revision="2025-11-25",
        )

    async def _dial(self, name, isolation):
        self.starts.append((name, isolation))
        steps = self.plan.get(name) or [None]
        step = steps.pop(0)
        if isinstance(step, Exception):
            raise step
        ours, theirs = open_pair()
        self._ends[name, isolation] = theirs
        if step != "silent":
            peer = Peer(Quiet(theirs, self), make_bookshop(self.gate).router, side="server")
            self._running = asyncio.get_running_loop().create_task(peer.run())
        return ours

    async def snap(self, name, isolation=""):
        """Let the connection to a server end."""
        await self._ends[name, isolation].close()


class Quiet:
    """The server's end of a channel, which can be made to hear nothing."""

    def __init__(self, channel, fleet):
        self._channel = channel
        self._fleet = fleet

    async def receive(self):
        """The next message that is heard."""
        while True:
            delivery = await self._channel.receive()
            if delivery is None or not self._fleet.deaf:
                if delivery is not None:
                    self._fleet.calls.append(bytes(delivery.data))
                return delivery

    def __getattr__(self, name):
        return getattr(self._channel, name)


def refuse_connection():
    """A server that is not there."""
    return ConnectFailed("there is nobody")
