"""Lifespan of a server: an author's context manager, open as long as the server runs.

The author's context manager is entered once, before the first request is served, and left when
the server stops. Both happen in one task of its own, because a context manager may hold on to
the task that entered it; requests come and go in theirs.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from msgspec import Raw

from isthmus.errors import LifespanFailed, OutOfPhase, Refuse
from isthmus.runtime.failures import log_error
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler
from isthmus.wire.struct import Wire

# Tasks that keep lifespans open. A loop refers to its tasks weakly: that of a server which nobody refers to
# any more would be destroyed in the middle of what it keeps open.
HELD_TASKS: "set[asyncio.Task[None]]" = set()


class Lifespan:
    """The author's context manager, and its value while it is open.

    Args:
        manager: makes the context manager; None for a server that needs nothing.

    Attributes:
        value: what the context manager gave, or None.
    """

    def __init__(self, manager: Callable[[], AbstractAsyncContextManager[Any]] | None) -> None:
        self.value: Any = None
        self._manager = manager
        self._task: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[None] | None = None
        self._leave: asyncio.Event | None = None

    def enclose(
        self, before: Callable[[], Awaitable[None]], after: Callable[[], Awaitable[None]]
    ) -> None:
        """Do something before the context manager is entered, and something after it was left."""
        inner = self._manager

        @asynccontextmanager
        async def around() -> AsyncIterator[Any]:
            await before()
            try:
                async with nullcontext() if inner is None else inner() as value:
                    yield value
            finally:
                await after()

        self._manager = around

    def nest(
        self, begin: Callable[[], Awaitable[None]], end: Callable[[], Awaitable[None]]
    ) -> None:
        """Do something after the context manager was entered, and something before it is left."""
        outer = self._manager

        @asynccontextmanager
        async def around() -> AsyncIterator[Any]:
            async with nullcontext() if outer is None else outer() as value:
                self.value = value  # what begins may need it
                await begin()
                try:
                    yield value
                finally:
                    await end()

        self._manager = around

    async def open(self) -> None:
        """Enter the context manager, or wait until somebody else has; again after a failure.

        Raises:
            LifespanFailed: the context manager raised; the cause is what it raised.
        """
        if self._manager is None:
            return
        loop = asyncio.get_running_loop()
        if self._opened is None or self._opened.get_loop() is not loop:  # that loop is gone
            self._opened = loop.create_future()
            self._leave = asyncio.Event()
            self._task = loop.create_task(self._hold(self._manager, self._opened, self._leave))
            HELD_TASKS.add(self._task)
            self._task.add_done_callback(HELD_TASKS.discard)
        if not self._opened.done():
            await asyncio.shield(self._opened)

    async def close(self) -> None:
        """Leave the context manager; safe to call twice, and where it was never entered.

        Raises:
            Exception: whatever the context manager raised on its way out.
        """
        task, leave = self._task, self._leave
        if task is None or leave is None:
            return
        leave.set()
        await asyncio.shield(task)

    def open_first(self, handler: Handler) -> Handler:
        """A handler that is preceded by :meth:`open`, at no cost once that is through."""
        if self._manager is None:
            return handler

        def serve(params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
            opened = self._opened
            if (
                opened is None
                or not opened.done()
                or opened.get_loop() is not asyncio.get_running_loop()
            ):
                return self._open_and_serve(handler, params, inbound)
            return handler(params, inbound)

        return serve

    async def _open_and_serve(self, handler: Handler, params: Any, inbound: Inbound) -> Wire | Raw:
        try:
            await self.open()
        except LifespanFailed as failed:
            log_error("the server cannot start", error=failed)
            kind = type(failed.__cause__).__name__
            raise Refuse(
                -32603, f"The server cannot start: its lifespan failed: {kind}"
            ) from failed
        return await handler(params, inbound)

    async def _hold(
        self,
        manager: Callable[[], AbstractAsyncContextManager[Any]],
        opened: asyncio.Future[None],
        leave: asyncio.Event,
    ) -> None:
        try:
            async with manager() as value:
                self.value = value
                opened.set_result(None)
                await leave.wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(_make_failure(error))
        finally:
            if not opened.done():
                opened.set_exception(OutOfPhase("the server's lifespan was cancelled"))
            self.value = self._task = self._opened = self._leave = None


def _make_failure(error: Exception) -> LifespanFailed:
    if isinstance(error, LifespanFailed):  # of a server in it, which it names
        return error
    failed = LifespanFailed(f"the server's lifespan failed: {type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed
