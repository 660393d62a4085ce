"""Several nodes of one server in one event loop, each of which can be killed, paused and resumed."""

import asyncio
from types import SimpleNamespace

from msgspec import structs

from isthmus import Server
from isthmus.errors import StoreUnavailable
from isthmus.server.guard.limits import Limits
from isthmus.store.memory_store import MemoryStore
from isthmus.testing import VirtualLoop
from isthmus.wire import TASKS
from support.server.both_eras import ALL_CAPABILITIES, LEGACY, EraClient

EXTENDED = structs.replace(ALL_CAPABILITIES, extensions={TASKS: {}})

DEATH_S = 9.0  # after which the end of a node is known to the others: its lease, and a look

FINAL = {"completed", "failed", "cancelled"}


def run(work, *arguments):
    """Run a coroutine function on a clock that does not wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work(*arguments))


class Gate:
    """What stands between one node and the store: it may be shut for a while, or for ever."""

    def __init__(self):
        self._open = asyncio.Event()
        self._open.set()
        self.shut_for_ever = False
        self.is_torn_down = False
        self.operations = 0

    async def passes(self):
        """Wait until operations go through; what a killed process began never does."""
        self.operations += 1
        if self.is_torn_down:
            raise StoreUnavailable("the test is over")
        while self.shut_for_ever or not self._open.is_set():
            if self.shut_for_ever:
                await asyncio.get_running_loop().create_future()
            await self._open.wait()

    def lose_store(self):
        """Every operation fails from now on."""
        self.is_torn_down = True

    def pause(self):
        self._open.clear()

    def resume(self):
        self._open.set()

    @property
    def hears(self):
        return self._open.is_set() and not self.shut_for_ever


class GatedKV:
    """A key-value store, or a meter, behind a gate."""

    def __init__(self, kv, gate):
        self._kv = kv
        self._gate = gate

    def __getattr__(self, name):
        method = getattr(self._kv, name)

        async def pass_on(*arguments, **options):
            await self._gate.passes()
            return await method(*arguments, **options)

        return pass_on


class GatedBus:
    """A bus behind a gate: what is published meanwhile is lost, and there was a gap."""

    def __init__(self, bus, gate):
        self._bus = bus
        self._gate = gate
        self.gaps = []

    async def publish(self, channel, message):
        await self._gate.passes()
        return await self._bus.publish(channel, message)

    async def subscribe(self, channel, hear):
        await self._gate.passes()

        def hear_if_open(message):
            if self._gate.hears:
                hear(message)

        return await self._bus.subscribe(channel, hear_if_open)

    def on_gap(self, callback):
        self.gaps.append(callback)
        return lambda: None


class NodeStore:
    """The store as one node has it."""

    def __init__(self, store):
        self.name = store.name
        self.gate = Gate()
        self.kv = GatedKV(store.kv, self.gate)
        self.log = store.log
        self.bus = GatedBus(store.bus, self.gate)
        self._store = store

    def meter(self, name, rate):
        """A meter behind the gate."""
        return GatedKV(self._store.meter(name, rate), self.gate)

    async def open(self, *, durable=False):
        """Nothing has to be opened."""

    async def close(self):
        """Nothing has to be closed."""


class FleetNode:
    """One process of the server."""

    def __init__(self, store, declare, limits, **options):
        self.store = NodeStore(store)
        self.server = Server("s", store=self.store, limits=limits, **options)
        self.alive = True
        self.paused = False
        declare(self.server, self)

    @property
    def id(self):
        return self.server._settings.node.id

    @property
    def book(self):
        return self.server._declared.tools.tasks.book

    async def start(self):
        self.server.router  # noqa: B018 - the server begins to serve
        await self.server.open()

    def client(self, revision=LEGACY, principal="ann", answer=None):
        return EraClient(self.server, revision, answer, able=EXTENDED, principal=principal)

    def kill(self):
        """As ``kill -9`` does: nothing of it reaches the store any more."""
        self.alive = False
        self.store.gate.shut_for_ever = True
        self.store.gate.resume()  # what was stopped never goes on, either
        self.server._settings.node._renewing.cancel()
        for job in self.book.jobs():
            if job.work is not None:
                job.work.cancel()

    def pause(self):
        self.paused = True
        self.store.gate.pause()

    def resume(self):
        self.paused = False
        self.store.gate.resume()
        for callback in tuple(self.store.bus.gaps):
            callback()


class TaskFleet:
    """Nodes over one store.

    Args:
        declare: called with each node's server, and the node.
        limits: of each.
    """

    def __init__(self, declare, limits=None, **options):
        loop = asyncio.get_running_loop()
        self.shared = MemoryStore(loop.time)
        self.nodes = []
        self._declare = declare
        self._limits = limits or Limits()
        self._options = options

    async def start(self, count=1):
        """Start some nodes more."""
        made = [
            FleetNode(self.shared, self._declare, self._limits, **self._options)
            for _ in range(count)
        ]
        for node in made:
            await node.start()
        self.nodes += made
        return made

    async def close(self):
        for node in self.nodes:
            if node.alive:
                node.resume()
                await node.server.close()
            else:
                node.store.gate.is_torn_down = True

    async def keys(self, prefix):
        """The keys in the store."""
        return [key for key, _ in await self.shared.kv.scan(prefix, "", 10_000)]


async def begin_task(client, name="t", arguments=None):
    """Begin a task; its id."""
    params = {"name": name, "arguments": arguments or {}}
    if client.caller.revision.name == LEGACY:
        params["task"] = {}
    answer = await client.once("tools/call", params)
    await asyncio.sleep(0.01)  # its body has begun
    return (answer.get("task") or answer)["taskId"]


async def read_status(client, id):
    """How a task stands."""
    return (await client.once("tasks/get", {"taskId": id}))["status"]


def make_gated_tool(task="optional", **options):
    """What declares a tool ``t`` that waits for its gate, and where its runs are noted."""
    notes = SimpleNamespace(runs=[], gates={})

    def declare(server, node):
        async def t(value: str = "") -> str:
            notes.runs.append((node.id, value))
            gate = notes.gates.setdefault(value, asyncio.Event())
            await gate.wait()
            return f"done {value}"

        server.add_tool(t, task=task, **options)

    return declare, notes
