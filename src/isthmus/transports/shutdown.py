"""Shutdown of a server's process: soon, whatever a tool has left running in it."""

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from isthmus.lazy import is_installed

EXIT_GRACE_S = 0.2  # seconds that what is left behind may take to end, once the server itself has


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
    watch = threading.Timer(EXIT_GRACE_S, _exit_process)
    watch.daemon = True
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            runner.run(main)
        watch.start()
    watch.cancel()


STUCK_TIMEOUT_S = 1.5  # seconds within which an event loop must take notice of the end of its input


def exit_with_host(
    input: int, output: int, loop: asyncio.AbstractEventLoop
) -> "asyncio.Future[None]":
    """Let the process end soon after its input or output does, even where the event loop is stuck.

    A tool that blocks the event loop, asleep or at work, keeps the server from seeing that its
    host has gone. A thread sees it: it waits for nothing else, and leaves a loop alone that is
    well.

    Args:
        input: its descriptor, if it is there; stays the caller's.
        output: the same of what the other side reads.
        loop: what should notice the end.

    Returns:
        Done once the other side has hung up, also while nobody reads what it said before, or
        has closed its end of the output.
    """
    hung_up: asyncio.Future[None] = loop.create_future()
    with suppress(OSError, AttributeError):  # closed; or no poll to wait with
        poll = select.poll()
        own = os.dup(input), os.dup(output)
        poll.register(own[0], getattr(select, "POLLRDHUP", 0))  # a hang-up is told in any case
        poll.register(own[1], 0)
        threading.Thread(
            target=_wait_for_hangup, args=(poll, own, loop, hung_up), daemon=True
        ).start()
    return hung_up


def _wait_for_hangup(
    poll: "select.poll",
    own: tuple[int, int],
    loop: asyncio.AbstractEventLoop,
    hung_up: "asyncio.Future[None]",
) -> None:
    poll.poll()
    for fd in own:
        os.close(fd)
    noticed = threading.Event()

    def notice() -> None:
        noticed.set()
        if not hung_up.done():
            hung_up.set_result(None)

    with suppress(RuntimeError):  # the loop has ended: so will the process
        loop.call_soon_threadsafe(notice)
        if not noticed.wait(STUCK_TIMEOUT_S):
            _exit_process()


def choose_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Choose the factory of event loops for many connections: uvloop where it is installed."""
    if not is_installed("uvloop"):
        return None
    import uvloop

    return uvloop.new_event_loop


def _exit_process() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # full, closed, or not there at all
            stream.flush()
    os._exit(0)
