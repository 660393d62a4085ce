"""Pings that find out whether a silent connection is dead."""

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.errors import CallTimedOut, ConnectionLost, OutOfPhase, PeerError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.peer import Peer


async def keep_pinging(
    peer: Peer,
    ping: Callable[[float], Awaitable[None]],
    every: float,
    misses: int,
    *,
    whom: str = "server",
) -> None:
    """Ping until the connection ends, and end it after so many pings without an answer.

    Where the other side cannot hear us just now, since it has no stream open, nothing is sent:
    that is no silence of its own.

    Args:
        peer: our side of the connection.
        ping: pings once, with a timeout.
        every: seconds from one ping to the next, and until one counts as missed.
        misses: how many in a row mean that nobody is there.
        whom: the other side, for messages.
    """
    missed = 0
    while peer.lost is None:
        await asyncio.sleep(every)
        if not getattr(peer.channel, "hears", True):
            continue
        try:
            await ping(every)
        except (ConnectionLost, OutOfPhase):
            return
        except CallTimedOut:
            missed += 1
            # spec 2025-11-25 basic/utilities/ping#error-handling: SHOULD log ping failures
            log_warning("ping %d of %d was not answered within %g s", missed, misses, every)
        except PeerError:
            missed = 0  # it said no, so it is there
        else:
            missed = 0
        if missed >= misses:
            # spec 2025-11-25 basic/utilities/ping#error-handling: timeouts SHOULD be treated as
            # connection failures
            await peer.finish(
                ConnectionLost(f"the {whom} has not answered {missed} pings, {every:g} s each")
            )
            await peer.close()
            return
