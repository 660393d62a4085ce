"""Telling one listener how a task stands, in order, without holding up the task."""

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.runtime.tasks_records import Record

__all__ = ["Teller"]


class Teller:
    """Tells one listener of one task.

    A status that was overtaken before it could be told is not told: what is next is always how the
    task stands. After the final one there is nothing more to tell.

    Args:
        tell: sends the notification.
    """

    def __init__(self, tell: Callable[[Record], Awaitable[None]]) -> None:
        self._tell = tell
        self._next: Record | None = None
        self._running: asyncio.Task[None] | None = None
        self._over = False

    def hear(self, record: Record) -> None:
        """How the task stands now."""
        if self._over:
            return
        self._over = record.over
        self._next = record
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Nobody listens any more."""
        self._over, self._next = True, None

    async def _run(self) -> None:
        try:
            while self._next is not None:
                record, self._next = self._next, None
                await self._tell(record)
        finally:
            self._running = None
