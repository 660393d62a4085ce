"""Senders of requests to an API: over HTTP, to the origins of its base URL and nowhere else."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from isthmus.errors import ConnectionLost, Misbehaved, ToolError
from isthmus.openapi.request import PreparedRequest, parse_base_url
from isthmus.runtime.failures import log_warning

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from isthmus.server.asking.context import Context
    from isthmus.transports.http.client.dial import HostAddress, HttpOrigin
    from isthmus.transports.http.client.pool import PooledRequests

CONNECT_TIMEOUT_S = 10.0
MAX_REDIRECTS = 3  # within the origin, and only of what changes nothing
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
SAFE_METHODS = frozenset({"GET", "HEAD"})


class ApiUnavailable(ToolError):
    """The API gave no answer, or none that could be read; the text says so to a model."""


class ApiResponse(Struct, frozen=True):
    """The response of an API, whole.

    Attributes:
        status: of HTTP.
        headers: by name in lower case.
        body: unpacked.
    """

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Sender(Protocol):
    """Sends requests to one API."""

    async def send(
        self, request: PreparedRequest, *, limit: int, timeout: float, context: "Context | None"
    ) -> ApiResponse:
        """Send a request, and wait for the whole response, whatever its status.

        Args:
            request: the request.
            limit: bytes that the body may have when it is unpacked.
            timeout: seconds for all of it.
            context: of the call that it is made for.

        Raises:
            ApiUnavailable: no response in time, or one that is too long.
        """
        ...

    async def close(self) -> None:
        """Close what is open; safe to call twice."""
        ...


class HttpSender:
    """Sends requests over HTTP to settled origins.

    Args:
        trusted: origins that the author named: they may be private addresses, and plain ``http``.
        public: origins that the document named: only public addresses, by ``https``.
        tls: how certificates are checked; None trusts what the system trusts.
    """

    def __init__(
        self,
        trusted: frozenset[str],
        public: frozenset[str] = frozenset(),
        *,
        tls: "ssl.SSLContext | None" = None,
    ) -> None:
        self._trusted = trusted
        self._public = public - trusted
        self._tls = tls
        self._requests: PooledRequests | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(
        self,
        request: PreparedRequest,
        *,
        limit: int,
        timeout: float,
        context: "Context | None" = None,  # noqa: ARG002 - for senders that pass it on
    ) -> ApiResponse:
        """Send a request, and wait for the whole response."""
        try:
            async with asyncio.timeout(timeout):
                return await self._follow(request, limit)
        except TimeoutError:
            raise ApiUnavailable(f"the API did not answer within {timeout:g} seconds") from None

    async def _follow(self, request: PreparedRequest, limit: int) -> ApiResponse:
        """Send a request, and again to where the same origin says that it has moved."""
        url = request.url
        for _ in range(MAX_REDIRECTS):
            answer = await self._exchange(request, url, limit)
            location = answer.headers.get("location", "")
            if answer.status not in REDIRECT_STATUSES or request.method not in SAFE_METHODS:
                return answer
            following = _find_next(url, location)
            if following is None:
                return answer
            url = following
        return answer

    async def _exchange(self, request: PreparedRequest, url: str, limit: int) -> ApiResponse:
        self.check_origin(url)
        headers = {"Accept-Encoding": "gzip, deflate", "User-Agent": "isthmus"}
        headers.update(request.all_headers())
        try:
            response = await self._open_requests().send(request.method, url, headers, request.body)
        except ConnectionLost as error:
            raise _explain_loss(error) from None
        try:
            # the length that is told of a HEAD is that of what GET would bring
            body = b"" if request.method == "HEAD" else await response.read(limit)
        except Misbehaved:
            raise ApiUnavailable(
                f"the API's answer has more than {limit} bytes: ask for less, with a filter, a "
                "limit or a page, if the tool has such an argument"
            ) from None
        except ConnectionLost as error:
            raise _explain_loss(error) from None
        finally:
            response.close()
        heads = {name.lower(): value for name, value in response.headers.items()}
        return ApiResponse(response.status, heads, body)

    def check_origin(self, url: str) -> None:
        """See that a URL is at one of the origins, whoever built it.

        Raises:
            ApiUnavailable: it is not.
        """
        origin = find_origin(url)
        if origin not in self._trusted and not (
            origin in self._public and origin.startswith("https:")
        ):
            log_warning("a request to %r was not sent: it is none of the API's origins", origin)
            raise ApiUnavailable("the request would not have gone to the API, and was not sent")

    async def close(self) -> None:
        """Close every connection; a later request opens new ones."""
        requests, self._requests = self._requests, None
        if requests is not None:
            await requests.close()

    def _open_requests(self) -> "PooledRequests":
        """The connections of this loop: they cannot be used on any other."""
        from isthmus.transports.http.client.pool import PooledRequests

        loop = asyncio.get_running_loop()
        if self._requests is None or self._loop is not loop:
            self._requests = PooledRequests(
                connect_timeout=CONNECT_TIMEOUT_S, tls=self._tls, resolve=self._resolve_guarded
            )
            self._loop = loop
        return self._requests

    async def _resolve_guarded(self, origin: "HttpOrigin") -> "Sequence[HostAddress]":
        """The addresses of an origin; each is judged where the document named it."""
        from isthmus.auth.net.addresses import NetworkRefused, admit_addresses, resolve_host

        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        port = f":{origin.port}" if origin.port != {"http": 80, "https": 443}[origin.scheme] else ""
        trusted = f"{origin.scheme}://{host}{port}" in self._trusted
        try:
            return await admit_addresses(origin, resolve_host, trusted=trusted)
        except NetworkRefused as error:
            log_warning("%s: pass base_url= if the API is meant to be there", error)
            raise ApiUnavailable(
                "the API is at an address that is not public, and was not asked"
            ) from None


def find_origin(url: str) -> str:
    """The origin of a URL; empty where it is no plain URL of HTTP."""
    from isthmus.auth.net.urls import split_url

    try:
        return split_url(url[: url.index("?")] if "?" in url else url).origin
    except ValueError:
        return ""


def _find_next(url: str, location: str) -> str | None:
    """The URL that a redirect leads to within the origin; None for any other."""
    from isthmus.transports.http.client.requests import resolve_redirect

    following = resolve_redirect(url, location)
    if following is None or find_origin(following) != find_origin(url):
        return None
    return following.partition("#")[0]


def _explain_loss(error: Any) -> ApiUnavailable:
    """The text that a model reads of a connection that failed: without addresses; the log has them."""
    log_warning("a request to an API failed: %s", error)
    broke = "the API closed the connection before its answer was complete"
    return ApiUnavailable("the API cannot be reached" if not error.sent else broke)


def merge_origins(urls: "list[str]") -> frozenset[str]:
    """The origins of base URLs."""
    return frozenset(parse_base_url(url).origin for url in urls)
