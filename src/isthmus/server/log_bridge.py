"""What a program says with ``logging``, for the client on whose behalf it says it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.server.features.logging import Log
    from isthmus.wire import LogLevel

__all__ = ["captured"]

OWN = "isthmus"
"""Our own logger: what it says is for whoever runs the server."""

LEVELS: "tuple[tuple[int, LogLevel], ...]" = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO + 5, "notice"),
    (logging.INFO, "info"),
    (0, "debug"),
)

_on: ContextVar["frozenset[Bridge]"] = ContextVar("isthmus_log_bridges", default=frozenset())
"""The bridges of the call that is being served here."""


class Bridge(logging.Handler):
    """Sends the records of one call to its client.

    Args:
        log: where to.
        level: the least level to send.
    """

    def __init__(self, log: "Log", level: int) -> None:
        super().__init__(level)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, unless it is another call's or our own."""
        if self not in _on.get() or record.name.partition(".")[0] == OWN:
            return
        level = next(name for least, name in LEVELS if record.levelno >= least)
        try:
            self._log.named(record.name)(level, record.getMessage())
        except Exception:  # noqa: BLE001 - as every handler does: a log must not break what it logs
            self.handleError(record)


@contextmanager
def captured(log: "Log", logger: str, level: int) -> Iterator[None]:
    """Send what is logged in this context; see ``Log.capture``."""
    bridge, source = Bridge(log, level), logging.getLogger(logger or None)
    token = _on.set(_on.get() | {bridge})
    source.addHandler(bridge)
    try:
        yield
    finally:
        source.removeHandler(bridge)
        _on.reset(token)
