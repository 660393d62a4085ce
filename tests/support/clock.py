"""Clocks of tests: one that a test sets, for every ``clock=`` of a class, and a loop whose time does not wait."""

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from isthmus.testing import VirtualLoop

__all__ = ["ManualClock", "run_in_virtual_time", "stretch_limit"]

P = ParamSpec("P")


def run_in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a loop whose time passes when nothing else can happen.

    Only for what stays in memory and on the loop: while a thread or a socket is waited for, time jumps.
    """

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def stretch_limit(seconds: float) -> float:
    """What a limit on the time of a process becomes where each core is shared by several."""
    if not hasattr(os, "getloadavg"):  # Windows
        return seconds
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class ManualClock:
    """Seconds that pass when a test says so; :class:`isthmus.testing.VirtualLoop` moves a whole loop.

    Args:
        now: the time at first.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
