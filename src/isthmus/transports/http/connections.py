"""uvicorn's HTTP connections with bounds: a head has a size, and an upgrade that is not ours is ignored.

Neither of uvicorn's parsers gives all of that. httptools keeps a request target, a head and the
trailers of a chunked body for as long as they come; and it takes any ``Upgrade`` for the end of the
request, so that a client which offers HTTP/2 beside its POST loses the body of it.

``uvicorn --http isthmus.transports.http.connections:Connection app:app`` gives these bounds to an
application that is not started by ``isthmus run``.
"""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.config import Config

Piece: TypeAlias = bytes | memoryview

MAX_HEAD_BYTES = 32 * 1024
MAX_TARGET_BYTES = 8 * 1024
# A head that may be too long is parsed in pieces of this size: the bounds are as exact as that
SLICE_BYTES = 1024

# Bytes that are read and dropped after a refusal, so that the client reads why
MAX_LINGER_BYTES = 4 * 1024 * 1024

LINGER_S = 1.0
UPGRADE_FIELDS = frozenset({b"upgrade", b"http2-settings"})


class MeasuredConnection(Protocol):
    """One of uvicorn's connections, whose heads are measured."""

    cycle: Any
    loop: asyncio.AbstractEventLoop
    server_state: Any
    transport: asyncio.Transport

    def parse(self, data: Piece) -> None:
        """Have the parser take a piece."""
        ...

    def has_begun(self) -> bool:
        """Whether there is something of the next request already."""
        ...


class HeadMeter:
    """Measures the heads on one connection, and refuses those that are too long.

    Bytes count from one sign of progress to the next: a head that ended, a piece of a body, the end
    of a body. So a target, a head, trailers and the extensions of a chunk are measured alike.

    Args:
        head_limit: the most bytes of a request's head, or of its trailers.
        target_limit: the most bytes of its first line.

    Attributes:
        is_over: nothing more is parsed.
    """

    __slots__ = ("_dropped", "_held", "_in_first_line", "head_limit", "is_over", "target_limit")

    def __init__(self, head_limit: int, target_limit: int) -> None:
        self.head_limit = head_limit
        self.target_limit = target_limit
        self.is_over = False
        self._held = 0
        self._in_first_line = True
        self._dropped = 0

    def take(self, connection: MeasuredConnection, data: bytes) -> None:
        """Have what the client has sent parsed, and measure it.

        Args:
            connection: the connection it came in on; not kept, which would make a cycle.
            data: the bytes.
        """
        if self._held + len(data) <= self.target_limit and not self.is_over:
            self._measure(connection, data)
            return
        rest = memoryview(data)
        while rest and not self.is_over:
            # Beyond a head there is nothing to measure: what follows it is taken as a whole.
            cycle = connection.cycle
            waits_for_head = cycle is None or not cycle.more_body
            size = SLICE_BYTES if waits_for_head else len(rest)
            self._measure(connection, rest[:size])
            rest = rest[size:]
            self._check(connection)
        if self.is_over:
            self._drop(connection, len(rest))

    def _measure(self, connection: MeasuredConnection, data: Piece) -> None:
        """Parse a piece, and count it if nothing came of it."""
        cycle = connection.cycle
        was_open, size = (False, 0) if cycle is None else (cycle.more_body, len(cycle.body))
        connection.parse(data)
        now = connection.cycle
        if now is cycle and not (was_open and (len(now.body) > size or not now.more_body)):
            self._held += len(data)
            if self._in_first_line:
                self._in_first_line = b"\n" not in bytes(data)
        elif connection.has_begun():  # the next head, of which some came in the same piece
            self._held, self._in_first_line = len(data), False
        else:
            self._held, self._in_first_line = 0, True

    def _check(self, connection: MeasuredConnection) -> None:
        """Refuse what has grown too long."""
        if self.is_over:
            return
        cycle = connection.cycle
        if cycle is not None and cycle.more_body and cycle.response_complete:
            if self._held > MAX_LINGER_BYTES:  # a body whose request was answered
                connection.transport.close()
        elif (
            self._held > self.target_limit
            and self._in_first_line
            and (cycle is None or not cycle.more_body)
        ):
            # RFC 9112 3: a server that receives a request-target longer than any URI it wishes to
            # parse MUST respond with 414
            self._refuse(connection, HTTPStatus.REQUEST_URI_TOO_LONG, "target", self.target_limit)
        elif self._held > self.head_limit:
            # RFC 6585 5: 431 where a single field or all of them together are too large
            self._refuse(
                connection, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head", self.head_limit
            )

    def _refuse(
        self, connection: MeasuredConnection, status: HTTPStatus, what: str, limit: int
    ) -> None:
        """Say why, and read on for a moment, so that the client gets to know it."""
        self.is_over = True
        if connection.cycle is not None and not connection.cycle.response_complete:
            connection.transport.close()  # another response is on its way: nothing can be said beside it
        if connection.transport.is_closing():
            return
        body = f"The {what} of the request is larger than {limit} bytes: see {what}_limit".encode()
        fields = [
            *connection.server_state.default_headers,
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        first = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
        lines = b"".join(b"%b: %b\r\n" % field for field in fields)
        connection.transport.write(b"".join((first, lines, b"\r\n", body)))
        # RFC 9112 9.6: a server that closes while the client still sends has the client's stack
        # erase the response before it is read; so it reads on
        connection.loop.call_later(LINGER_S, connection.transport.close)

    def _drop(self, connection: MeasuredConnection, size: int) -> None:
        """Count what is read and dropped."""
        self._dropped += size
        if self._dropped > MAX_LINGER_BYTES:
            connection.transport.close()


class H11Connection(H11Protocol):
    """A connection whose parser is h11, which ignores upgrades by itself.

    Attributes:
        head_limit: the most bytes of a request's head, or of its trailers.
        target_limit: the most bytes of its first line.
    """

    head_limit = MAX_HEAD_BYTES
    target_limit = MAX_TARGET_BYTES

    def __init__(self, config: "Config", *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self._meter = HeadMeter(self.head_limit, self.target_limit)
        # Its own bound lies above ours, which knows the status to answer with.
        self.conn = h11.Connection(h11.SERVER, 2 * self.head_limit)

    def data_received(self, data: bytes) -> None:
        """Take what the client has sent."""
        self._meter.take(self, data)

    def parse(self, data: Piece) -> None:
        """Have the parser take a piece."""
        H11Protocol.data_received(self, data)  # type: ignore[arg-type]  # h11 takes any buffer

    def has_begun(self) -> bool:
        """Whether there is something of the next request already."""
        return bool(self.conn.trailing_data[0])

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: RFC 9110 7.8 lets a server ignore an upgrade, and many clients offer one."""


Connection: type[asyncio.Protocol] = H11Connection
"""A connection with the default bounds, and the best parser that is installed."""

try:
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:  # it is compiled, and there is not a wheel for every machine
    pass
else:

    class HttpToolsConnection(HttpToolsProtocol):
        """A connection whose parser is httptools."""

        head_limit = MAX_HEAD_BYTES
        target_limit = MAX_TARGET_BYTES

        def __init__(self, config: "Config", *args: Any, **kwargs: Any) -> None:
            super().__init__(config, *args, **kwargs)
            self._meter = HeadMeter(self.head_limit, self.target_limit)

        def data_received(self, data: bytes) -> None:
            """Take data that arrived, within the bounds of a head."""
            self._meter.take(self, data)

        def parse(self, data: Piece) -> None:
            """Have the parser take data, and ignore upgrades that nothing serves."""
            self._unset_keepalive_if_required()
            rest: Piece | None = memoryview(data)
            try:
                while rest is not None:  # once more for each upgrade that is ignored
                    rest = self._feed(rest)
            except httptools.HttpParserError:
                self._refuse_malformed()

        def _feed(self, data: Piece) -> Piece | None:
            """Have the parser take data; returns what follows the head of an ignored upgrade."""
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if HttpToolsProtocol._should_upgrade(self):  # noqa: SLF001 - its own
                    self._meter.is_over = True
                    self.handle_websocket_upgrade()
                elif self._parse_without_upgrade():
                    return data[upgrade.args[0] :]
            return None

        def has_begun(self) -> bool:
            """Whether there is something of the next request already."""
            cycle: Any = self.cycle  # None before the first request, whatever its type says
            return cycle is None or self.scope is not cycle.scope

        def _should_upgrade(self) -> bool:
            """Whether uvicorn shall leave a request alone; asked of those with an upgrade only.

            httptools skips the body of them, whatever it is that they offer.
            """
            return True

        def _parse_without_upgrade(self) -> bool:
            """Parse a head again, without the upgrade that it offers; False where it is refused."""
            method = self.parser.get_method()
            version = self.parser.get_http_version().encode()
            fields = [field for field in self.headers if field[0] not in UPGRADE_FIELDS]
            if method == b"CONNECT" or any(b"\n" in value for _, value in fields):
                self._refuse_malformed()
                return False
            lines = b"".join(b"%b: %b\r\n" % _without_upgrade(*field) for field in fields)
            self.parser = make_parser(self)
            self.parser.feed_data(b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, lines))
            return True

        def _refuse_malformed(self) -> None:
            self._meter.is_over = True
            self.send_400_response("Invalid HTTP request received.")

        def _unsupported_upgrade_warning(self) -> None:
            """Say nothing, as the other connection."""

    Connection = HttpToolsConnection

    def make_parser(connection: Any) -> Any:
        """A parser as uvicorn's own."""
        parser = httptools.HttpRequestParser(connection)
        if hasattr(parser, "set_dangerous_leniencies"):
            # What a client sends after "Connection: close" is not read; it is no fault either.
            parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser


def _without_upgrade(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A field of a head that offers no upgrade."""
    if name != b"connection":
        return name, value
    options = [option.strip() for option in value.split(b",")]
    kept = [option for option in options if option.lower() not in UPGRADE_FIELDS]
    return name, b", ".join(kept)


def bound_connections(head_limit: int, target_limit: int) -> type[asyncio.Protocol]:
    """The class of connections that uvicorn is to make, with bounds of its own.

    Args:
        head_limit: the most bytes of a request's head.
        target_limit: the most bytes of its first line.
    """
    bounds = {"head_limit": head_limit, "target_limit": target_limit}
    return type("BoundConnection", (Connection,), bounds)
