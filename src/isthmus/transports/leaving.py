"""The end of a server's process: soon, whatever a tool has left running in it."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

__all__ = ["event_loops", "run_to_end"]

PATIENCE = 0.2
"""Seconds that what is left behind may take to end, once the server itself has."""


def run_to_end(
    main: Coroutine[Any, Any, None],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Run a server as ``asyncio.run`` would, but let nothing keep the process when it has ended.

    A tool that swallows its cancellation, or waits for a thread that runs on, would have the event
    loop wait for ever: then the process exits here, with status 0, for it did as it was told.

    Args:
        main: the server; it has ended well when it returns, and when it was told to stop.
        loop_factory: makes the event loop.

    Raises:
        Exception: whatever ``main`` raised.
    """
    watch = threading.Timer(PATIENCE, _leave)
    watch.daemon = True
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            runner.run(main)
        watch.start()
    watch.cancel()


def event_loops() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes event loops for many connections: uvloop where it is installed."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def _leave() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # full, closed, or not there at all
            stream.flush()
    os._exit(0)
