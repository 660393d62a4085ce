"""What a channel does beside the conversation: tasks that end with it, and answers in turn."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from isthmus.runtime.channel import Outgoing

__all__ = ["Beside"]

MANY = 256
"""Answers of ours on their way; while there are more, the channel reads no further."""

FEW = 64
"""So many must be left before it goes on."""

AT_ONCE = 16
"""Answers that are posted at the same time; the others wait for their turn."""


class Beside:
    """The tasks beside one channel.

    A server that asks faster than it takes our answers would otherwise make us keep ever more of
    them: so it is read no further meanwhile, and its own connection fills up.
    """

    __slots__ = ("_answers", "_room", "_tasks", "_turns")

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._room: asyncio.Event | None = None

    @property
    def full(self) -> bool:
        """Whether there are too many answers to read on: then :meth:`room` is to be awaited."""
        return len(self._answers) > MANY

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def answer(self, deliver: Callable[[Outgoing], Awaitable[None]], out: Outgoing) -> None:
        """Deliver an answer of ours when its turn has come."""
        task = self.start(self._in_turn(deliver, out))
        self._answers.add(task)
        task.add_done_callback(self._answered)

    async def room(self) -> None:
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

    async def _in_turn(self, deliver: Callable[[Outgoing], Awaitable[None]], out: Outgoing) -> None:
        async with self._turns:
            await deliver(out)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answers.discard(task)
        if self._room is not None and len(self._answers) <= FEW:
            self._room.set()
            self._room = None
