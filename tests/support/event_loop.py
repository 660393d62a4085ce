"""Turns of the event loop: for tests in which something happens that nobody is told of."""

import asyncio

__all__ = ["run_turns"]


async def run_turns(count: int = 10) -> None:
    """Let everything else go on for a number of turns."""
    for _ in range(count):
        await asyncio.sleep(0)
