"""HTTP requests of a client, made by aiohttp; with proxies, refusals and redirects.

Nothing else in isthmus knows which library makes the requests: :class:`Requests` sends one and is
closed in the end; the :class:`Response` is read whole, read in pieces, or closed. Whoever wants
another library, or a network guard in between, writes these five methods.
"""

import asyncio
import errno
import io
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from isthmus.errors import ConnectionLost, HttpRefused, Misbehaved, Refused, make_unsent, refused
from isthmus.transports.http.client.address import redact_url
from isthmus.wire.jsonrpc import ErrorBody

if TYPE_CHECKING:
    import aiohttp

PROXY_SCHEMES = ("http://", "https://")


class HttpProxy(msgspec.Struct, frozen=True):
    """A proxy to go through.

    Attributes:
        url: where it is, without credentials.
        credentials: what ``Proxy-Authorization`` shall say, or None.
    """

    url: str
    credentials: str | None = None


def choose_proxy(url: str, setting: bool | str) -> HttpProxy | None:
    """The proxy for a URL, or None for the direct way.

    The environment is asked as other programs do it: ``HTTPS_PROXY`` or ``HTTP_PROXY`` by the
    URL's scheme, in either case of letters, and ``NO_PROXY`` for exceptions. What runs on this
    machine is never asked for through a proxy of the environment.

    Args:
        url: what is asked for.
        setting: True asks the environment, False goes the direct way, a URL names the proxy.

    Raises:
        ConnectionLost: the proxy is of a kind that cannot be used.
    """
    if setting is False:
        return None
    from urllib.parse import unquote, urlsplit  # has been imported by the HTTP client already

    named, source = (setting, "proxy=") if isinstance(setting, str) else read_proxy_environment(url)
    if not named:
        return None
    if "://" not in named:
        named = f"http://{named}"
    if not named.lower().startswith(PROXY_SCHEMES):
        kind = named.partition(":")[0]
        raise ConnectionLost(
            f"{source} names a {kind} proxy, and only http:// and https:// proxies can be used: "
            "name another one, or pass proxy=False to go without"
        )
    parts = urlsplit(named)
    place = parts.netloc.rpartition("@")[2]
    if parts.username is None:
        return HttpProxy(f"{parts.scheme}://{place}")
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return HttpProxy(f"{parts.scheme}://{place}", f"Basic {b64encode(pair.encode()).decode()}")


def read_proxy_environment(url: str) -> tuple[str, str]:
    """The proxy the environment names for a URL, empty for none, and the variable it is in."""
    from urllib import request  # both have been imported by the HTTP client already
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies: dict[str, str] = request.getproxies_environment()
    excepted: Any = request.proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it
    if is_this_machine(host) or excepted(parts.netloc.rpartition("@")[2], proxies):
        return "", ""
    return proxies.get(parts.scheme, ""), f"{parts.scheme.upper()}_PROXY"


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    from ipaddress import ip_address  # not needed until a request is made

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Response(Protocol):
    """The answer to one HTTP request: its head is here, its body may still be on its way.

    Attributes:
        status: the HTTP status code.
        headers: case-insensitive by name.
    """

    status: int
    headers: Mapping[str, str]

    async def read(self, limit: int) -> bytes:
        """The whole body, decompressed.

        Raises:
            Misbehaved: it has more than ``limit`` bytes.
            ConnectionLost: it broke off.
        """
        ...

    async def piece(self) -> bytes:
        """The next piece of the body as it arrives; empty at its end.

        Raises:
            ConnectionLost: it broke off.
        """
        ...

    def close(self) -> None:
        """Let go of it; a body not read to its end takes its connection along.

        Whoever waits for a piece gets ``ConnectionLost``.
        """
        ...


class Requests(Protocol):
    """Makes HTTP requests to one server, on connections it keeps."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request and wait for the head of the response; redirects are not followed.

        Raises:
            ConnectionLost: no connection, or it ended before the response; says which.
        """
        ...

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        ...


def open_requests(
    *,
    connect_timeout: float,
    tls: ssl.SSLContext | None = None,
    proxy: bool | str = True,
) -> Requests:
    """Requests made by aiohttp, which is imported by this call and not earlier.

    Args:
        connect_timeout: seconds until a connection counts as failed. Nothing else is timed here:
            who waits for an answer knows how long.
        tls: how certificates are checked; None trusts what the system trusts.
        proxy: True takes the environment's, False none, a URL that one.
    """
    import aiohttp

    # No limit: each call in flight and each stream holds a connection of its own.
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=True if tls is None else tls),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout),
    )
    # RuntimeError is what reading from a closed connection, or sending after the end, raises.
    faults = (aiohttp.ClientError, OSError, ValueError, RuntimeError)
    return AiohttpRequests(session, faults, proxy)


class AiohttpRequests:
    """:class:`Requests` on an aiohttp session.

    Args:
        session: makes the requests; closed with this.
        faults: what its methods raise when something goes wrong.
        proxy: True takes the environment's, False none, a URL that one.
    """

    def __init__(
        self,
        session: "aiohttp.ClientSession",
        faults: tuple[type[Exception], ...],
        proxy: bool | str = False,
    ) -> None:
        self._session = session
        self._faults = faults
        self._proxy = proxy
        self._ways: dict[str, Mapping[str, Any]] = {}

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> "AiohttpResponse":
        """Send a request and wait for the head of the response."""
        way = self._ways.get(url)
        if way is None:
            way = self._ways[url] = make_proxy_options(choose_proxy(url, self._proxy))
        if "proxy" in way and url.startswith("http:"):  # it reads the request, headers and all
            headers = {**headers, **way["proxy_headers"]}
        try:
            response = await self._session.request(
                method, url, data=wrap_body(body), headers=headers, allow_redirects=False, **way
            )
        except self._faults as error:
            where = f" through the proxy {way['proxy']}" if way else ""
            why = f"{method} {redact_url(url)}{where}: {describe_error(error)}{find_hint(error, proxied=bool(way))}"
            # aiohttp's errors of connections that never came about have this
            kind = make_unsent if hasattr(error, "os_error") else ConnectionLost
            raise kind(why) from error
        return AiohttpResponse(response, self._faults)

    async def close(self) -> None:
        """Close every connection, and let the loop finish closing their sockets."""
        if self._session.closed:
            return
        await self._session.close()
        await asyncio.sleep(0)


# Bytes of a body beyond which aiohttp asks for it in pieces, lest it hold up everybody else
MAX_WHOLE_BODY_BYTES = 1024 * 1024


def wrap_body(body: bytes | None) -> bytes | io.BytesIO | None:
    """A body as aiohttp wants it."""
    return io.BytesIO(body) if body is not None and len(body) > MAX_WHOLE_BODY_BYTES else body


class AiohttpResponse:
    """:class:`Response` around an aiohttp response."""

    __slots__ = ("_faults", "_response", "headers", "status")

    def __init__(
        self, response: "aiohttp.ClientResponse", faults: tuple[type[Exception], ...]
    ) -> None:
        self._response = response
        self._faults = faults
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self, limit: int) -> bytes:
        """The whole body: in one go where its length is known beforehand."""
        length = self.headers.get("Content-Length", "")
        if length.isdigit() and "Content-Encoding" not in self.headers:
            self._bound(int(length), limit)
            try:
                return await self._response.read()
            except self._faults as error:
                raise self._broken(error) from error
        pieces: list[bytes] = []
        size = 0
        while piece := await self.piece():
            size += len(piece)
            self._bound(size, limit)
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """The next piece of the body as it arrives; empty at its end."""
        try:
            return await self._response.content.readany()
        except self._faults as error:
            raise self._broken(error) from error

    def close(self) -> None:
        """Let go of it."""
        self._response.close()

    def _bound(self, size: int, limit: int) -> None:
        if size > limit:
            self.close()
            raise Misbehaved(
                f"the answer of {redact_url(str(self._response.url))} has more than {limit} bytes, "
                "which is as much as this client takes"
            )

    def _broken(self, error: Exception) -> ConnectionLost:
        # aiohttp raises one object for every response that is closed while it is read: the frames
        # it came through, and all that hangs on them, would stay with it for ever.
        error.__traceback__ = None
        return ConnectionLost(
            f"the answer of {redact_url(str(self._response.url))} broke off: {describe_error(error)}"
        )


def describe_error(error: Exception) -> str:
    """An exception in words: the system's where it comes from there; some of aiohttp's have none."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, socket.gaierror):
        return str(cause.strerror)
    # The numbers of TLS errors are not the system's.
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno)
    if isinstance(cause, TimeoutError):
        return "no connection in time"
    if any(name in str(error) for name in UNFINISHED_BODY_ERRORS):
        return "the connection ended in the middle of it"
    if hasattr(error, "request_info"):  # its own words have the whole URL in them
        return f"{getattr(error, 'status', '')} {getattr(error, 'message', '')}".strip()
    return str(error) or type(error).__name__


def make_proxy_options(proxy: HttpProxy | None) -> Mapping[str, Any]:
    """Make the options by which aiohttp is told of a proxy."""
    if proxy is None:
        return {}
    credentials = {"Proxy-Authorization": proxy.credentials} if proxy.credentials else {}
    return {"proxy": proxy.url, "proxy_headers": credentials}


def find_hint(error: Exception, *, proxied: bool = False) -> str:
    """Find the hint that helps after an exception; empty where none is known."""
    cause = getattr(error, "os_error", error)
    cause = getattr(cause, "certificate_error", cause)
    status = getattr(error, "status", None) if proxied else None  # it would not let us through
    for known, words in ERROR_HINTS:
        if known(cause, status):
            return f": {words}"
    return ""


# What aiohttp calls a body whose end never came
UNFINISHED_BODY_ERRORS = ("TransferEncodingError", "ContentLengthError")

ErrorTest: TypeAlias = Callable[[Any, int | None], bool]

# Exceptions by what they are, and what helps
ERROR_HINTS: tuple[tuple[ErrorTest, str], ...] = (
    (
        lambda _, status: status == 407,
        "it wants credentials: http://USER:PASSWORD@HOST in the proxy's URL",
    ),
    (
        lambda _, status: status is not None,
        "NO_PROXY names hosts to be reached without the proxy, proxy=False goes without it",
    ),
    (lambda e, _: getattr(e, "errno", None) == errno.ECONNREFUSED, "is a server running there?"),
    (lambda e, _: isinstance(e, socket.gaierror), "is the name right, and does DNS know it?"),
    (
        lambda e, _: isinstance(e, ssl.SSLCertVerificationError),
        "pass tls= a context that trusts the server's certificate",
    ),
    (
        lambda e, _: isinstance(e, ssl.SSLError) and "WRONG_VERSION" in str(e),
        "does it speak http:// rather than https://?",
    ),
    (
        lambda e, _: isinstance(e, TimeoutError),
        "nothing answers there; connect_timeout= gives it more time",
    ),
)


MAX_SNIPPET_CHARS = 500  # characters of a refusal's body that its exception shows

MAX_REFUSAL_BYTES = 64 * 1024  # bytes of a refusal's body that are read at all

REDIRECT_STATUSES = frozenset({301, 307, 308})

# These say something about credentials, which the body of a refusal must not hide
CREDENTIAL_STATUSES = frozenset({401, 403, 407})

DEFAULT_PORTS = {"http": 80, "https": 443}


async def read_refusal_body(response: Response) -> bytes:
    """The body of a refusal; nothing where it is too long to be one."""
    try:
        return await response.read(MAX_REFUSAL_BYTES)
    except Misbehaved:
        return b""


def make_http_refused(response: Response, body: bytes) -> HttpRefused:
    """The exception for a status that came without a message."""
    text = body.decode("utf-8", "replace").strip()[:MAX_SNIPPET_CHARS]
    location = response.headers.get("Location")
    hint = f"it redirects to {location}: use that URL if you trust it" if location else ""
    return HttpRefused(response.status, text, response.headers, hint)


def make_refused(error: ErrorBody, status: int) -> Refused:
    """The exception for a status that came with an error."""
    no = refused(error.code, error.message, None if error.data is UNSET else error.data)
    no.status = status
    return no


def same_origin(url: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    from urllib.parse import urlsplit  # has been imported by the HTTP client already

    try:
        here, there = urlsplit(url), urlsplit(other)
        ports = [p.port or DEFAULT_PORTS.get(p.scheme) for p in (here, there)]
    except ValueError:  # it is no URL at all
        return False
    same = (here.scheme, here.hostname) == (there.scheme, there.hostname)
    return same and ports[0] == ports[1] and there.hostname is not None


def resolve_redirect(url: str, location: str) -> str | None:
    """Resolve a redirect within the same origin; None for any other."""
    from urllib.parse import urljoin  # has been imported by the HTTP client already

    try:
        target = urljoin(url, location)
    except ValueError:  # it is no URL at all
        return None
    return target if location and target != url and same_origin(url, target) else None


class Authorization(Protocol):
    """Gets a client the tokens a server wants.

    One whose credentials may change has ``context(url)``, too: an object that stands for those of
    now, and is another one for others, so that nothing private is kept from one to the next.
    """

    def over(self, url: str, requests: Requests) -> Requests:
        """Requests to the server at a URL that carry credentials.

        Args:
            url: the MCP endpoint.
            requests: what sends them; closed with what is returned.
        """
        ...
