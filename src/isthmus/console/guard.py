"""Guard of the console: rules of Host, Origin and Sec-Fetch, and the headers of every answer."""

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.auth.net.urls import is_loopback, split_url
from isthmus.transports.http.reply import Header

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

SAFETY_HEADERS: tuple[Header, ...] = (
    (b"content-security-policy", CSP.encode()),
    (b"x-frame-options", b"DENY"),
    # same-origin, so that our own forms say where they come from
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
NO_STORE: Header = (b"cache-control", b"no-store")
FOREVER: Header = (b"cache-control", b"public, max-age=31536000, immutable")

FRAME_TARGETS = frozenset({"iframe", "frame", "embed", "object", "fencedframe"})


class ConsoleGuard:
    """The rules by which a request is let in, whoever sends it.

    Args:
        address: of the console, as browsers reach it: scheme, host and port.
    """

    def __init__(self, address: str) -> None:
        parts = split_url(address)
        self.origin = parts.origin
        place = self.origin.partition("://")[2]
        self._hosts = {place}
        if is_loopback(parts.host):
            port = f":{place.rpartition(':')[2]}" if place.rpartition(":")[2].isdecimal() else ""
            self._hosts |= {f"{name}{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    def check(self, request: BrowserRequest) -> None:
        """See that a request comes by a name of ours, and from no other site.

        Raises:
            RequestRefused: it does not.
        """
        headers = request.headers
        host = headers.get("host", "").lower()
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: against DNS rebinding
        if host not in self._hosts:
            raise RequestRefused("The console is not served under this host name.", status=421)
        if headers.get("sec-fetch-dest", "") in FRAME_TARGETS:
            raise RequestRefused("The console cannot be shown in a frame.", status=403)
        site = headers.get("sec-fetch-site", "none")
        scheme = self.origin.partition("://")[0]
        own = {self.origin, f"{scheme}://{host}"}
        origin = headers.get("origin")
        from_us = site in {"same-origin", "none"}
        if request.posted and not (from_us and (origin is None or origin in own)):
            raise RequestRefused("This form came from another page.", status=403)
        # Links lead here from other sites, as clients are; nothing else of theirs does.
        if not from_us and headers.get("sec-fetch-mode", "navigate") != "navigate":
            raise RequestRefused("Other sites can only link to the console.", status=403)
