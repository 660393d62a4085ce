"""uvicorn's WebSocket connections with a bound on pongs that are not read."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from isthmus.transports.pipes import MAX_UNREAD_BYTES

__all__ = ["SocketConnection"]


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket that reads no further pings while the pongs to those before are not read.

    uvicorn answers each ping at once, whatever waits to be written already. Messages have their own
    bound, above this.
    """

    def handle_ping(self) -> None:
        """Answer a ping; after too many answers that nobody has read, read no further."""
        super().handle_ping()
        if not self.read_paused and self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.read_paused = True
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self.transport.resume_reading()
