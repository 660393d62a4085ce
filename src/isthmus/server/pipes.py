"""Serving the host that launched this process, over standard input and output."""

import asyncio
import gc
import signal
import sys
from typing import TYPE_CHECKING

from isthmus.runtime.peer import Peer

if TYPE_CHECKING:
    from isthmus.server.server import Server

__all__ = ["THRESHOLDS", "run_pipes", "serve_pipes", "stop_on_signals"]

THRESHOLDS = (50_000, 50, 100)
"""A request leaves no garbage cycles, so the collector may look for them rarely."""


def run_pipes(server: "Server") -> None:
    """As :func:`serve_pipes`, from synchronous code; returns soon after the host hung up."""
    from isthmus.transports.leaving import run_to_end

    run_to_end(serve_pipes(server))


async def serve_pipes(server: "Server") -> None:
    """Serve over standard input and output until the host hangs up, or until told to stop."""
    from isthmus.transports.leaving import leave_with
    from isthmus.transports.stdio import StdioChannel

    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            f"{server.info.name} serves the program that started it, on standard input and output "
            "(Ctrl-C to stop)\n"
        )
    hung_up = leave_with(0, 1, asyncio.get_running_loop())  # before the channel claims it
    channel = StdioChannel()
    hung_up.add_done_callback(lambda _: channel.hang_up())
    stop_on_signals(asyncio.current_task())
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        await server.open()
        await Peer(channel, server.router, side="server").run()
    except asyncio.CancelledError:
        pass  # told to stop: that is what ends a server
    finally:
        await channel.close()
        await server.close()


def stop_on_signals(task: "asyncio.Task[None] | None") -> None:
    """Cancel a task when this process is told to stop; SIGTERM and SIGINT are the same to it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, task.cancel if task else loop.stop)
        except (NotImplementedError, RuntimeError):
            return  # Windows, or not the main thread: the default will do
