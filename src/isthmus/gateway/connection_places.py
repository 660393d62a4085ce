"""Places for connections that belong to one session or principal: how many there may be, and whose go first.

Such a connection may be a process. There are never more of them than the limits say, those that close
included: whoever needs another one where they are all taken has the one that was idle longest closed, or
waits a moment, or is told when to come back.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from isthmus.host.model.errors import Exhausted
from isthmus.host.model.gateway_options import GatewayLimits

if TYPE_CHECKING:
    from isthmus.bridge.forwarded import ForwardedCall

MAX_WAITING_CALLS = 64  # of one principal, for a place
PLACE_TIMEOUT_S = 5.0
RETRY_AFTER_S = 1.0
MIN_IDLE_CHECK_S = 0.01

PlaceKey: TypeAlias = tuple[str, str]
"""A server, and the isolation key of a connection to it."""


class ConnectionPlace(Struct, eq=False, gc=True):
    """A place that is taken.

    Attributes:
        server: the server that is connected to.
        key: the isolation key of the connection.
        principal: whose it is.
        users: the number of calls that use it now.
        calls: those of them that may be parked meanwhile.
        used_at: when the last of them ended.
        has_ended: its session is over, so that it is closed with its last call.
        closing: closes it; None where it is not being closed.
    """

    server: str
    key: str
    principal: str
    users: int = 0
    calls: "list[ForwardedCall]" = field(default_factory=list)
    used_at: float = 0.0
    has_ended: bool = False
    closing: "asyncio.Task[None] | None" = None


class PlaceCounts(Struct, frozen=True):
    """Counts of places, for operators.

    Attributes:
        taken: places that are taken now, and ``in_use`` those with calls.
        evicted: connections that were closed to make room for others, since the start.
        refused: calls that found no place.
    """

    taken: int
    in_use: int
    evicted: int
    refused: int


class ConnectionPlaces:
    """The places of a gateway.

    Args:
        get_limits: gives the limits in force.
        close: closes the connection of a place, if there is one.
        is_busy: whether the connection of a place is used by somebody who took no place.
        on_closing: told of a place that is about to be closed.
        clock: says seconds that never go back.
    """

    def __init__(
        self,
        get_limits: Callable[[], GatewayLimits],
        close: Callable[[str, str], Awaitable[None]],
        *,
        is_busy: Callable[[str, str], bool] = lambda _server, _key: False,
        on_closing: Callable[[ConnectionPlace], None] = lambda _place: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._get_limits = get_limits
        self._close = close
        self._is_busy = is_busy
        self._on_closing = on_closing
        self._clock = clock
        self._places: dict[PlaceKey, ConnectionPlace] = {}
        self._waiting: dict[str, int] = {}
        self._freed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._evicted = self._refused = 0
        self._is_closed = False

    @property
    def counts(self) -> PlaceCounts:
        """The counts of now."""
        used = sum(place.users > 0 for place in self._places.values())
        return PlaceCounts(len(self._places), used, self._evicted, self._refused)

    def count_by_principal(self) -> Mapping[str, int]:
        """The number of sessions that have connections of their own, by principal."""
        return Counter(
            principal for principal, _ in {(o.principal, o.key) for o in self._places.values()}
        )

    # Taking and leaving

    async def take(
        self, server: str, key: str, principal: str, call: "ForwardedCall | None" = None
    ) -> ConnectionPlace:
        """Take a place for one call; the same connection has one place for all its calls.

        Args:
            server: the server that is connected to.
            key: the isolation key of the connection.
            principal: whose it is.
            call: the call, where it may be parked meanwhile.

        Raises:
            Exhausted: there is none, and none becomes free in a few seconds.
        """
        place = self._try(server, key, principal) or await self._wait(server, key, principal)
        if call is not None:
            place.calls.append(call)
        return place

    async def _wait(self, server: str, key: str, principal: str) -> ConnectionPlace:
        """Take a place as soon as one is free."""
        place: ConnectionPlace | None = None
        count = self._waiting.get(principal, 0)
        if count >= MAX_WAITING_CALLS:
            raise self._make_error(principal)
        self._waiting[principal] = count + 1
        try:
            async with asyncio.timeout(PLACE_TIMEOUT_S):
                while place is None:
                    await self._make_room(server, key, principal)
                    place = self._try(server, key, principal)
        except TimeoutError:
            raise self._make_error(principal) from None
        finally:
            self._waiting[principal] -= 1
            if not self._waiting[principal]:
                del self._waiting[principal]
        return place

    def _try(self, server: str, key: str, principal: str) -> ConnectionPlace | None:
        """Take a place at once; None where one has to be made first."""
        place = self._places.get((server, key))
        if place is None and self._has_room(principal):
            place = self._places[server, key] = ConnectionPlace(server, key, principal)
        if place is None or place.closing is not None:
            return None
        place.users += 1
        return place

    def _has_room(self, principal: str) -> bool:
        limits = self._get_limits()
        return len(self._places) < limits.connections and (
            self._count_of(principal) < limits.connections_of_principal
        )

    def _count_of(self, principal: str) -> int:
        return sum(place.principal == principal for place in self._places.values())

    async def _make_room(self, server: str, key: str, principal: str) -> None:
        """Wait until one place more may be free: one that closes, is closed for this, or is left."""
        own = self._places.get((server, key))
        if own is not None and own.closing is not None:
            await asyncio.shield(own.closing)
            return
        full = self._count_of(principal) >= self._get_limits().connections_of_principal
        among = [
            place for place in self._places.values() if not full or place.principal == principal
        ]
        idle = [place for place in among if self._is_idle(place)]
        if idle:
            self._evicted += 1
            await asyncio.shield(self._begin_closing(min(idle, key=lambda place: place.used_at)))
            return
        freed = asyncio.ensure_future(self._freed.wait())
        closing = [place.closing for place in among if place.closing is not None]
        try:
            await asyncio.wait([freed, *closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            freed.cancel()

    def _is_idle(self, place: ConnectionPlace) -> bool:
        return (
            not place.users and place.closing is None and not self._is_busy(place.server, place.key)
        )

    def leave(self, place: ConnectionPlace, call: "ForwardedCall | None" = None) -> None:
        """End the use of a place by one call; its connection is kept for the next one for a while."""
        place.users -= 1
        if call is not None:
            place.calls.remove(call)
        place.used_at = self._clock()
        if place.users:
            return
        if place.has_ended:
            self._begin_closing(place)
        else:
            self._schedule()
        self._tell_freed()

    def end(self, key: str) -> None:
        """Close all connections of a session that is over."""
        for place in [place for place in self._places.values() if place.key == key]:
            place.has_ended = True
            self._begin_closing(place)

    def _make_error(self, principal: str) -> Exhausted:
        self._refused += 1
        limits = self._get_limits()
        if self._count_of(principal) >= limits.connections_of_principal:
            whose, member = f"of {principal}", "connectionsOfPrincipal"
            among = [place for place in self._places.values() if place.principal == principal]
        else:
            whose, member = "of all callers", "connections"
            among = [*self._places.values()]
        wait = min(map(find_wait, among), default=RETRY_AFTER_S)
        hint = "" if wait <= RETRY_AFTER_S else ", or answer the calls that wait for answers"
        return Exhausted(
            f"all connections to servers that one session can have {whose} are in use "
            f"(gateway.limits.{member}): try again in {math.ceil(wait)} s{hint}",
            retry_after=wait,
        )

    # Closing

    def _begin_closing(self, place: ConnectionPlace) -> "asyncio.Task[None]":
        if place.closing is None:
            self._on_closing(place)
            place.closing = asyncio.get_running_loop().create_task(self._close_place(place))
        return place.closing

    async def _close_place(self, place: ConnectionPlace) -> None:
        try:
            await self._close(place.server, place.key)
        finally:
            place.closing = None
            if not place.users:
                self._places.pop((place.server, place.key), None)
            self._tell_freed()

    def _tell_freed(self) -> None:
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()

    def _schedule(self) -> None:
        """See that idle connections are closed in time."""
        if self._timer is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._get_limits().idle, self.close_idle)

    def close_idle(self) -> None:
        """Close the connections that nobody has used for too long."""
        self._timer = None
        now, limit = self._clock(), self._get_limits().idle
        kept = False
        for place in list(self._places.values()):
            if not self._is_idle(place):
                kept = True
            elif now - place.used_at >= limit:
                self._begin_closing(place)
            else:
                kept = True
        if kept:
            oldest = min(
                (p.used_at for p in self._places.values() if self._is_idle(p)), default=now
            )
            loop = asyncio.get_running_loop()
            wait = max(oldest + limit - now, limit / 10, 0.01)
            self._timer = loop.call_later(wait, self.close_idle)

    async def close(self) -> None:
        """Wait for what is being closed, and close no more: the host closes the rest."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        closing = [place.closing for place in self._places.values() if place.closing is not None]
        await asyncio.gather(*closing, return_exceptions=True)


def find_wait(place: ConnectionPlace) -> float:
    """Seconds until a place may be free: those of its parked calls, where it has no others."""
    return max((RETRY_AFTER_S, *(call.parked_s for call in place.calls)))
