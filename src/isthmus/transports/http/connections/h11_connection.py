"""uvicorn's connection with h11, for where httptools cannot be had, in the same sweep as our own."""

import asyncio
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from isthmus.transports.http.connections.server_context import HEAD_TIMEOUT_TICKS, find_context

if TYPE_CHECKING:
    from uvicorn.config import Config


class H11Connection(H11Protocol):
    """A connection whose parser is h11, which has a bound and ignores upgrades by itself.

    Attributes:
        head_limit: the most bytes of a request's head, its first line included; beyond it there is
            400.
        target_limit: of no account here.
    """

    head_limit = 32 * 1024
    target_limit = 8 * 1024

    def __init__(self, config: "Config", *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self.conn = h11.Connection(h11.SERVER, self.head_limit)
        self._context = find_context(self.server_state, self.loop)
        self._since = self._context.tick

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._context.watch()

    def look(self, tick: int) -> None:
        """Close where the head of a request does not come; uvicorn closes those between two."""
        request: Any = self.cycle  # None before the first request, whatever its type says
        if (request is not None and not request.response_complete) or self.timeout_keep_alive_task:
            self._since = tick
        elif tick - self._since > HEAD_TIMEOUT_TICKS:
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: RFC 9110 7.8 lets a server ignore an upgrade, and many clients offer one."""
