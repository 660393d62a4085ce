"""Deadline of a call: the seconds that a tool may take (``timeout=``), without those in which its user thinks."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CALL_DEADLINE: "ContextVar[CallDeadline | None]" = ContextVar("isthmus_call_deadline", default=None)


class CallDeadline:
    """The deadline of one call, which stands still while a question of it is open.

    Args:
        timeout: the timer, which has been entered.
    """

    __slots__ = ("_left", "_open", "_timeout")

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._open = 0
        self._left = 0.0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Stand still until the block is left; several questions may be open at once."""
        loop, when = asyncio.get_running_loop(), self._timeout.when()
        if not self._open and when is not None and not self._timeout.expired():
            self._left = when - loop.time()
            self._timeout.reschedule(None)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open and not self._timeout.expired() and self._timeout.when() is None:
                self._timeout.reschedule(loop.time() + self._left)
