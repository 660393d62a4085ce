"""A request to the authorization server, read whole and judged before anybody looks into it.

URIs come from the configured issuer, never from the request: a proxy in front usually speaks TLS.
"""

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from isthmus.transports.http.reply import Receive, Scope

__all__ = ["Asked", "Astray", "Basic", "Unfit", "read_body", "read_form", "read_query"]

BODY = 64 * 1024
"""Bytes of a form or a registration."""

QUERY = 16 * 1024
"""Bytes of a query."""

FIELDS = 64
"""Parameters of one request."""

TIME = 15.0
"""Seconds that a body may take."""

FORM = "application/x-www-form-urlencoded"
SEVERAL = frozenset({"resource"})
"""What RFC 8707 lets come more than once."""


class Unfit(Exception):
    """A request that is answered without being looked at any further.

    Attributes:
        status: of the HTTP response.
        error: as RFC 6749 5.2 spells it.
        text: a sentence with nothing of the request in it.
        retry_after: seconds until another try has a chance; None where time changes nothing.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int = 400,
        error: str = "invalid_request",
        retry_after: int | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.error = error
        self.text = text
        self.retry_after = retry_after


class Astray(Unfit):
    """A request whose client may not be told by itself that it failed.

    The browser would be sent to a page that nobody vouches for, by a link that anybody can make.

    Attributes:
        back: where it may go on if its user wants to.
    """

    def __init__(self, back: str) -> None:
        super().__init__("the program that sent you here asked for what it cannot have")
        self.back = back


class Basic(msgspec.Struct, frozen=True):
    """What an ``Authorization: Basic`` header says, decoded."""

    client_id: str
    secret: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a request, and what its head says.

    Attributes:
        method: of HTTP.
        pairs: its parameters, without those that are empty.
        basic: its client's credentials, where they are in the header.
        proof: its DPoP proof.
        address: whom it came from.
    """

    method: str
    pairs: tuple[tuple[str, str], ...]
    basic: Basic | None = None
    proof: str | None = None
    address: str = ""

    def get(self, name: str) -> str | None:
        """A parameter; None where it is missing."""
        return next((value for key, value in self.pairs if key == name), None)

    def all(self, name: str) -> list[str]:
        """All values of a parameter."""
        return [value for key, value in self.pairs if key == name]


def head(scope: Scope, name: bytes) -> list[str]:
    """The values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def address_of(scope: Scope) -> str:
    """The address that a request came from; empty where the server does not say."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def parameters(text: bytes) -> tuple[tuple[str, str], ...]:
    """Read a form or a query.

    Raises:
        Unfit: it is none, there is too much of it, or one comes twice.
    """
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        raise Unfit("the parameters are not form-encoded UTF-8, or too many") from None
    names = [name for name, _ in pairs if name not in SEVERAL]
    # spec 2026-07-28 basic/authorization/security-considerations: OAuth 2.1 3.1, never twice
    if len(names) != len(set(names)):
        raise Unfit("a parameter comes more than once")
    # OAuth 2.1 3.1: one without a value counts as left out.
    return tuple(pair for pair in pairs if pair[1])


def read_query(scope: Scope) -> Asked:
    """Read a request whose parameters are in its URL, as those to ``/authorize`` are.

    Raises:
        Unfit: it cannot be served.
    """
    query: bytes = scope.get("query_string", b"")
    if len(query) > QUERY:
        raise Unfit("the query is too long", status=414)
    return Asked(method=scope["method"], pairs=parameters(query), address=address_of(scope))


async def read_form(scope: Scope, receive: Receive) -> Asked:
    """Read a request whose parameters are in its body, and nowhere else.

    Raises:
        Unfit: it cannot be served.
    """
    # spec 2026-07-28 basic/authorization#token-requirements: nothing secret is in a URL
    if scope.get("query_string"):
        raise Unfit("parameters belong into the body of the request, not into its URL")
    if media_type(head(scope, b"content-type")) != FORM:
        raise Unfit(f"the body has to be {FORM}")
    body = await read_body(scope, receive)
    basic = read_basic(head(scope, b"authorization"))
    asked = Asked(
        method=scope["method"],
        pairs=parameters(body),
        basic=basic,
        proof=single(head(scope, b"dpop"), "the DPoP header comes more than once"),
        address=address_of(scope),
    )
    check_credentials(asked)
    return asked


def check_credentials(asked: Asked) -> None:
    """See that a client authenticates in one way, as one client.

    Raises:
        Unfit: it does not.
    """
    # OAuth 2.1 2.4: more than one authentication method in a request is refused
    ways = [asked.basic, asked.get("client_secret"), asked.get("client_assertion")]
    if sum(way is not None for way in ways) > 1:
        raise Unfit("a client authenticates in one way at a time")
    named = asked.get("client_id")
    if asked.basic is not None and named is not None and named != asked.basic.client_id:
        raise Unfit("the header and the body name two different clients")


def media_type(values: Sequence[str]) -> str:
    """The type of a body, without its parameters; empty where there is none or more than one."""
    return values[0].partition(";")[0].strip().lower() if len(values) == 1 else ""


def single(values: Sequence[str], otherwise: str) -> str | None:
    """The one value of a header; None where there is none.

    Raises:
        Unfit: there are several.
    """
    if len(values) > 1:
        raise Unfit(otherwise, error="invalid_dpop_proof" if "DPoP" in otherwise else "invalid_request")  # fmt: skip
    return values[0] if values else None


def read_basic(values: Sequence[str]) -> Basic | None:
    """A client's credentials in its ``Authorization`` header.

    Raises:
        Unfit: there are several headers, or it cannot be read.
    """
    from urllib.parse import unquote_plus

    value = single(values, "the Authorization header comes more than once")
    if value is None or value.partition(" ")[0].lower() != "basic":
        return None
    try:
        text = b64decode(value.partition(" ")[2].strip(), validate=True).decode("utf-8")
    except (NotBase64, ValueError):
        raise unreadable_header() from None
    client_id, colon, secret = text.partition(":")
    if not colon or not client_id:
        raise unreadable_header()
    # RFC 6749 2.3.1: both halves are form-encoded before they are joined.
    return Basic(unquote_plus(client_id), unquote_plus(secret))


def unreadable_header() -> Unfit:
    """The refusal of an ``Authorization`` header that cannot be read."""
    return Unfit("the Authorization header cannot be read", status=401, error="invalid_client")


async def read_body(scope: Scope, receive: Receive, limit: int = BODY) -> bytes:
    """The body of a request.

    Raises:
        Unfit: it is too long, took too long, or did not come to its end.
    """
    if any(length > limit for length in announced(scope)):
        raise Unfit(f"the body has more than {limit} bytes", status=413)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(TIME):
            while True:
                message: Any = await receive()
                if message["type"] != "http.request":
                    raise Unfit("the request ended early")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise Unfit(f"the body has more than {limit} bytes", status=413)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Unfit(f"the body took more than {TIME:g} s", status=408) from None


def announced(scope: Scope) -> Iterable[int]:
    """The lengths that a request's head names for its body."""
    return [int(text) for text in head(scope, b"content-length") if text.isdigit()]
