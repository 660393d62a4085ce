"""Streams of events from the client's side: read to the answer, and resumed where possible.

Up to 2025-11-25 a stream may break and go on: the client asks for the rest by GET, with the id of
the last event it saw. The standing stream, on which a server talks unasked, is the same without
an answer to wait for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from isthmus.core.framing import Oversize
from isthmus.core.patience import Patience
from isthmus.core.sse import Event, Events
from isthmus.errors import ConnectionLost, HttpRefused, Misbehaved
from isthmus.transports.http.beside import Beside
from isthmus.transports.http.requests import Response

__all__ = ["Streams"]

PARTING = 2.0  # seconds a stream may take to end after its answer
ATTEMPTS = 5  # in a row that meet no stream, to resume the one of a call
POLLS = 100  # streams in a row without anything new, where a call is polled for
STANDING_ATTEMPTS = 10  # in a row that meet no stream, to have the standing one back
FOR_EVER = 10**9  # the standing stream may bring nothing as long as it likes


class Streams:
    """Reads the streams of one endpoint.

    Args:
        get: asks for a stream, or for its rest after an event id; gives None where there is none
            to be had now, and raises ``HttpRefused`` where there will be none.
        took: takes in one message; True where it is what is waited for.
        beside: runs things beside, and says when to read no further.
        limit: the most bytes one event may have.

    Attributes:
        resumable: streams may go on after they broke.
    """

    def __init__(
        self,
        get: Callable[[str], Awaitable[Response | None]],
        took: Callable[[bytes, Any], bool],
        beside: Beside,
        limit: int,
    ) -> None:
        self.resumable = True
        self._get = get
        self._took = took
        self._beside = beside
        self._limit = limit

    async def follow(self, first: Response, what: Any) -> None:
        """Read the stream of a request up to the answer, resuming it where that is possible.

        Args:
            first: the stream as it began.
            what: is waited for, as ``took`` knows it.
        """
        events = Events(self._limit)
        response: Response | None = first
        patience: Patience | None = None  # most streams need none
        while True:
            seen = events.last_id
            if response is not None and await self._read(response, events, what):
                return
            patience = patience or Patience(ATTEMPTS, POLLS)
            if response is None:
                patience.failed()
            else:
                patience.ended(brought=events.last_id != seen)
            if not self.resumable or not events.last_id or patience.over:
                raise ConnectionLost("the stream of the answer ended before the answer")
            # spec 2025-11-25 basic/transports#resumability-and-redelivery: resumption is always
            # by GET with Last-Event-ID, after the time the server asks for
            await asyncio.sleep(patience.wait(events.retry, chance()))
            response = await self._get(events.last_id)
            events = self._continued(events)

    def _continued(self, events: Events) -> Events:
        """A parser for the continuation of a stream: what was cut off will come again."""
        after = Events(self._limit)
        after.last_id, after.retry = events.last_id, events.retry
        return after

    async def _read(self, response: Response, events: Events, what: Any) -> bool:
        """Take in a stream; True as soon as it has brought the answer, False at its end."""
        try:
            while piece := await response.piece():
                for event in events.feed(piece):
                    if self._event(event, what):
                        self._beside.start(finish(response))
                        return True
                if self._beside.full:
                    await self._beside.room()
        except ConnectionLost:
            response.close()
            if what is not None and not (self.resumable and events.last_id):
                raise
        except BaseException:
            response.close()
            raise
        return False

    def _event(self, event: Event | Oversize, what: Any) -> bool:
        if isinstance(event, Oversize):
            raise Misbehaved(
                f"the server sent an event of {event.size} bytes, this client takes {self._limit}"
            )
        # Events without data are for resuming only; other types than "message" are not MCP's.
        return bool(event.data) and event.event == "message" and self._took(event.data, what)

    async def stand_by(self, settled: asyncio.Future[None]) -> None:
        """Hold the standing stream, on which a legacy server talks unasked.

        Args:
            settled: done as soon as the first attempt has led to something.
        """
        events, patience = Events(self._limit), Patience(STANDING_ATTEMPTS, FOR_EVER)
        try:
            while not patience.over:
                response = await self._get(events.last_id)
                if not settled.done():
                    settled.set_result(None)
                if response is None:
                    patience.failed()
                else:
                    events, seen = self._continued(events), events.last_id
                    await self._read(response, events, None)
                    response.close()
                    patience.ended(brought=events.last_id != seen)
                await asyncio.sleep(patience.wait(events.retry, chance()))
            report("the standing stream is given up after %d attempts", patience.attempts)
        except (HttpRefused, Misbehaved, ConnectionLost) as error:
            # spec 2025-11-25 basic/transports#listening-for-messages-from-the-server: 405 where
            # the server offers no such stream; what else it says does not harm our calls either
            report("no standing stream: %s", error)
        finally:
            settled.cancel()


def chance() -> float:
    """A number from 0 to 1, a different one each time."""
    from random import random  # not needed until something fails

    return random()  # noqa: S311 - it spreads attempts over time, and guards nothing


def report(message: str, *what: object) -> None:
    """Say in the log what nobody waits for."""
    import logging  # not needed until something fails

    logging.getLogger("isthmus").info(message, *what)


async def finish(response: Response) -> None:
    """Read what is left of a stream, so that its connection can be used again."""
    try:
        async with asyncio.timeout(PARTING):
            while await response.piece():
                pass
    except (ConnectionLost, TimeoutError):
        response.close()
    except BaseException:
        response.close()
        raise
