"""Middleware that keeps connections open, under the name of ``fastmcp.server.middleware.ping``."""

from typing import Any

from isthmus.compat.fastmcp.server.middleware.middleware import Middleware


class PingMiddleware(Middleware):
    """Ping every client now and then: isthmus' own pings, which a client that is gone ends.

    Args:
        interval_ms: milliseconds between two pings.

    Raises:
        ValueError: that is no time.
    """

    def __init__(self, interval_ms: int = 30000) -> None:
        if interval_ms <= 0:
            raise ValueError("interval_ms must be positive")
        self.interval_ms = interval_ms

    def prepare_server(self, server: Any) -> None:
        """Have isthmus' server ping."""
        server.configure(ping_every=self.interval_ms / 1000)
