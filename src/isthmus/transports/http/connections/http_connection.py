"""One HTTP/1.1 connection: uvicorn's sockets, httptools' parser, and nothing between them and the app.

A protocol class for ``uvicorn.Config(http=…)``. It hands requests to an
:class:`~isthmus.transports.http.request.ExchangeApp` as they are; any other app gets them by ASGI. What
needs no waiting is served where the bytes come in, a whole answer is one write, and no request has a
timer: :class:`~isthmus.transports.http.connections.server_context.ServerContext` looks at all of them.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httptools

from isthmus.core.http.rules import RequestHead
from isthmus.transports.http.connections.connection_exchange import ConnectionExchange
from isthmus.transports.http.connections.request_reader import BadRequest, RequestReader
from isthmus.transports.http.connections.server_context import (
    HEAD_TIMEOUT_TICKS,
    WireRequest,
    find_context,
)
from isthmus.transports.http.reply import DONE, Scope
from isthmus.transports.http.request import JSON_ONLY, ExchangeApp

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

MAX_HEAD_BYTES = 32 * 1024
MAX_TARGET_BYTES = 8 * 1024

MAX_WAITING_REQUESTS = 16  # that a client has sent before the answer to those before
MAX_STEPS_AT_ONCE = 32  # of one connection, until others have their turn
MAX_WAITING_BODY_BYTES = 64 * 1024  # that are read before the app asks for them

# Bytes that are read and dropped after a refusal, so that the client reads why, and how long
MAX_LINGER_BYTES = 4 * 1024 * 1024
MAX_DRAIN_BYTES = 64 * 1024 * 1024
LINGER_TICKS = 2

NO_REQUEST = WireRequest(
    "", "", "", b"", "1.1", (), "", RequestHead(), JSON_ONLY, {}, keeps_alive=False
)
MALFORMED_STATUS = 400

_error_log = logging.getLogger("uvicorn.error")
_access_log = logging.getLogger("uvicorn.access")


class HttpConnection(asyncio.Protocol):
    """One HTTP connection.

    Args:
        config: uvicorn's settings.
        server_state: uvicorn's record of the server.
        app_state: what the app's lifespan has put there.
        _loop: the event loop, where it is not the running one.

    Attributes:
        head_limit: the most bytes of a request's head, or of its trailers.
        target_limit: the most bytes of its first line.
        context: what all connections of the server share.
        transport: the way out.
        client: the address of the other end, or None.
        local: the address of ours that it came in on, or "".
        root_path: what the app is mounted under.
        is_full: the client has to read before more is written.
        is_idle: it is between two requests.
        logs_access: each response is told to the access log.
    """

    __slots__ = (
        "_app",
        "_app_state",
        "_config",
        "_dropped",
        "_exchange",
        "_held",
        "_is_advancing",
        "_is_deaf",
        "_is_lingering",
        "_is_reading_paused",
        "_last_words",
        "_queue",
        "_reader",
        "_rooms",
        "_since",
        "_state",
        "client",
        "context",
        "is_full",
        "is_idle",
        "local",
        "logs_access",
        "loop",
        "root_path",
        "transport",
    )  # fmt: skip

    head_limit = MAX_HEAD_BYTES
    target_limit = MAX_TARGET_BYTES

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self.loop = _loop or asyncio.get_event_loop()
        self.context = find_context(server_state, self.loop)
        self.root_path = config.root_path
        self.logs_access = _access_log.hasHandlers()
        self.local = ""
        self.client: tuple[str, int] | None = None
        self.is_full = False
        self._app: Any = config.loaded_app
        self._app_state = app_state
        self._config = config
        self._state = server_state
        self._reader = RequestReader(self)
        self._exchange: ConnectionExchange | None = None  # what is being answered
        self._queue: deque[ConnectionExchange] = deque()  # what is answered after it
        self._held = b""  # what is not even parsed yet
        self._last_words: tuple[int, str] | None = None  # what is said after all that
        self._rooms: deque[asyncio.Future[None]] | None = None
        self._is_advancing = False
        self._is_reading_paused = False
        self._is_deaf = False  # what comes is dropped
        self._is_lingering = False  # all is said, and what comes is dropped for a while
        self.is_idle = False  # between two requests
        self._dropped = 0
        self._since = self.context.tick

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self.transport: Any = transport
        self.client = _address(transport, "peername")
        local = _address(transport, "sockname")
        self.local = "" if local is None else local[0]
        self._state.connections.add(self)  # type: ignore[arg-type]  # as good as one of uvicorn's
        self.context.watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - what the loop says
        """It is closed."""
        self._state.connections.discard(self)
        self._is_deaf = True
        self._reader.close()
        exchanges = [*self._queue] if self._exchange is None else [self._exchange, *self._queue]
        self._exchange = self._last_words = None
        self._queue.clear()
        self._held = b""
        self.resume_writing()
        for exchange in exchanges:
            exchange.leave()

    def data_received(self, data: bytes) -> None:
        """The client has sent something."""
        reader = self._reader
        if (
            self._exchange is None
            and reader.is_at_start
            and not (self.is_full or self._queue or self._held)
        ):
            end = data.find(b"\r\n\r\n") + 4
            request = self.context.find_known((self.local, data[:end]))
            if request is not None and len(data) - end == request.length:
                self._begin(ConnectionExchange(self, request, data[end:]))
                return
            self._parse(data)
            if len(self._queue) == 1 and reader.is_at_start:
                exchange = self._queue[0]
                self._advance()
                if exchange.request.verdict is None:
                    self.context.add_known(data, exchange.request)
                return
        else:
            self._parse(data)
        self._advance()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written to."""
        self.is_full = True

    def resume_writing(self) -> None:
        """The client has read."""
        self.is_full = False
        rooms, self._rooms = self._rooms, None
        for room in rooms or ():
            if not room.done():
                room.set_result(None)
        if self._queue or self._held or self._last_words:
            self._advance()

    # Reading

    @property
    def takes_websocket(self) -> bool:
        """Whether an upgrade to a WebSocket would be served now."""
        return (
            self._config.ws_protocol_class is not None
            and self._exchange is None
            and not self._queue
        )

    @property
    def is_busy(self) -> bool:
        """Whether no more requests are to be read for now."""
        return len(self._queue) > MAX_WAITING_REQUESTS

    def _parse(self, data: bytes) -> None:
        """Read what has come, as far as it may be read now."""
        if self._is_deaf:
            self._drop(len(data), MAX_LINGER_BYTES)
            return
        if self._held:
            self._held += data
            return
        if self.is_idle and not data.isspace():
            self.is_idle = False
            self._since = self.context.tick
        try:
            self._held = self._reader.feed(data)
        except BadRequest as error:
            self._stop_reading(error.status, error.text)
        if self._reader.head is not None:
            self._hand_over(self._reader.head + self._reader.beyond)

    def _stop_reading(self, status: int, text: str) -> None:
        """What came cannot be read: say so after all that could be, and read no more."""
        self._is_deaf = True
        self._held = b""
        broken = self._reader.incoming
        self._reader.close()
        if broken is not None:
            broken.is_open = False
            if broken.has_begun:
                self.transport.close()
                return
            if broken is self._exchange:
                self._exchange = None
            elif broken in self._queue:
                self._queue.remove(broken)
            broken.leave()
        self._last_words = status, text

    def take(self, request: WireRequest) -> ConnectionExchange:
        """A head is complete: its request is served when those before it are."""
        exchange = ConnectionExchange(self, request)
        if self.context.is_draining:
            exchange.keeps_alive = False
        self._queue.append(exchange)
        return exchange

    def take_part(self, exchange: ConnectionExchange, part: bytes) -> None:
        """A part of a body has come."""
        if exchange.is_complete:
            self._drop(len(part), MAX_DRAIN_BYTES)
            return
        exchange.put(part)
        if exchange.size > MAX_WAITING_BODY_BYTES:
            self._pause_reading()

    def take_end(self, exchange: ConnectionExchange) -> None:
        """A request is complete."""
        exchange.end()
        if exchange.is_complete:  # its response came before
            self._is_lingering = False
            self.is_idle = True
            if not exchange.keeps_alive:
                self.transport.close()

    def _drop(self, size: int, limit: int) -> None:
        """Count what is read and dropped."""
        self._dropped += size
        if self._dropped > limit:
            self.transport.close()

    def update_reading(self) -> None:
        """Read as long as what has come is taken."""
        incoming = self._reader.incoming
        if (
            self._held
            or self.is_busy
            or (incoming is not None and incoming.size > MAX_WAITING_BODY_BYTES)
        ):
            self._pause_reading()
        elif self._is_reading_paused:
            self._is_reading_paused = False
            self.transport.resume_reading()

    def _pause_reading(self) -> None:
        if not self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = True
            self.transport.pause_reading()

    def _hand_over(self, data: bytes) -> None:
        """Leave the connection to one for WebSockets."""
        self._is_deaf = True
        self._reader.close()
        self._state.connections.discard(self)
        make: Any = self._config.ws_protocol_class
        protocol = make(
            config=self._config,
            server_state=self._state,
            app_state=self._app_state,
            _loop=self.loop,
        )
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        protocol.data_received(data)

    # Serving

    def _advance(self) -> None:
        """Serve what waits, one request after the other."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            for _ in range(MAX_STEPS_AT_ONCE):
                if not self._take_step():
                    break
            else:  # others have their turn in between
                self.loop.call_soon(self._advance)
        finally:
            self._is_advancing = False
        if self.transport.is_closing():
            return
        if self._last_words is not None and self._exchange is None and not self._queue:
            self._say_last_words(*self._last_words)
        self.update_reading()

    def _take_step(self) -> bool:
        """Begin the next request, or read on where none waits; False where there is nothing to do."""
        if self.transport.is_closing():
            return False
        if self._exchange is None and not self.is_full and self._queue:
            self._begin(self._queue.popleft())
        elif self._held and not self.is_busy:
            data, self._held = self._held, b""
            self._parse(data)
        else:
            return False
        return True

    def _say_last_words(self, status: int, text: str) -> None:
        self._last_words = None
        exchange = ConnectionExchange(self, NO_REQUEST)
        exchange.is_open = status != MALFORMED_STATUS  # what is too long goes on for a while
        exchange.send_text(status, text)

    def _begin(self, exchange: ConnectionExchange) -> None:
        """Serve a request: at once what needs no waiting, and the rest in a task."""
        self._exchange = exchange
        self.is_idle = False
        limit, state = self._config.limit_concurrency, self._state
        if limit is not None and (len(state.connections) >= limit or len(state.tasks) >= limit):
            _error_log.warning("Exceeded concurrency limit.")
            exchange.send_text(503, "Service Unavailable")
            return
        app = self._app
        try:
            rest = app.begin(exchange) if isinstance(app, ExchangeApp) else exchange.serve_asgi(app)
        except Exception as error:  # noqa: BLE001 - whatever an app raises must end its own request only
            self._fail(exchange, error)
            return
        if rest is not DONE:
            # a way around python/cpython#140947, where uvicorn has that and is asked for it
            is_new = getattr(self._config, "reset_contextvars", False)
            context = contextvars.Context() if is_new else None
            task = self.loop.create_task(self._finish_serving(exchange, rest), context=context)
            if not task.done():  # it is where the loop's task factory starts tasks at once
                exchange.task = task
                state.tasks.add(task)

    async def _finish_serving(self, exchange: ConnectionExchange, rest: Awaitable[Any]) -> None:
        """Do the rest of a request."""
        try:
            await rest
        except asyncio.CancelledError:
            if not (exchange.is_complete or exchange.is_gone):
                self.transport.close()
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            self._fail(exchange, error)
        finally:
            task, exchange.task = exchange.task, None
            self._state.tasks.discard(task)
            del task
        if not (exchange.is_complete or exchange.is_gone):
            self._fail(exchange, None)

    def _fail(self, exchange: ConnectionExchange, error: BaseException | None) -> None:
        """An app broke: answer that, or end what cannot be ended otherwise."""
        if error is None:
            _error_log.error("An app returned before its response was complete.")
        else:
            _error_log.error("Exception in ASGI application\n", exc_info=error)
        if exchange.is_gone or exchange.is_complete:
            return
        if not exchange.is_unsent:
            # RFC 9112 8: what is not ended as announced is incomplete, and the client can tell
            self.transport.close()
        else:
            exchange.has_begun = False
            exchange.send_text(500, "Internal Server Error")

    async def wait_for_room(self) -> None:
        """Wait until the client has read, or has left."""
        while self.is_full:
            room = self.loop.create_future()
            if self._rooms is None:
                self._rooms = deque()
            self._rooms.append(room)
            await room

    def finish(self, exchange: ConnectionExchange) -> None:
        """A response is complete."""
        exchange.is_complete = True
        self._exchange = None
        self._state.total_requests += 1
        self._since = self.context.tick
        if exchange.is_open and exchange.is_unread:
            # RFC 9112 9.6: a server that closes while the client still sends has the client's stack
            # erase the response before it is read; so it reads on
            self._is_lingering = True
            self._dropped = 0
            exchange.drop_body()
        elif not exchange.keeps_alive:
            self.transport.close()
        else:
            self.is_idle = True
            if self._queue or self._held or self._last_words:
                self._advance()

    # What uvicorn and the sweep call

    def shutdown(self) -> None:
        """Close as soon as what is being answered is."""
        self._queue.clear()
        self._held = b""
        self._last_words = None
        if self._exchange is None:
            self.transport.close()
        else:
            self._exchange.keeps_alive = False

    def end_after_answer(self) -> None:
        """Close with the answer that is being given; one to be begun yet says so, as a next one does."""
        if self._exchange is not None:
            self._exchange.keeps_alive = bool(self._queue)
        if self._queue:
            self._queue[-1].keeps_alive = False

    def look(self, tick: int) -> None:
        """Close where nothing comes for too long."""
        if self._exchange is not None or self._queue:
            return
        limit: float = HEAD_TIMEOUT_TICKS
        if self._is_lingering:
            limit = LINGER_TICKS
        elif self.is_idle:
            limit = self._config.timeout_keep_alive
        if tick - self._since > limit:
            self.transport.close()

    def log_access(self, exchange: ConnectionExchange, status: int) -> None:
        """Tell the access log of a response."""
        request, client = exchange.request, self.client
        if not request.method:
            return  # there was none that could be read
        query = f"?{request.query.decode('latin-1')}" if request.query else ""
        _access_log.info(
            '%s - "%s %s HTTP/%s" %d',
            "" if client is None else f"{client[0]}:{client[1]}",
            request.method,
            quote(request.outer_path) + query,
            request.version,
            status,
        )

    def make_scope(self, request: WireRequest) -> Scope:
        """The ASGI scope of a request."""
        config, url = self._config, httptools.parse_url(request.target)
        return {
            "type": "http",
            "asgi": {"version": config.asgi_version, "spec_version": "2.3"},
            "http_version": request.version,
            "server": _address(self.transport, "sockname"),
            "client": self.client,
            "scheme": "https" if self.transport.get_extra_info("sslcontext") else "http",
            "root_path": self.root_path,
            "headers": [*request.fields],
            "state": self._app_state.copy(),
            "method": request.method,
            "path": request.outer_path,
            "raw_path": self.root_path.encode("ascii") + url.path,
            "query_string": url.query or b"",
        }


def _address(transport: asyncio.BaseTransport, end: str) -> tuple[str, Any] | None:
    """One end of a connection: a host and a port, or the path of a Unix socket; None if unknown."""
    name = transport.get_extra_info(end)
    if isinstance(name, tuple | list) and len(name) >= 2:
        return str(name[0]), int(name[1])
    return (name, None) if isinstance(name, str) and name else None
