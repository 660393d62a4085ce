"""Lookups before a request is served: client id metadata documents, keys of clients, and users.

All that has to be awaited is awaited here. Nothing of a request is believed but by a signature, and what
is found is looked at again inside the transaction. A client whose id is a URL is described by the document
there, which is fetched, checked, and kept for a while.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from isthmus.auth.authorization_server.core.requests import OAuthParameters, RequestRefused
from isthmus.auth.authorization_server.core.settings import (
    AuthorizationSettings,
    CimdPolicy,
    TrustedIdp,
    Workload,
)
from isthmus.auth.authorization_server.core.tokens import parse_refresh_token
from isthmus.auth.authorization_server.storage.clients import (
    ClientMetadata,
    RegisteredClient,
    UnacceptableClient,
    check_jwks,
    check_redirects,
    choose_grants,
)
from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.users.users import User, UserBackend
from isthmus.auth.cache import BoundedDict, SingleFlight
from isthmus.auth.net.addresses import address_block
from isthmus.auth.net.network import Fetched, Network, NetworkFailed, NetworkRefused
from isthmus.auth.net.urls import split_url
from isthmus.auth.protocol import (
    AUTHORIZATION_CODE_GRANT,
    ID_JAG_JWT_TYPE,
    JWT_BEARER_GRANT,
    REFRESH_GRANT,
)
from isthmus.auth.tokens.jose import (
    DEFAULT_ALGORITHMS,
    Claims,
    InvalidToken,
    read_token,
    token_type,
    verify_jwt,
)
from isthmus.auth.tokens.jwks import Jwks, KeysUnavailable

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.storage.store import AuthStore

MAX_DOCUMENT_BYTES = 5 * 1024
MAX_DOCUMENTS = 1000
MIN_DOCUMENT_LIFE_S = 60.0  # unless it must not be kept at all
DOCUMENT_RETRY_S = 5
MAX_KEY_SETS = 500

PATH_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
JSON_TYPE = re.compile(r"application/(?:[a-z0-9.\-]+\+)?json", re.IGNORECASE)
DOCUMENT_AUTH_METHODS = frozenset({"none", "private_key_jwt"})
FORBIDDEN_MEMBERS = frozenset({"client_secret", "client_secret_expires_at"})


class LookupResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was looked up before the transaction began.

    Attributes:
        document: the client whose id is a URL, from its document.
        client_assertion: what a client's assertion says, its signature verified.
        assertion: what the assertion of a grant says, its signature verified.
        user: the user behind a code, a refresh token or an assertion, as they are now.
    """

    document: RegisteredClient | None = None
    client_assertion: Claims | None = None
    assertion: Claims | None = None
    user: User | None = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """An approval by a user: which scopes, and until when."""

    user: User
    scopes: frozenset[str] | None = None
    upstream_id: str | None = None
    ends_at: float | None = None


class DocumentUnreachable(UnacceptableClient):
    """A document that is not to be had at the moment, which says nothing of its client."""


def is_document_id(client_id: str) -> bool:
    """Whether a client's id means a document."""
    return client_id.lower().startswith("https://")


def check_document_id(client_id: str, policy: CimdPolicy) -> None:
    """See that a URL may be a client's id.

    Raises:
        UnacceptableClient: it may not.
    """
    # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements
    try:
        parts = split_url(client_id)
    except ValueError:
        raise UnacceptableClient("the client_id is no usable URL") from None
    if (
        not client_id.startswith("https://")
        or parts.path in {"", "/"}
        or PATH_DOT_SEGMENT.search(parts.path)
    ):
        raise UnacceptableClient(
            "the client_id has to be an https URL with a path, without dot segments"
        )
    if policy.allow_domains is not None and parts.host not in policy.allow_domains:
        raise UnacceptableClient("clients of this domain are not accepted here")


class CachedDocument(NamedTuple):
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
            DocumentUnreachable: all slots, or all of the address, are taken.
        """
        key = address_block(address)
        if self._held.total() >= self._total or (key and self._held[key] >= self._per_address):
            raise DocumentUnreachable("too many documents are being fetched: try again")
        self._held[key] += 1
        return key

    def release(self, key: str) -> None:
        """Give a slot back."""
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]


class ClientDocuments:
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
        self._known: BoundedDict[str, CachedDocument] = BoundedDict(MAX_DOCUMENTS)
        self._fetching: SingleFlight[RegisteredClient] = SingleFlight()

    async def find(self, client_id: str, address: str = "") -> RegisteredClient:
        """The client of a document.

        Args:
            client_id: its URL.
            address: who names it; empty where that is not known.

        Raises:
            UnacceptableClient: there is none, or not one that can be believed.
        """
        known = self._known.get(client_id)
        if known is not None and known.fresh_until > self._clock():
            self._known.move_to_end(client_id)
            return known.client
        if not self._policy.enabled:
            raise UnacceptableClient("clients are not known by documents here")
        check_document_id(client_id, self._policy)
        try:
            if client_id in self._fetching:
                return await self._fetching.run(client_id, lambda: self._fetch(client_id))
            slot = self.slots.take(address)
            return await self._fetching.run(client_id, lambda: self._fetch_in(slot, client_id))
        except DocumentUnreachable:
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
                "GET", client_id, headers={"accept": "application/json"}, limit=MAX_DOCUMENT_BYTES
            )
        # It may not, or it cannot: whoever asks learns nothing of our network by the difference.
        except (NetworkRefused, NetworkFailed):
            raise DocumentUnreachable("the client's document cannot be fetched") from None
        client = read_document(client_id, answer, self._schemes)
        life = cache_life(answer.headers.get("cache-control", ""), self._policy)
        if life > 0:
            now = self._clock()
            self._known[client_id] = CachedDocument(
                client, now + life, now + self._policy.cache_most
            )
        return client


def cache_life(header: str, policy: CimdPolicy) -> float:
    """Seconds that a document may be believed, by its ``Cache-Control`` and within our bounds."""
    said = {part.strip().lower() for part in header.split(",")}
    if said & {"no-store", "no-cache", "private"}:
        return 0.0
    for part in said:
        name, _, value = part.partition("=")
        digits = value.strip('"')
        if name == "max-age" and digits.isascii() and digits.isdigit() and len(digits) < 10:
            return min(max(float(digits), MIN_DOCUMENT_LIFE_S), policy.cache_most)
    return min(policy.cache, policy.cache_most)


def read_document(client_id: str, answer: Fetched, schemes: tuple[str, ...]) -> RegisteredClient:
    """The client that a document describes.

    Raises:
        UnacceptableClient: the document is not what it has to be.
    """
    if answer.status != 200:
        raise UnacceptableClient("the client's document is not there")
    if not JSON_TYPE.fullmatch(answer.headers.get("content-type", "").partition(";")[0].strip()):
        raise UnacceptableClient("the client's document is not JSON")
    try:
        raw: Any = msgspec.json.decode(answer.body)
        metadata = msgspec.convert(raw, ClientMetadata)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UnacceptableClient("the client's document is no client metadata") from None
    # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements
    if raw.get("client_id") != client_id:
        raise UnacceptableClient("the client's document is about another client")
    if not metadata.client_name or FORBIDDEN_MEMBERS & set(raw):
        raise UnacceptableClient("the client's document lacks a name, or holds a secret")
    check_redirects(metadata.redirect_uris, schemes)
    return RegisteredClient(
        client_id=client_id,
        name=metadata.client_name[:200],
        redirect_uris=tuple(metadata.redirect_uris),
        grant_types=choose_grants(metadata.grant_types),
        auth_method=choose_document_auth(metadata),
        jwks=metadata.jwks,
        jwks_uri=metadata.jwks_uri,
        application_type=metadata.application_type or "web",
        client_uri=metadata.client_uri or "",
        kind="document",
        dpop_bound=metadata.dpop_bound_access_tokens,
    )


def choose_document_auth(metadata: ClientMetadata) -> Any:
    """The authentication method of a client with a document: no secret, since all could read it.

    Raises:
        UnacceptableClient: it wants to do it otherwise, or its keys are none.
    """
    method = metadata.token_endpoint_auth_method or "none"
    if method not in DOCUMENT_AUTH_METHODS:
        raise UnacceptableClient("the client's document wants a secret, which no document can have")
    if method == "private_key_jwt":
        if (metadata.jwks is None) == (metadata.jwks_uri is None):
            raise UnacceptableClient(
                "the client's document names its keys by one of jwks and jwks_uri"
            )
        if metadata.jwks is not None:
            check_jwks(metadata.jwks)
    return method


class Lookups:
    """Finds what a request needs.

    Args:
        settings: what the server was set up with.
        store: what it keeps.
        users: who its users are.
        documents: the clients that are known by documents.
        network: makes the requests for keys.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: "AuthStore",
        users: UserBackend | None,
        documents: ClientDocuments,
        network: Network,
    ) -> None:
        self._settings = settings
        self._store = store
        self._users = users
        self._documents = documents
        self._network = network
        self._sets: BoundedDict[str, Jwks] = BoundedDict(MAX_KEY_SETS)

    async def document(self, client_id: str | None, address: str = "") -> RegisteredClient | None:
        """The client of a document; None where the id means none.

        Args:
            client_id: its id.
            address: who names it; empty where that is not known.

        Raises:
            RequestRefused: its document is not to be had, or not to be believed.
        """
        if client_id is None or not is_document_id(client_id):
            return None
        if client_id in self._settings.static:
            return None
        try:
            return await self._documents.find(client_id, address)
        except DocumentUnreachable as flaw:
            # The client is none the worse for it, and must not think that it is unknown.
            raise make_busy_refusal(str(flaw)) from None
        except UnacceptableClient as flaw:
            raise RequestRefused(str(flaw), error="invalid_client") from None

    async def find(self, parameters: OAuthParameters) -> LookupResult:
        """Look up what a request to an endpoint with client authentication needs.

        Raises:
            RequestRefused: something is not to be had.
        """
        assertion = parameters.get("client_assertion")
        client_id = parameters.basic.client_id if parameters.basic else parameters.get("client_id")
        if assertion is not None:
            client_id = read_unverified(assertion, "sub") or client_id
        document = await self.document(client_id, parameters.address)
        signed = None
        if assertion is not None and client_id is not None:
            signed = await self._verify_client_assertion(
                assertion, client_id, document, parameters.address
            )
        vouched, user = await self._look_up_grant(parameters)
        return LookupResult(
            document=document, client_assertion=signed, assertion=vouched, user=user
        )

    async def _verify_client_assertion(
        self, assertion: str, client_id: str, document: RegisteredClient | None, address: str
    ) -> Claims | None:
        client = document or self._settings.static.get(client_id)
        if client is None:
            stored = await self._store.read(lambda records: records.client(client_id))
            client = None if stored is None else stored[0]
        if client is None or client.auth_method != "private_key_jwt":
            return None
        slot = self._take_slot(client, address)
        try:
            return await self._verify(
                assertion, client.jwks, client.jwks_uri, DEFAULT_ALGORITHMS, None
            )
        finally:
            if slot is not None:
                self._documents.slots.release(slot)

    def _take_slot(self, client: RegisteredClient, address: str) -> str | None:
        """A slot for keys that a stranger has us fetch; None where nothing is to be fetched."""
        if client.jwks_uri is None or client.kind not in {"document", "dynamic"}:
            return None
        keys = self._key_set(client.jwks_uri)
        if keys.current or keys.is_fetching:
            return None
        try:
            return self._documents.slots.take(address)
        except DocumentUnreachable as flaw:
            raise make_busy_refusal(str(flaw)) from None

    async def _look_up_grant(
        self, parameters: OAuthParameters
    ) -> tuple[Claims | None, User | None]:
        """The assertion of a grant, and the user behind it or behind a token."""
        kind = parameters.get("grant_type")
        if kind == JWT_BEARER_GRANT:
            claims, idp = await self._verify_assertion(parameters.get("assertion") or "")
            return claims, await self._find_vouched_user(claims, idp)
        if kind in {AUTHORIZATION_CODE_GRANT, REFRESH_GRANT}:
            user_id = await self._store.read(lambda records: find_user_id(records, parameters))
            return None, await self.user(user_id)
        return None, None

    async def user(self, user_id: str | None) -> User | None:
        """A user as they are now."""
        if user_id is None:
            return None
        return User(id=user_id) if self._users is None else await self._users.get(user_id)

    async def _verify_assertion(self, assertion: str) -> tuple[Claims | None, TrustedIdp | None]:
        """The claims of a grant's assertion; None where nobody whom we trust has signed it."""
        issuer, subject = read_unverified(assertion, "iss"), read_unverified(assertion, "sub")
        if issuer is None:
            return None, None
        if token_type(assertion) == ID_JAG_JWT_TYPE:
            idp = self._settings.trusted_idps.get(issuer)
            return await self._verify_by(idp, assertion, ID_JAG_JWT_TYPE), idp
        workload = self._settings.workloads.get((issuer, subject or ""))
        return await self._verify_by(workload, assertion, None), None

    async def _verify_by(
        self, who: TrustedIdp | Workload | None, assertion: str, typ: str | None
    ) -> Claims | None:
        if who is None:
            return None
        return await self._verify(assertion, who.jwks, who.jwks_uri, who.algorithms, typ)

    async def _find_vouched_user(
        self, claims: Claims | None, idp: TrustedIdp | None
    ) -> User | None:
        """The user that an identity provider vouches for."""
        if claims is None or idp is None:
            return None
        subject = claims.get("sub")
        user_id = default_user_id(claims) if idp.user is None else idp.user(claims)
        if user_id is None or not isinstance(subject, str) or not subject:
            return None
        # Somebody of the enterprise need not have an account here; one who has may be disabled.
        return await self.user(user_id) or User(id=user_id)

    async def _verify(
        self,
        token: str,
        jwks: Mapping[str, Any] | None,
        jwks_uri: str | None,
        algorithms: tuple[str, ...],
        typ: str | None,
    ) -> Claims | None:
        """Verify a token by keys that are here or at a URL; its claims, or None.

        Raises:
            RequestRefused: the keys are not to be had.
        """
        try:
            if jwks is not None:
                return verify_jwt(token, jwks, algorithms=algorithms, typ=typ)
            if jwks_uri is None:
                return None
            return await self._key_set(jwks_uri).verify(token, algorithms=algorithms, typ=typ)
        except KeysUnavailable as error:
            raise RequestRefused(
                "the keys behind an assertion cannot be fetched: try again later",
                status=503,
                error="temporarily_unavailable",
                retry_after=math.ceil(error.retry_after),
            ) from None
        except InvalidToken:
            return None

    def _key_set(self, url: str) -> Jwks:
        found = self._sets[url] = self._sets.get(url) or Jwks(url, self._network)
        return found


async def is_known_client(
    settings: AuthorizationSettings, store: "AuthStore", client_id: str
) -> bool:
    """Whether a client that got a token may still use it: it was not removed."""
    if client_id in settings.static or is_document_id(client_id):
        return True
    return await store.read(lambda records: records.client(client_id)) is not None


def make_busy_refusal(text: str) -> RequestRefused:
    """The refusal of what is worth another try in a few seconds."""
    return RequestRefused(
        text, status=503, error="temporarily_unavailable", retry_after=DOCUMENT_RETRY_S
    )


def read_unverified(token: str, name: str) -> str | None:
    """Read a claim that is not verified, to know whose keys to ask for."""
    try:
        value = read_token(token).claims.get(name)
    except InvalidToken:
        return None
    return value if isinstance(value, str) else None


def default_user_id(claims: Mapping[str, Any]) -> str | None:
    """The id of a user where nobody says another; None where several may have the same."""
    return None if "tenant" in claims else f"{claims['iss']}|{claims.get('sub')}"


def find_user_id(records: Records, parameters: OAuthParameters) -> str | None:
    """The id of the user behind a code or a refresh token, good or not."""
    grant_id: str | None = None
    if (text := parameters.get("code")) is not None:
        code = records.code(text)
        grant_id = None if code is None else code.grant_id
    elif (text := parameters.get("refresh_token")) is not None:
        presented = parse_refresh_token(text)
        grant_id = None if presented is None else presented.grant_id
    grant = None if grant_id is None else records.grant(grant_id)
    return None if grant is None else grant.user_id
