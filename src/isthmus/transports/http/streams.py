"""Streams of events from the client's side: read to the answer, and resumed where possible.

Up to 2025-11-25 a stream may break and go on: the client asks for the rest by GET, with the id of
the last event it saw. The standing stream, on which a server talks unasked, is the same without
an answer to wait for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from isthmus.core.framing import Oversize
from isthmus.core.sse import Event, Events
from isthmus.errors import ConnectionLost, HttpRefused, Misbehaved
from isthmus.transports.http.requests import Response
from isthmus.wire.base import Id

__all__ = ["Streams"]

PARTING = 2.0  # seconds a stream may take to end after its answer
RETRY = 1.0  # seconds until a broken stream is asked for again, where the server names none
LONGEST_RETRY = 30.0
ATTEMPTS = 5  # fruitless ones, to resume the stream of one call


class Streams:
    """Reads the streams of one endpoint.

    Args:
        get: asks for a stream, or for its rest after an event id; gives None where there is none
            to be had now, and raises ``HttpRefused`` where there will be none.
        took: takes in one message; True where it is the answer to the request of that id.
        start: runs something beside.
        limit: the most bytes one event may have.

    Attributes:
        resumable: streams may go on after they broke.
    """

    def __init__(
        self,
        get: Callable[[str], Awaitable[Response | None]],
        took: Callable[[bytes, Id | None], bool],
        start: Callable[[Coroutine[Any, Any, None]], None],
        limit: int,
    ) -> None:
        self.resumable = True
        self._get = get
        self._took = took
        self._start = start
        self._limit = limit

    async def follow(self, first: Response, id: Id) -> None:
        """Read the stream of a request up to the answer, resuming it where that is possible."""
        events = Events(self._limit)
        response: Response | None = first
        attempts = 0
        while True:
            seen = events.last_id
            if response is not None and await self._read(response, events, id):
                return
            attempts = 0 if events.last_id != seen else attempts + 1
            if not self.resumable or not events.last_id or attempts > ATTEMPTS:
                raise ConnectionLost("the stream of the answer ended before the answer")
            # spec 2025-11-25 basic/transports#resumability-and-redelivery: resumption is always
            # by GET with Last-Event-ID, after the time the server asks for
            await asyncio.sleep(RETRY if events.retry is None else events.retry / 1000)
            response = await self._get(events.last_id)
            events = self._continued(events)

    def _continued(self, events: Events) -> Events:
        """A parser for the continuation of a stream: what was cut off will come again."""
        after = Events(self._limit)
        after.last_id, after.retry = events.last_id, events.retry
        return after

    async def _read(self, response: Response, events: Events, id: Id | None) -> bool:
        """Take in a stream; True as soon as it has brought the answer, False at its end."""
        try:
            while piece := await response.piece():
                for event in events.feed(piece):
                    if self._event(event, id):
                        self._start(finish(response))
                        return True
        except ConnectionLost:
            if id is not None and not (self.resumable and events.last_id):
                raise
        except BaseException:
            response.close()
            raise
        return False

    def _event(self, event: Event | Oversize, id: Id | None) -> bool:
        if isinstance(event, Oversize):
            raise Misbehaved(
                f"the server sent an event of {event.size} bytes, this client takes {self._limit}"
            )
        # Events without data are for resuming only; other types than "message" are not MCP's.
        return bool(event.data) and event.event == "message" and self._took(event.data, id)

    async def stand_by(self, settled: asyncio.Future[None]) -> None:
        """Hold the standing stream, on which a legacy server talks unasked.

        Args:
            settled: done as soon as the first attempt has led to something.
        """
        events, wait = Events(self._limit), 0.0
        try:
            while True:
                response = await self._get(events.last_id)
                if not settled.done():
                    settled.set_result(None)
                if response is None:
                    wait = min(LONGEST_RETRY, wait * 2 or RETRY)
                else:
                    wait = 0.0
                    events = self._continued(events)
                    await self._read(response, events, None)
                    response.close()
                asked = RETRY if events.retry is None else events.retry / 1000
                await asyncio.sleep(max(asked, wait))
        except (HttpRefused, Misbehaved, ConnectionLost) as error:
            # spec 2025-11-25 basic/transports#listening-for-messages-from-the-server: 405 where
            # the server offers no such stream; what else it says does not harm our calls either
            import logging  # not needed until something fails

            logging.getLogger("isthmus").info("no standing stream: %s", error)
        finally:
            settled.cancel()


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
