"""Requests to the authorization server: read whole, judged, refused, and limited per address and client.

URIs come from the configured issuer, never from the request: a proxy in front usually speaks TLS.
"""

import asyncio
import json
import math
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from isthmus.auth.net.addresses import address_block
from isthmus.store.meter import MemoryMeter, Rate
from isthmus.transports.http.reply import Receive, Scope

MAX_BODY_BYTES = 64 * 1024
MAX_QUERY_BYTES = 16 * 1024
MAX_PARAMETERS = 64
BODY_TIMEOUT_S = 15.0
FORM_TYPE = "application/x-www-form-urlencoded"
REPEATABLE_PARAMETERS = frozenset({"resource"})  # RFC 8707 lets it come more than once
ADDRESS_RATE = Rate(300, seconds=60)
CLIENT_RATE = Rate(1200, seconds=60)
REGISTRATIONS_PER_HOUR = 20


class RequestRefused(Exception):
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


class UntrustedRedirect(RequestRefused):
    """A request whose client may not be told by itself that it failed.

    The browser would be sent to a page that nobody vouches for, by a link that anybody can make.

    Attributes:
        back: where it may go on if its user wants to.
    """

    def __init__(self, back: str) -> None:
        super().__init__("the program that sent you here asked for what it cannot have")
        self.back = back


class BasicCredentials(msgspec.Struct, frozen=True):
    """Client credentials from an ``Authorization: Basic`` header, decoded."""

    client_id: str
    secret: str


class OAuthParameters(msgspec.Struct, frozen=True, kw_only=True):
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
    basic: BasicCredentials | None = None
    proof: str | None = None
    address: str = ""

    def get(self, name: str) -> str | None:
        """A parameter; None where it is missing."""
        return next((value for key, value in self.pairs if key == name), None)

    def all(self, name: str) -> list[str]:
        """All values of a parameter."""
        return [value for key, value in self.pairs if key == name]


class OAuthResponse:
    """A response on its way.

    Attributes:
        status: of HTTP.
        body: the JSON text, or nothing.
        headers: names and values.
    """

    def __init__(self, status: int, body: Any, headers: Any) -> None:
        self.status = status
        self.body = json.dumps(body).encode() if isinstance(body, dict | list) else b""
        self.headers: list[tuple[str, str]] = list(headers)
        self.content = body if isinstance(body, dict) else {}

    @property
    def location(self) -> str | None:
        """The URL that it sends the browser to."""
        return next((value for name, value in self.headers if name == "Location"), None)

    @location.setter
    def location(self, url: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0] != "Location"]
        self.headers.append(("Location", url))


def header_values(scope: Scope, name: bytes) -> list[str]:
    """The values of a header."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def peer_address(scope: Scope) -> str:
    """The address that a request came from; empty where the server does not say."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def parse_parameters(text: bytes) -> tuple[tuple[str, str], ...]:
    """Read a form or a query.

    Raises:
        RequestRefused: it is none, there is too much of it, or one comes twice.
    """
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError:
        raise RequestRefused("the parameters are not form-encoded UTF-8, or too many") from None
    names = [name for name, _ in pairs if name not in REPEATABLE_PARAMETERS]
    # spec 2026-07-28 basic/authorization/security-considerations: OAuth 2.1 3.1, never twice
    if len(names) != len(set(names)):
        raise RequestRefused("a parameter comes more than once")
    # OAuth 2.1 3.1: one without a value counts as left out.
    return tuple(pair for pair in pairs if pair[1])


def read_query(scope: Scope) -> OAuthParameters:
    """Read a request whose parameters are in its URL, as those to ``/authorize`` are.

    Raises:
        RequestRefused: it cannot be served.
    """
    query: bytes = scope.get("query_string", b"")
    if len(query) > MAX_QUERY_BYTES:
        raise RequestRefused("the query is too long", status=414)
    return OAuthParameters(
        method=scope["method"], pairs=parse_parameters(query), address=peer_address(scope)
    )


async def read_form(scope: Scope, receive: Receive) -> OAuthParameters:
    """Read a request whose parameters are in its body, and nowhere else.

    Raises:
        RequestRefused: it cannot be served.
    """
    # spec 2026-07-28 basic/authorization#token-requirements: nothing secret is in a URL
    if scope.get("query_string"):
        raise RequestRefused("parameters belong into the body of the request, not into its URL")
    if body_type(header_values(scope, b"content-type")) != FORM_TYPE:
        raise RequestRefused(f"the body has to be {FORM_TYPE}")
    body = await read_body(scope, receive)
    basic = read_basic(header_values(scope, b"authorization"))
    parameters = OAuthParameters(
        method=scope["method"],
        pairs=parse_parameters(body),
        basic=basic,
        proof=require_single(header_values(scope, b"dpop"), "the DPoP header comes more than once"),
        address=peer_address(scope),
    )
    check_credentials(parameters)
    return parameters


def check_credentials(parameters: OAuthParameters) -> None:
    """See that a client authenticates in one way, as one client.

    Raises:
        RequestRefused: it does not.
    """
    # OAuth 2.1 2.4: more than one authentication method in a request is refused
    ways = [parameters.basic, parameters.get("client_secret"), parameters.get("client_assertion")]
    if sum(way is not None for way in ways) > 1:
        raise RequestRefused("a client authenticates in one way at a time")
    named = parameters.get("client_id")
    if parameters.basic is not None and named is not None and named != parameters.basic.client_id:
        raise RequestRefused("the header and the body name two different clients")


def body_type(values: Sequence[str]) -> str:
    """The type of a body, without its parameters; empty where there is none or more than one."""
    return values[0].partition(";")[0].strip().lower() if len(values) == 1 else ""


def require_single(values: Sequence[str], otherwise: str) -> str | None:
    """The one value of a header; None where there is none.

    Raises:
        RequestRefused: there are several.
    """
    if len(values) > 1:
        raise RequestRefused(otherwise, error="invalid_dpop_proof" if "DPoP" in otherwise else "invalid_request")  # fmt: skip
    return values[0] if values else None


def read_basic(values: Sequence[str]) -> BasicCredentials | None:
    """A client's credentials in its ``Authorization`` header.

    Raises:
        RequestRefused: there are several headers, or it cannot be read.
    """
    from urllib.parse import unquote_plus

    value = require_single(values, "the Authorization header comes more than once")
    if value is None or value.partition(" ")[0].lower() != "basic":
        return None
    try:
        text = b64decode(value.partition(" ")[2].strip(), validate=True).decode("utf-8")
    except (NotBase64, ValueError):
        raise make_header_refusal() from None
    client_id, colon, secret = text.partition(":")
    if not colon or not client_id:
        raise make_header_refusal()
    # RFC 6749 2.3.1: both halves are form-encoded before they are joined.
    return BasicCredentials(unquote_plus(client_id), unquote_plus(secret))


def make_header_refusal() -> RequestRefused:
    """The refusal of an ``Authorization`` header that cannot be read."""
    return RequestRefused(
        "the Authorization header cannot be read", status=401, error="invalid_client"
    )


async def read_body(scope: Scope, receive: Receive, limit: int = MAX_BODY_BYTES) -> bytes:
    """The body of a request.

    Raises:
        RequestRefused: it is too long, took too long, or did not come to its end.
    """
    if any(length > limit for length in announced_lengths(scope)):
        raise RequestRefused(f"the body has more than {limit} bytes", status=413)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while True:
                message: Any = await receive()
                if message["type"] != "http.request":
                    raise RequestRefused("the request ended early")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise RequestRefused(f"the body has more than {limit} bytes", status=413)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RequestRefused(f"the body took more than {BODY_TIMEOUT_S:g} s", status=408) from None


def announced_lengths(scope: Scope) -> Iterable[int]:
    """The lengths that a request's head names for its body."""
    return [int(text) for text in header_values(scope, b"content-length") if text.isdigit()]


class TooManyRequests(RequestRefused):
    """A request beyond a rate limit: status 429."""

    def __init__(self, wait: float) -> None:
        super().__init__(
            "too many requests: try again later",
            status=429,
            error="slow_down",
            retry_after=max(1, math.ceil(wait)),
        )


class Limits:
    """Counts requests in this process, and refuses those beyond a rate.

    Registrations are counted in the authorization server's store as well, for all its processes.
    Other requests are not: their rates bound the work of a process, and a write for each would be more
    work than they save.

    Example::

        AuthorizationServer(…, limits=Limits(5, per_address=Rate(60, seconds=60)))

    Args:
        per_ip_hour: registrations of one address in an hour.
        per_address: other requests of one address.
        per_client: token requests of one client.
    """

    def __init__(
        self,
        per_ip_hour: int = REGISTRATIONS_PER_HOUR,
        *,
        per_address: Rate = ADDRESS_RATE,
        per_client: Rate = CLIENT_RATE,
    ) -> None:
        self.per_ip_hour = per_ip_hour
        self._registrations = MemoryMeter(Rate(per_ip_hour, seconds=3600))
        self._addresses = MemoryMeter(per_address)
        self._clients = MemoryMeter(per_client)

    def address(self, address: str) -> None:
        """A request came from an address.

        Args:
            address: the IP address of the client.

        Raises:
            TooManyRequests: too often.
        """
        spend_or_refuse(self._addresses, address_block(address))

    def not_from(self, address: str) -> None:
        """A request was made for others by one who is trusted to: it takes nothing from an address.

        Args:
            address: the IP address that was counted.
        """
        self._addresses.spend(address_block(address), -1)

    def client(self, client_id: str) -> None:
        """Count a token request that names ``client_id`` as its client.

        Args:
            client_id: the id that the request names.

        Raises:
            TooManyRequests: too often.
        """
        spend_or_refuse(self._clients, client_id)

    def not_of(self, client_id: str) -> None:
        """Give back to ``client_id`` the count of a token request that was not its own, or gave nothing.

        It takes nothing from the client, whose name anybody knows: else anybody could use it up.

        Args:
            client_id: the id that was counted.
        """
        self._clients.spend(client_id[:512], -1)

    def registration(self, address: str) -> None:
        """A registration came from an address.

        Args:
            address: the IP address of the client.

        Raises:
            TooManyRequests: too often.
        """
        spend_or_refuse(self._registrations, address_block(address))


def spend_or_refuse(meter: MemoryMeter, key: str) -> None:
    """Take one out of what a key has left.

    Raises:
        TooManyRequests: there is nothing left.
    """
    wait = meter.spend(key[:512])
    if wait:
        raise TooManyRequests(wait)
