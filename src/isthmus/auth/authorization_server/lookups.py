"""What has to be awaited before a request is served: documents and keys of clients, users.

Nothing of a request is believed here but by a signature, and what is found is looked at again inside
the transaction.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isthmus.auth.authorization_server.clients import RegisteredClient
from isthmus.auth.authorization_server.documents import Documents, Unreachable, is_document_id
from isthmus.auth.authorization_server.policy import Unacceptable
from isthmus.auth.authorization_server.records import Records
from isthmus.auth.authorization_server.requests import Asked, Unfit
from isthmus.auth.authorization_server.settings import Settings, TrustedIdp, Workload
from isthmus.auth.authorization_server.tokens import read_refresh
from isthmus.auth.authorization_server.users import User, UserBackend
from isthmus.auth.jose import COMMON, Claims, InvalidToken, read_token, type_of, verify
from isthmus.auth.jwks import Jwks, KeysUnavailable
from isthmus.auth.names import CODE, ID_JAG_TYPE, JWT_BEARER, REFRESH
from isthmus.auth.network import Network
from isthmus.auth.newest import Newest

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.oauth_core import Found
    from isthmus.auth.authorization_server.store import AuthStore

__all__ = ["Lookups"]

RETRY_AFTER_S = 5
"""After which a document that could not be had is worth another try."""

MOST_SETS = 500
"""Sets of keys that are remembered."""


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
        settings: Settings,
        store: "AuthStore",
        users: UserBackend | None,
        documents: Documents,
        network: Network,
    ) -> None:
        self._settings = settings
        self._store = store
        self._users = users
        self._documents = documents
        self._network = network
        self._sets: Newest[str, Jwks] = Newest(MOST_SETS)

    async def document(self, client_id: str | None, address: str = "") -> RegisteredClient | None:
        """The client of a document; None where the id means none.

        Args:
            client_id: its id.
            address: who names it; empty where that is not known.

        Raises:
            Unfit: its document is not to be had, or not to be believed.
        """
        if client_id is None or not is_document_id(client_id):
            return None
        if client_id in self._settings.static:
            return None
        try:
            return await self._documents.find(client_id, address)
        except Unreachable as flaw:
            # The client is none the worse for it, and must not think that it is unknown.
            raise busy(str(flaw)) from None
        except Unacceptable as flaw:
            raise Unfit(str(flaw), error="invalid_client") from None

    async def find(self, asked: Asked) -> "Found":
        """What a request to an endpoint with client authentication needs.

        Raises:
            Unfit: something is not to be had.
        """
        from isthmus.auth.authorization_server.oauth_core import Found

        assertion = asked.get("client_assertion")
        client_id = asked.basic.client_id if asked.basic else asked.get("client_id")
        if assertion is not None:
            client_id = unverified(assertion, "sub") or client_id
        document = await self.document(client_id, asked.address)
        signed = None
        if assertion is not None and client_id is not None:
            signed = await self._client_assertion(assertion, client_id, document, asked.address)
        vouched, user = await self._grant(asked)
        return Found(document=document, client_assertion=signed, assertion=vouched, user=user)

    async def _client_assertion(
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
            return await self._verify(assertion, client.jwks, client.jwks_uri, COMMON, None)
        finally:
            if slot is not None:
                self._documents.slots.release(slot)

    def _take_slot(self, client: RegisteredClient, address: str) -> str | None:
        """A slot for keys that a stranger has us fetch; None where nothing is to be fetched."""
        if client.jwks_uri is None or client.kind not in {"document", "dynamic"}:
            return None
        keys = self._set(client.jwks_uri)
        if keys.current or keys.is_fetching:
            return None
        try:
            return self._documents.slots.take(address)
        except Unreachable as flaw:
            raise busy(str(flaw)) from None

    async def _grant(self, asked: Asked) -> tuple[Claims | None, User | None]:
        """The assertion of a grant, and the user behind it or behind a token."""
        kind = asked.get("grant_type")
        if kind == JWT_BEARER:
            claims, idp = await self._vouched(asked.get("assertion") or "")
            return claims, await self._vouched_user(claims, idp)
        if kind in {CODE, REFRESH}:
            user_id = await self._store.read(lambda records: user_behind(records, asked))
            return None, await self.user(user_id)
        return None, None

    async def user(self, user_id: str | None) -> User | None:
        """A user as they are now."""
        if user_id is None:
            return None
        return User(id=user_id) if self._users is None else await self._users.get(user_id)

    async def _vouched(self, assertion: str) -> tuple[Claims | None, TrustedIdp | None]:
        """What the assertion of a grant says; None where nobody whom we trust has signed it."""
        issuer, subject = unverified(assertion, "iss"), unverified(assertion, "sub")
        if issuer is None:
            return None, None
        if type_of(assertion) == ID_JAG_TYPE:
            idp = self._settings.trusted_idps.get(issuer)
            return await self._by(idp, assertion, ID_JAG_TYPE), idp
        workload = self._settings.workloads.get((issuer, subject or ""))
        return await self._by(workload, assertion, None), None

    async def _by(
        self, who: TrustedIdp | Workload | None, assertion: str, typ: str | None
    ) -> Claims | None:
        if who is None:
            return None
        return await self._verify(assertion, who.jwks, who.jwks_uri, who.algorithms, typ)

    async def _vouched_user(self, claims: Claims | None, idp: TrustedIdp | None) -> User | None:
        """The user that an identity provider vouches for."""
        if claims is None or idp is None:
            return None
        subject = claims.get("sub")
        user_id = usual_user(claims) if idp.user is None else idp.user(claims)
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
        """What a token says if one of the keys signed it, wherever these are.

        Raises:
            Unfit: the keys are not to be had.
        """
        try:
            if jwks is not None:
                return verify(token, jwks, algorithms=algorithms, typ=typ)
            if jwks_uri is None:
                return None
            return await self._set(jwks_uri).verify(token, algorithms=algorithms, typ=typ)
        except KeysUnavailable as error:
            raise Unfit(
                "the keys behind an assertion are not to be had: try again later",
                status=503,
                error="temporarily_unavailable",
                retry_after=math.ceil(error.retry_after),
            ) from None
        except InvalidToken:
            return None

    def _set(self, url: str) -> Jwks:
        found = self._sets[url] = self._sets.get(url) or Jwks(url, self._network)
        return found


def busy(text: str) -> Unfit:
    """The refusal of what is worth another try in a few seconds."""
    return Unfit(text, status=503, error="temporarily_unavailable", retry_after=RETRY_AFTER_S)


def unverified(token: str, name: str) -> str | None:
    """What a token says of itself, to know whose keys to ask for."""
    try:
        value = read_token(token).claims.get(name)
    except InvalidToken:
        return None
    return value if isinstance(value, str) else None


def usual_user(claims: Mapping[str, Any]) -> str | None:
    """The id of a user where nobody says another; None where several may have the same."""
    return None if "tenant" in claims else f"{claims['iss']}|{claims.get('sub')}"


def user_behind(records: Records, asked: Asked) -> str | None:
    """The id of the user behind a code or a refresh token, good or not."""
    grant_id: str | None = None
    if (text := asked.get("code")) is not None:
        code = records.code(text)
        grant_id = None if code is None else code.grant_id
    elif (text := asked.get("refresh_token")) is not None:
        presented = read_refresh(text)
        grant_id = None if presented is None else presented.grant_id
    grant = None if grant_id is None else records.grant(grant_id)
    return None if grant is None else grant.user_id
