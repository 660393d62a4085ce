"""Notifications of one call: in order, from any thread, before its answer and never after it.

What would be too much for the client is held back here: log messages are dropped, and one message
says how many; of reports of progress the newest waits, and the last one is always sent.
"""

import asyncio
from _thread import get_ident
from collections import deque
from typing import Any

from isthmus.runtime.inbound import Inbound
from isthmus.server.guard.limits import Limiters
from isthmus.wire import LOG_LEVELS, LogLevel, LogMessageParams, ProgressParams
from isthmus.wire.struct import Wire

LOG_MESSAGE_METHOD, PROGRESS_METHOD = "notifications/message", "notifications/progress"

MAX_WAITING_NOTIFICATIONS = 1_000  # of one call, for a client that reads slowly


class CallNotifications:
    """The notifications of one call.

    Args:
        inbound: the call.
        limiters: what holds back a caller's log messages and reports of progress, or None.

    Attributes:
        loop: the event loop the call runs on.
        over: the answer is on its way; nothing may be said any more.
        progress: how far the call has said it is.
    """

    __slots__ = (
        "_dropped", "_held", "_id", "_inbound", "_limiters", "_link", "_queue", "_release_at",
        "_sender", "_thread", "_worst", "loop", "over", "progress",
    )  # fmt: skip

    def __init__(self, inbound: Inbound, limiters: Limiters | None = None) -> None:
        self._inbound = inbound
        self._limiters = limiters
        self._held: ProgressParams | None = None
        self._release_at: asyncio.TimerHandle | None = None
        self._dropped = 0
        self._worst: LogLevel = LOG_LEVELS[0]
        self.loop = asyncio.get_running_loop()
        self.over = False
        self.progress = float("-inf")
        self._link = inbound.link
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
        """Say how far the call is, now or, where that would be too often, later."""
        limit = None if self._limiters is None else self._limiters.progress
        if limit is not None:
            limit.spare -= 1
            # spec 2026-07-28 basic/patterns/progress#implementation-notes: SHOULD rate limit
            wait = await limit.excess(self._inbound) if limit.spare < 0 else 0.0
            if wait:
                self._held = params
                if self._release_at is None:
                    self._release_at = self.loop.call_later(wait, self._release)
                return
        self._held = None  # it is further than what was held back
        await self.send(PROGRESS_METHOD, params)

    def _release(self) -> None:
        self._release_at = None
        if self._held is not None and not self.over:
            held, self._held = self._held, None
            self._put(PROGRESS_METHOD, held)

    async def drain(self) -> None:
        """Wait until everything is said."""
        while self._sender is not None:
            await asyncio.shield(self._sender)

    async def finish(self) -> None:
        """Take in nothing more, and wait until everything is said."""
        self.over = True
        await self.drain()
        if self._release_at is not None:
            self._release_at.cancel()
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

    async def _is_too_much(self) -> bool:
        limit = None if self._limiters is None else self._limiters.log_messages
        if limit is None:
            return False
        limit.spare -= 1
        # spec 2026-07-28 server/utilities/logging#implementation-considerations: SHOULD rate limit
        return limit.spare < 0 and await limit.excess(self._inbound) > 0

    def _put(self, method: str, params: Any) -> None:
        if self.over:
            return
        if self._queue is None:
            self._queue = deque()
        if len(self._queue) >= MAX_WAITING_NOTIFICATIONS and method == LOG_MESSAGE_METHOD:
            self._drop(params)
            return
        self._queue.append((method, params))
        if self._sender is None:
            self._sender = self.loop.create_task(self._send_all(self._queue))

    async def _send_all(self, queue: deque[tuple[str, Any]]) -> None:
        try:
            while queue:
                method, params = queue.popleft()
                if method == LOG_MESSAGE_METHOD and await self._is_too_much():
                    self._drop(params)
                    continue
                await self._link.note(method, params, relates_to=self._id)
        finally:
            self._sender = None
