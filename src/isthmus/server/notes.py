"""What one call says before its answer: in order, from any thread, and nothing after it."""

import asyncio
from _thread import get_ident
from collections import deque
from typing import Any

from isthmus.runtime.inbound import Inbound
from isthmus.wire.base import Wire

__all__ = ["Notes"]


class Notes:
    """The notifications of one call.

    Args:
        inbound: the call.

    Attributes:
        loop: the event loop the call runs on.
        over: the answer is on its way; nothing may be said any more.
        progress: how far the call has said it is.
    """

    __slots__ = ("_id", "_link", "_queue", "_sender", "_thread", "loop", "over", "progress")

    def __init__(self, inbound: Inbound) -> None:
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
        """Whether something was put that is not said yet."""
        return self._sender is not None

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

    async def drain(self) -> None:
        """Wait until everything is said."""
        while self._sender is not None:
            await asyncio.shield(self._sender)

    async def finish(self) -> None:
        """Take in nothing more, and wait until everything is said."""
        self.over = True
        await self.drain()

    def _put(self, method: str, params: Any) -> None:
        if self.over:
            return
        if self._queue is None:
            self._queue = deque()
        self._queue.append((method, params))
        if self._sender is None:
            self._sender = self.loop.create_task(self._send_all(self._queue))

    async def _send_all(self, queue: deque[tuple[str, Any]]) -> None:
        try:
            while queue:
                method, params = queue.popleft()
                await self._link.note(method, params, relates_to=self._id)
        finally:
            self._sender = None
