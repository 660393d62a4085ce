"""Notifications of one call: in order, from any thread, before its answer and never after it.

What would be too much for the client is held back here: log messages are dropped, errors last, and
one message says how many; of reports of progress the newest waits for its time, and the last one is
sent before the answer.
"""

import asyncio
from _thread import get_ident
from collections import deque
from typing import Any

from isthmus.errors import StoreUnavailable
from isthmus.runtime.inbound import Inbound
from isthmus.server.guard.limits import Limiter, Limiters
from isthmus.wire import LOG_LEVELS, LogLevel, LogMessageParams, ProgressParams
from isthmus.wire.struct import Wire

LOG_MESSAGE_METHOD, PROGRESS_METHOD = "notifications/message", "notifications/progress"

MAX_WAITING_NOTIFICATIONS = 1_000  # of one call, for a client that reads slowly

MAX_EXCESS_ERRORS = 100  # log messages of one call, of errors and worse, that no limit drops
ERROR_LEVELS = frozenset(LOG_LEVELS[LOG_LEVELS.index("error") :])

RATE_SLACK_S = 1e-9  # sums of floating point numbers are that far off at most


class CallNotifications:
    """The notifications of one call.

    Args:
        inbound: the call.
        limiters: what holds back a caller's log messages and reports of progress, or None.
        link: takes the notifications, instead of the way that the call came.

    Attributes:
        loop: the event loop the call runs on.
        over: the answer is on its way; nothing may be said any more.
        progress: how far the call has said it is.
    """

    __slots__ = (
        "_dropped", "_excess_errors", "_held", "_id", "_inbound", "_limiters", "_link", "_pace", "_queue",
        "_release", "_rested_at", "_sender", "_thread", "_worst", "loop", "over", "progress",
    )  # fmt: skip

    def __init__(
        self, inbound: Inbound, limiters: Limiters | None = None, link: Any = None
    ) -> None:
        self._inbound = inbound
        self._limiters = limiters
        self._pace = None if limiters is None else limiters.progress
        self._rested_at = 0.0  # when the call may report as much at once as at its beginning
        self._held: ProgressParams | None = None
        self._release: asyncio.TimerHandle | None = None
        self._dropped = self._excess_errors = 0
        self._worst: LogLevel = LOG_LEVELS[0]
        self.loop = asyncio.get_running_loop()
        self.over = False
        self.progress = float("-inf")
        self._link = link or inbound.link
        self._id = inbound.id
        self._thread = get_ident()
        self._queue: deque[tuple[str, Any]] | None = None
        self._sender: asyncio.Task[None] | None = None

    @property
    def here(self) -> bool:
        """Whether this runs in the thread of the event loop."""
        return get_ident() == self._thread

    @property
    def busy(self) -> bool:
        """Whether something is to be said that is not said yet."""
        return self._sender is not None or self._held is not None or self._dropped > 0

    def put(self, method: str, params: Wire) -> None:
        """Say it soon, and return at once; callable from any thread."""
        if self.here:
            self._put(method, params)
        else:
            self.loop.call_soon_threadsafe(self._put, method, params)

    async def send(self, method: str, params: Any) -> None:
        """Say it now, after all that was put before."""
        if self._sender is None:
            await self._link.note(method, params, relates_to=self._id)
        else:
            self._put(method, params)
            await self.drain()

    async def report(self, params: ProgressParams) -> None:
        """Say how far the call is, now or, where that would be too often, when its time has come."""
        # spec 2026-07-28 basic/patterns/progress#implementation-notes: SHOULD rate limit
        wait = self._take_turn()
        if wait:
            self._held = params
            if self._release is None:
                self._release = self.loop.call_later(wait, self._report_held)
            return
        self._held = None  # it is further than what was held back
        await self.send(PROGRESS_METHOD, params)

    def _take_turn(self) -> float:
        """Count a report; the seconds to wait, if there were too many (and then it is not counted)."""
        pace = self._pace
        if pace is None:
            return 0.0
        now = self.loop.time()
        rested_at = max(self._rested_at, now) + pace.seconds / pace.amount
        wait = rested_at - now - pace.seconds
        if wait > RATE_SLACK_S:
            return wait
        self._rested_at = rested_at
        return 0.0

    def _report_held(self) -> None:
        self._release = None
        if self._held is None:
            return
        wait = self._take_turn()
        if wait:  # others took the turn; the newest of them is here
            self._release = self.loop.call_later(wait, self._report_held)
            return
        held, self._held = self._held, None
        self._put(PROGRESS_METHOD, held)

    async def drain(self) -> None:
        """Wait until everything is said."""
        while self._sender is not None:
            await asyncio.shield(self._sender)

    def close(self) -> None:
        """Take in nothing more: the answer is on its way."""
        self.over = True
        if self._release is not None:
            self._release.cancel()
            self._release = None

    async def finish(self) -> None:
        """Take in nothing more, and wait until everything is said."""
        self.close()
        await self.drain()
        if self._held is not None:
            held, self._held = self._held, None
            await self.send(PROGRESS_METHOD, held)
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            said = f"{dropped} messages were dropped: there were too many"
            await self.send(LOG_MESSAGE_METHOD, LogMessageParams(level=self._worst, data=said))

    def _drop(self, message: LogMessageParams) -> None:
        self._dropped += 1
        self._worst = max(self._worst, message.level, key=LOG_LEVELS.index)

    async def _is_too_much(self, message: LogMessageParams) -> bool:
        limit = None if self._limiters is None else self._limiters.log_messages
        if limit is None:
            return False
        limit.spare -= 1
        # spec 2026-07-28 server/utilities/logging#implementation-considerations: SHOULD rate limit
        if limit.spare >= 0 or not await self._exceeds(limit):
            return False
        if message.level in ERROR_LEVELS and self._excess_errors < MAX_EXCESS_ERRORS:
            self._excess_errors += 1
            return False
        return True

    async def _exceeds(self, limit: Limiter) -> bool:
        try:
            return bool(await limit.excess(self._inbound))
        except StoreUnavailable:  # nobody can tell, and nothing is counted in silence
            return True

    def _put(self, method: str, params: Any) -> None:
        if self.over:
            return
        if self._queue is None:
            self._queue = deque()
        if method == LOG_MESSAGE_METHOD and len(self._queue) >= MAX_WAITING_NOTIFICATIONS:
            reserve = MAX_EXCESS_ERRORS if params.level in ERROR_LEVELS else 0
            if len(self._queue) >= MAX_WAITING_NOTIFICATIONS + reserve:
                self._drop(params)
                return
        if method == PROGRESS_METHOD and len(self._queue) >= MAX_WAITING_NOTIFICATIONS:
            self._held = params  # the newest says it all, and is said at last
            return
        self._queue.append((method, params))
        if self._sender is None:
            self._sender = self.loop.create_task(self._send_all(self._queue))

    async def _send_all(self, queue: deque[tuple[str, Any]]) -> None:
        try:
            while queue:
                method, params = queue.popleft()
                if method == LOG_MESSAGE_METHOD and await self._is_too_much(params):
                    self._drop(params)
                    continue
                await self._link.note(method, params, relates_to=self._id)
        finally:
            self._sender = None
