"""ASGI sender: requests to an application in the same process, without a socket.

The application's own middleware, dependencies and authorization apply, as they do behind a server. Nothing of
the caller's request goes along unless its header is named: an application that trusts a token must be
told that it gets one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from isthmus.errors import UsageError
from isthmus.openapi.apps.app_lifespan import AppLifespanRun
from isthmus.openapi.operation import FORBIDDEN_HEADERS, FORBIDDEN_PREFIXES, HEADER_NAME
from isthmus.openapi.request import PreparedRequest
from isthmus.openapi.sending import (
    MAX_REDIRECTS,
    REDIRECT_STATUSES,
    SAFE_METHODS,
    ApiResponse,
    ApiUnavailable,
    find_origin,
)
from isthmus.runtime.failures import log_failure, log_warning

if TYPE_CHECKING:
    from isthmus.server.asking.context import Context

Message: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[Message]]
AsgiSend: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[MutableMapping[str, Any], AsgiReceive, AsgiSend], Awaitable[None]]
CheckRoute: TypeAlias = Callable[[MutableMapping[str, Any], str], None]

DISCONNECT_GRACE_S = (
    10.0  # for a request whose caller has left, as after a disconnect from a server
)
CLOSE_GRACE_S = 2.0  # for background tasks when the server ends
MAX_HEADER_BYTES = 64 * 1024  # of a response, names and values together

PASSABLE = frozenset({"cookie", "x-real-ip", "forwarded", "origin", "via"})
"""Headers that no argument sets, and that may be passed on when the author names them."""


def check_passed_headers(names: Iterable[str]) -> tuple[str, ...]:
    """The headers of a caller that are passed on, in lower case.

    Raises:
        UsageError: one is no header, or belongs to the connection.
    """
    if isinstance(names, str):
        raise UsageError(f"pass_headers is a list of names: pass_headers=[{names!r}]")
    found = tuple(dict.fromkeys(name.lower() for name in names))
    for name in found:
        passable = name in PASSABLE or name.startswith(("x-forwarded-", "sec-"))
        forbidden = name in FORBIDDEN_HEADERS or name.startswith(FORBIDDEN_PREFIXES)
        if not HEADER_NAME.fullmatch(name) or (forbidden and not passable):
            raise UsageError(
                f"pass_headers: {name!r} belongs to a connection, and is not passed on"
            )
    return found


class AsgiSender:
    """Sends requests to an ASGI application in this process.

    Args:
        app: the application.
        pass_headers: names of headers that go along from the caller's own HTTP request; an argument
            never stands in for one of them.
        check_route: told of each request's scope, and the template of its path, before it is sent;
            raises where the application would take it for another operation. Where there is none, a
            slash within a part of a path is refused, since most applications match their routes with
            it decoded.
    """

    def __init__(
        self,
        app: AsgiApp,
        *,
        pass_headers: Iterable[str] = (),
        check_route: CheckRoute | None = None,
    ) -> None:
        if not callable(app):
            raise UsageError(f"app is an ASGI application, not {type(app).__name__}")
        self._app = app
        self._passed = check_passed_headers(pass_headers)
        self._check_route = check_route or _refuse_slashes
        self._lifespan = AppLifespanRun(app)
        self._running: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start the application, unless something else runs it already.

        Raises:
            RuntimeError: its lifespan failed.
        """
        await self._lifespan.open()

    async def close(self) -> None:
        """Let background tasks end, and then stop the application."""
        loop = asyncio.get_running_loop()
        running = {task for task in self._running if task.get_loop() is loop}
        if running:
            _, late = await asyncio.wait(running, timeout=CLOSE_GRACE_S)
            for task in late:
                task.cancel()
            if late:
                log_warning("%d requests to the app were still running at its end", len(late))
                await asyncio.wait(late, timeout=CLOSE_GRACE_S)
        await self._lifespan.close()

    async def send(
        self,
        request: PreparedRequest,
        *,
        limit: int,
        timeout: float,
        context: "Context | None" = None,
    ) -> ApiResponse:
        """Send a request, and wait for the whole response."""
        headers = self._make_headers(request, context)
        url = request.url
        try:
            async with asyncio.timeout(timeout):
                for _ in range(MAX_REDIRECTS):
                    answer = await self._exchange(request, url, headers, limit)
                    following = _find_redirect(request.method, url, answer)
                    if following is None:
                        return answer
                    url = following
                return answer
        except TimeoutError:
            raise ApiUnavailable(f"the API did not answer within {timeout:g} seconds") from None

    def _make_headers(
        self, request: PreparedRequest, context: "Context | None"
    ) -> list[tuple[bytes, bytes]]:
        """The headers of a request: its own, and those of the caller that are passed on."""
        found = {k.lower(): v.encode() for k, v in request.all_headers().items()}
        inbound = {} if context is None else context.headers
        for name in self._passed:
            if name != "authorization":  # which no argument can set: a credential is the default
                found.pop(name, None)  # an argument does not say who the caller is
            if (value := inbound.get(name)) is not None:
                found[name] = value.encode("latin-1", "replace")
        found["host"] = request.url.partition("://")[2].partition("/")[0].encode("ascii")
        if request.body is not None:
            found["content-length"] = b"%d" % len(request.body)
        elif request.method in {"POST", "PUT", "PATCH"}:
            found["content-length"] = b"0"
        return [(name.encode("ascii"), value) for name, value in found.items()]

    async def _exchange(
        self, request: PreparedRequest, url: str, headers: list[tuple[bytes, bytes]], limit: int
    ) -> ApiResponse:
        scope = self._make_scope(request.method, url, headers)
        self._check_route(scope, request.template)
        exchange = AppExchange(request.body or b"", limit)
        task = asyncio.get_running_loop().create_task(self._run(scope, exchange))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await exchange.response
        finally:
            exchange.leave()
            if not exchange.is_complete:  # it may notice, and a handler may end what it does
                handle = task.get_loop().call_later(DISCONNECT_GRACE_S, task.cancel)
                task.add_done_callback(lambda _: handle.cancel())

    def _make_scope(
        self, method: str, url: str, headers: list[tuple[bytes, bytes]]
    ) -> dict[str, Any]:
        from urllib.parse import unquote, urlsplit

        parts = urlsplit(url)
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": parts.scheme,
            "path": unquote(parts.path) or "/",
            "raw_path": (parts.path or "/").encode("ascii"),
            "query_string": parts.query.encode("ascii"),
            "root_path": "",
            "headers": [*headers],
            # no address: an application must not take a caller for somebody at this machine
            "client": None,
            "server": (parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)),
            "state": self._lifespan.state,
        }

    async def _run(self, scope: MutableMapping[str, Any], exchange: "AppExchange") -> None:
        """Run the application for one request, its background tasks included."""
        title = f"{scope['method']} {scope['path']}"
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            if not exchange.has_left:  # by its own doing
                log_warning("%s of the app was cancelled", title)
        except Exception as error:  # noqa: BLE001 - whatever the application raises
            if (
                not exchange.was_refused
            ):  # else it says, in one way or another, that nobody is there
                log_failure(f"{title} of the app", error)
        finally:
            exchange.finish()


class ClientGone(OSError):
    """Nobody waits for the response any more (ASGI 2.4: ``send`` raises an OSError)."""


class AppExchange:
    """One request to an application, and its response.

    Args:
        body: of the request.
        limit: bytes that the body of the response may have when it is unpacked.

    Attributes:
        response: the response when it is complete.
        has_left: nobody waits for it any more.
        was_refused: the application was told so when it sent something.
    """

    def __init__(self, body: bytes, limit: int) -> None:
        self.response: asyncio.Future[ApiResponse] = asyncio.get_running_loop().create_future()
        self.has_left = False
        self.was_refused = False
        self._body: bytes | None = body
        self._limit = limit
        self._gone = asyncio.Event()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def is_complete(self) -> bool:
        """Whether all of a response is there."""
        done = self.response.done() and not self.response.cancelled()
        return done and self.response.exception() is None

    def leave(self) -> None:
        """Tell the application that nobody is there any more, as a server does."""
        self.has_left = True
        self._gone.set()

    async def receive(self) -> Message:
        """The request's body, and then the client's end."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message of the application.

        Raises:
            ClientGone: the client has left.
        """
        if self.has_left or self.response.done():
            if self.is_complete:
                return
            self._refuse()
        if message["type"] == "http.response.start":
            self._start(message)
        elif message["type"] == "http.response.body":
            self._add(message)
        await asyncio.sleep(0)  # an endless stream must leave room for whoever wants to end it

    def finish(self) -> None:
        """The application has returned: without a response it has failed."""
        if self.response.done():
            return
        if self._status:
            self._fail("the API closed the connection before its answer was complete")
        else:
            self.response.set_result(ApiResponse(500))

    def _start(self, message: Message) -> None:
        if self._status:
            self._fail("the API's answer cannot be read")
            raise RuntimeError("the response was started twice")
        size = 0
        for name, value in message.get("headers", ()):
            key, text = bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1")
            size += len(key) + len(text)
            known = self._headers.get(key)
            self._headers[key] = text if known is None else f"{known}, {text}"
        if size > MAX_HEADER_BYTES:
            self._fail("the headers of the API's answer are too long")
        self._status = int(message["status"])

    def _add(self, message: Message) -> None:
        if not self._status:
            self._fail("the API's answer cannot be read")
            raise RuntimeError("a body was sent before the response was started")
        piece = bytes(message.get("body", b""))
        self._size += len(piece)
        if self._size > self._limit:
            self._fail_for_length()
            self._refuse()
        if piece:
            self._pieces.append(piece)
        if not message.get("more_body", False) and not self.response.done():
            self._complete()

    def _complete(self) -> None:
        body = b"".join(self._pieces)
        coding = self._headers.get("content-encoding", "identity").strip().lower()
        if coding not in {"", "identity"} and body:
            unpacked = self._unpack(coding, body)
            if unpacked is None:
                return
            body = unpacked
        self.response.set_result(ApiResponse(self._status, self._headers, body))

    def _unpack(self, coding: str, body: bytes) -> bytes | None:
        """A body that was packed though nobody asked for it; None where it cannot be had."""
        from isthmus.transports.http.client.inflate import PackedBody

        pieces, size = [], 0
        with suppress(ValueError):
            packed = PackedBody(coding)
            packed.feed(body)
            while piece := packed.take():
                size += len(piece)
                if size > self._limit:
                    self._fail_for_length()
                    return None
                pieces.append(piece)
            packed.finish()
            return b"".join(pieces)
        self._fail("the API's answer cannot be unpacked")
        return None

    def _refuse(self) -> NoReturn:
        self.was_refused = True
        raise ClientGone("the client has disconnected")

    def _fail_for_length(self) -> None:
        self._fail(
            f"the API's answer has more than {self._limit} bytes: ask for less, with a filter, a "
            "limit or a page, if the tool has such an argument"
        )

    def _fail(self, why: str) -> None:
        self._pieces.clear()
        if not self.response.done():
            self.response.set_exception(ApiUnavailable(why))


def _refuse_slashes(scope: MutableMapping[str, Any], template: str) -> None:  # noqa: ARG001 - of the protocol
    """See that no part of a path becomes two when it is decoded.

    Raises:
        ApiUnavailable: one would.
    """
    if scope["raw_path"].count(b"/") != scope["path"].count("/"):
        raise ApiUnavailable("'/' within a part of the path cannot be sent to this API")


def _find_redirect(method: str, url: str, answer: ApiResponse) -> str | None:
    """The URL of the same origin that an answer leads to; None for any other answer."""
    location = answer.headers.get("location", "")
    if answer.status not in REDIRECT_STATUSES or method not in SAFE_METHODS or not location:
        return None
    from isthmus.transports.http.client.requests import resolve_redirect

    following = resolve_redirect(url, location)
    if following is None or find_origin(following) != find_origin(url):
        return None
    return following.partition("#")[0]
