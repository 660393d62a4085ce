"""One HTTP/1.1 connection of a client: requests one after another, responses parsed as they arrive.

httptools parses; what it finds is kept for whoever reads the :class:`ConnectionResponse`, and beyond
some size nothing more is read from the socket until it was taken. A connection whose response was
read to its end goes back to its pool; any other ends with its response.
"""

import asyncio
import select
from typing import TYPE_CHECKING, Any

from isthmus.errors import ConnectionLost, Misbehaved
from isthmus.transports.http.client.address import redact_url
from isthmus.transports.http.client.failures import describe_error
from isthmus.transports.http.client.headers import ResponseHeaders, encode_body_length
from isthmus.transports.http.client.inflate import PackedBody

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from httptools import HttpResponseParser

MAX_HEAD_BYTES = 64 * 1024  # of a response; as many without any body within it, too
MAX_HEADERS = 256  # of a response
MAX_UNREAD_BODY_BYTES = 128 * 1024  # beyond them nothing is read from the socket
MAX_WHOLE_BODY_BYTES = 256 * 1024  # of a request; of a longer one as many are written at once

# Headers that say how a body is to be read
FRAMING_NAMES = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})

FIRST_INTERIM_STATUS = 100
FIRST_FINAL_STATUS = 200
SWITCHING_PROTOCOLS_STATUS = 101
FIRST_REDIRECT_STATUS = 300


class MalformedResponse(Exception):
    """What came is no response that HTTP allows, or one beyond a bound."""


class RequestUnsent(ConnectionError):
    """The connection had ended already: no byte of the request has left this machine."""


class UnansweredRequest(ConnectionError):
    """The connection ended before a byte of the response came."""


class ConnectionResponse:
    """The response to one request: :class:`~isthmus.transports.http.client.requests.Response`.

    Args:
        connection: where it comes from.
        url: what was asked for, for messages.

    Attributes:
        status: the HTTP status code; 0 until the head is here.
        headers: those of the head.
    """

    __slots__ = (
        "_connection", "_fault", "_over", "_packed", "_pieces", "_size", "_url", "_waiter",
        "headers", "status",
    )  # fmt: skip

    def __init__(self, connection: "HttpConnection", url: str) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = ResponseHeaders(())
        self._connection: HttpConnection | None = connection
        self._url = url
        self._pieces: list[bytes] = []
        self._size = 0
        self._over = False
        self._fault: Exception | None = None
        self._packed: PackedBody | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def read(self, limit: int) -> bytes:
        """The whole body."""
        length = self.headers.get("content-length", "")
        if self._packed is None:
            if length.isdigit():
                self._check_size(int(length), limit)
            if self._over:
                body = self._take_pieces()
                self._check_size(len(body), limit)
                return body
        pieces: list[bytes] = []
        size = 0
        while piece := await self.piece():
            size += len(piece)
            self._check_size(size, limit)
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """The next piece of the body as it arrives; empty at its end."""
        while True:
            piece = self._take_piece()
            if piece:
                return piece
            if self._fault is not None:
                raise self._make_broken(self._fault) from self._fault
            if self._over:
                return self._finish()
            await self._wait()

    def close(self) -> None:
        """Let go of it; a body not read to its end takes its connection along."""
        connection = self._connection
        if connection is not None:
            connection.give_up(ConnectionResetError("it was closed here"))

    # What the connection tells

    def begin(self, status: int, headers: ResponseHeaders, coding: bytes) -> None:
        """Take in the head.

        Raises:
            ValueError: the body is packed in a way that was not asked for.
        """
        name = coding.strip().lower().decode("latin-1")
        if name not in {"", "identity"}:
            self._packed = PackedBody(name)
        self.status = status
        self.headers = headers

    def add(self, data: bytes) -> bool:
        """Take in a part of the body; False where enough waits to be read."""
        self._pieces.append(data)
        self._size += len(data)
        return self._size <= MAX_UNREAD_BODY_BYTES

    def end(self, fault: Exception | None = None) -> None:
        """Nothing more will come: the body is whole, or something went wrong."""
        self._connection = None
        if fault is None:
            self._over = True
        else:
            self._fault = fault
        self.wake()

    def take_fault(self) -> Exception:
        """Take what went wrong before the head was here; it is not kept, since who raises it keeps this."""
        fault, self._fault = self._fault, None
        return fault or UnansweredRequest(UNANSWERED)

    def wake(self) -> None:
        """Go on with whoever waits for a piece."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # The inside

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _take_piece(self) -> bytes:
        """What there is to be read just now."""
        if self._packed is None:
            return self._take_pieces() if self._pieces else b""
        try:
            piece = self._packed.take()
            while not piece and self._pieces:
                self._packed.feed(self._take_pieces())
                piece = self._packed.take()
        except ValueError as error:
            self._give_up_damaged(str(error))
            return b""
        return piece

    def _take_pieces(self) -> bytes:
        """All that has arrived."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces = []
        self._size = 0
        if self._connection is not None:
            self._connection.read_on()
        return data

    def _finish(self) -> bytes:
        """The end of the body, if nothing of it is missing."""
        if self._packed is not None:
            try:
                self._packed.finish()
            except ValueError as error:
                raise self._make_broken(error) from None
        return b""

    def _give_up_damaged(self, why: str) -> None:
        self._packed = None
        self._pieces = []
        self.close()
        self._fault = MalformedResponse(why)

    def _check_size(self, size: int, limit: int) -> None:
        if size > limit:
            self.close()
            raise Misbehaved(
                f"the answer of {redact_url(self._url)} has more than {limit} bytes, "
                "which is as much as this client takes"
            )

    def _make_broken(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(
            f"the answer of {redact_url(self._url)} broke off: {describe_error(error)}"
        )


class HttpConnection(asyncio.Protocol):
    """A connection to one origin; a protocol of asyncio, on any loop and with or without TLS.

    Args:
        loop: where it lives.
        released: told when it can take another request.
        lost: told when it has ended.

    Attributes:
        ended: nothing can be sent on it any more.
        idle_since: the loop's time since when it waits for a request.
    """

    __slots__ = (
        "_bodiless", "_interim", "_kept", "_loop", "_lost", "_pairs", "_parser", "_paused",
        "_quiet_bytes", "_released", "_response", "_room", "_surplus", "_transport",
        "_until_close", "_uploading", "_waiter", "_whole", "ended", "idle_since",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        released: "Callable[[HttpConnection], None]",
        lost: "Callable[[HttpConnection], None]",
    ) -> None:
        self.ended = False
        self.idle_since = 0.0
        self._loop = loop
        self._released = released
        self._lost = lost
        self._parser: HttpResponseParser | None = None  # while the connection stands: it holds this
        self._transport: Any = None
        self._response: ConnectionResponse | None = None
        self._waiter: asyncio.Future[None] | None = None  # for the head of the response
        self._room: asyncio.Future[None] | None = None  # to write more of a request
        self._pairs: list[tuple[bytes, bytes]] = []
        self._bodiless = False  # the response to HEAD
        self._interim = False  # a head of 1xx: the response comes after it
        self._whole = False  # the response is here to its end
        self._kept = False  # the server takes another request after it
        self._surplus = False  # something came after its end
        self._until_close = False  # its body ends with the connection
        self._paused = False  # reading waits for whoever reads the body
        self._uploading = False  # the request is not written to its end
        self._quiet_bytes = 0  # read since the last byte of a body

    async def exchange(
        self, method: str, url: str, head: bytes, body: bytes | None
    ) -> ConnectionResponse:
        """Send a request and wait for the head of its response.

        Whatever goes wrong, and a cancellation too, ends the connection, unless the response is
        here to its end: then the connection may be another request's already.

        Args:
            method: of the request.
            url: what is asked for, for messages.
            head: as :func:`~isthmus.transports.http.client.headers.encode_request_head` makes it.
            body: follows the head.

        Raises:
            RequestUnsent: the connection had ended, and nothing was sent.
            UnansweredRequest: it ended before a byte of the response.
            OSError: it failed.
            MalformedResponse: what came is no response.
        """
        self._check_open()
        response = self._response = ConnectionResponse(self, url)
        self._bodiless = method == "HEAD"
        self._whole = self._until_close = False
        self._quiet_bytes = 0
        waiter = self._waiter = self._loop.create_future()
        try:
            if body is None or len(body) <= MAX_WHOLE_BODY_BYTES:
                parts = (head, encode_body_length(method, body), body or b"")
                self._transport.write(b"".join(parts))
                self._check_open()  # where it is not, the system took nothing of this
            else:
                await self._upload(head + encode_body_length(method, body), body)
            await waiter
        except BaseException:
            if self._response is response:
                self._waiter = None
                self.give_up(ConnectionResetError("it was given up"))
            raise
        if response.status:
            return response
        raise response.take_fault()

    def give_up(self, fault: Exception) -> None:
        """End it now; who waits for a response hears why."""
        response, self._response = self._response, None
        self.ended = True
        if response is not None:
            response.end(fault)
        self._wake_waiters()
        transport = self._transport
        if transport is not None and not transport.is_closing():
            # RFC 9112 9.8: a client MUST send a closure alert of TLS, and MAY not wait for the other
            transport.close()
            transport.abort()

    def is_readable(self) -> bool:
        """Whether the socket has something, or its end, that the loop has not seen yet."""
        socket = self._transport.get_extra_info("socket")
        if not hasattr(select, "poll"):
            return bool(select.select([socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))

    def read_on(self) -> None:
        """Read from the socket again, since there is room for it."""
        if self._paused:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        from httptools import HttpResponseParser

        self._parser = HttpResponseParser(self)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        response, parser = self._response, self._parser
        if response is None or parser is None:
            # RFC 9112 9.2: a client MUST NOT take it for a response, and SHOULD close. Line ends after
            # a body are passed over, as the parser does where they come together with it.
            if data.strip(b"\r\n"):
                self.give_up(ConnectionResetError("unasked for"))
            return
        self._quiet_bytes += len(data)
        try:
            parser.feed_data(data)
        except Exception as error:  # noqa: BLE001 - httptools has no one class for all of them
            if not self._whole:
                self._fail(error)
                return
            self._surplus = True
        if response.status:
            if self._waiter is not None:
                self._wake_waiters()
            else:
                response.wake()
        if self._whole:
            self._finish(response)
        elif self._quiet_bytes > MAX_HEAD_BYTES:
            self.give_up(MalformedResponse(f"more than {MAX_HEAD_BYTES} bytes came without a body"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended: so does a body that has no other end."""
        response, self._response = self._response, None
        self.ended = True
        self._parser = None
        if response is not None:
            if self._until_close and exc is None:
                response.end()
            elif response.status or self._quiet_bytes:
                response.end(exc or ConnectionError("the connection ended in the middle of it"))
            else:
                response.end(UnansweredRequest(describe_error(exc) if exc else UNANSWERED))
        self._wake_waiters()
        self._lost(self)

    def pause_writing(self) -> None:
        """Write no more for now."""
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """There is room to write more."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    # httptools

    def on_message_begin(self) -> None:
        """A response begins; nobody has asked for one that follows another."""
        if self._whole:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, of the head or after the body."""
        # RFC 9112 5.1: white space around a value is no part of it; the parser leaves that behind it
        self._pairs.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """A head is here."""
        if self._surplus:
            return
        pairs, self._pairs = self._pairs, []
        response, parser = self._response, self._parser
        if response is None or parser is None:
            return
        status = parser.get_status_code()
        if status < FIRST_INTERIM_STATUS:  # RFC 9110 15: codes outside 100..599 are invalid
            raise MalformedResponse(f"there is no status {status}")
        self._interim = status < FIRST_FINAL_STATUS
        if self._interim:
            if status == SWITCHING_PROTOCOLS_STATUS:
                raise MalformedResponse("it switches to another protocol, which nobody asked for")
            return
        coding = self._check_head(pairs)
        response.begin(status, ResponseHeaders(pairs), coding)
        self._whole = self._bodiless

    def on_body(self, data: bytes) -> None:
        """A part of a body."""
        if self._surplus or self._bodiless or self._response is None:
            return
        self._quiet_bytes = 0
        if not self._response.add(data) and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """A response is here to its end."""
        if not self._interim and self._parser is not None:
            self._whole = True
            self._kept = self._parser.should_keep_alive()
            self._pairs = []  # those after the body; nobody has asked for any

    # The inside

    def _check_head(self, pairs: list[tuple[bytes, bytes]]) -> bytes:
        """See how a body is to be read; gives how it is packed.

        Raises:
            MalformedResponse: the head is too large, or a body cannot be read.
        """
        size, framed, coding = 0, False, []
        for name, value in pairs:
            size += len(name) + len(value)
            if name in FRAMING_NAMES:
                if name == b"content-encoding":
                    coding.append(value)
                    continue
                framed = True
                # RFC 9112 7: no other coding was asked for with TE
                if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                    raise MalformedResponse("its transfer coding was not asked for")
        if size > MAX_HEAD_BYTES or len(pairs) > MAX_HEADERS:
            raise MalformedResponse(
                f"its head has {len(pairs)} headers of {size} bytes: "
                f"{MAX_HEADERS} of {MAX_HEAD_BYTES} at most"
            )
        self._until_close = not framed
        return b", ".join(coding)

    def _check_open(self) -> None:
        if self.ended or self._transport.is_closing():
            raise RequestUnsent("the connection had ended")

    async def _upload(self, head: bytes, body: bytes) -> None:
        """Write a long body, as fast as it is taken."""
        write, view, at = self._transport.write, memoryview(body), 0
        write(head)
        self._uploading = True
        while at < len(body) and not self._is_refused():
            write(view[at : at + MAX_WHOLE_BODY_BYTES])
            at += MAX_WHOLE_BODY_BYTES
            if self._room is not None:
                await self._room
            else:
                await asyncio.sleep(0)  # lest it hold up everybody else
        self._uploading = at < len(body)

    def _is_refused(self) -> bool:
        """Whether the server has answered already that it does not want the rest of a body."""
        response = self._response
        # RFC 9112 9.5: a client SHOULD cease transmitting the body then, and close its side
        return response is None or response.status >= FIRST_REDIRECT_STATUS

    def _finish(self, response: ConnectionResponse) -> None:
        """The response is here to its end: what becomes of the connection."""
        self._response = None
        response.end()
        if self._kept and not (self._surplus or self._bodiless or self._uploading):
            self.read_on()
            self._released(self)
        else:
            self.give_up(ConnectionResetError("it is over"))

    def _fail(self, error: Exception) -> None:
        """What came is no response."""
        ours = error.__context__  # of what the parser called
        known = isinstance(ours, ValueError | MalformedResponse)
        self.give_up(MalformedResponse(str(ours) if known else f"it is no HTTP: {error}"))

    def _wake_waiters(self) -> None:
        for waiter in (self._waiter, self._room):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        self._waiter = self._room = None


UNANSWERED = "the server disconnected before it answered"
