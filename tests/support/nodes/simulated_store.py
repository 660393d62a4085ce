"""One store in memory, and a network between it and several nodes that is as bad as a seed says."""

import asyncio

from isthmus.store.memory_store import MemoryStore
from isthmus.store.store import StoreUnavailable

MAX_DELAY_S = 0.02  # of one way
TIMEOUT_S = 2.0  # until a node that is cut off notices


class SimulatedNetwork:
    """The network: what one node asks of the store travels there and back.

    Args:
        loop: with the clock of all nodes and of the store.
        chance: a ``random.Random`` that every delay comes from.
    """

    def __init__(self, loop, chance):
        self.shared = MemoryStore(clock=loop.time)
        self.chance = chance

    async def travel(self):
        """One way."""
        await asyncio.sleep(self.chance.uniform(0, MAX_DELAY_S))


class SimulatedStore:
    """The store as one node sees it.

    Args:
        network: leads to the store.

    Attributes:
        is_cut: nothing gets through.
        is_dead: the node is gone, and nothing it does has an effect any more.
        operations: how many the node has asked for.
    """

    def __init__(self, network):
        self.name = "simulated"
        self.network = network
        self.is_cut = self.is_dead = False
        self.operations = 0
        self._runs = asyncio.Event()
        self._runs.set()
        self.kv = SimulatedPart(self, network.shared.kv)
        self.log = SimulatedPart(self, network.shared.log)
        self.bus = SimulatedBus(self, network.shared.bus)

    def pause(self, *, paused=True):
        """Stop the node's way to the store, or let it go on: a process that was stopped does nothing."""
        if paused:
            self._runs.clear()
        else:
            self._runs.set()

    def meter(self, name, rate):
        """A meter behind the network."""
        return SimulatedPart(self, self.network.shared.meter(name, rate))

    async def open(self, **_more):
        """Reach the store once."""
        await self.cross()

    async def close(self):
        """Nothing has to be closed."""

    async def cross(self):
        """One way to the store or back."""
        await self._runs.wait()
        if not self.is_dead:
            await self.network.travel()
        await self._runs.wait()
        if self.is_cut and not self.is_dead:
            await asyncio.sleep(TIMEOUT_S)
        if self.is_cut or self.is_dead:
            raise StoreUnavailable("the simulated store cannot be reached")

    def is_reached(self):
        """Whether a message of the store comes through."""
        return not (self.is_cut or self.is_dead)


class SimulatedPart:
    """A part of the store behind the network: each of its methods goes there and back.

    The way back may fail after the work was done, as on a network of the real kind.
    """

    def __init__(self, store, part):
        self._store = store
        self._part = part

    def __getattr__(self, name):
        method = getattr(self._part, name)

        async def ask(*arguments, **more):
            self._store.operations += 1
            await self._store.cross()
            result = await method(*arguments, **more)
            await self._store.cross()
            return result

        return ask


class SimulatedBus(SimulatedPart):
    """The bus behind the network: what comes while the node is cut off is lost, and a gap is told."""

    def __init__(self, store, bus):
        super().__init__(store, bus)
        self._gaps = {}

    async def subscribe(self, channel, hear):
        """Listen behind the network; messages keep their order."""
        await self._store.cross()
        queue, store = asyncio.Queue(), self._store

        async def deliver():
            while True:
                message = await queue.get()
                await store._runs.wait()
                await store.network.travel()
                if store.is_reached():
                    hear(message)

        def take(message):
            if store.is_reached():
                queue.put_nowait(message)

        task = asyncio.get_running_loop().create_task(deliver())
        unsubscribe = await self._part.subscribe(channel, take)

        def end():
            unsubscribe()
            task.cancel()

        return end

    def on_gap(self, callback):
        """Have a function called when messages may have been lost."""
        key = object()
        self._gaps[key] = callback
        return lambda: self._gaps.pop(key, None) and None

    def report_gap(self):
        """Tell the node that messages may have been lost."""
        for callback in tuple(self._gaps.values()):
            callback()
