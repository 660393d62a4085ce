"""Limits of calls: how often, and how many at once, for each server and each caller of it."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import ServerLimits
from isthmus.host.model.errors import Exhausted
from isthmus.store.meter import MemoryMeter, Meter, Rate

if TYPE_CHECKING:
    from isthmus.store.store import Store

MAX_WAITING_CALLS = 64  # of one principal at one server
RETRY_AFTER_S = 1.0  # where too many wait: how long each takes is not known
RATE_WINDOW_S = 60.0


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
        clock: says seconds that never go back.
        make_meter: makes a meter that all processes of the host share; None where it is one.
    """

    def __init__(
        self,
        limits: ServerLimits,
        clock: Callable[[], float],
        make_meter: Callable[[str, Rate], Meter] | None = None,
    ) -> None:
        self.limits = limits
        self.slots = ServerSlots(limits.concurrency)
        rates = (limits.calls, limits.tool_calls)
        self._all, self._each = (
            None if rate is None else MemoryMeter(Rate(rate, RATE_WINDOW_S), clock=clock)
            for rate in rates
        )
        self._make_meter = make_meter

    async def spend_shared(self, attempt: Attempt) -> None:
        """Count one more call at all processes of the host.

        Raises:
            Exhausted: it comes too soon.
            StoreUnavailable: nobody can tell.
        """
        make, limits = self._make_meter, self.limits
        for meter_name, amount, key, what in (
            ("tool", limits.tool_calls, f"{attempt.principal}\0{attempt.object}", attempt.object),
            ("server", limits.calls, "", ""),
        ):
            if make is None or amount is None:
                continue
            rate = Rate(amount, RATE_WINDOW_S)
            wait = await make(f"host/{meter_name}/{attempt.server}", rate).take(key)
            if wait:
                whose = f"{what!r} of " if what else ""
                raise make_rate_error(f"{whose}server {attempt.server!r}", rate, wait)

    def spend(self, attempt: Attempt) -> None:
        """Count one more call.

        Raises:
            Exhausted: it comes too soon.
        """
        each, all = self._each, self._all
        key = f"{attempt.principal}\0{attempt.object}"
        if each is not None and (wait := each.spend(key)):
            raise make_rate_error(
                f"{attempt.object!r} of server {attempt.server!r}", each.rate, wait
            )
        if all is not None and (wait := all.spend("")):
            if each is not None:
                each.spend(key, -1.0)  # it did not happen
            raise make_rate_error(f"server {attempt.server!r}", all.rate, wait)


def make_rate_error(what: str, rate: Rate, wait: float) -> Exhausted:
    """Make the error of a call that comes too soon."""
    return Exhausted(
        f"{what} is called too often: {rate.amount:g} a minute (limits.calls), again in "
        f"{wait:.1f} s",
        retry_after=wait,
    )


class CallLimits:
    """The limits of every server, as the configuration has them now.

    Args:
        of: gives a server's.
        clock: says seconds that never go back.
        store: where the processes of a host count together; None where it is one process. Places
            at a server are of each process, as its connections are.
    """

    def __init__(
        self,
        of: Callable[[str], ServerLimits],
        clock: Callable[[], float] = time.monotonic,
        *,
        store: "Store | None" = None,
    ) -> None:
        self._make_meter = None if store is None else store.meter
        self._of = of
        self._clock = clock
        self._places: dict[str, ServerGate] = {}
        self._inside: dict[str, str] = {}

    def _place(self, server: str) -> ServerGate:
        limits = self._of(server)
        place = self._places.get(server)
        if place is None:
            place = self._places[server] = ServerGate(limits, self._clock, self._make_meter)
        elif place.limits is not limits and place.limits != limits:
            before, place = place, ServerGate(limits, self._clock, self._make_meter)
            place.slots = before.slots  # those inside leave the places that they took
            place.slots.most = limits.concurrency
            self._places[server] = place
        return place

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
        return slots

    def leave(self, attempt: Attempt, slots: "ServerSlots | None") -> None:
        """The attempt is over."""
        self._inside.pop(attempt.id, None)
        if slots is not None:
            slots.leave()
