"""Clocks of a connection, which stand still while a user is waited for.

A user who logs in, or who is asked what a server wants to know, takes as long as it takes, and no
call and no opening may time out for that. Who opens a connection puts its clocks into
:data:`CONNECTION_CLOCKS`; whoever then waits for the user within it does so under :meth:`Clocks.held`.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from isthmus.runtime.peer import Peer


class Clock(Protocol):
    """Something that times out."""

    def stop(self) -> None:
        """Let nothing time out until :meth:`go`."""
        ...

    def go(self, elapsed: float) -> None:
        """Go on as if ``elapsed`` seconds had not passed."""
        ...


class Clocks:
    """The clocks of one connection, which are stopped together."""

    def __init__(self) -> None:
        self._clocks: list[Clock] = []
        self._holds = 0
        self._since = 0.0

    def add(self, clock: Clock) -> None:
        """Stop this one with the others."""
        self._clocks.append(clock)
        if self._holds:
            clock.stop()

    def remove(self, clock: Clock) -> None:
        """Stop it no more."""
        self._clocks.remove(clock)

    @contextmanager
    def include_timeout(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Let this time limit stand still with the others."""
        clock = TimeoutClock(limit)
        self.add(clock)
        try:
            yield
        finally:
            self.remove(clock)

    @property
    def still(self) -> bool:
        """Whether they stand still just now."""
        return bool(self._holds)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the clocks stand still; several may do that at once."""
        now = asyncio.get_running_loop().time
        self._holds += 1
        if self._holds == 1:
            self._since = now()
            for clock in self._clocks:
                clock.stop()
        try:
            yield
        finally:
            self._holds -= 1
            if not self._holds:
                for clock in self._clocks:
                    clock.go(now() - self._since)


# The clocks of the connection that is being opened.
CONNECTION_CLOCKS: ContextVar[Clocks | None] = ContextVar("isthmus_clocks", default=None)


class CallsClock:
    """The deadlines of a peer's calls."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def stop(self) -> None:
        """Let no call expire."""
        self._peer.session.hold()

    def go(self, elapsed: float) -> None:
        """Give every call that much more time."""
        self._peer.session.release(elapsed)
        self._peer.tick(asyncio.get_running_loop())


class TimeoutClock:
    """The time limit of an ``asyncio.timeout``."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._when: float | None = None

    def stop(self) -> None:
        """Let it not expire."""
        if not self._limit.expired():
            self._when = self._limit.when()
            self._limit.reschedule(None)

    def go(self, elapsed: float) -> None:
        """Let it expire that much later."""
        if self._when is not None:
            self._limit.reschedule(self._when + elapsed)
