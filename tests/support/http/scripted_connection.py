"""A client's HTTP connection without a socket, for whoever says what arrives on it, and in which pieces."""

import asyncio

from isthmus.errors import ConnectionLost
from isthmus.transports.http.client.connection import HttpConnection, MalformedResponse

__all__ = ["ScriptedConnection"]


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and tells whether it would be read."""

    def __init__(self):
        super().__init__()
        self.written, self.reading, self.closed = [], True, False

    def write(self, data):
        self.written.append(bytes(data))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def abort(self):
        self.closed = True

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class ScriptedConnection:
    """A client's connection without a socket: bytes are put in by hand.

    Attributes:
        wire: what is beneath it.
        kept: it, as often as it was given back for another request.
        ended: it, once it has ended.
    """

    def __init__(self):
        self.kept, self.ended = [], []
        self.wire = Wire()
        loop = asyncio.get_running_loop()
        self.connection = HttpConnection(loop, self.kept.append, self.ended.append)
        self.connection.connection_made(self.wire)

    async def ask(self, *pieces, method="GET", eof=False):
        """Send a request, and what comes back in these pieces: status, headers and body, or why not."""
        asking = asyncio.create_task(
            self.connection.exchange(method, "http://a/", b"GET / HTTP/1.1\r\n", None)
        )
        await asyncio.sleep(0)
        for piece in pieces:
            self.connection.data_received(piece)
        if eof:
            self.connection.connection_lost(None)
        try:
            response = await asking
            return response.status, dict(response.headers), await response.read(10**9)
        except (OSError, MalformedResponse, ConnectionLost) as error:
            return type(error).__name__, str(error)
