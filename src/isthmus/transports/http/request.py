"""One HTTP request: its headers, path and body, and the way to refuse it."""

import asyncio
from collections.abc import Awaitable, Generator, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from isthmus.core.http.rules import AcceptedForms, Refusal, RequestHead, parse_accept
from isthmus.runtime.channel import Origin
from isthmus.transports.http.origin_guard import make_preflight_headers
from isthmus.transports.http.reply import (
    Header,
    Receive,
    Scope,
    Send,
    send_empty,
    send_json,
)
from isthmus.transports.http.request_watch import WatchedRequest
from isthmus.wire.jsonrpc import encode_error
from isthmus.wire.struct import Id

T = TypeVar("T")
AsgiMessage: TypeAlias = MutableMapping[str, Any]


CREDENTIAL_HEADERS = frozenset({b"authorization", b"dpop"})  # what proves who sends a request


class RequestHeaders(Mapping[str, str]):
    """A request's headers for whoever wants to read them: a dictionary made when first used.

    Args:
        raw: all headers as they came, names in lower case.
        bare: without credentials: somebody has judged them, and whoever reads on needs none.
    """

    __slots__ = ("_bare", "_raw", "_read")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], *, bare: bool = False) -> None:
        self._raw = raw
        self._bare = bare
        self._read: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._read is None:
            self._read = {}
            for name, value in self._raw:
                # spec 2025-11-25 basic/authorization#access-token-privilege-restriction: MUST NOT
                # pass through the token; what no handler has, is handed to nobody
                if self._bare and name in CREDENTIAL_HEADERS:
                    continue
                key, text = name.decode("latin-1"), value.decode("latin-1")
                self._read[key] = f"{self._read[key]}, {text}" if key in self._read else text
        return self._read

    def __getitem__(self, name: str) -> str:
        return self._all()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class BodyTooLarge(Exception):
    """A body longer than allowed; raised as soon as that is known."""


class BodyTooSlow(Exception):
    """A body that took longer than allowed, as a whole or from one piece to the next."""


class StartedAwaitable(Generic[T]):
    """Something that was begun, had to wait, and is still to be awaited: once.

    Args:
        steps: its steps, as ``__await__`` gives them.
        wanted: what it waits for.
    """

    __slots__ = ("_steps", "_wanted")

    def __init__(self, steps: Generator[Any, Any, T], wanted: Any) -> None:
        self._steps = steps
        self._wanted = wanted

    def __await__(self) -> Generator[Any, Any, T]:
        wanted = self._wanted
        while True:
            try:
                yield wanted
                break
            except BaseException as error:
                throw = getattr(self._steps, "throw", None)  # not every server's steps have it
                if throw is None:
                    raise
                try:
                    wanted = throw(error)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]  # what the steps give
        return (yield from self._steps)


def start_awaitable(something: Awaitable[T]) -> T | StartedAwaitable[T]:
    """Start an awaitable: its result if it need not wait for that, else what remains to be awaited.

    It tells which of the two it is, which an ``await`` does not.
    """
    steps = something.__await__()
    try:
        wanted = next(steps)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what the steps give
    return StartedAwaitable(steps, wanted)


class UploadsOverBudget(Exception):
    """All bodies on their way in are together more than is kept of them."""


class UploadBudget:
    """The bytes that unfinished bodies may take, of all connections together.

    Args:
        limit: so many.
    """

    __slots__ = ("_limit", "_used")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0

    def take(self, size: int) -> None:
        """Keep so many bytes more.

        Raises:
            UploadsOverBudget: that is too many; they are counted, and are to be given back.
        """
        self._used += size
        if self._used > self._limit:
            raise UploadsOverBudget

    def give_back(self, size: int) -> None:
        """Keep so many bytes less."""
        self._used -= size


class Upload(WatchedRequest):
    """A request's body on its way in: one that is not there as a whole yet, and so is timed.

    Args:
        first: the first piece, if it is there.
        receive: the ASGI callable.
        scope: the ASGI scope; its Content-Length is believed where it says "too long".
        limit: the most bytes taken, however they come.
        budget: the bytes that all bodies may take while they come.
        idle: seconds from one piece to the next.
        total: seconds from the first to the last.

    Attributes:
        is_open: there is more to come.
    """

    __slots__ = (
        "_budget",
        "_end",
        "_first",
        "_heard",
        "_idle",
        "_limit",
        "_receive",
        "_scope",
        "_timer",
        "_total",
        "is_open",
    )  # fmt: skip

    def __init__(
        self,
        first: AsgiMessage | StartedAwaitable[AsgiMessage],
        receive: Receive,
        scope: Scope,
        limit: int,
        budget: UploadBudget,
        *,
        idle: float,
        total: float,
    ) -> None:
        super().__init__()
        self.is_open = True
        self._first = first
        self._receive = receive
        self._scope = scope
        self._limit = limit
        self._budget = budget
        self._idle = idle
        self._total = total
        self._end = self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def read(self) -> bytes | None:
        """The body, or None when the client left before its end.

        Raises:
            BodyTooLarge: there is more of it than allowed.
            BodyTooSlow: it took longer than allowed.
            UploadsOverBudget: there are too many bodies on their way.
        """
        try:
            first = self._first
            message = await first if isinstance(first, StartedAwaitable) else first
            body: bytes = message.get("body", b"")
            if message.get("more_body", False):
                return await self._rest(body)
            self.is_open = False
            if len(body) > self._limit:
                raise BodyTooLarge
            return body if message["type"] == "http.request" else None
        except asyncio.CancelledError:
            if not self.was_cut():
                raise
            raise BodyTooSlow from None
        finally:
            self.task = None
            if self._timer is not None:
                self._timer.cancel()

    async def _rest(self, body: bytes) -> bytes | None:
        """Read a body that comes in pieces."""
        # Only for bodies in pieces does it pay to look what was announced.
        if _read_content_length(self._scope) > self._limit:
            raise BodyTooLarge
        parts, size, more = [body], len(body), True
        try:
            self._budget.take(size)
            while more:
                if size > self._limit:
                    raise BodyTooLarge
                if self._timer is not None:
                    self._heard = asyncio.get_running_loop().time()
                message = await self._receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                self._budget.take(len(parts[-1]))
                self.is_open = more = message.get("more_body", False)
        finally:
            self._budget.give_back(size)
        if size > self._limit:
            raise BodyTooLarge
        return b"".join(parts) if message["type"] == "http.request" else None

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """It was not there at once: it is timed from now on."""
        self._heard = loop.time()
        self._end = self._heard + self._total
        self._timer = loop.call_at(min(self._end, self._heard + self._idle), self._late, loop)

    def _late(self, loop: asyncio.AbstractEventLoop) -> None:
        due = min(self._end, self._heard + self._idle)
        if due <= loop.time():
            self.cut()
        else:
            self._timer = loop.call_at(due, self._late, loop)


def _read_content_length(scope: Scope) -> int:
    """The body's length as its head gives it; 0 where it does not."""
    lengths = [int(v) for name, v in scope["headers"] if name == b"content-length" and v.isdigit()]
    return max(lengths, default=0)


def inner_path(scope: Scope) -> str:
    """The path below the prefix that an app is mounted under, without a slash at its end.

    Frameworks differ in whether ``scope["path"]`` begins with ``scope["root_path"]``; since the
    ASGI specification settled it, it does. Both are understood.
    """
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "").rstrip("/")
    if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
        path = path[len(prefix) :]
    return path.rstrip("/")


def local_address(scope: Scope) -> str:
    """The address of ours that a request came in on, or "" where the server does not say."""
    server = scope.get("server")
    return server[0] or "" if server else ""


EVENTS_ONLY = AcceptedForms(json=False, events=True)
JSON_ONLY = AcceptedForms(json=True, events=False)


class Exchange(msgspec.Struct):
    """One HTTP request.

    Attributes:
        head: the headers that rules read.
        scope: the ASGI scope.
        receive: the ASGI callable that gives the body, then the disconnect.
        send: the ASGI callable that takes the response.
        extra: headers for whatever the response becomes.
        principal: who authenticated, or None.
        is_unread: its body was not read to the end.
    """

    head: RequestHead
    scope: Any  # the ASGI types are protocols, which msgspec cannot check
    receive: Any
    send: Any
    extra: tuple[Header, ...] = ()
    principal: Any = None
    is_unread: bool = True

    def takes(self, *, streamed: bool = False) -> AcceptedForms:
        """The forms of an answer that the client takes.

        Args:
            streamed: leave it no choice where it takes event streams.
        """
        if self.scope["http_version"] == "1.0":
            # RFC 9112 6.1: a server MUST NOT send chunks to a client of HTTP/1.0, and the servers
            # that there are send a stream in no other way
            return JSON_ONLY
        takes = parse_accept(self.head.accept)
        return EVENTS_ONLY if streamed and takes.events else takes

    def origin(self, session: str | None = None, transport: str = "http") -> Origin:
        """The origin of the request's message, for handlers that want to know."""
        scope, principal = self.scope, self.principal
        headers = RequestHeaders(scope["headers"], bare=principal is not None)
        return Origin(transport, headers, principal, session, scope.get("client"))

    @property
    def takes_streams(self) -> bool:
        """Whether its version of HTTP has event streams."""
        return bool(self.scope["http_version"] != "1.0")

    async def refuse(self, refusal: Refusal, id: Id | None = None) -> None:
        """Respond with a JSON-RPC error, under the request's id where that is known."""
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: else without an id
        body = encode_error(id, refusal.error(), null_id=False)
        own = tuple((name.encode(), value.encode()) for name, value in refusal.headers)
        send = self.send
        if self.is_unread:  # most is read
            send = LingeringResponse(self.scope, self.receive, send).send
        await send_json(send, refusal.status, body, (*own, *self.extra))

    async def preflight(self) -> None:
        """Respond to the question whether a page may send a request (CORS)."""
        wanted = self.origin().headers.get("access-control-request-headers")
        await send_empty(self.send, 204, make_preflight_headers(self.head.origin, wanted))


# Seconds that a refused body is read on; a server that stops waits for no longer either
DRAIN_TIMEOUT_S = 2.0

MAX_DRAIN_BYTES = 64 * 1024 * 1024
CONNECTION_CLOSE: Header = (b"connection", b"close")


class LingeringResponse:
    """Lingering close (RFC 9112 9.6) of a request whose body was not read to its end.

    A server that refuses an upload and closes makes the client's stack throw away the response
    together with the connection. So the response is sent whole, and what still comes is read and
    dropped for a while before the connection ends.

    Args:
        scope: the ASGI scope.
        receive: the ASGI callable that gives the body.
        send: the ASGI callable that takes the response.
    """

    __slots__ = ("_is_open", "_pending", "_receive", "_send", "_waits")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        fields: list[tuple[bytes, bytes]] = scope["headers"]
        self._is_open = any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 \t"))
            for name, value in fields
        )
        # RFC 9110 10.1.1: such a client sends its body when it is told to, which it will not be
        self._waits = any(name == b"expect" for name, _ in fields)
        self._pending: StartedAwaitable[AsgiMessage] | None = None

    async def receive(self) -> AsgiMessage:
        """The next piece of the body, as from the server."""
        message = await self._receive()
        self._note(message)
        return message

    async def send(self, message: AsgiMessage) -> None:
        """A part of the response, as to the server; after the last one the body is drained."""
        if message["type"] == "http.response.start":
            if self._is_open and not self._waits:
                self._peek()
            if self._is_open and CONNECTION_CLOSE not in message["headers"]:
                message = {**message, "headers": [*message["headers"], CONNECTION_CLOSE]}
            await self._send(message)
        elif self._is_open and not self._waits and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._drain()
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send(message)

    def _note(self, message: AsgiMessage) -> None:
        more = message["type"] == "http.request" and message.get("more_body", False)
        self._is_open = self._is_open and more

    def _peek(self) -> None:
        """See whether the body is there already: then the connection may be used again."""
        message = start_awaitable(self._receive())
        if isinstance(message, StartedAwaitable):
            self._pending = message
        else:
            self._note(message)

    async def _drain(self) -> None:
        dropped = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                while self._is_open and dropped <= MAX_DRAIN_BYTES:
                    pending: Any = self._receive() if self._pending is None else self._pending
                    self._pending = None
                    message: AsgiMessage = await pending
                    self._note(message)
                    dropped += len(message.get("body", b""))
