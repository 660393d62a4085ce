"""The address of a server over HTTP: its URL, headers, TLS and proxy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.errors import UsageError

if TYPE_CHECKING:
    import ssl

# The most bytes one message of a server may have, unless it is said otherwise
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


class Http:
    """A server at a URL, with what a URL alone does not say.

    ``Client("https://…")`` is short for ``Client(Http("https://…"))``. The transport is found out:
    Streamable HTTP, or where the server does not know that, HTTP+SSE of 2024-11-05.

    Example:
        >>> Http("https://example.com/mcp", headers={"Authorization": "Bearer …"}, proxy=False)
        Http('https://example.com/mcp')

    Args:
        url: the endpoint.
        headers: sent with every request.
        tls: how certificates are checked, and which one we show; None trusts what the system
            trusts.
        proxy: True takes the proxy of the environment (``HTTPS_PROXY``, ``HTTP_PROXY``,
            ``NO_PROXY``), False takes none, a URL takes that one.
        limit: the most bytes one message of the server may have.

    Raises:
        UsageError: it is no URL of HTTP.
    """

    __slots__ = ("headers", "limit", "proxy", "tls", "url")

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        tls: "ssl.SSLContext | None" = None,
        proxy: bool | str = True,
        limit: int = MAX_MESSAGE_BYTES,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is no URL of HTTP: it begins with http:// or https://")
        self.url = url
        self.headers = dict(headers or {})
        self.tls = tls
        self.proxy = proxy
        self.limit = limit

    def __repr__(self) -> str:
        # without the headers, which is where people put their keys, unless that is in the URL
        return f"{type(self).__name__}({redact_url(self.url)!r})"

    def __str__(self) -> str:
        return self.url


class HttpSse(Http):
    """A server that speaks HTTP+SSE, the transport of 2024-11-05, and nothing else is tried.

    A URL alone finds that out as well, at the price of up to two requests when it is first met.
    Deprecated since 2025-03-26 (SEP-2596); a revision from 2026-09-03 on may remove it.

    Example:
        >>> HttpSse("https://example.com/sse")
        HttpSse('https://example.com/sse')
    """

    __slots__ = ()


def redact_url(url: str) -> str:
    """A URL as errors and logs have it: without its password, and what its query says.

    Example:
        >>> shown("https://ada:secret@example.com/mcp?key=secret")
        'https://example.com/mcp?…'
    """
    place, mark, _ = url.partition("?")
    scheme, there, rest = place.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{there}{authority.rpartition('@')[2]}{slash}{path}{'?…' if mark else ''}"
