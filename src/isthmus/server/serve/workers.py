"""Worker threads for synchronous functions, so that they do not hold up the event loop.

The pool is made when the first such function is called, and kept; its threads are made when there
is work for them, and end when there has been none for a while. A thread that waits for the
event loop in ``ctx.wait``, for the answer to a question perhaps, does not count: another one takes
its place. A thread cannot be stopped from outside: a function that may take long looks at
``ctx.cancelled`` now and then, and counts until it returns, even where nobody waits for it.
"""

import asyncio
import itertools
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextvars import Context, copy_context
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
        thread = threading.current_thread()
        pool = thread.pool if isinstance(thread, WorkerThread) else None
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
        limit: the most functions that run at once; None sets no limit.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._pool: WorkerPool | None = None
        self._results: ThreadResults | None = None
        self.limit_threads(limit)

    def limit_threads(self, limit: int | None) -> None:
        """Set the limit of the pool that is made next."""
        self._limit = limit or sys.maxsize

    async def run(self, function: Callable[[], T], leave: CallCancellation | None = None) -> T:
        """Call ``function`` in a thread, with the context variables of here and now.

        Args:
            function: what to call.
            leave: what to give the function when this is cancelled.

        Raises:
            RuntimeError: the system gives no thread, and there is none that could do the work.
            Exception: whatever the function raised.
        """
        loop = asyncio.get_running_loop()
        results = self._results
        if results is None or results.loop is not loop:
            results = self._results = ThreadResults(loop)
        pool = self._pool
        if pool is None:
            pool = self._pool = WorkerPool(self._limit)
        future: asyncio.Future[T] = loop.create_future()
        job = Job(function, copy_context(), future, results)
        try:
            pool.submit(job)
            return await future
        except asyncio.CancelledError:
            if not pool.withdraw(job) and leave is not None:
                leave.cancel()
                if leave.wait:
                    await job.wait_ended()
            raise
        finally:
            del job, future  # which keep what is raised, and so would this frame

    def close(self) -> None:
        """Start nothing more; threads that run go on until their functions return."""
        if self._pool is not None:
            self._pool.close()
            self._pool = self._results = None


class Job:
    """One call of a function in a thread.

    Args:
        function: what to call.
        context: the context variables to call it with.
        future: gets what the function returns or raises.
        results: carries it to the event loop.
    """

    __slots__ = ("_context", "_error", "_function", "_future", "_results", "_value")

    def __init__(
        self,
        function: Callable[[], Any],
        context: Context,
        future: "asyncio.Future[Any]",
        results: "ThreadResults",
    ) -> None:
        self._function: Callable[[], Any] | None = function
        self._context = context
        self._future: asyncio.Future[Any] | None = future
        self._results = results
        self._value: Any = None
        self._error: BaseException | None = None

    def call(self) -> None:
        """Call the function, in a thread; :meth:`report` says what came of it."""
        function, self._function = self._function, None
        try:
            self._value = None if function is None else self._context.run(function)
        except StopIteration as error:
            self._error = _replace_stop_iteration(error)
        except BaseException as error:  # noqa: BLE001 - whoever awaits it is told, whatever it is
            self._error = error

    def report(self) -> None:
        """Hand what came of it to the event loop; callable from any thread."""
        self._results.put(self)

    def drop(self) -> None:
        """End as if the call had been cancelled, instead of ever beginning."""
        self._error = asyncio.CancelledError()
        self.report()

    def settle(self) -> None:
        """Give the future what came of it, in the event loop."""
        # What was raised keeps the frames of this job, and must not be kept by it.
        future, self._future = self._future, None
        error, self._error = self._error, None
        value, self._value = self._value, None
        if future is None or future.done():
            return  # it was cancelled, and nobody waits any more
        if error is None:
            future.set_result(value)
        elif isinstance(error, asyncio.CancelledError):
            future.cancel()
        else:
            future.set_exception(error)
        del future, error

    async def wait_ended(self) -> None:
        """Wait until the function has returned, though its call was cancelled."""
        if self._future is not None:
            self._future = ended = self._results.loop.create_future()
            await asyncio.wait([ended])
            _ = ended.cancelled() or ended.exception()  # nobody else looks at it


class ThreadResults:
    """Results of threads on their way to one event loop, which is woken once for many of them.

    Args:
        loop: the event loop.
    """

    __slots__ = ("_ended", "_woken", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ended: deque[Job] = deque()
        self._woken = False  # it will look into the queue, and has not begun to

    def put(self, job: Job) -> None:
        """Hand over a job that has ended; callable from any thread."""
        self._ended.append(job)
        if self._woken:
            return
        self._woken = True
        try:
            self.loop.call_soon_threadsafe(self._settle_all)
        except RuntimeError:  # the loop is closed, and nobody waits for anything there
            self._ended.clear()

    def _settle_all(self) -> None:
        self._woken = False  # before looking: what is put from now on wakes the loop again
        while self._ended:
            self._ended.popleft().settle()


MAX_WAITING_THREADS = 1_000  # for the event loop; more of them count like others

IDLE_TIMEOUT_S = 30.0  # after which a thread without work ends


class WorkerPool:
    """Threads that take work as it comes, and that no process waits for when it ends.

    That is what sets it apart from ``concurrent.futures``, whose threads keep a server that was
    told to stop alive for as long as a function in one of them runs.

    Threads are woken and made one at a time, each by the one before it when that takes its job. So
    one thread calls all the functions that return at once, and the event loop makes no thread
    but the first.

    Args:
        limit: the most functions that run at once; those that wait for the loop do not count.
        idle_timeout: seconds after which a thread without work ends.

    Attributes:
        idle_timeout: the same.
    """

    def __init__(self, limit: int, idle_timeout: float = IDLE_TIMEOUT_S) -> None:
        self.idle_timeout = idle_timeout
        self._limit = limit
        self._lock = threading.Lock()
        self._backlog: OrderedDict[Job, None] = OrderedDict()  # what no thread has begun
        self._count = 0  # threads there are
        self._aside = 0  # of these, those that wait for the event loop
        self._idle: list[WorkerThread] = []  # of these, those without work
        self._waking = False  # one was woken or made, and has not looked for work yet
        self._numbers = itertools.count(1)
        self._closed = False

    def submit(self, job: Job) -> None:
        """Have a job done by the next thread that is free.

        Raises:
            RuntimeError: the system gives no thread, and there is none that could do the work.
        """
        with self._lock:
            self._backlog[job] = None
            lacks = self._wake_thread()
        if lacks:
            try:
                self._start_thread()
            except RuntimeError:
                self.withdraw(job)
                raise

    def withdraw(self, job: Job) -> bool:
        """Let go of a job that has not begun; False where it has."""
        with self._lock:
            if job not in self._backlog:
                return False
            del self._backlog[job]
            return True

    def step_aside(self) -> None:
        """The thread that calls this waits from now on, and another one may work for it."""
        with self._lock:
            self._aside += 1
            lacks = self._wake_thread()
        if lacks:
            self._start_thread()

    def step_back(self) -> None:
        """The thread that calls this waits no more."""
        with self._lock:
            self._aside -= 1

    def take(self, thread: "WorkerThread", *, woken: bool = False) -> Job | None:
        """The next job of a thread; without one it is idle from now on, or over.

        Args:
            thread: which one.
            woken: it was woken, or made, to look for work.
        """
        with self._lock:
            if woken:
                self._waking = False
            if self._backlog and self._at_work <= self._limit:  # this thread among them
                job, _ = self._backlog.popitem(last=False)
                lacks = self._wake_thread()
            else:
                job, lacks = None, False
                # There are more where others have taken the place of those that waited.
                thread.over = self._closed or self._counted > self._limit
                if thread.over:
                    self._count -= 1
                else:
                    self._idle.append(thread)
        if lacks:
            self._start_thread()
        return job

    def retire(self, thread: "WorkerThread") -> bool:
        """Let an idle thread end; False where it was woken just now."""
        with self._lock:
            if thread not in self._idle:
                return False
            self._idle.remove(thread)
            self._count -= 1
            return True

    def close(self) -> None:
        """Drop what has not begun; threads end when they have nothing to do."""
        with self._lock:
            self._closed = True
            dropped, idle = list(self._backlog), self._idle[:]
            self._backlog.clear()
            self._idle.clear()
        for job in dropped:
            job.drop()
        for thread in idle:
            thread.wake()

    @property
    def _counted(self) -> int:
        """The number of threads that count against the limit, the idle ones among them."""
        return self._count - min(self._aside, MAX_WAITING_THREADS)

    @property
    def _at_work(self) -> int:
        return self._counted - len(self._idle)

    def _wake_thread(self) -> bool:
        """Wake a thread if there is work for it; whether one lacks, which is counted already."""
        if self._waking or not self._backlog or self._at_work >= self._limit:
            return False
        self._waking = True
        if self._idle:
            self._idle.pop().wake()
            return False
        self._count += 1
        return True

    def _start_thread(self) -> None:
        """Start a thread that is counted already.

        Raises:
            RuntimeError: the system gives none, and there is none that could do the work.
        """
        try:
            WorkerThread(self, f"isthmus_worker_{next(self._numbers)}").start()
        except RuntimeError:
            with self._lock:
                self._waking = False
                self._count -= 1
                if not self._count:
                    raise


class WorkerThread(threading.Thread):
    """One thread of a pool.

    Args:
        pool: gives it work.
        name: what debuggers call it.

    Attributes:
        pool: the same.
        over: it is counted no more, and ends.
    """

    def __init__(self, pool: WorkerPool, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.pool = pool
        self.over = False
        self._bell = threading.Lock()  # released, it wakes the thread
        self._bell.acquire()

    def run(self) -> None:
        """Do one job after the other."""
        job = self.pool.take(self, woken=True)
        while True:
            while job is not None:
                job.call()
                ended, job = job, self.pool.take(self)
                # Only now: who hears of it and has more work finds this thread idle.
                ended.report()
                del ended  # a thread that waits holds on to nothing
            if self.over or not self._wait():
                return
            job = self.pool.take(self, woken=True)

    def wake(self) -> None:
        """Have the thread look for work, once it is idle."""
        self._bell.release()

    def _wait(self) -> bool:
        """Wait to be woken; False where that took so long that the thread is to end."""
        if self._bell.acquire(timeout=self.pool.idle_timeout):
            return True
        if self.pool.retire(self):
            return False
        return self._bell.acquire()  # it is being woken this moment


def _replace_stop_iteration(error: StopIteration) -> RuntimeError:
    """Make the exception for a ``StopIteration``, which a future cannot carry."""
    wrong = RuntimeError("the function raised StopIteration")
    wrong.__cause__ = error
    return wrong
