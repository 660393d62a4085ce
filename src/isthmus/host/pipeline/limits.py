"""Limits of calls: how often, and how many at once, for each server and each caller of it."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import ServerLimits
from isthmus.host.model.errors import Exhausted
from isthmus.host.pipeline.call_rates import CallRate, find_rates
from isthmus.store.meter import MemoryMeter, Meter, Rate

if TYPE_CHECKING:
    from isthmus.store.store import Store

MAX_WAITING_CALLS = 64  # of one principal at one server
RETRY_AFTER_S = 1.0  # where too many wait: how long each takes is not known


class ServerSlots:
    """Places at a server; principals take turns where there are too few.

    Who has many calls waiting does not hold up who has one.

    Args:
        most: places.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of waiting calls."""
        return sum(len(queue) for queue in self._queues.values())

    @property
    def has_room(self) -> bool:
        """Whether there is a place at once."""
        return self.taken < self.most and not self._queues

    def take(self) -> bool:
        """A place at once; False where one has to :meth:`wait`."""
        if self.has_room:
            self.taken += 1
            return True
        return False

    async def wait(self, principal: str) -> None:
        """Wait for a place.

        Raises:
            Exhausted: too many of this principal wait already.
        """
        queue = self._queues.setdefault(principal, deque())
        if len(queue) >= MAX_WAITING_CALLS:
            raise Exhausted(
                f"{len(queue)} calls of {principal} wait for this server already",
                retry_after=RETRY_AFTER_S,
            )
        mine = asyncio.get_running_loop().create_future()
        queue.append(mine)
        try:
            await mine
        except BaseException:
            if mine.done() and not mine.cancelled():
                self.leave()  # it was given to us, and nobody takes it
            else:
                self._forget(principal, mine)
            raise

    def take_back(self) -> None:
        """Take a place that was left for a while, although there may be none: its call is there anyway."""
        self.taken += 1

    def leave(self) -> None:
        """Give a place to who waits, the principal whose turn it is first."""
        self.taken -= 1
        while self.taken < self.most and self._queues:
            principal, queue = self._queues.popitem(last=False)
            mine = queue.popleft()
            if queue:
                self._queues[principal] = queue  # behind the others
            if not mine.done():
                self.taken += 1
                mine.set_result(None)

    def _forget(self, principal: str, mine: "asyncio.Future[None]") -> None:
        queue = self._queues.get(principal)
        if queue is not None and mine in queue:
            queue.remove(mine)
        if queue is not None and not queue:
            del self._queues[principal]


class ServerGate:
    """The gate of one server: its slots and its rates.

    Args:
        limits: how much.
        client_calls: calls a minute of each principal of a gateway; None for any number.
        clock: says seconds that never go back.
        make_meter: makes a meter that all processes of the host share; None where it is one.
    """

    def __init__(
        self,
        limits: ServerLimits,
        client_calls: float | None,
        clock: Callable[[], float],
        make_meter: Callable[[str, Rate], Meter] | None = None,
    ) -> None:
        self.limits = limits
        self.client_calls = client_calls
        self.slots = ServerSlots(limits.concurrency)
        self._clock = clock
        self._meters: dict[str, MemoryMeter] = {}
        self._make_meter = make_meter
        # one of two tuples for each attempt: of a gateway's clients, and of all others
        self._rates = {
            True: find_rates(limits, client_calls, "gateway"),
            False: find_rates(limits, client_calls, "local"),
        }

    def _find_rates(self, attempt: Attempt) -> tuple[CallRate, ...]:
        return self._rates[attempt.origin == "gateway"]

    async def spend_shared(self, attempt: Attempt) -> None:
        """Count one more call at all processes of the host.

        Raises:
            Exhausted: it comes too soon.
            StoreUnavailable: nobody can tell.
        """
        if self._make_meter is None:
            return
        for one in self._find_rates(attempt):
            meter = self._make_meter(f"host/{one.name}/{attempt.server}", one.rate)
            wait = await meter.take(one.make_key(attempt))
            if wait:
                raise one.make_error(attempt, wait)

    def spend(self, attempt: Attempt) -> None:
        """Count one more call.

        Raises:
            Exhausted: it comes too soon.
        """
        spent: list[tuple[MemoryMeter, str]] = []
        for one in self._find_rates(attempt):
            meter = self._meters.get(one.name)
            if meter is None:
                meter = self._meters[one.name] = MemoryMeter(one.rate, clock=self._clock)
            key = one.make_key(attempt)
            wait = meter.spend(key)
            if wait:
                for before, counted in spent:
                    before.spend(counted, -1.0)  # it did not happen
                raise one.make_error(attempt, wait)
            spent.append((meter, key))


class CallLimits:
    """The limits of every server, as the configuration has them now.

    Args:
        of: gives a server's.
        clock: says seconds that never go back.
        get_client_calls: gives the calls a minute of each principal of a gateway at each server.
        store: where the processes of a host count together; None where it is one process. Places
            at a server are of each process, as its connections are.
    """

    def __init__(
        self,
        of: Callable[[str], ServerLimits],
        clock: Callable[[], float] = time.monotonic,
        *,
        get_client_calls: Callable[[], float | None] = lambda: None,
        store: "Store | None" = None,
    ) -> None:
        self._make_meter = None if store is None else store.meter
        self._of = of
        self._get_client_calls = get_client_calls
        self._clock = clock
        self._places: dict[str, ServerGate] = {}
        self._inside: dict[str, str] = {}
        self._held: dict[str, ServerSlots] = {}
        self._lent: set[str] = set()

    def follow_clients(self, get_calls: Callable[[], float | None]) -> None:
        """Take the rate of a gateway's principals from a gateway that has options of its own."""
        self._get_client_calls = get_calls

    def _place(self, server: str) -> ServerGate:
        limits, client_calls = self._of(server), self._get_client_calls()
        place = self._places.get(server)
        if place is None:
            place = self._places[server] = self._make_gate(limits, client_calls)
        elif place.client_calls != client_calls or (
            place.limits is not limits and place.limits != limits
        ):
            before, place = place, self._make_gate(limits, client_calls)
            place.slots = before.slots  # those inside leave the places that they took
            place.slots.most = limits.concurrency
            self._places[server] = place
        return place

    def _make_gate(self, limits: ServerLimits, client_calls: float | None) -> ServerGate:
        return ServerGate(limits, client_calls, self._clock, self._make_meter)

    def must_wait(self, attempt: Attempt) -> bool:
        """Whether there is no place for an attempt just now."""
        slots = self._place(attempt.server).slots
        return not self._is_inside(attempt) and not slots.has_room

    def _is_inside(self, attempt: Attempt) -> bool:
        return bool(attempt.parent) and self._inside.get(attempt.parent) == attempt.server

    async def enter(self, attempt: Attempt, *, again: bool = False) -> "ServerSlots | None":
        """Let an attempt through, when there is a place for it.

        What comes about in the course of a call to the same server needs no place of its own:
        it would wait for itself.

        Args:
            attempt: what is to be done.
            again: it had a place before, and is counted already.

        Returns:
            What to :meth:`leave`.

        Raises:
            Exhausted: it comes too soon, or too many wait.
            StoreUnavailable: the processes of the host count together, and cannot.
        """
        place = self._place(attempt.server)
        if self._make_meter is not None and not again:
            await place.spend_shared(attempt)
        elif not again:
            place.spend(attempt)
        if self._is_inside(attempt):
            self._inside[attempt.id] = attempt.server
            return None
        slots = place.slots
        if not slots.take():
            await slots.wait(attempt.principal)
        self._inside[attempt.id] = attempt.server
        self._held[attempt.id] = slots
        return slots

    def leave(self, attempt: Attempt, slots: "ServerSlots | None") -> None:
        """The attempt is over."""
        self._inside.pop(attempt.id, None)
        if slots is None:
            return
        del self._held[attempt.id]
        if attempt.id in self._lent:
            self._lent.remove(attempt.id)
        else:
            slots.leave()

    @contextmanager
    def lend_place(self, attempts: Iterable[Attempt]) -> Iterator[None]:
        """Let others have the place of one of some attempts, while its server waits for an answer.

        A person may take minutes to answer, or never do so: the server has nothing to do meanwhile.
        """
        found = (one.id for one in attempts if one.id in self._held and one.id not in self._lent)
        lender = next(found, None)
        if lender is None:
            yield
            return
        self._lent.add(lender)
        self._held[lender].leave()
        try:
            yield
        finally:
            if lender in self._lent:  # it is not over
                self._lent.remove(lender)
                self._held[lender].take_back()
