"""The five things needed of an HTTP client, and aiohttp doing them.

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
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from isthmus.errors import ConnectionLost, Misbehaved, unsent
from isthmus.transports.http.address import shown
from isthmus.transports.http.proxies import Proxy, proxy_for

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Requests", "Response", "connect"]


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


def connect(
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
            way = self._ways[url] = through(proxy_for(url, self._proxy))
        if "proxy" in way and url.startswith("http:"):  # it reads the request, headers and all
            headers = {**headers, **way["proxy_headers"]}
        try:
            response = await self._session.request(
                method, url, data=piecewise(body), headers=headers, allow_redirects=False, **way
            )
        except self._faults as error:
            where = f" through the proxy {way['proxy']}" if way else ""
            why = f"{method} {shown(url)}{where}: {said(error)}{hint(error, proxied=bool(way))}"
            # aiohttp's errors of connections that never came about have this
            kind = unsent if hasattr(error, "os_error") else ConnectionLost
            raise kind(why) from error
        return AiohttpResponse(response, self._faults)

    async def close(self) -> None:
        """Close every connection, and let the loop finish closing their sockets."""
        if self._session.closed:
            return
        await self._session.close()
        await asyncio.sleep(0)


LARGE = 1024 * 1024
"""Bytes of a body beyond which aiohttp asks for it in pieces, lest it hold up everybody else."""


def piecewise(body: bytes | None) -> bytes | io.BytesIO | None:
    """A body as aiohttp wants it."""
    return io.BytesIO(body) if body is not None and len(body) > LARGE else body


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
                f"the answer of {shown(str(self._response.url))} has more than {limit} bytes, "
                "which is as much as this client takes"
            )

    def _broken(self, error: Exception) -> ConnectionLost:
        # aiohttp raises one object for every response that is closed while it is read: the frames
        # it came through, and all that hangs on them, would stay with it for ever.
        error.__traceback__ = None
        return ConnectionLost(
            f"the answer of {shown(str(self._response.url))} broke off: {said(error)}"
        )


def said(error: Exception) -> str:
    """An exception in words: the system's where it comes from there; some of aiohttp's have none."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, socket.gaierror):
        return str(cause.strerror)
    # The numbers of TLS errors are not the system's.
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno)
    if isinstance(cause, TimeoutError):
        return "no connection in time"
    if any(name in str(error) for name in UNFINISHED):
        return "the connection ended in the middle of it"
    if hasattr(error, "request_info"):  # its own words have the whole URL in them
        return f"{getattr(error, 'status', '')} {getattr(error, 'message', '')}".strip()
    return str(error) or type(error).__name__


def through(proxy: Proxy | None) -> Mapping[str, Any]:
    """What aiohttp has to be told of a proxy."""
    if proxy is None:
        return {}
    credentials = {"Proxy-Authorization": proxy.credentials} if proxy.credentials else {}
    return {"proxy": proxy.url, "proxy_headers": credentials}


def hint(error: Exception, *, proxied: bool = False) -> str:
    """What to look at first, after an exception where that is known."""
    cause = getattr(error, "os_error", error)
    cause = getattr(cause, "certificate_error", cause)
    status = getattr(error, "status", None) if proxied else None  # it would not let us through
    for known, words in HINTS:
        if known(cause, status):
            return f": {words}"
    return ""


UNFINISHED = ("TransferEncodingError", "ContentLengthError")
"""What aiohttp calls a body whose end never came."""

Known: TypeAlias = Callable[[Any, int | None], bool]

HINTS: tuple[tuple[Known, str], ...] = (
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
"""Exceptions by what they are, and what helps."""
