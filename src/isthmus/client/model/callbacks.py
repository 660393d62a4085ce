"""Callbacks of a program: called in order, with a bounded queue for each."""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from isthmus.runtime.failures import log_failure, log_warning

StartWork = Callable[[Coroutine[Any, Any, None]], object]


async def maybe_await(value: Any) -> Any:
    """Await what a handler gave, where it is awaitable."""
    return await value if hasattr(value, "__await__") else value


class CallbackQueue:
    """Tells a callback of one thing after the other.

    A plain function is called at once. An async one runs beside the conversation; what comes
    while it is busy waits, up to a bound, and is told in order.

    Args:
        told: the callback.
        start: runs a coroutine beside the conversation.
        waiting: how many may wait; the oldest make room.
        once: what waits already is not added again.
    """

    __slots__ = ("_busy", "_once", "_start", "_told", "_waiting", "dropped")

    def __init__(
        self,
        told: Callable[[Any], Awaitable[None] | None],
        start: StartWork,
        *,
        waiting: int = 1000,
        once: bool = False,
    ) -> None:
        self.dropped = 0
        self._told = told
        self._start = start
        self._waiting: deque[Any] = deque(maxlen=waiting)
        self._once = once
        self._busy = False

    def __call__(self, what: object) -> None:
        """Tell the callback of something."""
        if self._busy:
            self._keep(what)
            return
        done = self._told(what)
        if done is not None and hasattr(done, "__await__"):
            self._busy = True
            self._start(self._go_on(done))

    def _keep(self, what: object) -> None:
        waiting = self._waiting
        if self._once and what in waiting:
            return
        if len(waiting) == waiting.maxlen:
            if not self.dropped:
                log_warning(
                    "%r is too slow: what waits for it beyond %d is dropped",
                    self._told,
                    len(waiting),
                )
            self.dropped += 1
        waiting.append(what)

    async def _go_on(self, first: Awaitable[None]) -> None:
        """Wait for the callback, and tell it what came meanwhile."""
        done: Any = first
        try:
            while True:
                try:
                    await maybe_await(done)
                    done = self._told(self._waiting.popleft()) if self._waiting else None
                except Exception as error:  # noqa: BLE001 - a listener's bug must not silence it
                    done = None
                    log_failure(repr(self._told), error)
                if done is None and not self._waiting:
                    return
        finally:
            self._busy = False


def only_increasing(told: Callable[[Any], None]) -> Callable[[Any], None]:
    """Tell of progress only where it is progress.

    Args:
        told: is told of those notifications that go beyond the one before.
    """
    furthest: list[float] = []

    def progressed(params: Any) -> None:
        # spec 2026-07-28 basic/patterns/progress: the value MUST increase with each notification
        if furthest and not params.progress > furthest[0]:
            return
        furthest[:] = (params.progress,)
        told(params)

    return progressed
