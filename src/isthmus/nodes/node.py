"""Node: this process among those that serve together.

A node says that it lives by renewing a lease. Others find out from the lease, never from their own
clocks, that it has ended; and a node that was stopped for longer than its lease finds out itself,
because what it writes is refused. A process without a store is a node that is alone.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.bus import Unsubscribe
from isthmus.store.lease import Lease, Leases
from isthmus.store.mailbox import Mailbox
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.nodes.sealed_bus import SealedBus
    from isthmus.store.store import Store

NODE_TTL_S = 6.0  # that a node's lease lasts without being renewed

RENEWALS_PER_TTL = 3

LIVENESS_CHECKS_PER_TTL = 6  # an answer to "does this node live" is good for that part of it

NODE_ID_BYTES = 5

MAX_NODES = 1_000  # nodes of one store that are looked at

NODE_LEASE_PREFIX = "node/"

OUTCOME_UNKNOWN = "the process that worked on this call has ended; whether it was done is not known"

_NODE_ID = re.compile(rf"n[0-9a-f]{{{2 * NODE_ID_BYTES}}}")

ReturnCallback = Callable[[], Awaitable[None]]
"""Called on a node that was taken for dead and goes on: its work may be another's by now."""

DeathCallback = Callable[[str], Awaitable[None]]
"""Called with the id of a node that is there no more; on each of the others."""


def is_node_id(text: str) -> bool:
    """Whether a text can be the id of a node."""
    return _NODE_ID.fullmatch(text) is not None


class Node:
    """This process, and its ways to the others.

    Args:
        store: what the nodes share; None for one that is alone.
        kind: ``"server"`` or ``"host"``.
        name: of the server or the host.
        secrets: those given to this node, the one that seals first.
        durable: whether what is stored must outlive the store's engine, as tasks must.
        ttl: seconds after which the others take it for dead when it does not say that it lives.

    Attributes:
        id: its name: letters and digits, no other process ever had it.
        store: what the nodes share, or None.
        secrets: those agreed on, once it has joined.
        bus: messages of other nodes, sealed; None where there is no store.
        mailbox: letters of other nodes, or None where there is no store.
        returns: how often it was taken for dead and came back.
    """

    def __init__(
        self,
        store: "Store | None" = None,
        *,
        kind: str = "server",
        name: str = "",
        secrets: Sequence[bytes] = (),
        durable: bool = False,
        ttl: float = NODE_TTL_S,
    ) -> None:
        self.id = "n" + os.urandom(NODE_ID_BYTES).hex()
        self.store = store
        self.secrets: list[bytes] = list(secrets)
        self.bus = None if store is None else _seal_bus(store)
        self.mailbox = None if self.bus is None else Mailbox(self.bus, self.id)
        self._given = tuple(secrets)
        self._kind = kind
        self._name = name
        self._durable = durable
        self._ttl = ttl
        self._leases = None if store is None else Leases(store.kv)
        self._lease: Lease | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._calling: set[asyncio.Task[None]] = set()
        self._on_death: list[DeathCallback] = []
        self._on_return: list[ReturnCallback] = []
        self._trusted_at = 0.0
        self._held_until = 0.0
        self.returns = 0
        self._renewal = asyncio.Lock()
        self._known: frozenset[str] = frozenset()
        self._alive: dict[str, tuple[float, bool]] = {}

    @property
    def leases(self) -> Leases:
        """The leases of the store.

        Raises:
            StoreUnavailable: there is no store.
        """
        if self._leases is None:
            raise StoreUnavailable("there is no store")
        return self._leases

    # Joining and leaving

    async def join(self) -> None:
        """Open the store, agree with the others, and be one of them; safe to call twice.

        Raises:
            UsageError: the store is not set up for this, or the others are something else.
            StoreUnavailable: the store cannot be reached.
        """
        if self.store is None or self._renewing is not None:
            return
        from isthmus.nodes.agreement import agree  # one process alone agrees with nobody

        try:
            await self.store.open(durable=self._durable)
            self.secrets = await agree(self.store, self._kind, self._name, self._given)
            if self.bus is not None:
                self.bus.use_secrets(self.secrets)
            if self.mailbox is not None:
                await self.mailbox.open()
            await self._take_lease()
            self._known = frozenset([self.id, *await self.list_living()])
        except BaseException:
            await self._release(self.store)
            raise
        self._renewing = asyncio.get_running_loop().create_task(self._keep_alive())

    async def leave(self) -> None:
        """Say that this node ends, and let go of the store."""
        renewing, self._renewing = self._renewing, None
        if renewing is None or self.store is None:
            return
        ending = {renewing, *self._calling} - {asyncio.current_task()}
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        await self._release(self.store)

    @property
    def holds_lease(self) -> bool:
        """Whether no other node can have taken this one for dead since its last renewal."""
        return asyncio.get_running_loop().time() < self._held_until

    async def hold_lease(self) -> None:
        """See that the others know of this node, before it begins what they must finish or end.

        Raises:
            StoreUnavailable: they cannot be told now.
        """
        if not self.holds_lease:
            await self._renew()

    async def _take_lease(self) -> None:
        name, began = self._lease_name(self.id), asyncio.get_running_loop().time()
        self._lease = await self.leases.take_over(name, self.id, self._ttl)
        self._held_until = began + self._ttl

    async def _release(self, store: "Store") -> None:
        """Give back all that :meth:`join` took, as far as it came."""
        if self.mailbox is not None:
            await self.mailbox.close()
        lease, self._lease = self._lease, None
        try:
            if lease is not None and not await self.leases.release(lease):
                # A renewal was under way, and nobody knows of the version that it made.
                name = self._lease_name(self.id)
                await self.leases.release(await self.leases.take_over(name, self.id, self._ttl))
        except IsthmusError as error:
            log_failure("leaving the other nodes", error)
        finally:
            await store.close()

    def on_death(self, callback: DeathCallback) -> Unsubscribe:
        """Have a function called with the id of each node that is there no more, also one that left.

        It is called on all nodes that are left: what must be done once takes a lease.
        """
        return _add_callback(self._on_death, callback)

    def on_return(self, callback: ReturnCallback) -> Unsubscribe:
        """Have a function called when this node was taken for dead and goes on.

        It was stopped for longer than its lease, or the store was: what it held may be another's.
        """
        return _add_callback(self._on_return, callback)

    # The others

    async def is_alive(self, id: str) -> bool:
        """Whether a node lives, as far as its lease tells.

        Raises:
            StoreUnavailable: nobody can tell now.
        """
        if id == self.id:
            return True
        now = asyncio.get_running_loop().time()
        known = self._alive.get(id)
        if known is not None and now - known[0] < self._ttl / LIVENESS_CHECKS_PER_TTL:
            return known[1]
        alive = await self.leases.find(self._lease_name(id)) is not None
        if not alive and id in self._known and now < self._trusted_at:
            return True  # its lease ended with ours: it has not had the time to come back
        if len(self._alive) >= MAX_NODES:
            self._alive.clear()
        self._alive[id] = (now, alive)
        return alive

    async def list_living(self) -> list[str]:
        """The ids of all nodes that live.

        Raises:
            StoreUnavailable: nobody can tell now.
        """
        return [lease.holder for lease in await self.leases.list(NODE_LEASE_PREFIX, MAX_NODES)]

    # Staying alive

    async def _keep_alive(self) -> None:
        """Renew the lease, and look for nodes that do not renew theirs any more."""
        while True:
            await asyncio.sleep(self._ttl / RENEWALS_PER_TTL)
            try:
                await self._renew()
                await self._find_dead()
            except StoreUnavailable as error:
                self._doubt_leases()
                log_warning("node %s cannot renew its lease: %s", self.id, error)
            except Exception as error:  # noqa: BLE001 - a node must not end because of one look
                log_failure("the lease of this node", error)

    async def _renew(self) -> None:
        async with self._renewal:
            await self._keep_lease()

    async def _keep_lease(self) -> None:
        if self._lease is not None:
            began = asyncio.get_running_loop().time()
            self._lease = await self._renew_lease(self._lease)
            if self._lease is not None:
                self._held_until = began + self._ttl
        if self._lease is None:  # it was stopped for longer than its lease, or the store was
            log_warning("node %s was taken for dead, and comes back", self.id)
            self.returns += 1
            await self._take_lease()
            self._doubt_leases()
            self._call_back(self._on_return, "the return of this node")

    async def _renew_lease(self, lease: Lease) -> Lease | None:
        renewed = await self.leases.renew(lease, self._ttl)
        if renewed is not None:
            return renewed
        # Nobody else writes it: where it is there, the answer to an earlier renewal was lost.
        found = await self.leases.find(lease.name)
        return None if found is None else await self.leases.renew(found, self._ttl)

    def _doubt_leases(self) -> None:
        """Take no node for dead for a while: where leases could not be renewed, all of them end."""
        self._trusted_at = asyncio.get_running_loop().time() + self._ttl

    async def _find_dead(self) -> None:
        """Tell of nodes that were there before, and are not now."""
        now = frozenset([self.id, *await self.list_living()])
        if asyncio.get_running_loop().time() < self._trusted_at:
            self._known |= now
            return
        gone = self._known - now
        self._known |= now
        for id in gone:  # where the store is lost meanwhile, the rest is looked at the next time
            # There may be more nodes than are listed.
            if await self.leases.find(self._lease_name(id)) is None:
                self._known -= {id}
                self._alive[id] = (asyncio.get_running_loop().time(), False)
                self._call_back(self._on_death, f"the end of node {id}", id)

    def _call_back(
        self, callbacks: "Sequence[Callable[..., Awaitable[None]]]", what: str, *arguments: str
    ) -> None:
        """Call functions in a task: they may take long, and the lease is renewed meanwhile."""

        async def call() -> None:
            for callback in tuple(callbacks):
                try:
                    await callback(*arguments)
                except Exception as error:  # noqa: BLE001 - the next one has its own work to do
                    log_failure(what, error)

        task = asyncio.get_running_loop().create_task(call())
        self._calling.add(task)
        task.add_done_callback(self._calling.discard)

    @staticmethod
    def _lease_name(id: str) -> str:
        return NODE_LEASE_PREFIX + id


def _seal_bus(store: "Store") -> "SealedBus":
    from isthmus.nodes.sealed_bus import SealedBus  # a process that is alone has none

    return SealedBus(store.bus)


C = TypeVar("C")


def _add_callback(callbacks: list[C], callback: C) -> Unsubscribe:
    """Add a function to be called; gives what takes it back, which is safe to call twice."""
    callbacks.append(callback)

    def remove() -> None:
        if callback in callbacks:
            callbacks.remove(callback)

    return remove
