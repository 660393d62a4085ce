"""Client registration: a client known beforehand, by its metadata document, or dynamically (RFC 7591).

What a server gave a client is kept under that server's issuer, to the letter, and shown to nobody
else. A client that is known by its metadata document is known everywhere, since it names itself.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from isthmus.auth.client.discovery import DiscoveryResult, ServerMetadata
from isthmus.auth.client.redirect import Redirect
from isthmus.auth.client.store.records import Key, Registration, Tokens, TokenStore
from isthmus.auth.net.network import Network
from isthmus.auth.net.urls import is_same_issuer, redirect_matches
from isthmus.auth.protocol import (
    AUTH_METHODS,
    PREFERRED_AUTH_METHODS,
    SECRET_METHODS,
    ClientIdentity,
    parse_members,
    quote_foreign,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, AuthRequired, AuthUnsafe, UsageError

if TYPE_CHECKING:
    from isthmus.auth.tokens.jose import PrivateKey


class Preregistered(Protocol):
    """A client that a server was told about beforehand; :class:`StaticClient` is one."""

    @property
    def identity(self) -> ClientIdentity:
        """Its identity there."""
        ...


class StaticClient:
    """A client that was registered at an authorization server beforehand, by hand or by a form there.

    Example::

        StaticClient("desktop-app")
        StaticClient("report-job", secret=os.environ["REPORT_SECRET"])
        StaticClient("report-job", key=PrivateKey(pem, alg="ES256"))

    Args:
        client_id: what it is called there.
        secret: the secret it was given.
        key: the private key whose public half the authorization server knows.
        method: how it authenticates at the token endpoint: ``none``, ``client_secret_basic``,
            ``client_secret_post`` or ``private_key_jwt``; None takes the best that both can.

    Raises:
        UsageError: it has no name, its key is no ``PrivateKey``, or a method is named that does
            not go with what it has.
    """

    def __init__(
        self,
        client_id: str,
        *,
        secret: Secret | str | None = None,
        key: "PrivateKey | None" = None,
        method: str | None = None,
    ) -> None:
        if not client_id:
            raise UsageError("a registered client needs a client_id: give it as a string")
        if method is not None and method not in AUTH_METHODS:
            raise UsageError(f"method={method!r}: it is one of {', '.join(sorted(AUTH_METHODS))}")
        if isinstance(key, str | bytes | Mapping):
            raise UsageError(f"key= of {client_id!r} is PrivateKey(…) of that, and not its text")
        for named, given, wanted in (
            ("private_key_jwt", key, "key=PrivateKey(…)"),
            ("client_secret_basic", secret, "secret=…"),
            ("client_secret_post", secret, "secret=…"),
        ):
            if method == named and given is None:
                raise UsageError(f"{client_id!r} is to authenticate by {method}: give it {wanted}")
        self.client_id = client_id
        self.identity = ClientIdentity(
            client_id=client_id,
            method=method,
            secret=None if secret is None else Secret(secret),
            key=key,
        )

    def __repr__(self) -> str:
        return f"StaticClient({self.client_id!r})"


class ClientProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Client metadata: what a program says of itself when it is registered.

    Attributes:
        name: for the user, when they are asked.
        uri: a page about it, or None.
        metadata_url: where its metadata document stands, or None.
        key: authenticates it wherever it is known by that document, or None.
        clients: who it is where it was registered beforehand, by issuer.
    """

    name: str
    uri: str | None = None
    metadata_url: str | None = None
    key: Any = None
    clients: Mapping[str, Preregistered] = {}

    def find_identity(self, issuer: str) -> ClientIdentity | None:
        """Its identity at an issuer where it was registered beforehand; None elsewhere."""
        for named, client in self.clients.items():
            if is_same_issuer(named, issuer):
                return client.identity
        return None


class Registrar:
    """Sees to it that one authorization server after the other knows the client.

    Args:
        program: what the client says of itself.
        redirect: where users come back to.
        store: keeps what servers give.
        network: reaches them.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        program: ClientProfile,
        redirect: Redirect,
        store: TokenStore,
        network: Network,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._profile = program
        self._redirect = redirect
        self._uri = redirect.uri
        self._store = store
        self._network = network
        self._now = now

    async def load(self, issuer: str) -> Registration | None:
        """The client's registration at an issuer, as long as it is good."""
        for key in reversed(await self._store.keys()):
            if (key.issuer, key.redirect) == (issuer, self._uri):
                record = await self._load_valid(key)
                if record is not None and not record.doubted:
                    return record
        return None

    async def _load_valid(self, key: Key) -> Registration | None:
        record = await self._store.get(key)
        if not isinstance(record, Registration):
            return None
        return None if (record.expires_at or self._now() + 1) <= self._now() else record

    async def doubt(self, issuer: str, client_id: str) -> None:
        """Begin no login any more with what an issuer gave the client, which it may have forgotten.

        Tokens of other servers may have been granted to that client; while there are any, its
        registration is kept for their renewal.
        """
        key = Key(issuer, client_id, redirect=self._uri)
        record = await self._store.get(key)
        if not isinstance(record, Registration):
            return
        granted = [k for k in await self._store.keys() if not k.redirect]
        if any((k.issuer, k.client_id) == (issuer, client_id) for k in granted):
            await self._store.put(key, msgspec.structs.replace(record, doubted=True))
        else:
            await self._store.delete(key)

    async def find_identity(self, tokens: Tokens) -> ClientIdentity | None:
        """The client that some tokens were issued to; None where it is no more."""
        told = self._profile.find_identity(tokens.issuer)
        if told is not None:
            return told if told.client_id == tokens.client_id else None
        if tokens.client_id == self._profile.metadata_url:
            return self._make_document_identity()
        # Logins that went on at once have registered several, and each renews its own tokens.
        kept = await self._load_valid(Key(tokens.issuer, tokens.client_id, redirect=self._uri))
        return None if kept is None else make_identity(kept)

    async def identity(
        self, discovered: DiscoveryResult, landing: str, kept: Registration | None
    ) -> ClientIdentity:
        """The client's identity at an authorization server, where it is registered if need be.

        Args:
            discovered: the server.
            landing: the redirect URI that will be used.
            kept: what the server gave before.

        Raises:
            AuthRequired: the server has to be told by hand.
            AuthRefused: it does not register the client.
            AuthUnsafe: what it answered cannot be used.
        """
        # spec 2026-07-28 basic/authorization/client-registration: pre-registered, document,
        # dynamic registration, and at last the user
        server = discovered.server
        told = self._profile.find_identity(server.issuer)
        if told is not None:
            return told
        if self._profile.metadata_url is not None and server.client_id_metadata_document_supported:
            return self._make_document_identity()
        if kept is not None and kept.redirect_uri == landing:
            return make_identity(kept)
        if server.registration_endpoint:
            return make_identity(
                await self._register(server, server.registration_endpoint, landing)
            )
        raise AuthRequired(
            f"{quote_foreign(server.issuer)} registers no client by itself: register this one there, with "
            f"the redirect URI {self._redirect.uri}, and pass the client_id it gives you as "
            f"OAuth(clients={{{quote_foreign(server.issuer)!r}: StaticClient(…)}})"
        )

    def _make_document_identity(self) -> ClientIdentity:
        url, key = self._profile.metadata_url or "", self._profile.key
        return ClientIdentity(client_id=url, method="private_key_jwt" if key else "none", key=key)

    async def _register(self, server: ServerMetadata, endpoint: str, landing: str) -> Registration:
        """Register, and keep what comes of it."""
        document = self._make_document(server, landing)
        answer = await self._network.fetch(
            "POST",
            endpoint,
            headers={"accept": "application/json", "content-type": "application/json"},
            body=msgspec.json.encode(document),
        )
        read = parse_members(answer.body)
        if answer.status not in {200, 201}:
            raise self._make_refusal(server.issuer, answer.status, read)
        registration = self._check_response(read, server, landing, document)
        await self._store.put(registration.key, registration)
        return registration

    def _make_document(self, server: ServerMetadata, landing: str) -> dict[str, Any]:
        grants = ["authorization_code"]
        # spec 2026-07-28 basic/authorization#refresh-tokens: SHOULD be there
        if "refresh_token" in (server.grant_types_supported or ["refresh_token"]):
            grants.append("refresh_token")
        key = self._profile.key
        able = {*AUTH_METHODS} if key is not None else {*AUTH_METHODS} - {"private_key_jwt"}
        method = next(
            (m for m in PREFERRED_AUTH_METHODS if m in able and m in server.methods), "none"
        )
        document: dict[str, Any] = {
            "client_name": self._profile.name,
            "redirect_uris": [landing],
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            # spec 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints:
            # MUST be said
            "application_type": "native" if self._redirect.native else "web",
        }
        if self._profile.uri is not None:
            document["client_uri"] = self._profile.uri
        if method == "private_key_jwt":
            document["jwks"] = {"keys": [dict(key.jwk)]}
        return document

    def _make_refusal(self, issuer: str, status: int, read: Mapping[str, Any]) -> AuthRefused:
        error, more = read.get("error"), read.get("error_description")
        why = ": ".join(quote_foreign(one) for one in (error, more) if isinstance(one, str) and one)
        # spec 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints:
        # a refusal SHOULD be told in a way that helps
        return AuthRefused(
            f"{quote_foreign(issuer)} does not register this client: {why or f'HTTP {status}'}; register it "
            f"there by hand with the redirect URI {self._redirect.uri}, and pass its client_id by "
            "OAuth(clients=…), or choose another redirect=",
            quote_foreign(error) if isinstance(error, str) else "",
        )

    def _check_response(
        self,
        read: Mapping[str, Any],
        server: ServerMetadata,
        landing: str,
        asked: Mapping[str, Any],
    ) -> Registration:
        """Check the client information response."""
        try:
            made = msgspec.convert(read, RegistrationResponse)
        except msgspec.ValidationError as error:
            raise AuthUnsafe(
                f"{quote_foreign(server.issuer)} answered the registration with nonsense: {error}"
            ) from None
        uris = made.redirect_uris
        if uris and not any(redirect_matches(uri, landing) for uri in uris):
            raise AuthUnsafe(
                f"{quote_foreign(server.issuer)} registered other redirect URIs than {landing}: users "
                "would be sent elsewhere"
            )
        method = made.token_endpoint_auth_method or choose_auth_method(made, server, asked)
        if method not in AUTH_METHODS or (method in SECRET_METHODS and not made.client_secret):
            raise AuthUnsafe(
                f"{quote_foreign(server.issuer)} wants the client to authenticate by {quote_foreign(method)}, and "
                "gave it nothing to do that with"
            )
        return Registration(
            issuer=server.issuer,
            client_id=made.client_id,
            redirect_uri=landing,
            redirect=self._redirect.uri,
            method=method,
            secret=Secret(made.client_secret) if made.client_secret else None,
            expires_at=made.client_secret_expires_at or None,
        )


class RegistrationResponse(msgspec.Struct):
    """Client information response (RFC 7591 3.2.1)."""

    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    redirect_uris: list[str] | None = None
    token_endpoint_auth_method: str | None = None

    def __repr__(self) -> str:
        return f"RegistrationResponse({self.client_id!r})"


def choose_auth_method(
    made: RegistrationResponse, server: ServerMetadata, asked: Mapping[str, Any]
) -> str:
    """Choose how a client authenticates where its registration does not say."""
    if not made.client_secret:
        return str(asked["token_endpoint_auth_method"])
    # RFC 7591 2: Basic, if nothing is said
    return next((m for m in SECRET_METHODS if m in server.methods), SECRET_METHODS[0])


def make_identity(registration: Registration) -> ClientIdentity:
    """The identity of a client that registered itself."""
    return ClientIdentity(
        client_id=registration.client_id, method=registration.method, secret=registration.secret
    )
