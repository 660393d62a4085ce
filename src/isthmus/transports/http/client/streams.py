"""Streams of events from the client's side: read to the answer, and resumed where possible.

Up to 2025-11-25 a stream may break and go on: the client asks for the rest by GET, with the id of
the last event it saw. The standing stream, on which a server talks unasked, is the same without
an answer to wait for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from isthmus.core.framing import Oversize
from isthmus.core.http.sse import SseEvent, SseParser
from isthmus.errors import ConnectionLost, HttpRefused, Misbehaved
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.failures import log_info
from isthmus.transports.http.client.requests import Response

FIRST_WAIT_S = 1.0  # seconds before the first attempt of our own, where the server names no time
MAX_WAIT_S = 30.0  # seconds between two attempts, unless the server wants more
FREE_EMPTY_STREAMS = 5  # attempts in a row that bring nothing before the waits become longer


class ReconnectBackoff:
    """Counts what came of the attempts to go on with one stream.

    Args:
        failures: how many attempts in a row may meet no stream at all.
        empties: how many streams in a row may end without having brought anything new.
    """

    __slots__ = ("_empties", "_empty", "_failed", "_failures")

    def __init__(self, failures: int, empties: int) -> None:
        self._failures = failures
        self._empties = empties
        self._failed = 0
        self._empty = 0

    @property
    def over(self) -> bool:
        """Whether to give it up."""
        return self._failed > self._failures or self._empty > self._empties

    @property
    def attempts(self) -> int:
        """The number of attempts in a row that were in vain."""
        return self._failed + self._empty

    def failed(self) -> None:
        """There was no stream to be had."""
        self._failed += 1

    def ended(self, *, brought: bool) -> None:
        """There was a stream, and it has ended; whether it has brought anything new."""
        self._failed = 0
        self._empty = 0 if brought else self._empty + 1

    def wait(self, retry: int | None, chance: float) -> float:
        """Seconds to wait before the next attempt.

        Args:
            retry: what the server asked for, in milliseconds, or None. It is never undercut; it
                is exceeded only where attempts are in vain.
            chance: a number from 0 to 1 that is different each time, so that many clients of a
                server that comes back do not come back all at once.
        """
        # spec 2025-11-25 basic/transports#sending-messages-to-the-server: the client MUST respect
        # the retry field
        asked = FIRST_WAIT_S if retry is None else retry / 1000
        vain = self._failed or max(0, self._empty - FREE_EMPTY_STREAMS)
        if not vain:
            return asked
        growing = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(vain - 1, 16))
        return max(asked, growing * (0.5 + chance / 2))


# Answers of ours on their way; while there are more, the channel reads no further
MAX_ANSWERS_UNDER_WAY = 256

FEW_ANSWERS_UNDER_WAY = 64  # so many must be left before it goes on

# Answers that are posted at the same time; the others wait for their turn
MAX_CONCURRENT_ANSWERS = 16


class ChannelTasks:
    """The tasks beside one channel.

    A server that asks faster than it takes our answers would otherwise make us keep ever more of
    them: so it is read no further meanwhile, and its own connection fills up.
    """

    __slots__ = ("_answers", "_room", "_tasks", "_turns")

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(MAX_CONCURRENT_ANSWERS)
        self._room: asyncio.Event | None = None

    @property
    def full(self) -> bool:
        """Whether there are too many answers to read on: then :meth:`wait_for_room` is to be awaited."""
        return len(self._answers) > MAX_ANSWERS_UNDER_WAY

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def answer(self, deliver: Callable[[Outgoing], Awaitable[None]], out: Outgoing) -> None:
        """Deliver an answer of ours when its turn has come."""
        task = self.start(self._deliver_in_turn(deliver, out))
        self._answers.add(task)
        task.add_done_callback(self._forget_answer)

    async def wait_for_room(self) -> None:
        """Wait until there are few answers left to deliver."""
        if self._room is None:
            self._room = asyncio.Event()
        await self._room.wait()

    async def end(self) -> None:
        """Cancel all of them, and wait for their end."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _deliver_in_turn(
        self, deliver: Callable[[Outgoing], Awaitable[None]], out: Outgoing
    ) -> None:
        async with self._turns:
            await deliver(out)

    def _forget_answer(self, task: asyncio.Task[None]) -> None:
        self._answers.discard(task)
        if self._room is not None and len(self._answers) <= FEW_ANSWERS_UNDER_WAY:
            self._room.set()
            self._room = None


STREAM_END_TIMEOUT_S = 2.0  # seconds a stream may take to end after its answer
MAX_RESUME_ATTEMPTS = 5  # in a row that meet no stream, to resume the one of a call
MAX_EMPTY_POLLS = 100  # streams in a row without anything new, where a call is polled for
MAX_STANDING_ATTEMPTS = 10  # in a row that meet no stream, to have the standing one back
UNLIMITED_POLLS = 10**9  # the standing stream may bring nothing as long as it likes


class EventStreams:
    """Reads the streams of one endpoint.

    Args:
        get: asks for a stream, or for its rest after an event id; gives None where there is none
            to be had now, and raises ``HttpRefused`` where there will be none.
        took: takes in one message; True where it is what is waited for.
        tasks: run beside it, and say when to read no further.
        limit: the most bytes one event may have.

    Attributes:
        resumable: streams may go on after they broke.
    """

    def __init__(
        self,
        get: Callable[[str], Awaitable[Response | None]],
        took: Callable[[bytes, Any], bool],
        tasks: ChannelTasks,
        limit: int,
    ) -> None:
        self.resumable = True
        self._get = get
        self._took = took
        self._tasks = tasks
        self._limit = limit

    async def follow(self, first: Response, what: Any) -> None:
        """Read the stream of a request up to the answer, resuming it where that is possible.

        Args:
            first: the stream as it began.
            what: is waited for, as ``took`` knows it.
        """
        events = SseParser(self._limit)
        response: Response | None = first
        patience: ReconnectBackoff | None = None  # most streams need none
        while True:
            seen = events.last_id
            if response is not None and await self._read(response, events, what):
                return
            patience = patience or ReconnectBackoff(MAX_RESUME_ATTEMPTS, MAX_EMPTY_POLLS)
            if response is None:
                patience.failed()
            else:
                patience.ended(brought=events.last_id != seen)
            if not self.resumable or not events.last_id or patience.over:
                raise ConnectionLost("the stream of the answer ended before the answer")
            # spec 2025-11-25 basic/transports#resumability-and-redelivery: resumption is always
            # by GET with Last-Event-ID, after the time the server asks for
            await asyncio.sleep(patience.wait(events.retry, draw_chance()))
            response = await self._get(events.last_id)
            events = self._make_continuation(events)

    def _make_continuation(self, events: SseParser) -> SseParser:
        """A parser for the continuation of a stream: what was cut off will come again."""
        after = SseParser(self._limit)
        after.last_id, after.retry = events.last_id, events.retry
        return after

    async def _read(self, response: Response, events: SseParser, what: Any) -> bool:
        """Take in a stream; True as soon as it has brought the answer, False at its end."""
        try:
            while piece := await response.piece():
                for event in events.feed(piece):
                    if self._take_event(event, what):
                        self._tasks.start(finish_stream(response))
                        return True
                if self._tasks.full:
                    await self._tasks.wait_for_room()
        except ConnectionLost:
            response.close()
            if what is not None and not (self.resumable and events.last_id):
                raise
        except BaseException:
            response.close()
            raise
        return False

    def _take_event(self, event: SseEvent | Oversize, what: Any) -> bool:
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
        events, patience = (
            SseParser(self._limit),
            ReconnectBackoff(MAX_STANDING_ATTEMPTS, UNLIMITED_POLLS),
        )
        try:
            while not patience.over:
                response = await self._get(events.last_id)
                if not settled.done():
                    settled.set_result(None)
                if response is None:
                    patience.failed()
                else:
                    events, seen = self._make_continuation(events), events.last_id
                    await self._read(response, events, None)
                    response.close()
                    patience.ended(brought=events.last_id != seen)
                await asyncio.sleep(patience.wait(events.retry, draw_chance()))
            log_info("the standing stream is given up after %d attempts", patience.attempts)
        except (HttpRefused, Misbehaved, ConnectionLost) as error:
            # spec 2025-11-25 basic/transports#listening-for-messages-from-the-server: 405 where
            # the server offers no such stream; what else it says does not harm our calls either
            log_info("no standing stream: %s", error)
        finally:
            settled.cancel()


def draw_chance() -> float:
    """A number from 0 to 1, a different one each time."""
    from random import random  # not needed until something fails

    return random()  # noqa: S311 - it spreads attempts over time, and guards nothing


async def finish_stream(response: Response) -> None:
    """Read what is left of a stream, so that its connection can be used again."""
    try:
        async with asyncio.timeout(STREAM_END_TIMEOUT_S):
            while await response.piece():
                pass
    except (ConnectionLost, TimeoutError):
        response.close()
    except BaseException:
        response.close()
        raise
