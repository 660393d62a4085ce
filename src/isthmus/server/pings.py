"""Pings of a server: whether the clients of its sessions are still there."""

import asyncio
import time
from functools import partial
from typing import Any

from msgspec import Raw

from isthmus.errors import NotInRevision, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.wire import EmptyResult, PingParams

__all__ = ["Pings", "ping_client"]


class Pings:
    """Pings every session that opened, as often as the server's author wants it.

    spec 2025-11-25 basic/utilities/ping#implementation-considerations: the frequency SHOULD be
    configurable, and excessive pinging SHOULD be avoided. None is sent by default: a pipe that
    broke and an HTTP stream that nobody reads are noticed without.

    Args:
        every: seconds from one ping to the next, or None.
        misses: how many in a row without an answer mean that the client is gone.

    Raises:
        UsageError: a figure is none.
    """

    def __init__(self, every: float | None, misses: int) -> None:
        if (every is not None and not every > 0) or misses < 1:
            raise UsageError(
                f"ping_every={every!r} and ping_misses={misses!r}: seconds or None, and 1 or more"
            )
        self.every = every
        self.misses = misses
        self._tasks: set[asyncio.Task[None]] = set()

    def joined(self, inbound: Inbound) -> None:
        """A session has opened: ping its client for as long as it lasts."""
        if self.every is None:
            return
        from isthmus.runtime.pinging import keep_pinging  # most servers do not ping

        peer = inbound.link
        pinging = keep_pinging(peer, partial(_ping, peer), self.every, self.misses, whom="client")
        task = asyncio.get_running_loop().create_task(pinging)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        peer.on_close(partial(_leave, task))


async def ping_client(inbound: Inbound, timeout: float | None) -> float:
    """Ping the client of a request; returns the seconds until it answered.

    Raises:
        NotInRevision: servers send no requests since 2026-07-28.
        CallTimedOut, ConnectionLost: it is gone, or does not answer.
    """
    revision = inbound.caller.revision
    if not revision.allows("server", "ping"):
        raise NotInRevision(f"revision {revision.name} has no pings of servers")
    begun = time.monotonic()
    await inbound.link.call("ping", PingParams(), Raw, relates_to=inbound.id, timeout=timeout)
    return time.monotonic() - begun


def _leave(task: "asyncio.Task[None]") -> None:
    """The session ends; where it is the pings that end it, they have still to close it."""
    if task is not asyncio.current_task():
        task.cancel()


async def _ping(peer: Any, timeout: float) -> None:
    await peer.call("ping", PingParams(), EmptyResult, timeout=timeout)
