"""Worker threads for synchronous functions, so that they do not hold up the event loop.

The pool is made when the first such function is called, and kept. A thread that waits for the
event loop in ``ctx.wait``, for the answer to a question perhaps, does not count: another one takes
its place. A thread cannot be stopped from outside: a function that may take long looks at
``ctx.cancelled`` now and then.
"""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class CallCancellation:
    """The signal by which a function in a thread hears that its call is over.

    Attributes:
        cancelled: the call is over; nobody waits for the function any more.
        wait: whoever ended the call waits for the function to return.
    """

    __slots__ = ("_waits", "cancelled", "wait")

    def __init__(self) -> None:
        self.cancelled = False
        self.wait = False
        self._waits: set[Future[Any]] = set()

    def cancel(self) -> None:
        """The call is over: end every :meth:`block` now and to come."""
        self.cancelled = True
        for waiting in tuple(self._waits):
            waiting.cancel()

    def block(self, loop: asyncio.AbstractEventLoop, awaitable: Awaitable[T]) -> T:
        """Wait in this thread for something that runs on the loop.

        Raises:
            asyncio.CancelledError: the call was given up meanwhile.
        """

        async def awaiting() -> T:
            return await awaitable

        over = self.cancelled  # another thread sets it, at any moment
        if over:
            close = getattr(awaitable, "close", None)
            if close is not None:
                close()  # a coroutine that never begins must not be warned about
            raise asyncio.CancelledError
        waiting = asyncio.run_coroutine_threadsafe(awaiting(), loop)
        self._waits.add(waiting)
        if self.cancelled:  # it was set between that look and the line above
            waiting.cancel()
        pool: WorkerPool | None = getattr(_own_thread, "pool", None)
        try:
            if pool is not None:
                pool.step_aside()
            return waiting.result()
        except CancelledError as error:
            # In a thread too, a cancellation is not for `except Exception`.
            raise asyncio.CancelledError from error
        finally:
            if pool is not None:
                pool.step_back()
            self._waits.discard(waiting)
            del waiting  # which keeps what is raised, and so would this frame


class Workers:
    """A pool of threads for one server.

    Args:
        limit: the most threads that are at work at once; None sets no limit.
    """

    def __init__(self, limit: int | None = 40) -> None:
        self._pool: WorkerPool | None = None
        self.limit_threads(limit)

    def limit_threads(self, limit: int | None) -> None:
        """Set the limit of the pool that is made next."""
        self._limit = limit or sys.maxsize

    async def run(self, function: Callable[[], T], leave: CallCancellation | None = None) -> T:
        """Call ``function`` in a thread, with the context variables of here and now.

        Args:
            function: what to call.
            leave: what to give the function when this is cancelled.
        """
        pool = self._threads()
        work = pool.submit(contextvars.copy_context(), function)
        future = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(_ignore_outcome)
            if work.cancel():
                pool.forget_cancelled()
            elif leave is not None:
                leave.cancel()
                if leave.wait:
                    await asyncio.wait([future])
            raise
        finally:
            del work, future  # which keep what is raised, and so would this frame

    def close(self) -> None:
        """Start nothing more; threads that run go on until their functions return."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _threads(self) -> "WorkerPool":
        if self._pool is None:
            self._pool = WorkerPool(self._limit)
        return self._pool


MAX_WAITING_THREADS = 1_000  # for the event loop; more of them count like others

MAX_CANCELLED = 16  # calls given up before they began that may wait for a thread in any case

_own_thread = threading.local()  # has the pool of a thread

WorkItem = tuple["Future[Any]", contextvars.Context, Callable[[], Any]]


class WorkerPool:
    """Threads that take work as it comes, and that no process waits for when it ends.

    That is what sets it apart from ``concurrent.futures``, whose threads keep a server that was
    told to stop alive for as long as a function in one of them runs.

    Args:
        limit: the most threads that are at work at once; those that wait for the loop do not count.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._count = 0  # threads there are
        self._idle = 0  # of these, those that take what comes into the queue
        self._aside = 0  # of these, those that wait for the event loop
        self._cancelled = 0  # calls given up since the queue was last rid of such
        self._closed = False
        self._queue: SimpleQueue[WorkItem | None] = SimpleQueue()

    def submit(self, context: contextvars.Context, function: Callable[[], T]) -> "Future[T]":
        """Have ``function`` called in ``context`` by the next thread that is free."""
        future: Future[T] = Future()
        self._queue.put((future, context, function))
        try:
            self._grow()
        except RuntimeError:
            future.cancel()  # nobody will wait for it
            raise
        return future

    def forget_cancelled(self) -> None:
        """A call was given up before it began: let go of such calls, once they may be half of all.

        Otherwise they would wait with their arguments until a thread is free.
        """
        self._cancelled += 1
        if self._cancelled < max(MAX_CANCELLED, self._queue.qsize() // 2):
            return
        self._cancelled = 0
        with self._lock:
            waiting = list(iter(self._next, None))
            for work in waiting:
                if not work[0].cancelled():
                    self._queue.put(work)

    def step_aside(self) -> None:
        """The thread that calls this waits from now on, and another one may work for it."""
        with self._lock:
            self._aside += 1
        self._grow()

    def step_back(self) -> None:
        """The thread that calls this waits no more."""
        with self._lock:
            self._aside -= 1

    @property
    def _counted(self) -> int:
        """The number of threads that count against the limit."""
        return self._count - min(self._aside, MAX_WAITING_THREADS)

    def _grow(self) -> None:
        """Start a thread, where work waits and there may be one more.

        Raises:
            RuntimeError: the system gives no thread, and there is none that could do the work.
        """
        with self._lock:
            if self._idle >= self._queue.qsize() or self._counted >= self._limit:
                return
            self._count += 1
        try:
            threading.Thread(target=self._work, name="isthmus_worker", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._count -= 1
                if not self._count:
                    raise

    def close(self) -> None:
        """Drop what has not begun; threads end when they have nothing to do."""
        self._closed = True
        while (work := self._next()) is not None:
            work[0].cancel()
        for _ in range(self._count):
            self._queue.put(None)

    def _next(self) -> WorkItem | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            return None

    def _work(self) -> None:
        _own_thread.pool = self
        while (work := self._take()) is not None:
            _run_work(*work)
            del work  # a thread that waits holds on to nothing

    def _take(self) -> WorkItem | None:
        """The next work, once there is some; None where this thread is to end."""
        with self._lock:
            if self._closed or self._counted > self._limit:
                self._count -= 1  # another thread took this one's place while it waited
                return None
            work = self._next()
            if work is not None:
                return work
            self._idle += 1
        work = self._queue.get()
        with self._lock:
            self._idle -= 1
        self._grow()  # what came meanwhile may have been left for this thread
        return work


def _run_work(
    future: "Future[Any]", context: contextvars.Context, function: Callable[[], Any]
) -> None:
    """Call a function and give its future what came of it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = context.run(function)
    except StopIteration as error:
        future.set_exception(_replace_stop_iteration(error))
    except BaseException as error:  # noqa: BLE001 - whoever awaits it is told, whatever it is
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        del future  # what was raised keeps this frame, and must not be kept by it


def _replace_stop_iteration(error: StopIteration) -> RuntimeError:
    """Make the exception for a ``StopIteration``, which a future cannot carry."""
    wrong = RuntimeError("the function raised StopIteration")
    wrong.__cause__ = error
    return wrong


def _ignore_outcome(future: "asyncio.Future[Any]") -> None:
    """Take what a function raised, for which nobody waits any more."""
    if not future.cancelled():
        future.exception()
