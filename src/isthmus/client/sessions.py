"""New sessions: one for all who need one, where the server has ended the one before."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from isthmus.client.opening import Link
from isthmus.errors import ConnectionLost

__all__ = ["Renewal"]

SETTLE = 10.0
"""Seconds that a new session has to last before it is replaced by another."""

LINGER = 2.0  # seconds that the calls of an ended session have to hear of it


class Renewal:
    """Starts new sessions for one connection, one at a time.

    Whoever needs a new session waits for the same one. A session that ends almost at once is not
    replaced: whatever is wrong there, asking again does not mend it.

    Args:
        renew: opens a session and puts it in the place of the one before.
        failed: told why there is none.
    """

    def __init__(
        self,
        renew: Callable[[], Coroutine[Any, Any, None]],
        failed: Callable[[ConnectionLost], None],
    ) -> None:
        self._renew = renew
        self._failed = failed
        self._task: asyncio.Task[None] | None = None
        self._leaving: dict[asyncio.Task[None], Link] = {}
        self._last = float("-inf")
        self._closed = False

    def begin(self) -> asyncio.Task[None]:
        """Start a new session, unless one is being started."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._done)
        return self._task

    async def join(self) -> None:
        """Start a new session, or wait until one is there that is being started.

        Raises:
            ConnectionLost: it could not be started, or the client was closed meanwhile.
        """
        if self._closed:
            raise ConnectionLost("this client was closed")
        task = self.begin()
        await asyncio.wait((task,))  # which a caller may leave, and it goes on
        if task.cancelled():
            raise ConnectionLost("this client was closed")
        error = task.exception()
        if error is not None:
            raise ConnectionLost(str(error)) from error

    def leave(self, link: Link) -> None:
        """End a link that was replaced, as soon as its calls have heard of that."""
        task = asyncio.get_running_loop().create_task(self._ended(link))
        self._leaving[task] = link
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._leaving.pop(task, None)

    async def close(self) -> None:
        """Start no session any more, and end what is left of the ones before."""
        self._closed = True
        links = list(self._leaving.values())
        tasks = [*self._leaving, *((self._task,) if self._task is not None else ())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for link in links:
            await link.end()  # a task that is cancelled before it begins has not done that

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        lasted = loop.time() - self._last
        if lasted < SETTLE:
            raise ConnectionLost(
                f"the server has ended a new session after {lasted:.3g} s, as it did the one "
                "before: no other one is started"
            )
        try:
            await self._renew()
        except Exception as error:
            raise ConnectionLost(
                f"the server has ended the session, and no new one could be started: {error}"
            ) from error
        self._last = loop.time()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ConnectionLost):
            self._failed(error)

    async def _ended(self, link: Link) -> None:
        try:
            async with asyncio.timeout(LINGER):
                await link.over()
        except TimeoutError:
            pass
        finally:
            await link.end()
