"""HTTP through a proxy: which one a URL is asked for through, and the requests, which aiohttp makes."""

import asyncio
import io
import os
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.errors import ConnectionLost, Misbehaved, make_unsent
from isthmus.transports.http.client.address import redact_url
from isthmus.transports.http.client.failures import describe_error, find_hint

if TYPE_CHECKING:
    import ssl

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
    named, source = (setting, "proxy=") if isinstance(setting, str) else read_proxy_environment(url)
    if not named:
        return None
    from urllib.parse import unquote, urlsplit  # most programs go without a proxy

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
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return "", ""
    from urllib import request  # slow to import, and most programs go without a proxy
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


def make_proxy_options(proxy: HttpProxy | None) -> Mapping[str, Any]:
    """Make the options by which aiohttp is told of a proxy."""
    if proxy is None:
        return {}
    credentials = {"Proxy-Authorization": proxy.credentials} if proxy.credentials else {}
    return {"proxy": proxy.url, "proxy_headers": credentials}


def open_proxied_requests(
    connect_timeout: float, tls: "ssl.SSLContext | None", proxy: bool | str
) -> "AiohttpRequests":
    """Requests through proxies, made by aiohttp, which is imported by this call and not earlier.

    Args:
        connect_timeout: seconds until a connection counts as failed.
        tls: how certificates are checked; None trusts what the system trusts.
        proxy: True takes the environment's, a URL that one.
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
        from yarl import URL

        # as it was written, unless there are letters in it that no URL has
        asked = URL(url, encoded=all("!" <= letter <= "~" for letter in url))
        try:
            response = await self._session.request(
                method, asked, data=wrap_body(body), headers=headers, allow_redirects=False, **way
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
