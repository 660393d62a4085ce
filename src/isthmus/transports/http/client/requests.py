"""HTTP requests of a client: what sends them and what comes back; refusals and redirects.

Nothing else in isthmus knows how requests are made: :class:`Requests` sends one and is closed in
the end; the :class:`Response` is read whole, read in pieces, or closed. Whoever wants another
library in between writes these five methods.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import UNSET

from isthmus.errors import HttpRefused, Misbehaved, Refused, refused
from isthmus.wire.jsonrpc import ErrorBody


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
