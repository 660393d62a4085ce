"""Requests to URLs that somebody else chose: judged where the connection is made, not before.

A server names its authorization server, a client its metadata document, and either could name a
machine that only we can reach. So a name is looked up once, **every** address it has is judged,
and the judged address itself is dialled, while TLS and ``Host`` keep the name: between check and
use there is nothing left to change. No redirect is followed, no proxy of the environment taken, no
cookie kept, and an answer has a size, a type and a time that it must keep to.

spec 2026-07-28 basic/authorization/security-considerations#authorization-server-abuse-protection
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.auth.arguments import check_number
from isthmus.auth.net.addresses import (
    NetworkFailed,
    NetworkRefused,
    Resolve,
    admit_addresses,
    judge_host,
    resolve_host,
)
from isthmus.auth.net.urls import UrlParts, display_url, is_loopback, split_url
from isthmus.errors import ConnectionLost, Misbehaved, UsageError
from isthmus.transports.http.client.failures import describe_error
from isthmus.transports.http.client.pool import PooledRequests

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from isthmus.transports.http.client.dial import HostAddress, HttpOrigin
    from isthmus.transports.http.client.requests import Response

__all__ = [
    "PUBLIC_ONLY",
    "Fetched",
    "Network",
    "NetworkFailed",
    "NetworkPolicy",
    "NetworkRefused",
    "Resolve",
    "desktop",
]

CONNECT_TIMEOUT_S, TOTAL_TIMEOUT_S = 5.0, 10.0
"""Seconds until a connection stands, and until the whole answer is here."""

MAX_ANSWER_BYTES = 256 * 1024


class NetworkPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Policy for requests to URLs that come from outside (SSRF protection).

    Public addresses by ``https`` are always allowed.

    Attributes:
        origins: exactly these origins may be private addresses, and plain ``http``.
        loopback: any port of this machine may be asked, by ``http`` too. For tests and development.
        proxy: the URL of an egress proxy that takes every request and judges addresses itself;
            what is asked of schemes, and of literal addresses, stays. The environment's are never used.
    """

    origins: frozenset[str] = frozenset()
    loopback: bool = False
    proxy: str | None = None

    def trusts(self, parts: UrlParts) -> bool:
        """Whether the application itself named the place in ``parts`` of a URL.

        Args:
            parts: the parts of the URL.
        """
        return parts.origin in self.origins or (self.loopback and is_loopback(parts.host))


PUBLIC_ONLY = NetworkPolicy()  # for whatever is hosted


def desktop(*urls: str, proxy: str | None = None) -> NetworkPolicy:
    """A policy for a program on its user's machine: what the user typed may be anywhere.

    Args:
        urls: what the user asked for; their origins are allowed, other private addresses are not.
            Who asks for something on this machine may be sent to another port of it.
        proxy: an egress proxy's URL.

    Raises:
        ValueError: one of them is no URL of HTTP.

    Example::

        >>> sorted(desktop("http://localhost:8000/mcp").origins)
        ['http://localhost:8000']
    """
    asked = [split_url(url) for url in urls]
    return NetworkPolicy(
        origins=frozenset(parts.origin for parts in asked),
        loopback=any(is_loopback(parts.host) for parts in asked),
        proxy=proxy,
    )


class Fetched(msgspec.Struct, frozen=True):
    """A whole HTTP answer.

    Attributes:
        status: its HTTP status; a redirect is one like any other.
        headers: by name in lower case; of several with one name, joined by commas.
        body: at most as long as was asked for.
        url: where it came from.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str = ""

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            NetworkFailed: it does not say that it is JSON, or is none.
        """
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not (
            kind.startswith("application/") and kind.endswith("+json")
        ):
            raise NetworkFailed(
                f"{display_url(self.url)} answered {kind[:80] or 'nothing'!r}, not JSON"
            )
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NetworkFailed(
                f"{display_url(self.url)} answered something that is no JSON"
            ) from None


def make_network(given: "Network | NetworkPolicy", *, keep: bool, total: float) -> "Network":
    """Make the network of an argument ``network=``: the one that was given, or one within a policy.

    Args:
        given: either.
        keep: as of :class:`Network`, for one that is made here.
        total: the same.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(given, NetworkPolicy):
        return Network(given, keep=keep, total=total)
    if not hasattr(given, "fetch") or isinstance(given, type):
        kind = type(given).__name__
        raise UsageError(f"network= takes a NetworkPolicy, or a Network(policy), not {kind}")
    return given


def check_policy(given: object) -> None:
    """See that ``network=`` of a client is a policy: its connections are its own.

    Raises:
        UsageError: it is not.
    """
    if given is not None and not isinstance(given, NetworkPolicy):
        kind = type(given).__name__
        raise UsageError(f"network= takes NetworkPolicy(…) or desktop(url, …), not {kind}")


class Network:
    """Makes requests within a policy. Connections are made when the first request is.

    Example::

        network = Network(desktop("https://mcp.example.com/mcp"))
        document = await network.json("https://login.example.com/.well-known/openid-configuration")
        await network.close()

    Args:
        policy: where they may go.
        resolve: looks hosts up; the system's resolver by default.
        tls: how certificates are checked; None trusts what the system trusts.
        connect: seconds until a connection counts as failed.
        total: seconds until a request does.
        keep: False closes connections whenever no request is under way, for owners that have no
            moment to call :meth:`close` in.
    """

    def __init__(
        self,
        policy: NetworkPolicy = PUBLIC_ONLY,
        *,
        resolve: Resolve | None = None,
        tls: "ssl.SSLContext | None" = None,
        connect: float = CONNECT_TIMEOUT_S,
        total: float = TOTAL_TIMEOUT_S,
        keep: bool = True,
    ) -> None:
        check_number("connect", connect, above=0)
        check_number("total", total, above=0)
        self.policy = policy
        self._resolve = resolve or resolve_host
        self._tls = tls
        self._connect_timeout = connect
        self._total_timeout = total
        self._keep = keep
        self._under_way = 0
        self._requests: PooledRequests | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limit: int = MAX_ANSWER_BYTES,
    ) -> Fetched:
        """Send a request and wait for the whole answer, whatever its status.

        Args:
            method: of HTTP.
            url: where to; kept as it is.
            headers: of the request.
            body: of the request.
            limit: bytes that the answer may have.

        Raises:
            NetworkRefused: the policy says no.
            NetworkFailed: no answer, or one that is too long.
        """
        self._judge_url(url)
        # A compressed answer would be longer than it looks.
        sent = {"accept-encoding": "identity", **(headers or {})}
        self._under_way += 1
        try:
            async with asyncio.timeout(self._total_timeout):
                response = await self._open_requests().send(method, url, sent, body)
                try:
                    return await _read_whole(response, url, limit)
                finally:
                    response.close()
        except (ConnectionLost, TimeoutError) as error:
            # the words of what happened, without those of whoever else says where
            why = describe_error(
                error.__cause__ if isinstance(error.__cause__, Exception) else error
            )
            raise NetworkFailed(f"no answer of {display_url(url)}: {why}") from None
        finally:
            self._under_way -= 1
            if not self._keep and not self._under_way:
                await self.close()

    async def json(
        self, url: str, *, headers: Mapping[str, str] | None = None, limit: int = MAX_ANSWER_BYTES
    ) -> Any:
        """Fetch JSON with a GET request.

        Args:
            url: the address; the policy judges it.
            headers: further headers, by name.
            limit: the most bytes of an answer.

        Returns:
            The decoded JSON.

        Raises:
            NetworkRefused: the policy says no.
            NetworkFailed: there is none: another status than 200, another type, too long.
        """
        asked = {"accept": "application/json", **(headers or {})}
        answer = await self.fetch("GET", url, headers=asked, limit=limit)
        if answer.status != 200:
            raise NetworkFailed(f"{display_url(url)} answered with HTTP status {answer.status}")
        return answer.json()

    async def form(
        self,
        url: str,
        fields: Mapping[str, str] | Iterable[tuple[str, str]],
        headers: Mapping[str, str] | None = None,
        *,
        limit: int = MAX_ANSWER_BYTES,
    ) -> Fetched:
        """Post a form, as a token endpoint takes it (RFC 6749, section 3.2).

        Args:
            url: the address; the policy judges it.
            fields: the fields; the same name may come twice.
            headers: further headers, by name.
            limit: the most bytes of an answer.

        Raises:
            NetworkRefused: the policy says no.
            NetworkFailed: no answer, or one that is too long.
        """
        from urllib.parse import urlencode

        pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        asked = {
            "accept": "application/json",
            "content-type": "application/x-www-form-urlencoded",
            **(headers or {}),
        }
        return await self.fetch(
            "POST", url, headers=asked, body=urlencode(pairs).encode(), limit=limit
        )

    async def close(self) -> None:
        """Close every connection; safe to call twice, and a later request opens new ones."""
        requests, self._requests = self._requests, None
        if requests is not None:
            await requests.close()

    def _judge_url(self, url: str) -> UrlParts:
        """Judge a URL by what can be told from it alone."""
        try:
            parts = split_url(url)
        except ValueError as error:
            raise NetworkRefused(str(error)) from None
        if self.policy.trusts(parts):
            return parts
        if parts.scheme != "https":
            raise NetworkRefused(
                f"{display_url(url)} is plain http, which anybody on the way can change; "
                "name its origin in NetworkPolicy(origins=…) if it is your own"
            )
        judge_host(parts.host)
        return parts

    async def _resolve_guarded(self, origin: "HttpOrigin") -> "Sequence[HostAddress]":
        """The addresses of an origin, each of them judged."""
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        trusted = self.policy.trusts(UrlParts(origin.scheme, host, origin.port, "", ""))
        return await admit_addresses(origin, self._resolve, trusted=trusted)

    def _open_requests(self) -> PooledRequests:
        """The connections of this loop: they cannot be used on any other."""
        loop = asyncio.get_running_loop()
        if self._requests is None or self._loop is not loop:
            self._requests = PooledRequests(
                connect_timeout=self._connect_timeout,
                tls=self._tls,
                proxy=self.policy.proxy or False,
                resolve=self._resolve_guarded,
            )
            self._loop = loop
        return self._requests


async def _read_whole(response: "Response", url: str, limit: int) -> Fetched:
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise NetworkFailed(f"{display_url(url)} answered compressed, which was not asked for")
    try:
        body = await response.read(limit)
    except Misbehaved:
        raise NetworkFailed(
            f"the answer of {display_url(url)} has more than {limit} bytes"
        ) from None
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return Fetched(response.status, headers, body, url)
