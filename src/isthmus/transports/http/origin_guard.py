"""Origin and Host checks (DNS rebinding), CORS, verbs and types: before a request's body is read.

A page on another site must not reach a server on this machine, neither by a form nor by giving
its own name our address (DNS rebinding). So two headers are checked:

- **Host**, the name the client believes it talks to, wherever the right answer is known: on
  requests that come in over loopback, and with ``public_url`` or ``allowed_hosts``.
- **Origin**, which only browsers send, always: a page is let in if it is one of our own, under a
  name that is known to be ours, or listed in ``allowed_origins``.

Every refusal names the value refused and the setting that would admit it.
"""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, structs

from isthmus.core.http.rules import LegacyRequest, Refusal, RequestHead, judge_head, quote_header
from isthmus.revisions import Revision
from isthmus.transports.http.reply import Header

ANY_NAME = "*"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
ALLOWED_METHODS = b"POST, GET, DELETE, OPTIONS"
REQUEST_HEADERS = (
    b"Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, "
    b"Mcp-Method, Mcp-Name, DPoP"
)
EXPOSED_HEADERS = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, DPoP-Nonce"
MAX_PASSED_HEADS = 1024


class OriginGuard:
    """Decides from a request's head alone whether it is looked at.

    Args:
        supported: the revisions spoken.
        public_url: where the world reaches this server.
        allowed_hosts: further names of this server, for one port (``example.com:8443``) or for
            any (``example.com``); ``"*"`` switches the check off.
        allowed_origins: pages elsewhere that may call it (``https://app.example.com``); ``"*"``
            switches the check off.
        resource: a URL of this server, for which tokens are issued. Requests over loopback may
            name its host, as those do that a proxy on this machine passes on.
    """

    def __init__(
        self,
        supported: tuple[Revision, ...],
        *,
        public_url: str | None = None,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        resource: str | None = None,
    ) -> None:
        self._supported = supported
        self._any_host = ANY_NAME in allowed_hosts
        self._any_origin = ANY_NAME in allowed_origins
        origins = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)
        hosts = {host.lower() for host in allowed_hosts if host != ANY_NAME}
        if public_url:
            hosts.add(_extract_host(public_url))
        # A public name does not take away the local ones: health checks come in under those.
        near = hosts if hosts and not public_url else {*hosts, *LOCAL_NAMES}
        if resource:
            near = {*near, _extract_host(resource)}
        self._near = SiteNames(frozenset(near), origins)
        self._far = SiteNames(frozenset(hosts), origins)
        self._passed: set[tuple[str | None, str | None, str]] = set()

    def check(self, verb: str, head: RequestHead, local: str) -> LegacyRequest | Refusal | None:
        """Judge a head.

        Args:
            verb: the HTTP method.
            head: the headers.
            local: the address of ours that the request came in on.

        Returns:
            A refusal; for GET and DELETE the session they are about; or None: read on.
        """
        key = (head.host, head.origin, local)
        if key not in self._passed:
            refusal = self.source(head, local)
            if refusal is not None:
                return refusal
            if len(self._passed) < MAX_PASSED_HEADS:
                self._passed.add(key)
        return None if verb == "OPTIONS" else judge_head(verb, head, self._supported)

    def host(self, head: RequestHead, local: str) -> Refusal | None:
        """As :meth:`source`, for what pages from anywhere may ask for."""
        return self.source(structs.replace(head, origin=None), local)

    def source(self, head: RequestHead, local: str) -> Refusal | None:
        """Why a head is refused for the Host it names or the Origin it comes from, or None."""
        if self._any_origin:
            head = structs.replace(head, origin=None)
        site = self._near if _is_loopback(local) else self._far
        if self._any_host or not site.hosts:
            return judge_origin(head, site)
        return judge_source(head, site)


def _extract_host(url: str) -> str:
    """The host of a URL, without its port: a proxy in front of us may have another."""
    authority = url.lower().partition("://")[2].partition("/")[0]
    name, colon, port = authority.rpartition(":")
    return name if colon and port.isdecimal() else authority


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "::ffff:127.")) or address in {"::1", "localhost"}


def is_foreign(verdict: LegacyRequest | Refusal | None) -> bool:
    """Whether a request was refused for its Host or Origin: its page may not even read that."""
    return isinstance(verdict, Refusal) and verdict.status == 403


def make_cors_headers(origin: str) -> tuple[Header, ...]:
    """Make the headers by which the page at an allowed origin may read a response (CORS)."""
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    )


def make_preflight_headers(origin: str | None, wanted: str | None) -> tuple[Header, ...]:
    """Make the headers by which the page at an allowed origin may send a request (CORS).

    Args:
        origin: the page's origin.
        wanted: the header names it asks for: which ``Mcp-Param-*`` there are, nobody can list.
    """
    if origin is None:
        return ((b"allow", ALLOWED_METHODS),)
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", ALLOWED_METHODS),
        (b"access-control-allow-headers", wanted.encode("latin-1") if wanted else REQUEST_HEADERS),
        (b"access-control-max-age", b"7200"),
        (b"vary", b"Origin, Access-Control-Request-Headers"),
    )


def refuse_slow_body(idle: float, total: float) -> Refusal:
    """The refusal of a body that does not come; the connection ends."""
    message = f"The body did not come within {idle:g} s a piece and {total:g} s: see body_timeout"
    return Refusal(408, -32600, message, UNSET, (("connection", "close"),))


def refuse_many_uploads(limit: int) -> Refusal:
    """The refusal of a body while others are still coming that are too much together."""
    again = (("retry-after", "5"), ("connection", "close"))
    return Refusal(
        503,
        -32603,
        f"Bodies of {limit} bytes together are on their way here: see upload_budget",
        UNSET,
        again,
    )


def refuse_large_body(limit: int) -> Refusal:
    """The refusal of a body over the limit; its rest stays unread, so the connection ends."""
    message = f"The body is larger than {limit} bytes: see body_limit"
    return Refusal(413, -32600, message, UNSET, (("connection", "close"),))


class SiteNames(msgspec.Struct, frozen=True):
    """The names of a server, to tell its own visitors from those a foreign page sends.

    Attributes:
        hosts: its names in lower case, with a port (``localhost:8000``) or for any port
            (``localhost``).
        origins: pages elsewhere that may call it, such as ``https://app.example.com``.
    """

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()


def judge_source(head: RequestHead, site: SiteNames) -> Refusal | None:
    """Judge the Host and the Origin a request names: a page may stand under an attacker's name.

    (2026-07-28 basic/transports/streamable-http#security-endpoint: DNS rebinding)
    """
    if not _is_own(head.host or "", site):
        # Not 421: that invites the client to try again on another connection (RFC 9110 15.5.20),
        # which cannot help.
        return Refusal(
            403,
            -32600,
            f"Host {quote_header(head.host or '')} is not served here: see allowed_hosts",
        )
    return judge_origin(head, site)


def judge_origin(head: RequestHead, site: SiteNames) -> Refusal | None:
    """As :func:`judge_source`, for a server that cannot know what it is called."""
    origin = head.origin
    if origin is None or origin.lower() in site.origins:
        return None
    scheme, _, authority = origin.partition("://")
    if scheme in {"http", "https"} and _is_own(authority, site):
        return None
    # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: 403 for a bad Origin
    return Refusal(
        403, -32600, f"Origin {quote_header(origin)} may not call this: see allowed_origins"
    )


def _is_own(authority: str, site: SiteNames) -> bool:
    name = authority.lower()
    bare, colon, port = name.rpartition(":")
    return name in site.hosts or bool(colon and port.isdecimal() and bare in site.hosts)
