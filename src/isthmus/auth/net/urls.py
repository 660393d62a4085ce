"""URLs of authorization: compared as the specifications say, and kept as they were received.

An issuer or a resource is a text that others compare letter by letter. So nothing here hands out a
URL that was taken apart and put together again, but for :func:`canonical_resource`, whose meaning
is that.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from isthmus.errors import AuthUnsafe

DEFAULT_PORTS = {"http": 80, "https": 443}

MAX_URL_CHARS = 8 * 1024
URL_PATTERN = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.IGNORECASE | re.DOTALL,
)
HOST_PATTERN = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9\-._~]+)(?::(?P<port>\d{0,5}))?", re.IGNORECASE
)

# RFC 3986 without what a shell or a page might take for its own: quotes, and what is no URI at all.
SAFE_URL = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&()*+,;=%]+")

# RFC 8252 7.3: the port of a loopback redirection is whatever was free.
LOOPBACK_REDIRECT = re.compile(
    r"(?P<before>http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::(?P<port>\d{1,5}))?"
    r"(?P<after>(?:/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*)?(?:\?[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*)?)"
)
# Also as some servers read them that decode a path before they take it apart, or drop what follows ";".
DOT_SEGMENT = re.compile(r"(?:^|/|%2f|%5c)(?:\.|%2e){1,2}(?:/|;|%2f|%5c|%3b|$)", re.IGNORECASE)


class UrlParts(NamedTuple):
    """A URL of HTTP, taken apart."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host, and the port where it is not the scheme's own."""
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def split_url(url: str) -> UrlParts:
    """Take a URL apart; scheme and host in lower case.

    Raises:
        ValueError: it is no absolute URL of HTTP, or has a fragment, credentials, or characters
            that no URL has; says which.
    """
    found = URL_PATTERN.fullmatch(url) if len(url) <= MAX_URL_CHARS else None
    if found is None:
        raise ValueError(f"{display_url(url)} is no http:// or https:// URL")
    if not all("!" <= sign <= "~" for sign in url) or "\\" in url:
        raise ValueError(f"{display_url(url)} has characters that no URL has")
    if "@" in found["authority"]:
        raise ValueError("a URL with a user or password in it is not accepted here")
    # spec 2026-07-28 basic/authorization#canonical-server-uri: no fragment
    if found["fragment"] is not None:
        raise ValueError(f"{display_url(url)} has a fragment, which is not sent to any server")
    host = HOST_PATTERN.fullmatch(found["authority"])
    scheme = found["scheme"].lower()
    port = int(host["port"] or DEFAULT_PORTS[scheme]) if host else 0
    if host is None or not 0 < port < 65536:
        raise ValueError(f"{display_url(url)} has no usable host and port")
    return UrlParts(scheme, host["host"].lower(), port, found["path"], found["query"] or "")


def display_url(url: str) -> str:
    """A URL for a message: of a bounded length, in quotes, without its query, which may be secret."""
    place, mark, _ = url.partition("?")
    return repr(f"{place[:200]}…" if mark or len(place) > 200 else place)


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, as browsers spell it.

    Raises:
        ValueError: as :func:`split_url`.
    """
    return split_url(url).origin


def canonical_resource(url: str) -> str:
    """The URL of an MCP server as the ``resource`` that tokens are asked for.

    Scheme and host in lower case, no default port, no slash at the end.

    Raises:
        ValueError: it is no URL of HTTP, or has a fragment or credentials.

    Example::

        >>> canonical_resource("HTTPS://MCP.example.com:443/mcp/")
        'https://mcp.example.com/mcp'
    """
    # spec 2026-07-28 basic/authorization#canonical-server-uri
    parts = split_url(url)
    return f"{parts.origin}{parts.path.rstrip('/')}{parts.query}"


def resource_covers(resource: str, url: str) -> bool:
    """Whether a protected resource is a URL or stands above it, by whole segments of the path.

    ``https://h/api`` covers ``https://h/api/mcp``, and not ``https://h/api123``. What has ``..``
    in its path, however it is spelt, covers nothing and is not covered; nor does what is no URL.

    Args:
        resource: the resource as its metadata names it.
        url: the MCP server's URL.
    """
    # spec 2025-06-18 basic/authorization#server-metadata-discovery
    try:
        above, below = split_url(resource), split_url(url)
    except ValueError:
        return False
    if (
        above.origin != below.origin
        or DOT_SEGMENT.search(above.path)
        or DOT_SEGMENT.search(below.path)
    ):
        return False
    path = above.path.rstrip("/")
    if above.query:
        return (path, above.query) == (below.path.rstrip("/"), below.query)
    return below.path == path or below.path.startswith(f"{path}/")


def is_same_resource(resource: str, url: str) -> bool:
    """Whether a protected resource is the MCP server at a URL, and not one above or below it.

    Origin and path are compared, a slash at the end apart. A resource without a query is the URL
    with one, since both are one endpoint; a resource with a query is that URL only.

    Args:
        resource: the resource as its metadata name it.
        url: the MCP server's URL.
    """
    # RFC 9728 3.3: "identical to the protected resource's resource identifier value"
    try:
        named, asked = split_url(resource), split_url(url)
    except ValueError:
        return False
    same = resource_covers(resource, url) and named.path.rstrip("/") == asked.path.rstrip("/")
    return same and named.query in {"", asked.query}


def is_loopback(host: str) -> bool:
    """Whether a host, with or without brackets, is this machine: 127.0.0.0/8, ::1, ``localhost``.

    What merely resolves to it does not count, nor do other spellings of the same address.
    """
    host = host.lower().removeprefix("[").removesuffix("]")
    if host in {"localhost", "::1"}:
        return True
    parts = host.split(".")
    return (
        len(parts) == 4
        and parts[0] == "127"
        and all(p.isascii() and p.isdigit() and str(int(p)) == p and int(p) < 256 for p in parts)
    )


def is_secure(url: str) -> bool:
    """Whether nobody on the way can read along: ``https``, or ``http`` that stays on this machine."""
    try:
        parts = split_url(url)
    except ValueError:
        return False
    # spec 2026-07-28 basic/authorization/security-considerations#communication-security
    return parts.scheme == "https" or is_loopback(parts.host)


def redirect_matches(registered: str, given: str) -> bool:
    """Whether a redirect URI is the registered one.

    They are equal letter by letter. Only of ``http`` on the loopback interface may the port
    differ (RFC 8252 7.3; ``localhost`` counts, as clients register it).
    """
    # spec 2026-07-28 basic/authorization/security-considerations#open-redirection: exact match
    if registered == given:
        return True
    known, asked = LOOPBACK_REDIRECT.fullmatch(registered), LOOPBACK_REDIRECT.fullmatch(given)
    if known is None or asked is None or DOT_SEGMENT.search(asked["after"].partition("?")[0]):
        return False
    if asked["port"] is not None and not 0 < int(asked["port"]) < 65536:
        return False
    return (known["before"], known["after"]) == (asked["before"], asked["after"])


def check_browser_url(url: str) -> str:
    """A URL that may be given to a browser, as it came.

    Raises:
        AuthUnsafe: it is neither ``https`` nor ``http`` on this machine, holds credentials, or
            characters that could mean something to a shell. The message says which.
    """
    if not SAFE_URL.fullmatch(url):
        raise AuthUnsafe(
            f"{display_url(url)} is not opened in a browser: it has characters that do not belong there"
        )
    try:
        parts = split_url(url.partition("#")[0])
    except ValueError as error:
        raise AuthUnsafe(f"not opened in a browser: {error}") from None
    if parts.scheme != "https" and not is_loopback(parts.host):
        raise AuthUnsafe(
            f"{display_url(url)} is not opened in a browser: only https is, and http on this machine"
        )
    return url


def well_known_url(url: str, suffix: str) -> str:
    """The URL of a URL's metadata: the suffix stands between host and path (RFC 8615).

    Args:
        url: an issuer (RFC 8414 3.1) or a protected resource (RFC 9728 3.1).
        suffix: ``oauth-protected-resource``, ``oauth-authorization-server``.

    Raises:
        ValueError: as :func:`split_url`.

    Example::

        >>> well_known("https://example.com/mcp", "oauth-protected-resource")
        'https://example.com/.well-known/oauth-protected-resource/mcp'
    """
    parts = split_url(url)
    return f"{parts.origin}/.well-known/{suffix}{parts.path.rstrip('/')}{parts.query}"


def metadata_urls(issuer: str) -> list[str]:
    """The URLs where metadata of an authorization server may stand, in the order of looking.

    Raises:
        ValueError: the issuer is no URL of HTTP, or has a query or a fragment.

    Example::

        >>> metadata_urls("https://login.example/a")[1:]  # doctest: +NORMALIZE_WHITESPACE
        ['https://login.example/.well-known/openid-configuration/a',
         'https://login.example/a/.well-known/openid-configuration']
    """
    # spec 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery
    if "?" in issuer:
        raise ValueError("an issuer has no query")
    openid = "openid-configuration"
    inserted = [well_known_url(issuer, name) for name in ("oauth-authorization-server", openid)]
    return list(dict.fromkeys([*inserted, f"{issuer.rstrip('/')}/.well-known/{openid}"]))


def add_query(url: str, fields: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """A URL with more parameters in its query, the rest of it as it came.

    Example::

        >>> with_query("https://h/cb?a=1", {"code": "x y"})
        'https://h/cb?a=1&code=x+y'
    """
    from urllib.parse import urlencode  # slow to import

    pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
    return f"{url}{'&' if '?' in url else '?'}{urlencode(pairs)}" if pairs else url


def is_same_issuer(first: str, second: str) -> bool:
    """Whether two issuers are one: equal, or ``https://host`` beside ``https://host/``.

    Some providers publish the two spellings of an issuer without a path, and cannot be used
    otherwise. Any other difference makes them two, and ``iss`` of a response is not compared by this.
    """
    # spec 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    return long == f"{short}/" and re.fullmatch(r"https?://[^/?#]+", short) is not None
