"""Custom HTTP routes: pages of a server's own beside the MCP endpoint (``@server.route("/status")``).

They stand behind the same guard as the endpoint (``Host`` and ``Origin``, against DNS rebinding), and behind its
authorization where they ask for it. A route has an exact path; whoever wants more mounts ``server.asgi()`` in a web
framework.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal
from isthmus.errors import UsageError
from isthmus.runtime.failures import log_failure
from isthmus.server.schema.custom_types import write_json
from isthmus.server.settings import SharedSettings
from isthmus.transports.http.origin_guard import make_cors_headers
from isthmus.transports.http.request import Exchange, UploadBudget, UploadsOverBudget

if TYPE_CHECKING:
    from isthmus.transports.http.admission import Admission
    from isthmus.transports.http.app import HttpApp
    from isthmus.transports.http.origin_guard import OriginGuard
    from isthmus.transports.http.reply import Header, Receive, Send

ROUTE_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

MAX_BODY_BYTES = 1024 * 1024  # of a request to a route that says nothing else

MAX_UPLOAD_BYTES = 64 * 1024 * 1024  # of bodies on their way to all routes together

BODY_TIMEOUT_S = 30.0

MAX_QUERY_FIELDS = 1_000

FAILED_BODY = b"Internal Server Error"
TEXT_TYPE = "text/plain; charset=utf-8"
JSON_TYPE = "application/json"
BYTES_TYPE = "application/octet-stream"

# What no route sends by itself: framing is the connection's, and a header ends where a line does
FORBIDDEN_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})

Handler = TypeVar("Handler", bound=Callable[..., Any])
"""``fn(request)`` or ``fn()``, plain or async; returns text, bytes, plain data, or a ``RouteResponse``."""


class RouteRequest(msgspec.Struct, frozen=True, gc=True):
    """A request to a custom route.

    Attributes:
        method: ``GET``, ``POST``, …; a ``HEAD`` is answered as a ``GET`` whose body is left out.
        path: the path of the route.
        query: the fields of the query; of one that comes twice, the last.
        headers: its headers by lower-case name; without credentials where somebody has authenticated.
        body: its body.
        principal: who authenticated, on a route with ``auth=True``.
        state: what the server's lifespan gave.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Any
    body: bytes
    principal: Principal | None
    state: Any

    def json(self, type: Any = Any) -> Any:
        """The body as JSON, read as a type.

        Args:
            type: the type to read it as; plain data by default.

        Raises:
            msgspec.DecodeError: it is none, or does not fit.
        """
        return msgspec.json.decode(self.body, type=type)


class RouteResponse:
    """A response of a custom route, where its status, headers or media type matter.

    Args:
        body: text, bytes, or what has a JSON form.
        status: the HTTP status.
        headers: more headers.
        media_type: of the body; by its kind if not given.

    Raises:
        UsageError: the status or a header is none.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(
        self,
        body: Any = b"",
        status: int = 200,
        *,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        if not 200 <= status <= 599:
            raise UsageError(f"{status} is no status of a response: it is from 200 to 599")
        self.status = status
        self.body, kind = _to_bytes(body)
        named = {name.lower(): value for name, value in (headers or {}).items()}
        if self.body or media_type:
            named.setdefault("content-type", media_type or kind)
        named.setdefault("x-content-type-options", "nosniff")
        self.headers = [_make_header(name, value) for name, value in named.items()]


class CustomRoute(msgspec.Struct, frozen=True):
    """A route as it was declared.

    Attributes:
        path: where it is.
        methods: the methods it takes.
        handler: answers its requests.
        takes_request: the handler takes the request.
        auth: only for those who authenticate.
        body_limit: the most bytes a request's body may have.
    """

    path: str
    methods: tuple[str, ...]
    handler: Any
    takes_request: bool
    auth: bool
    body_limit: int


def add_route(
    settings: SharedSettings,
    handler: Handler,
    path: Any,
    *,
    methods: Sequence[str] = ("GET",),
    auth: bool = False,
    body_limit: int = MAX_BODY_BYTES,
) -> Handler:
    """Declare a route, and return its function; see ``Server.route``.

    Raises:
        UsageError: there is one at this path, the server has begun to serve, or an option is none.
    """
    what = f"route {path!r}"
    if settings.router is not None:
        raise UsageError(f"{what}: a route must be declared before the server serves")
    if (
        not isinstance(path, str)
        or not path.startswith("/")
        or path != "/" + path.strip("/")
        or path == "/"
    ):
        raise UsageError(f"{what}: a path begins with a slash and ends without one, as '/status'")
    if set("{}?#%*\\") & set(path) or not path.isprintable():
        raise UsageError(
            f"{what}: a path is matched as it is: it has no patterns, query or escapes"
        )
    if path in settings.routes:
        raise UsageError(f"{what}: there is one already")
    chosen = (methods,) if isinstance(methods, str) else tuple(methods)
    unknown = [method for method in chosen if method not in ROUTE_METHODS]
    if unknown or not chosen:
        raise UsageError(
            f"{what}: methods= are some of {', '.join(ROUTE_METHODS)}, not {list(methods)}"
        )
    wanted = [
        one
        for one in inspect.signature(handler).parameters.values()
        if one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
    ]
    if len(wanted) > 1 or any(one.kind is one.KEYWORD_ONLY for one in wanted):
        raise UsageError(f"{what}: its function takes the request, or nothing")
    settings.routes[path] = CustomRoute(path, chosen, handler, bool(wanted), auth, body_limit)
    return handler


def place_routes(app: "HttpApp", settings: SharedSettings) -> None:
    """Put a server's routes beside its endpoint.

    Raises:
        UsageError: one is where something else is, or asks for authorization that there is none of.
    """
    uploads = UploadBudget(MAX_UPLOAD_BYTES)
    for route in settings.routes.values():
        if route.auth and settings.auth is None:
            raise UsageError(f"route {route.path!r}: auth=True takes Server(auth=…)")
        app.add_page(route.path, RoutePage(route, app, settings, uploads).bind)


class RoutePage:
    """A route as it is served by one app.

    Args:
        route: the route.
        app: what it stands beside.
        settings: those of the server, shared by all its parts.
        uploads: what bodies to all routes may take together.
    """

    _guard: "OriginGuard"
    _admission: "Admission | None" = None

    def __init__(
        self,
        route: CustomRoute,
        app: "HttpApp",
        settings: SharedSettings,
        uploads: UploadBudget,
    ) -> None:
        self._route = route
        self._app = app
        self._settings = settings
        self._uploads = uploads
        allowed = {*route.methods, "OPTIONS", *(("HEAD",) if "GET" in route.methods else ())}
        self._allowed = ", ".join(sorted(allowed))

    def bind(
        self, guard: "OriginGuard", admission: "Admission | None"
    ) -> Callable[[Exchange], Awaitable[None]]:
        """The page, with what judges Host and Origin, and what judges tokens."""
        self._guard = guard
        self._admission = admission if self._route.auth else None
        return self.begin

    async def begin(self, exchange: Exchange) -> None:
        """Answer a request to the route."""
        request = exchange.request
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: of the endpoint, and no
        # less of what stands beside it: a page elsewhere must not reach it by another name
        refusal = self._guard.source(request.head, request.local)
        if refusal is not None:
            await exchange.refuse(refusal)
            return
        if request.head.origin is not None:
            exchange.extra = make_cors_headers(request.head.origin)
        if request.method == "OPTIONS":
            await exchange.send_whole(204, b"", self._make_preflight(exchange))
        elif request.method not in self._allowed.split(", "):
            allow = (("allow", self._allowed),)
            what = f"This path takes {self._allowed}"
            await exchange.refuse(Refusal(405, -32600, what, UNSET, allow))
        elif self._admission is None or await self._admission.admit(exchange):
            lack = await self._app.find_unavailable(False)
            await (
                exchange.serve_asgi(partial(self._serve, exchange))
                if lack is None
                else exchange.refuse(lack)
            )

    def _make_preflight(self, exchange: Exchange) -> "tuple[Header, ...]":
        wanted = exchange.request.headers.get("access-control-request-headers", "")
        methods = self._allowed.encode()
        return (
            *exchange.extra,
            (b"allow", methods),
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", wanted.encode("latin-1", "replace")),
        )

    async def _serve(
        self, exchange: Exchange, scope: Any, receive: "Receive", send: "Send"
    ) -> None:
        """Answer over ASGI, as any media type may be answered."""
        try:
            body = await self._read_body(receive)
        except UploadsOverBudget:
            await _send_response(RouteResponse("Too many uploads", 503), exchange, send)
            return
        if not isinstance(body, bytes):
            if body is not None:
                await _send_response(body, exchange, send)
            return
        try:
            answer = await self._call(exchange, body)
            if not isinstance(answer, RouteResponse) and _is_asgi(answer):
                await answer(scope, receive, send)
                return
            response = answer if isinstance(answer, RouteResponse) else _to_response(answer)
        except Exception as error:  # noqa: BLE001 - whatever its author raised, a stranger reads none of it
            log_failure(f"route {self._route.path!r}", error)
            response = RouteResponse(FAILED_BODY, 500, media_type=TEXT_TYPE)
        await _send_response(response, exchange, send)

    async def _call(self, exchange: Exchange, body: bytes) -> Any:
        from urllib.parse import parse_qsl  # slow, and needed when a route is first asked for

        route, request = self._route, exchange.request
        origin = exchange.origin()
        fields = parse_qsl(request.query.decode("latin-1"), True, max_num_fields=MAX_QUERY_FIELDS)
        asked = RouteRequest(
            "GET" if request.method == "HEAD" and "HEAD" not in route.methods else request.method,
            route.path,
            dict(fields),
            origin.headers,
            body,
            exchange.principal,
            self._settings.state,
        )
        given = (asked,) if route.takes_request else ()
        if inspect.iscoroutinefunction(route.handler):
            return await route.handler(*given)
        answer = await self._settings.workers.run(partial(route.handler, *given))
        return await answer if inspect.isawaitable(answer) else answer

    async def _read_body(self, receive: "Receive") -> bytes | RouteResponse | None:
        """The body; a response for one that is too much, None where the client has left.

        Raises:
            UploadsOverBudget: there are too many on their way.
        """
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    part, more = message.get("body", b""), message.get("more_body", False)
                    parts.append(part)
                    size += len(part)
                    self._uploads.take(len(part))
                    if size > self._route.body_limit:
                        limit = self._route.body_limit
                        return RouteResponse(f"The body is larger than {limit} bytes", 413)
        except TimeoutError:
            return RouteResponse("The body did not come in time", 408)
        finally:
            self._uploads.give_back(size)
        return b"".join(parts)


async def _send_response(response: RouteResponse, exchange: Exchange, send: "Send") -> None:
    # RFC 9110 8.6: a server MUST NOT send Content-Length in a response with status 204
    length = () if response.status == 204 else ((b"content-length", b"%d" % len(response.body)),)
    body = (
        b"" if exchange.request.method == "HEAD" or response.status in {204, 304} else response.body
    )
    headers = [*response.headers, *length, *exchange.extra]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _to_response(answer: Any) -> RouteResponse:
    """The response to what a handler returned."""
    if answer is None:
        return RouteResponse(b"", 204)
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], int):
        return RouteResponse(answer[0], answer[1])
    return RouteResponse(answer)


def _to_bytes(body: Any) -> tuple[bytes, str]:
    if isinstance(body, str):
        return body.encode(), TEXT_TYPE
    if isinstance(body, bytes):
        return body, BYTES_TYPE
    return write_json(body), JSON_TYPE


def _make_header(name: str, value: str) -> tuple[bytes, bytes]:
    """A header as bytes.

    Raises:
        UsageError: it would be more than one line, or is the connection's.
    """
    is_token = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    if not is_token or name in FORBIDDEN_HEADERS or any(ord(sign) < 32 for sign in value):
        raise UsageError(f"{name!r}: {value!r} is no header of a response")
    try:
        return name.encode(), value.encode("latin-1")
    except UnicodeEncodeError:
        raise UsageError(f"{name!r}: {value!r} is no header of a response") from None


def _is_asgi(answer: Any) -> bool:
    """Whether it is a response of Starlette's, or of its kind."""
    return callable(answer) and hasattr(answer, "status_code")
