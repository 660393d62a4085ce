"""Clients whose id is the URL of a document about them: fetched, checked, and kept for a while."""

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from isthmus.auth.authorization_server.clients import RegisteredClient
from isthmus.auth.authorization_server.limits import network_of
from isthmus.auth.authorization_server.policy import (
    ClientMetadata,
    Unacceptable,
    check_jwks,
    check_redirects,
    fitting_grants,
)
from isthmus.auth.authorization_server.settings import CimdPolicy
from isthmus.auth.flights import Flights
from isthmus.auth.network import Fetched, Network, NetworkFailed, NetworkRefused
from isthmus.auth.newest import Newest
from isthmus.auth.urls import split

__all__ = ["Documents", "FetchSlots", "Unreachable", "is_document_id"]

LIMIT = 5 * 1024
"""Bytes of a document."""

MOST = 1000
"""Documents that are remembered."""

LEAST = 60.0
"""Seconds that a document is believed at least, unless it must not be kept at all."""

DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
JSON = re.compile(r"application/(?:[a-z0-9.\-]+\+)?json", re.IGNORECASE)
METHODS = frozenset({"none", "private_key_jwt"})
FORBIDDEN = frozenset({"client_secret", "client_secret_expires_at"})


class Unreachable(Unacceptable):
    """A document that is not to be had at the moment, which says nothing of its client."""


def is_document_id(client_id: str) -> bool:
    """Whether a client's id means a document."""
    return client_id.lower().startswith("https://")


def check_id(client_id: str, policy: CimdPolicy) -> None:
    """See that a URL may be a client's id.

    Raises:
        Unacceptable: it may not.
    """
    # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements
    try:
        parts = split(client_id)
    except ValueError:
        raise Unacceptable("the client_id is no usable URL") from None
    if not client_id.startswith("https://") or parts.path in {"", "/"} or DOTS.search(parts.path):
        raise Unacceptable("the client_id has to be an https URL with a path, without dot segments")
    if policy.allow_domains is not None and parts.host not in policy.allow_domains:
        raise Unacceptable("clients of this domain are not accepted here")


class Kept(NamedTuple):
    """A client that was fetched, until when that is fresh, and until when it is better than nothing."""

    client: RegisteredClient
    fresh_until: float
    good_until: float


class FetchSlots:
    """Bounds how much is fetched at a time, in all and for one address.

    Whoever names slow documents, one after the other, then keeps nobody else from being known.

    Args:
        total: fetches at a time.
        per_address: those of one address.
    """

    def __init__(self, total: int, per_address: int) -> None:
        self._total = total
        self._per_address = per_address
        self._held: Counter[str] = Counter()

    def take(self, address: str) -> str:
        """Take a slot for an address; returns whom to :meth:`release` it for.

        Args:
            address: who had it fetched; empty where that is not known, which has no share.

        Raises:
            Unreachable: all slots, or all of the address, are taken.
        """
        key = network_of(address)
        if self._held.total() >= self._total or (key and self._held[key] >= self._per_address):
            raise Unreachable("too many documents are being fetched: try again")
        self._held[key] += 1
        return key

    def release(self, key: str) -> None:
        """Give a slot back."""
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]


class Documents:
    """Fetches the documents of clients, one request for all who ask at the same time.

    What goes wrong is not remembered: the next request tries again. Where a document was there
    before and is out of reach now, the client goes on being what it was, for a day.

    Args:
        policy: whose documents are taken, and for how long.
        network: makes the requests.
        schemes: schemes of apps that redirect URIs may have.
        clock: seconds that only grow.

    Attributes:
        slots: bounds what is fetched at a time.
    """

    def __init__(
        self,
        policy: CimdPolicy,
        network: Network,
        *,
        schemes: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy
        self._network = network
        self._schemes = schemes
        self._clock = clock
        self.slots = FetchSlots(policy.fetches, policy.fetches_per_address)
        self._known: Newest[str, Kept] = Newest(MOST)
        self._fetching: Flights[RegisteredClient] = Flights()

    async def find(self, client_id: str, address: str = "") -> RegisteredClient:
        """The client of a document.

        Args:
            client_id: its URL.
            address: who names it; empty where that is not known.

        Raises:
            Unacceptable: there is none, or not one that can be believed.
        """
        known = self._known.get(client_id)
        if known is not None and known.fresh_until > self._clock():
            self._known.move_to_end(client_id)
            return known.client
        if not self._policy.enabled:
            raise Unacceptable("clients are not known by documents here")
        check_id(client_id, self._policy)
        try:
            if client_id in self._fetching:
                return await self._fetching.run(client_id, lambda: self._fetch(client_id))
            slot = self.slots.take(address)
            return await self._fetching.run(client_id, lambda: self._fetch_in(slot, client_id))
        except Unreachable:
            if known is None or known.good_until <= self._clock():
                raise
            return known.client

    async def _fetch_in(self, slot: str, client_id: str) -> RegisteredClient:
        try:
            return await self._fetch(client_id)
        finally:
            self.slots.release(slot)

    async def _fetch(self, client_id: str) -> RegisteredClient:
        # spec 2026-07-28
        # basic/authorization/security-considerations#authorization-server-abuse-protection
        try:
            answer = await self._network.fetch(
                "GET", client_id, headers={"accept": "application/json"}, limit=LIMIT
            )
        # It may not, or it cannot: whoever asks learns nothing of our network by the difference.
        except (NetworkRefused, NetworkFailed):
            raise Unreachable("the client's document cannot be fetched") from None
        client = read_document(client_id, answer, self._schemes)
        life = lifetime(answer.headers.get("cache-control", ""), self._policy)
        if life > 0:
            now = self._clock()
            self._known[client_id] = Kept(client, now + life, now + self._policy.cache_most)
        return client


def lifetime(header: str, policy: CimdPolicy) -> float:
    """Seconds that a document may be believed, by its ``Cache-Control`` and within our bounds."""
    said = {part.strip().lower() for part in header.split(",")}
    if said & {"no-store", "no-cache", "private"}:
        return 0.0
    for part in said:
        name, _, value = part.partition("=")
        digits = value.strip('"')
        if name == "max-age" and digits.isascii() and digits.isdigit() and len(digits) < 10:
            return min(max(float(digits), LEAST), policy.cache_most)
    return min(policy.cache, policy.cache_most)


def read_document(client_id: str, answer: Fetched, schemes: tuple[str, ...]) -> RegisteredClient:
    """The client that a document describes.

    Raises:
        Unacceptable: the document is not what it has to be.
    """
    if answer.status != 200:
        raise Unacceptable("the client's document is not there")
    if not JSON.fullmatch(answer.headers.get("content-type", "").partition(";")[0].strip()):
        raise Unacceptable("the client's document is not JSON")
    try:
        raw: Any = msgspec.json.decode(answer.body)
        metadata = msgspec.convert(raw, ClientMetadata)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Unacceptable("the client's document is no client metadata") from None
    # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements
    if raw.get("client_id") != client_id:
        raise Unacceptable("the client's document is about another client")
    if not metadata.client_name or FORBIDDEN & set(raw):
        raise Unacceptable("the client's document lacks a name, or holds a secret")
    check_redirects(metadata.redirect_uris, schemes)
    return RegisteredClient(
        client_id=client_id,
        name=metadata.client_name[:200],
        redirect_uris=tuple(metadata.redirect_uris),
        grant_types=fitting_grants(metadata.grant_types),
        auth_method=authentication(metadata),
        jwks=metadata.jwks,
        jwks_uri=metadata.jwks_uri,
        application_type=metadata.application_type or "web",
        client_uri=metadata.client_uri or "",
        kind="document",
        dpop_bound=metadata.dpop_bound_access_tokens,
    )


def authentication(metadata: ClientMetadata) -> Any:
    """How a client of a document authenticates: not by a secret, since all could read it.

    Raises:
        Unacceptable: it wants to do it otherwise, or its keys are none.
    """
    method = metadata.token_endpoint_auth_method or "none"
    if method not in METHODS:
        raise Unacceptable("the client's document wants a secret, which nobody can give it")
    if method == "private_key_jwt":
        if (metadata.jwks is None) == (metadata.jwks_uri is None):
            raise Unacceptable("the client's document names its keys by one of jwks and jwks_uri")
        if metadata.jwks is not None:
            check_jwks(metadata.jwks)
    return method
