"""What an HTTP client makes of an answer that is none: refusals and redirects."""

from msgspec import UNSET

from isthmus.errors import HttpRefused, Misbehaved, Refused, refused
from isthmus.transports.http.requests import Response
from isthmus.wire.jsonrpc import ErrorBody

__all__ = [
    "CREDENTIALS",
    "REDIRECTS",
    "body_of",
    "moved",
    "refusal",
    "refusal_of",
    "same_origin",
]

SNIPPET = 500
"""Characters of a refusal's body that its exception shows."""

BODY = 64 * 1024
"""Bytes of a refusal's body that are read at all."""

REDIRECTS = frozenset({301, 307, 308})

CREDENTIALS = frozenset({401, 403, 407})
"""These say something about credentials, which the body of a refusal must not hide."""

PORTS = {"http": 80, "https": 443}


async def body_of(response: Response) -> bytes:
    """The body of a refusal; nothing where it is too long to be one."""
    try:
        return await response.read(BODY)
    except Misbehaved:
        return b""


def refusal(response: Response, body: bytes) -> HttpRefused:
    """The exception for a status that came without a message."""
    text = body.decode("utf-8", "replace").strip()[:SNIPPET]
    location = response.headers.get("Location")
    hint = f"it redirects to {location}: use that URL if you trust it" if location else ""
    return HttpRefused(response.status, text, response.headers, hint)


def refusal_of(error: ErrorBody, status: int) -> Refused:
    """The exception for a status that came with an error."""
    no = refused(error.code, error.message, None if error.data is UNSET else error.data)
    no.status = status
    return no


def same_origin(url: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    from urllib.parse import urlsplit  # has been imported by the HTTP client already

    try:
        here, there = urlsplit(url), urlsplit(other)
        ports = [p.port or PORTS.get(p.scheme) for p in (here, there)]
    except ValueError:  # it is no URL at all
        return False
    same = (here.scheme, here.hostname) == (there.scheme, there.hostname)
    return same and ports[0] == ports[1] and there.hostname is not None


def moved(url: str, location: str) -> str | None:
    """Where a redirect leads, if that is the same origin; None if not."""
    from urllib.parse import urljoin  # has been imported by the HTTP client already

    try:
        target = urljoin(url, location)
    except ValueError:  # it is no URL at all
        return None
    return target if location and target != url and same_origin(url, target) else None
