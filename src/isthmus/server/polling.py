"""Calls that take long: their clients need not hold a connection open for them."""

from isthmus.runtime.inbound import Inbound
from isthmus.server.notes import Notes

__all__ = ["Polling"]


class Polling:
    """The part of a context that is about the connection its client waits on."""

    __slots__ = ()

    _inbound: Inbound
    _notes: Notes

    async def close_stream(self, *, retry: float | None = None) -> None:
        """Let go of the connection that the client waits on; the call goes on.

        Over Streamable HTTP in revision 2025-11-25 the client comes back for the rest, answer
        included, as soon as ``retry`` has passed, and waits again. Everywhere else nothing
        happens, so that a tool can say this wherever a long wait begins.

        Args:
            retry: seconds the client is asked to wait until it comes back; None for the
                endpoint's own setting.
        """
        if self._notes.busy:
            await self._notes.drain()
        # spec 2025-11-25 basic/transports#sending-messages-to-the-server: MAY close the connection
        # at any time, without terminating the stream
        let_go = getattr(self._inbound.link, "let_go", None)  # a task's link has no connection
        if let_go is not None:
            await let_go(self._inbound.id, retry)
