"""Pings of a server: whether the clients of its sessions are still there."""

import asyncio
from functools import partial
from typing import Any

from isthmus.errors import UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.wire import EmptyResult, PingParams

__all__ = ["Pings"]


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
        self._every = every
        self._misses = misses
        self._tasks: set[asyncio.Task[None]] = set()

    def joined(self, inbound: Inbound) -> None:
        """A session has opened: ping its client for as long as it lasts."""
        if self._every is None:
            return
        from isthmus.runtime.pinging import keep_pinging  # most servers do not ping

        peer = inbound.link
        pinging = keep_pinging(peer, partial(_ping, peer), self._every, self._misses, whom="client")
        task = asyncio.get_running_loop().create_task(pinging)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        peer.on_close(partial(_leave, task))


def _leave(task: "asyncio.Task[None]") -> None:
    """The session ends; where it is the pings that end it, they have still to close it."""
    if task is not asyncio.current_task():
        task.cancel()


async def _ping(peer: Any, timeout: float) -> None:
    await peer.call("ping", PingParams(), EmptyResult, timeout=timeout)
