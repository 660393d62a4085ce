"""Watch over requests that run on: heartbeats, and clients that leave; two timers for all of them.

A call that is answered at once must not pay for what only long calls need: noticing that the
client has left, and heartbeats. Entering and leaving the watch is one dictionary operation
each; whoever is still there some milliseconds later is told to ``linger``, and from then on to
``beat`` every few seconds.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from isthmus.errors import IsthmusError
from isthmus.wire.jsonrpc import ErrorBody

LINGER_AFTER_S = (
    0.02  # between looks: a call has lasted one to two of them when it is told to linger
)


T = TypeVar("T")


class RequestCut(IsthmusError):
    """A request was cut short before anything was sent: the server stops."""


class WatchedRequest:
    """A request that may go on for long, and can be cut short.

    Args:
        task: the request's own task, where it has begun.

    Attributes:
        task: the request's own task, while it runs.
    """

    __slots__ = ("_cut", "_why", "task")

    def __init__(self, task: "asyncio.Task[Any] | None" = None) -> None:
        self.task = task
        self._cut = False

    @property
    def principal(self) -> Any:
        """The principal whose permission it lasts by; None where it needs none."""
        return None

    def cut(self, why: ErrorBody | None = None) -> None:
        """Stop the work behind this; it comes out as a cancellation that is ours.

        Args:
            why: what is answered, where another reason is the usual one.
        """
        if not self._cut and self.task is not None:
            self._cut = True
            if why is not None:
                self._why = why
            self.task.cancel()

    def why(self, usual: ErrorBody) -> ErrorBody:
        """The error to answer with after :meth:`cut`."""
        return getattr(self, "_why", usual)  # most are never cut: then there is no such thing

    def was_cut(self) -> bool:
        """Whether a cancellation came from :meth:`cut` alone; asked once, takes it back."""
        if not self._cut or self.task is None:
            return False
        self._cut = False
        return self.task.uncancel() == 0

    def farewell(self) -> None:
        """The server stops: end what would otherwise last for ever."""

    def expire(self, why: ErrorBody) -> None:
        """End what is open to whoever asked: they may not listen any more."""

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """It goes on for longer than most; what has no watch of its own does nothing about it."""

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Another heartbeat's time has passed."""


class RequestWatch:
    """All requests that run, sorted by how long.

    Args:
        loop: the event loop everybody lives on.
        heartbeat: seconds between signs of life.
        patience: seconds between looks at who has stayed.
    """

    __slots__ = ("_beat_timer", "_heartbeat", "_look_timer", "_looks", "_loop", "_patience",
                 "_recent", "_staying")  # fmt: skip

    def __init__(
        self, loop: asyncio.AbstractEventLoop, heartbeat: float, patience: float = LINGER_AFTER_S
    ) -> None:
        self._loop = loop
        self._heartbeat = heartbeat
        self._patience = patience
        self._recent: dict[WatchedRequest, int] = {}
        self._staying: set[WatchedRequest] = set()
        self._looks = 0
        self._look_timer: asyncio.TimerHandle | None = None
        self._beat_timer: asyncio.TimerHandle | None = None

    def enter(self, one: WatchedRequest) -> None:
        """Begin to watch over ``one``."""
        self._recent[one] = self._looks
        if self._look_timer is None:
            self._look_timer = self._loop.call_later(self._patience, self._look)

    def leave(self, one: WatchedRequest) -> None:
        """Stop watching over ``one``."""
        if self._recent.pop(one, None) is None:
            self._staying.discard(one)

    async def await_watched(self, task: "asyncio.Task[Any] | None", work: Awaitable[T]) -> T:
        """Do something that a request has to wait for before anything else watches over it.

        Args:
            task: the request's.
            work: what it waits for.

        Raises:
            RequestCut: the server stops.
        """
        one = WatchedRequest(task)
        self.enter(one)
        try:
            return await work
        except asyncio.CancelledError:
            if not one.was_cut():
                raise
            raise RequestCut from None
        finally:
            self.leave(one)

    def stay(self, one: WatchedRequest) -> None:
        """Watch over ``one`` that is known to last, such as an open stream."""
        self._staying.add(one)
        if self._beat_timer is None:
            self._beat_timer = self._loop.call_later(self._heartbeat, self._beat)

    def all(self) -> list[WatchedRequest]:
        """All requests that are watched over now."""
        return [*self._recent, *self._staying]

    def close(self) -> None:
        """Stop both timers."""
        for timer in (self._look_timer, self._beat_timer):
            if timer is not None:
                timer.cancel()

    def _look(self) -> None:
        stayed = [one for one, since in self._recent.items() if since != self._looks]
        self._looks += 1
        for one in stayed:
            del self._recent[one]
            self.stay(one)
            one.linger(self._loop)
        again = self._loop.call_later(self._patience, self._look) if self._recent else None
        self._look_timer = again

    def _beat(self) -> None:
        for one in list(self._staying):
            one.beat(self._loop)
        again = self._loop.call_later(self._heartbeat, self._beat) if self._staying else None
        self._beat_timer = again
