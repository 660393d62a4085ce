"""The requests on one connection, as httptools reads them, with bounds on what it keeps.

The parser keeps a request target, a head and the trailers of a chunked body for as long as they come,
and takes any ``Upgrade`` for the end of the request, so that a client which offers HTTP/2 beside its
POST loses the body of it. So what it is fed is measured, and an upgrade that is not to a WebSocket is
ignored.
"""

from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

import httptools

from isthmus.core.http.rules import parse_accept, read_head
from isthmus.transports.http.connections.connection_exchange import ConnectionExchange
from isthmus.transports.http.connections.server_context import WireRequest
from isthmus.transports.http.request import JSON_ONLY, RequestHeaders

Piece: TypeAlias = bytes | memoryview

# What may be too much of something is parsed in pieces: the bounds are as exact as that
HEAD_SLICE_BYTES = 1024
BODY_SLICE_BYTES = 16 * 1024

UPGRADE_FIELDS = frozenset({b"upgrade", b"http2-settings"})


class BadRequest(Exception):
    """A request that cannot be read; nothing more is.

    Args:
        status: what is answered.
        text: why, for whoever wrote the client.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class RequestTaker(Protocol):
    """The connection that requests are read for.

    Attributes:
        local: the address of ours that they come in on.
        root_path: what the app is mounted under.
        head_limit: the most bytes of a request's head, or of its trailers.
        target_limit: the most bytes of its first line.
        takes_websocket: an upgrade to a WebSocket would be served now.
        is_busy: no more requests are to be read for now.
    """

    local: str
    root_path: str
    head_limit: int
    target_limit: int

    @property
    def takes_websocket(self) -> bool: ...  # noqa: D102

    @property
    def is_busy(self) -> bool: ...  # noqa: D102

    def take(self, request: WireRequest) -> ConnectionExchange:
        """A head is complete."""
        ...

    def take_part(self, exchange: ConnectionExchange, part: bytes) -> None:
        """A part of a body has come."""
        ...

    def take_end(self, exchange: ConnectionExchange) -> None:
        """A request is complete."""
        ...


class RequestReader:
    """Reads the requests on one connection.

    Bytes count from one sign of progress to the next: a head that ended, a piece of a body, the end
    of a body. So a target, a head, trailers and the extensions of a chunk are measured alike.

    Args:
        connection: takes what is read.

    Attributes:
        incoming: the request whose body is not complete yet, or None.
        is_at_start: what comes next is the first byte of a request.
        head: the request line and the fields of an upgrade to a WebSocket, or None.
        beyond: what came after that.
    """

    __slots__ = ("_connection", "_fields", "_in_first_line", "_is_upgrade", "_measured", "_parser",
                 "_progressed", "_url", "beyond", "head", "incoming", "is_at_start")  # fmt: skip

    def __init__(self, connection: RequestTaker) -> None:
        self._connection: Any = connection
        self._parser = _make_parser(self)
        self._url = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._is_upgrade = False
        self._progressed = False
        self._in_first_line = True
        self._measured = 0
        self.incoming: ConnectionExchange | None = None
        self.is_at_start = True
        self.head: bytes | None = None
        self.beyond = b""

    def close(self) -> None:
        """Let go of the parser, which holds this, and of the connection; nothing more is read."""
        self._parser = self._connection = None
        self.incoming = None
        self.is_at_start = False

    def feed(self, data: bytes) -> bytes:
        """Read what has come in.

        Returns:
            What is to be read later, when fewer requests wait.

        Raises:
            BadRequest: it cannot be read, or something in it is too long.
        """
        if self._measured + len(data) <= self._connection.target_limit:
            self._measure(data)
            return b""
        rest = memoryview(data)
        while rest and self.head is None:
            if self._connection.is_busy:
                return bytes(rest)
            size = HEAD_SLICE_BYTES if self.incoming is None else BODY_SLICE_BYTES
            self._measure(rest[:size])
            rest = rest[size:]
            self._check()
        self.beyond += rest
        return b""

    def _measure(self, data: Piece) -> None:
        """Parse a piece, and count it if nothing came of it."""
        self._progressed = False
        self._parse(data)
        if not self._progressed:
            self._measured += len(data)
            if self._in_first_line:
                self._in_first_line = b"\n" not in bytes(data)
        elif self.incoming is None and not self.is_at_start:
            # the next head, of which some came in the same piece
            self._measured, self._in_first_line = len(data), False
        else:
            self._measured, self._in_first_line = 0, True

    def _check(self) -> None:
        """Refuse what has grown too long."""
        connection = self._connection
        if self.incoming is None and self._in_first_line:
            if self._measured > connection.target_limit:
                # RFC 9112 3: a server that receives a request-target longer than any URI it wishes
                # to parse MUST respond with 414
                raise BadRequest(414, _too_long("target", connection.target_limit))
        elif self._measured > connection.head_limit:
            # RFC 6585 5: 431 where a single field or all of them together are too large
            raise BadRequest(431, _too_long("head", connection.head_limit))

    def _parse(self, data: Piece) -> None:
        """Have the parser take data, and ignore upgrades that nothing serves."""
        rest: Piece = data
        try:
            while rest:  # once more for each upgrade that is ignored
                try:
                    self._parser.feed_data(rest)
                except httptools.HttpParserUpgrade as upgrade:
                    rest = rest[upgrade.args[0] :]
                    if not self._is_websocket():
                        self._parse_without_upgrade()
                        continue
                    self.beyond = bytes(rest)
                return
        except httptools.HttpParserError:
            raise BadRequest(400, "Invalid HTTP request received.") from None

    # What the parser calls

    def on_message_begin(self) -> None:
        """The first byte of a request has come."""
        self.is_at_start = False
        self._url = b""
        self._fields = []

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or of the trailers."""
        # RFC 9110 6.5.1: a recipient MUST NOT merge a trailer field into the header section unless
        # its definition permits that; none of those read here does
        if self.incoming is None:
            self._fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._progressed = True
        parser, connection = self._parser, self._connection
        self._is_upgrade = parser.should_upgrade()
        if self._is_upgrade:
            return
        fields, version = self._fields, parser.get_http_version()
        head = read_head(fields)
        path = httptools.parse_url(self._url).path.decode("ascii")
        path = unquote(path) if "%" in path else path
        request = WireRequest(
            parser.get_method().decode("ascii"),
            path.rstrip("/"),
            connection.root_path + path,
            self._url.partition(b"#")[0].partition(b"?")[2],
            version,
            fields,
            connection.local,
            head,
            JSON_ONLY if version == "1.0" else parse_accept(head.accept),
            RequestHeaders(fields),
        )
        request.target = self._url
        if version == "1.0":
            request.keeps_alive = False
        else:
            request.keeps_alive = parser.should_keep_alive()
            # RFC 9110 10.1.1: MUST ignore 100-continue in a request of HTTP/1.0
            request.expects_continue = any(
                name == b"expect" and value.lower() == b"100-continue" for name, value in fields
            )
        self.incoming = connection.take(request)

    def on_body(self, part: bytes) -> None:
        """A part of the body has come."""
        self._progressed = True
        if self.incoming is not None:
            self._connection.take_part(self.incoming, part)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._progressed = True
        exchange, self.incoming = self.incoming, None
        if exchange is not None:
            self.is_at_start = exchange.request.keeps_alive
            self._connection.take_end(exchange)

    # Upgrades

    def _is_websocket(self) -> bool:
        """Whether a head that offers an upgrade is left to a WebSocket's connection."""
        offered = b"".join(value.lower() for name, value in self._fields if name == b"upgrade")
        method = self._parser.get_method()
        if offered != b"websocket" or method == b"CONNECT" or not self._connection.takes_websocket:
            return False
        lines = [b"%b: %b\r\n" % field for field in self._fields]
        self.head = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self._url, b"".join(lines))
        return True

    def _parse_without_upgrade(self) -> None:
        """Parse a head again, without the upgrade that it offers.

        Raises:
            BadRequest: it is no request that could be served without it.
        """
        # RFC 9110 7.8: a server MAY ignore a received Upgrade header field
        method = self._parser.get_method()
        version = self._parser.get_http_version().encode()
        fields = [field for field in self._fields if field[0] not in UPGRADE_FIELDS]
        if method == b"CONNECT" or any(b"\n" in value for _, value in fields):
            raise BadRequest(400, "Invalid HTTP request received.")
        lines = b"".join(b"%b: %b\r\n" % _without_upgrade(*field) for field in fields)
        self._parser = _make_parser(self)
        self._parser.feed_data(b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._url, version, lines))


def _make_parser(reader: RequestReader) -> Any:
    parser = httptools.HttpRequestParser(reader)
    if hasattr(parser, "set_dangerous_leniencies"):
        # What a client sends after "Connection: close" is not read; it is no fault either.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _too_long(what: str, limit: int) -> str:
    return f"The {what} of the request is larger than {limit} bytes: see {what}_limit"


def _without_upgrade(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A field of a head that offers no upgrade."""
    if name != b"connection":
        return name, value
    options = [option.strip() for option in value.split(b",")]
    kept = [option for option in options if option.lower() not in UPGRADE_FIELDS]
    return name, b", ".join(kept)
