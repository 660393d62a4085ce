"""Turns of the event loop: for tests in which something happens that nobody is told of."""

import asyncio
from collections.abc import Callable

__all__ = ["run_turns", "run_until"]


async def run_turns(count: int = 10) -> None:
    """Let everything else go on for a number of turns."""
    for _ in range(count):
        await asyncio.sleep(0)


async def run_until(
    condition: Callable[[], object], seconds: float = 30.0, pause: float = 0.0
) -> None:
    """Let everything else go on until something is so; a test that waits in vain fails.

    Args:
        condition: says whether it is.
        seconds: how long it may take.
        pause: seconds between two looks, where it takes real time.
    """
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(pause)
