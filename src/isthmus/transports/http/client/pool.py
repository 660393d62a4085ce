"""HTTP requests of a client on connections of our own, which are kept and used again.

Each request under way has a connection to itself. One whose response was read to its end is kept
for the next request to the same origin, until it was idle for some time or its server closed it.
What is asked for through a proxy, and nothing else, is asked for by aiohttp.
"""

import asyncio
import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple

from isthmus.errors import ConnectionLost, make_unsent
from isthmus.transports.http.client.address import redact_url
from isthmus.transports.http.client.connection import (
    HttpConnection,
    MalformedResponse,
    RequestUnsent,
    UnansweredRequest,
)
from isthmus.transports.http.client.dial import (
    HttpOrigin,
    ResolveOrigin,
    open_connection,
    resolve_origin,
)
from isthmus.transports.http.client.failures import describe_error, find_hint
from isthmus.transports.http.client.headers import encode_request_head
from isthmus.transports.http.client.proxies import (
    AiohttpRequests,
    choose_proxy,
    open_proxied_requests,
)
from isthmus.transports.http.client.requests import DEFAULT_PORTS, Requests, Response

IDLE_TIMEOUT_S = 15.0  # seconds a connection is kept without a request
UNWATCHED_IDLE_S = 0.1  # seconds idle after which the socket is looked at before it is used
MAX_IDLE_CONNECTIONS = 256  # kept for one origin; as many as one likes may be under way
MAX_KNOWN_ROUTES = 256  # URLs that were taken apart
MAX_KNOWN_HEADS = 256  # heads that were written

# RFC 9110 9.2.2: a request by one of these may be sent again
IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})

# Headers that are another one in each request, or that nobody else shall keep
UNKEPT_NAMES = ("authorization", "dpop", "cookie", "proxy-authorization")

URL_PATTERN = re.compile(
    r"(?P<scheme>https?)://(?:(?P<user>[^/?#@]*)@)?"
    r"(?P<host>\[[0-9a-f:.]+(?:%25[a-z0-9._~-]+)?\]|[a-z0-9._~-]+)(?::(?P<port>\d{0,5}))?"
    r"(?P<target>[/?][a-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?(?:#.*)?",
    re.IGNORECASE | re.ASCII,
)
CONTROL_PATTERN = re.compile(r"[\x00-\x1f\x7f]")

FAULTS = (OSError, ValueError, MalformedResponse)


class HttpRoute(NamedTuple):
    """Where a URL leads to.

    Attributes:
        origin: what is connected to; None for a URL that is asked for through a proxy.
        target: path and query of the request.
        host: what ``Host`` says.
        credentials: what ``Authorization`` says where the URL has a user in it.
    """

    origin: HttpOrigin | None
    target: str = ""
    host: str = ""
    credentials: str | None = None


def open_requests(
    *,
    connect_timeout: float,
    tls: ssl.SSLContext | None = None,
    proxy: bool | str = True,
) -> Requests:
    """Requests on connections of our own, or through a proxy where there is one for a URL.

    Args:
        connect_timeout: seconds until a connection counts as failed. Nothing else is timed here:
            who waits for an answer knows how long.
        tls: how certificates are checked; None trusts what the system trusts.
        proxy: True takes the environment's, False none, a URL that one.
    """
    return PooledRequests(connect_timeout=connect_timeout, tls=tls, proxy=proxy)


class PooledRequests:
    """:class:`~isthmus.transports.http.client.requests.Requests` on connections that are kept.

    Args:
        connect_timeout: seconds until a connection counts as failed.
        tls: how certificates are checked; None trusts what the system trusts.
        proxy: True takes the environment's, False none, a URL that one.
        resolve: looks an origin up; what it raises that is no ``OSError`` reaches the caller.
    """

    def __init__(
        self,
        *,
        connect_timeout: float,
        tls: ssl.SSLContext | None = None,
        proxy: bool | str = False,
        resolve: ResolveOrigin = resolve_origin,
    ) -> None:
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._proxy = proxy
        self._resolve = resolve
        self._routes: dict[str, HttpRoute] = {}
        self._heads: dict[tuple[object, ...], bytes] = {}
        self._idle: dict[HttpOrigin, list[HttpConnection]] = {}
        self._connections: dict[HttpConnection, HttpOrigin] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._proxied: AiohttpRequests | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request and wait for the head of the response."""
        self._enter_loop()
        try:
            route = self._routes.get(url) or self._add_route(url)
            origin = route.origin
            if origin is None:
                return await self._open_proxied().send(method, url, headers, body)
            head = self._get_head(method, route, headers)
            connection = self._take_idle(origin)
            if connection is None:
                connection = await self._connect(origin)
                return await connection.exchange(method, url, head, body)
            try:
                return await connection.exchange(method, url, head, body)
            except RequestUnsent:
                pass  # it was not sent, so it can be
            except UnansweredRequest:
                # RFC 9110 9.2.2, RFC 9112 9.3.1: what is not idempotent SHOULD NOT be sent again
                # by itself, since it may have been done; and nothing is sent a third time
                if method not in IDEMPOTENT_METHODS:
                    raise
            connection = await self._connect(origin)
            return await connection.exchange(method, url, head, body)
        except FAULTS as error:
            why = f"{method} {redact_url(url)}: {describe_error(error)}{find_hint(error)}"
            kind = make_unsent if isinstance(error, UNSENT) else ConnectionLost
            raise kind(why) from error

    async def close(self) -> None:
        """Close every connection, and let the loop finish closing their sockets."""
        self._closed = True
        self._enter_loop()
        proxied, self._proxied = self._proxied, None
        if proxied is not None:
            await proxied.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._connections:
            for connection in list(self._connections):
                connection.give_up(ConnectionResetError("the connection was closed"))
            await asyncio.sleep(0)

    def _get_head(self, method: str, route: HttpRoute, headers: Mapping[str, str]) -> bytes:
        """A request's head, written once where it is the same again and again."""
        key = (method, route, *headers.items())
        head = self._heads.get(key)
        if head is None:
            sent = dict(headers)
            names = [name.lower() for name in sent]
            if route.credentials is not None and "authorization" not in names:
                sent["Authorization"] = route.credentials
            head = encode_request_head(method, route.target, route.host, sent)
            if not any(name in UNKEPT_NAMES for name in names):
                if len(self._heads) >= MAX_KNOWN_HEADS:
                    self._heads.clear()
                self._heads[key] = head
        return head

    def _add_route(self, url: str) -> HttpRoute:
        """Find out where a URL leads to, and remember it."""
        proxied = choose_proxy(url, self._proxy) is not None
        route = HttpRoute(None) if proxied else parse_route(url)
        if len(self._routes) >= MAX_KNOWN_ROUTES:
            self._routes.clear()
        self._routes[url] = route
        return route

    def _enter_loop(self) -> None:
        """Leave behind what belongs to another loop: it cannot be used, nor closed, on this one."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._proxied, self._sweep = loop, None, None
            self._idle.clear()
            self._connections.clear()

    def _open_proxied(self) -> AiohttpRequests:
        self._check_open()
        if self._proxied is None:
            self._proxied = open_proxied_requests(self._connect_timeout, self._tls, self._proxy)
        return self._proxied

    def _check_open(self) -> None:
        if self._closed:
            raise Unreachable(OSError("the connection was closed"))

    # Connections

    async def _connect(self, origin: HttpOrigin) -> HttpConnection:
        """A new connection.

        Raises:
            Unreachable: there is none.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                connection: HttpConnection = await open_connection(
                    origin,
                    lambda: HttpConnection(loop, self._keep, self._forget),
                    resolve=self._resolve,
                    tls=self._tls,
                )
        except OSError as error:
            raise Unreachable(error) from error
        self._connections[connection] = origin
        if self._closed:
            connection.give_up(ConnectionResetError("the connection was closed"))
        return connection

    def _take_idle(self, origin: HttpOrigin) -> HttpConnection | None:
        """A kept connection that its server has not closed; the last one used is the likeliest."""
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()
            if connection.ended:
                continue
            idle = asyncio.get_running_loop().time() - connection.idle_since
            if idle < UNWATCHED_IDLE_S or not connection.is_readable():
                return connection
            connection.give_up(ConnectionResetError("it was idle"))
        return None

    def _keep(self, connection: HttpConnection) -> None:
        """Keep a connection for the next request."""
        origin = self._connections.get(connection)  # none where it was left behind
        kept = [] if origin is None else self._idle.setdefault(origin, [])
        if origin is None or self._closed or len(kept) >= MAX_IDLE_CONNECTIONS:
            connection.give_up(ConnectionResetError("it is over"))
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        kept.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_TIMEOUT_S, self._close_idle)

    def _close_idle(self) -> None:
        """Close what was idle for long; one timer for all of them."""
        loop = asyncio.get_running_loop()
        latest = loop.time() - IDLE_TIMEOUT_S
        self._sweep = None
        for origin, kept in list(self._idle.items()):
            for connection in [c for c in kept if c.idle_since <= latest]:
                kept.remove(connection)
                connection.give_up(ConnectionResetError("it was idle"))
            if not kept:
                del self._idle[origin]
        if self._idle:
            oldest = min(kept[0].idle_since for kept in self._idle.values())
            self._sweep = loop.call_at(oldest + IDLE_TIMEOUT_S, self._close_idle)

    def _forget(self, connection: HttpConnection) -> None:
        """A connection has ended."""
        origin = self._connections.pop(connection, None)
        kept = self._idle.get(origin) if origin is not None else None
        if kept and connection in kept:
            kept.remove(connection)


class Unreachable(ConnectionError):
    """No connection came about.

    Args:
        os_error: the reason.
    """

    def __init__(self, os_error: OSError) -> None:
        super().__init__(str(os_error))
        self.os_error = os_error


# After these no byte of the request can have left; a ValueError is of its URL or its head
UNSENT = (Unreachable, RequestUnsent, ValueError)


def parse_route(url: str) -> HttpRoute:
    """Where a URL leads to.

    Raises:
        ValueError: it is no URL of HTTP.
    """
    if CONTROL_PATTERN.search(url):
        raise ValueError("the URL has a control character in it")
    found = URL_PATTERN.fullmatch(url)
    if found is None:  # it has letters that no URL has, and has to be written in those it may have
        from yarl import URL

        found = URL_PATTERN.fullmatch(str(URL(url)))
    if found is None:
        raise ValueError("it is no URL of HTTP")
    scheme, host = found["scheme"].lower(), found["host"].lower()
    default = DEFAULT_PORTS[scheme]
    port = int(found["port"] or default)
    if not 0 < port < 65536:
        raise ValueError(f"there is no port {port}")
    target = found["target"] or "/"
    bare, _, zone = host.strip("[]").partition("%25")  # RFC 6874 2: a zone is not for the server
    name = f"[{bare}]" if host.startswith("[") else host
    return HttpRoute(
        HttpOrigin(scheme, f"{bare}%{zone}" if zone else bare, port),
        f"/{target}" if target.startswith("?") else target,
        name if port == default else f"{name}:{port}",
        None if found["user"] is None else make_basic_credentials(found["user"]),
    )


def make_basic_credentials(user: str) -> str:
    """Make what ``Authorization`` says of the user of a URL (RFC 7617)."""
    from urllib.parse import unquote  # few URLs have one

    name, _, password = user.partition(":")
    return f"Basic {b64encode(f'{unquote(name)}:{unquote(password)}'.encode()).decode()}"
