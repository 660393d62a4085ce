"""One HTTP request on a connection of ours, its body as it comes and its response as it goes."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.transports.http.connections.server_context import CONNECTION_CLOSE, WireRequest
from isthmus.transports.http.reply import DONE, JSON_TYPE, NO_LENGTH, Header, Scope
from isthmus.transports.http.request import Exchange

if TYPE_CHECKING:
    from isthmus.transports.http.connections.http_connection import HttpConnection

# How the end of a response's body is told, where that is not by so many bytes that are to come
CHUNKED, UNTIL_CLOSE, NO_BODY = -1, -2, -3

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ConnectionExchange(Exchange):
    """One HTTP request and its response on a connection of ours.

    Args:
        connection: the connection.
        request: what its head says.
        body: its body, where that is there as a whole.

    Attributes:
        keeps_alive: the connection may go on after it.
        is_gone: the client has left: what is sent is dropped.
        has_begun: its response has.
        is_complete: its response is.
        size: the bytes of its body that are there and not read yet.
    """

    # Most requests need only few of these: what they do not set costs them nothing.
    is_gone = False
    has_begun = False
    is_complete = False
    size = 0
    _body: bytes | None = None
    _head = b""
    _framing = CHUNKED
    _is_continued = False
    _is_unwanted = False
    _change: asyncio.Event | None = None
    _on_left: Callable[[], None] | None = None

    def __init__(
        self, connection: "HttpConnection", request: WireRequest, body: bytes | None = None
    ) -> None:
        self.request: WireRequest = request
        self.loop = connection.loop
        self.client = connection.client
        self.keeps_alive = request.keeps_alive
        self._connection = connection
        if body is not None:
            self._body = body
            self.is_open = False

    # The body

    def put(self, part: bytes) -> None:
        """A part of the body has come."""
        if self._is_unwanted:
            return
        if self.size == 0:
            self._parts = deque((part,))
        else:
            self._parts.append(part)
        self.size += len(part)
        self._is_continued = True
        self._note_change()

    def end(self) -> None:
        """The body has come to its end."""
        self.is_open = False
        self._note_change()

    def _note_change(self) -> None:
        if self._change is not None:
            self._change.set()

    async def _wait_for_change(self) -> None:
        if self._change is None:
            self._change = asyncio.Event()  # several may wait, and any of them may give up
        self._change.clear()
        await self._change.wait()

    def take_body(self, limit: int) -> bytes | None:
        """The body where it is there as a whole and within a limit of bytes; else None."""
        if self.is_open or self.is_gone:
            return None  # of a client that has left, it may be the first part only
        body = self._body
        if body is None:
            if self.size > limit:
                return None
            body = self._take_parts()
        elif len(body) > limit:
            return None
        self.is_unread = False
        return body

    def _take_parts(self) -> bytes:
        """All of the body that has come and was not read yet."""
        if self._body is not None:
            body, self._body = self._body, None
            return body
        if self.size == 0:
            return b""
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        self._connection.update_reading()
        return body

    def drop_body(self) -> None:
        """Keep nothing of the body: what there is and what comes is read and dropped."""
        self._is_unwanted = True
        self._parts, self.size = deque[bytes](), 0
        self._connection.update_reading()

    async def read_part(self) -> bytes | None:
        """Wait for the next part of the body; None where the client has left, or has its response."""
        if self.is_open and self.request.expects_continue and not self._is_continued:
            # RFC 9110 10.1.1: 100 (Continue) where the body is wanted, unless some of it is there
            self._is_continued = True
            if not (self.has_begun or self.is_gone):
                self._connection.transport.write(CONTINUE)
        while self.is_open and self.size == 0 and not (self.is_gone or self.is_complete):
            await self._wait_for_change()
        return None if self.is_gone or self.is_complete else self._take_parts()

    # A client that leaves

    def leave(self) -> None:
        """The connection is lost."""
        self.is_gone = True
        self.is_open = False
        self._note_change()
        on_left, self._on_left = self._on_left, None
        if on_left is not None:
            on_left()

    def watch(self, on_left: Callable[[], None]) -> None:
        """Have ``on_left`` called when the client leaves; its request is read to the end."""
        if self.is_gone:
            self.loop.call_soon(on_left)
        else:
            self._on_left = on_left

    def unwatch(self) -> None:
        """Call nobody any more."""
        self._on_left = None

    async def wait_until_left(self) -> None:
        """Wait until the client leaves, or has its response."""
        while not (self.is_gone or self.is_complete):
            self.drop_body()  # a connection that is not read from does not tell when it is closed
            await self._wait_for_change()

    # The response

    @property
    def is_unsent(self) -> bool:
        """Whether nothing of it was written yet."""
        return not self.has_begun or bool(self._head)

    def send_whole(self, status: int, body: bytes, extra: Sequence[Header] = ()) -> Awaitable[Any]:
        """Send a whole response: JSON, or nothing."""
        connection = self._connection
        if self.is_gone:
            return DONE
        if self.is_open:
            self.keeps_alive = False  # what else its body brings is read and dropped, then all ends
        if not (status == 200 and body and self.keeps_alive) or extra or connection.logs_access:
            self._send_unusual(status, body, extra)
        elif self.has_begun:
            raise RuntimeError("a response was begun twice")
        else:
            self.has_begun = True
            context = connection.context
            if context.rendered is not context.state.default_headers:
                context.render()
            head = context.json_head
            connection.transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
            connection.finish(self)
        return DONE

    def _send_unusual(self, status: int, body: bytes, extra: Sequence[Header]) -> None:
        """As :meth:`send_whole`, for what has other headers than most."""
        # RFC 9110 8.6: a server MUST NOT send Content-Length in a response with status 204
        headers: tuple[Header, ...] = () if status == 204 else (NO_LENGTH,)
        if body:
            headers = (JSON_TYPE, (b"content-length", b"%d" % len(body)))
        self.start(status, (*headers, *extra))
        self.write(body, more=False)

    def send_text(self, status: int, text: str) -> None:
        """Send a whole response in plain text, and end the connection."""
        body = text.encode()
        self.start(
            status,
            (
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", b"%d" % len(body)),
                CONNECTION_CLOSE,
            ),
        )
        self.write(body, more=False)

    def send_part(
        self, chunk: bytes, headers: Sequence[Header] | None, *, more: bool
    ) -> Awaitable[Any]:
        """Send a part of an event stream."""
        if headers is not None:
            self.start(200, headers)
        if self._connection.is_full:
            return self._write_later(chunk, more=more)
        self.write(chunk, more=more)
        return DONE

    async def _write_later(self, chunk: bytes, *, more: bool) -> None:
        await self._connection.wait_for_room()
        self.write(chunk, more=more)

    def start(self, status: int, headers: Sequence[Header]) -> None:
        """Begin a response; its head is sent with the first part of its body.

        Raises:
            RuntimeError: it has begun already, or a header is invalid.
        """
        if self.has_begun:
            raise RuntimeError("a response was begun twice")
        added, framing, closes = self._find_framing(status, headers)
        if closes:
            self.keeps_alive = False
        elif not self.keeps_alive:
            added = (*added, CONNECTION_CLOSE)
        self._head = self._connection.context.render_head(status, (*headers, *added))
        self._framing = framing
        self.has_begun = True
        if self._connection.logs_access:
            self._connection.log_access(self, status)

    def _find_framing(
        self, status: int, headers: Sequence[Header]
    ) -> tuple[tuple[Header, ...], int, bool]:
        """What is added to the headers of a response, how its body ends, and whether it closes."""
        length, chunked, closes = None, False, False
        for name, value in headers:
            if name == b"content-length" and length is None and not chunked:
                length = int(value)
            elif name == b"transfer-encoding" and value.lower() == b"chunked":
                chunked = True
            elif name == b"connection":
                options = (option.strip().lower() for option in value.split(b","))
                closes = closes or b"close" in options
        if self.request.method == "HEAD" or status in {204, 304}:
            return (), NO_BODY, closes
        if chunked:
            return (), CHUNKED, closes
        if length is not None:
            return (), length, closes
        if self.request.version == "1.0":
            # RFC 9112 6.1: a server MUST NOT send chunks to a client of HTTP/1.0
            self.keeps_alive = False
            return (), UNTIL_CLOSE, closes
        return ((b"transfer-encoding", b"chunked"),), CHUNKED, closes

    def write(self, data: bytes, *, more: bool) -> None:
        """Write a part of the body, and the head before the first.

        Raises:
            RuntimeError: the body has another length than was announced.
        """
        if self.is_complete or self.is_gone:
            return
        framing = self._framing
        if framing == CHUNKED:
            data = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            data = data if more else data + b"0\r\n\r\n"
        elif framing == NO_BODY:
            data = b""
        elif framing >= 0:
            self._framing = framing = framing - len(data)
            if framing < 0 or (framing and not more):
                raise RuntimeError("a response's body is not as long as its Content-Length")
        if self._head:
            data, self._head = self._head + data, b""
        if data:
            self._connection.transport.write(data)
        if not more:
            self._connection.finish(self)
            self._note_change()

    # As an ASGI server would have it

    @property
    def scope(self) -> Scope:
        """The same as an ASGI scope."""
        return self._connection.make_scope(self.request)

    async def serve_asgi(self, app: Any) -> None:
        """Leave it to an ASGI app."""
        await app(self.scope, self.receive_asgi, self.send_asgi)
        if not (self.is_complete or self.is_gone):
            raise RuntimeError("an ASGI app returned before its response was complete")

    async def receive_asgi(self) -> dict[str, Any]:
        """The ASGI callable that gives the body, then the disconnect."""
        if self.is_unread and not self.is_complete:
            body = await self.read_part()
            self.is_unread = self.is_open
            if body is not None:
                return {"type": "http.request", "body": body, "more_body": self.is_open}
        await self.wait_until_left()
        return {"type": "http.disconnect"}

    async def send_asgi(self, message: Any) -> None:
        """The ASGI callable that takes the response."""
        kind = message["type"]
        if self._connection.is_full and not self.is_gone:
            await self._connection.wait_for_room()
        if self.is_gone:
            return
        if not self.has_begun:
            if kind != "http.response.start":
                raise RuntimeError(f"an ASGI app sent {kind!r} before http.response.start")
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            self.start(message["status"], headers)
        elif kind != "http.response.body" or self.is_complete:
            raise RuntimeError(f"an ASGI app sent {kind!r} where that cannot be")
        else:
            self.write(message.get("body", b""), more=message.get("more_body", False))
