"""The threads that synchronous functions run in, so that they do not hold up everybody else.

The pool is made when the first such function is called, and kept. A thread cannot be stopped
from outside: a function that may take long looks at ``ctx.cancelled`` now and then.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Leave", "Workers"]

T = TypeVar("T")


class Leave:
    """How a function in a thread hears that its call is over.

    Attributes:
        given: the call is over; nobody waits for the function any more.
        wait: whoever ended the call waits for the function to return.
    """

    __slots__ = ("_waits", "given", "wait")

    def __init__(self) -> None:
        self.given = False
        self.wait = False
        self._waits: set[Future[Any]] = set()

    def give(self) -> None:
        """The call is over: end every :meth:`block` now and to come."""
        self.given = True
        for waiting in tuple(self._waits):
            waiting.cancel()

    def block(self, loop: asyncio.AbstractEventLoop, awaitable: Awaitable[T]) -> T:
        """Wait in this thread for something that runs on the loop.

        Raises:
            asyncio.CancelledError: the call was given up meanwhile.
        """

        async def awaiting() -> T:
            return await awaitable

        over = self.given  # another thread sets it, at any moment
        if over:
            close = getattr(awaitable, "close", None)
            if close is not None:
                close()  # a coroutine that never begins must not be warned about
            raise asyncio.CancelledError
        waiting = asyncio.run_coroutine_threadsafe(awaiting(), loop)
        self._waits.add(waiting)
        if self.given:  # it was set between that look and the line above
            waiting.cancel()
        try:
            return waiting.result()
        except CancelledError as error:
            # In a thread too, a cancellation is not for `except Exception`.
            raise asyncio.CancelledError from error
        finally:
            self._waits.discard(waiting)


class Workers:
    """A pool of threads for one server.

    Args:
        limit: the most threads; by default a few more than there are processors.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit or min(32, (os.cpu_count() or 1) + 4)
        self._pool: Pool | None = None

    async def run(self, function: Callable[[], T], leave: Leave | None = None) -> T:
        """Call ``function`` in a thread, with the context variables of here and now.

        Args:
            function: what to call.
            leave: what to give the function when this is cancelled.
        """
        work = self._threads().submit(contextvars.copy_context(), function)
        future = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(_forget)
            if not work.cancel() and leave is not None:
                leave.give()
                if leave.wait:
                    await asyncio.wait([future])
            raise

    def close(self) -> None:
        """Start nothing more; threads that run go on until their functions return."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _threads(self) -> "Pool":
        if self._pool is None:
            self._pool = Pool(self._limit)
        return self._pool


Work = tuple["Future[Any]", contextvars.Context, Callable[[], Any]]


class Pool:
    """Threads that take work as it comes, and that no process waits for when it ends.

    That is what sets it apart from ``concurrent.futures``, whose threads keep a server that was
    told to stop alive for as long as a function in one of them runs.

    Args:
        limit: the most threads.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._queue: SimpleQueue[Work | None] = SimpleQueue()

    def submit(self, context: contextvars.Context, function: Callable[[], T]) -> "Future[T]":
        """Have ``function`` called in ``context`` by the next thread that is free."""
        future: Future[T] = Future()
        self._queue.put((future, context, function))
        if not self._idle.acquire(blocking=False) and self._count < self._limit:
            self._count += 1
            name = f"isthmus_{self._count}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        """Drop what has not begun; threads end when they have nothing to do."""
        while (work := self._next()) is not None:
            work[0].cancel()
        for _ in range(self._count):
            self._queue.put(None)

    def _next(self) -> Work | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            return None

    def _work(self) -> None:
        work: Work | None
        while True:
            try:
                work = self._queue.get_nowait()
            except Empty:
                self._idle.release()  # whoever comes now needs no new thread
                work = self._queue.get()
            if work is None:
                return
            _call(*work)
            work = None  # a thread that waits holds on to nothing


def _call(future: "Future[Any]", context: contextvars.Context, function: Callable[[], Any]) -> None:
    """Call a function and give its future what came of it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = context.run(function)
    except StopIteration as error:
        # A future cannot carry one, and would never be done.
        wrong = RuntimeError("the function raised StopIteration")
        wrong.__cause__ = error
        future.set_exception(wrong)
    except BaseException as error:  # noqa: BLE001 - whoever awaits it is told, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)


def _forget(future: "asyncio.Future[Any]") -> None:
    """Nobody waits any more for what a function gives, nor for what it raises."""
    if not future.cancelled():
        future.exception()
