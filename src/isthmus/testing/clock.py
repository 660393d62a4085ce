"""Virtual time: it passes only when nothing else can happen, so that tests of timeouts never wait.

On a :class:`VirtualLoop` the clock stands still while there is work; when every task waits, it
jumps to the next timer. An hour of timeouts takes a millisecond, and always the same one.
Meant for tests in memory: while real sockets or processes are awaited, time does not pass.
"""

import asyncio
import selectors
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer whenever it would have to wait."""

    def __init__(self) -> None:
        super().__init__(JumpingSelector(self))
        self.now = 0.0

    def time(self) -> float:
        """Seconds since the loop was made, none of them real."""
        return self.now


class JumpingSelector(selectors.DefaultSelector):
    """A selector that, asked to wait, looks once and moves the clock instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        """The files that are ready now; the clock moves by ``timeout`` if there are none."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self._loop.now += timeout
        return ready
