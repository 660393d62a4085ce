"""Signals of the operating system, handled on the event loop as long as something lasts."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

__all__ = ["handle_signals", "set_on_signals"]

ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
"""The signals that end a command in order; not every system has all of them."""


@contextmanager
def set_on_signals() -> Iterator[asyncio.Event]:
    """An event that is set when a signal wants this process to end."""
    end = asyncio.Event()
    with handle_signals(dict.fromkeys(ENDING, end.set)):
        yield end


@contextmanager
def handle_signals(handlers: Mapping[str, Callable[[], None]]) -> Iterator[None]:
    """Handle signals, where this system has them and its event loop can."""
    loop = asyncio.get_running_loop()
    handled = []
    for name, handler in handlers.items():
        number = getattr(signal, name, None)
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not everywhere
            if number is not None:
                loop.add_signal_handler(number, handler)
                handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
