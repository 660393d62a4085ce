"""An HTTP request as an ASGI server hands it over: its scope, and the two callables beside it."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

from isthmus.core.http.rules import parse_accept, read_head
from isthmus.transports.http.reply import (
    JSON_TYPE,
    NO_LENGTH,
    Header,
    Receive,
    Scope,
    Send,
)
from isthmus.transports.http.request import JSON_ONLY, Exchange, HttpRequest, RequestHeaders

T = TypeVar("T")
AsgiMessage: TypeAlias = MutableMapping[str, Any]


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


def read_request(scope: Scope) -> HttpRequest:
    """What the head of a request says."""
    fields, path, prefix = scope["headers"], scope["path"], scope.get("root_path")
    server, head = scope.get("server"), read_head(fields)
    version = scope["http_version"]
    return HttpRequest(
        scope["method"],
        inner_path(scope) if prefix else path.rstrip("/"),
        prefix.rstrip("/") + path if prefix and not path.startswith(prefix.rstrip("/")) else path,
        scope["query_string"],
        version,
        fields,
        server[0] or "" if server else "",
        head,
        parse_accept(head.accept) if version != "1.0" else JSON_ONLY,
        RequestHeaders(fields),
    )


class AsgiExchange(Exchange):
    """One HTTP request and its response over ASGI.

    Args:
        scope: the ASGI scope.
        receive: the ASGI callable that gives the body, then the disconnect.
        send: the ASGI callable that takes the response.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.request = read_request(scope)
        self.loop = asyncio.get_running_loop()
        self.client = scope.get("client")
        self.task = asyncio.current_task()
        self._scope = scope
        self._receive = receive
        self._send = send
        self._pending: AsgiMessage | StartedAwaitable[AsgiMessage] | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def scope(self) -> Scope:
        """The ASGI scope."""
        return self._scope

    def take_body(self, limit: int) -> bytes | None:
        """The body where it is there as a whole and within a limit of bytes; else None."""
        # Most bodies are there as a whole; it is the others that need looking after.
        self._pending = message = start_awaitable(self._receive())
        if not isinstance(message, StartedAwaitable) and message["type"] == "http.request":
            body: bytes = message.get("body", b"")
            if len(body) <= limit and not message.get("more_body", False):
                self._pending = None
                self.is_open = self.is_unread = False
                return body
        return None

    async def read_part(self) -> bytes | None:
        """Wait for the next part of the body; None where the client has left."""
        pending, self._pending = self._pending, None
        if pending is None:
            message = await self._receive()
        else:
            message = await pending if isinstance(pending, StartedAwaitable) else pending
        self.is_open = message.get("more_body", False)
        return message.get("body", b"") if message["type"] == "http.request" else None

    def watch(self, on_left: Callable[[], None]) -> None:
        """Have ``on_left`` called when the client leaves; its request is read to the end."""
        self._watching = self.loop.create_task(self._watch(on_left))

    async def _watch(self, on_left: Callable[[], None]) -> None:
        await self.wait_until_left()
        on_left()

    def unwatch(self) -> None:
        """Call nobody any more."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None  # which holds this request, too

    async def wait_until_left(self) -> None:
        """Wait until the client leaves."""
        # A server that cannot receive any more says the same as one that says so.
        with suppress(Exception):
            while (await self._receive())["type"] != "http.disconnect":
                pass

    async def send_whole(self, status: int, body: bytes, extra: Sequence[Header] = ()) -> None:
        """Send a whole response: JSON, or nothing."""
        # RFC 9110 8.6: a server MUST NOT send Content-Length in a response with status 204
        kind = () if status == 204 else (NO_LENGTH,)
        headers = (JSON_TYPE, (b"content-length", b"%d" % len(body))) if body else kind
        send = self._send
        if self.is_unread:  # most is read
            send = LingeringResponse(self._scope, self._receive, send).send
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *extra]})
        await send({"type": "http.response.body", "body": body})

    async def send_part(
        self, chunk: bytes, headers: Sequence[Header] | None, *, more: bool
    ) -> None:
        """Send a part of an event stream."""
        if headers is not None:
            start = {"type": "http.response.start", "status": 200, "headers": [*headers]}
            await self._send(start)
        await self._send({"type": "http.response.body", "body": chunk, "more_body": more})

    async def serve_asgi(self, app: Any) -> None:
        """Leave it to an ASGI app."""
        response = LingeringResponse(self._scope, self._receive, self._send)
        await app(self._scope, response.receive, response.send)


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
