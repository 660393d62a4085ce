"""Drives a connection of ours in process: bytes in, bytes out, and every write counted."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from isthmus.transports.http.connections.http_connection import HttpConnection

__all__ = ["MemoryTransport", "Wire", "make_config"]


class MemoryTransport(asyncio.Transport):
    """A transport of which a test is the other end.

    Attributes:
        writes: what was written, one by one.
        closing: it was closed.
        reading: what comes in is delivered.
    """

    def __init__(self, extra: dict[str, Any] | None = None) -> None:
        super().__init__({"peername": ("127.0.0.1", 5000), "sockname": ("127.0.0.1", 8000)})
        self._extra.update(extra or {})  # type: ignore[attr-defined]
        self.writes: list[bytes] = []
        self.closing = False
        self.reading = True
        self.protocol: Any = None
        self.news = asyncio.Event()

    def write(self, data: Any) -> None:
        """Keep it."""
        assert not self.closing, "written to after it was closed"
        self.writes.append(bytes(data))
        self.news.set()

    def get_write_buffer_size(self) -> int:
        """All of it has left."""
        return 0

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.closing

    def close(self) -> None:
        """Tell the protocol soon, as a real one does."""
        if not self.closing:
            self.closing = True
            self.news.set()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """Deliver nothing."""
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        """Deliver again."""
        assert not self.reading
        self.reading = True
        self.news.set()

    def set_protocol(self, protocol: Any) -> None:
        """Another one takes over."""
        self.protocol = protocol


def make_config(app: Any, **settings: Any) -> uvicorn.Config:
    """Uvicorn's settings, as ``serve`` has them."""
    config = uvicorn.Config(
        app,
        **{
            "log_config": None,
            "lifespan": "off",
            "ws": "none",
            "proxy_headers": False,
            "access_log": False,
            "http": HttpConnection,
            **settings,
        },
    )
    config.load()
    return config


class Wire:
    """One connection to an app, and what was written on it.

    Args:
        config: uvicorn's settings.
        kind: the class of the connection.
        state: the server's state, where other connections have it, too.
        extra: what else the transport knows.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        kind: Any = HttpConnection,
        state: ServerState | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.state = state or ServerState()
        self.state.default_headers = [(b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")]
        self.transport = MemoryTransport(extra)
        self.connection = kind(config, self.state, {}, asyncio.get_running_loop())
        self.transport.protocol = self.connection
        self.connection.connection_made(self.transport)

    async def send(self, *pieces: bytes) -> None:
        """Deliver pieces, each when the connection reads."""
        for piece in pieces:
            while not self.transport.reading and not self.transport.closing:
                self.transport.news.clear()
                await self.transport.news.wait()
            if self.transport.closing:
                return
            self.transport.protocol.data_received(piece)

    async def idle(self) -> None:
        """Wait until nothing that was asked is being served."""
        while self.state.tasks:
            await asyncio.wait(self.state.tasks)
            await asyncio.sleep(0)

    @property
    def said(self) -> bytes:
        """All that was written."""
        return b"".join(self.transport.writes)

    def take(self) -> list[bytes]:
        """What was written since the last time."""
        writes, self.transport.writes = self.transport.writes, []
        return writes

    def close(self) -> None:
        """The client leaves."""
        self.transport.close()
