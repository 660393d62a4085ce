"""The threads that synchronous functions run in, so that they do not hold up everybody else.

The pool is made when the first such function is called, and kept. A thread cannot be stopped
from outside: a function that may take long looks at ``ctx.cancelled`` now and then.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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

        waiting = asyncio.run_coroutine_threadsafe(awaiting(), loop)
        self._waits.add(waiting)
        if self.given:  # given between the caller's look and the line above
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
        limit: the most threads, or None for what ``concurrent.futures`` thinks best.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, function: Callable[[], T], leave: Leave | None = None) -> T:
        """Call ``function`` in a thread, with the context variables of here and now.

        Args:
            function: what to call.
            leave: what to give the function when this is cancelled.
        """
        work = self._threads().submit(contextvars.copy_context().run, _settled, function)
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
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _threads(self) -> "ThreadPoolExecutor":
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._limit, "isthmus")
        return self._pool


def _forget(future: "asyncio.Future[Any]") -> None:
    """Nobody waits any more for what a function gives, nor for what it raises."""
    if not future.cancelled():
        future.exception()


def _settled(function: Callable[[], T]) -> T:
    try:
        return function()
    except StopIteration as error:
        # A future cannot carry one, and would never be done.
        raise RuntimeError("the function raised StopIteration") from error
