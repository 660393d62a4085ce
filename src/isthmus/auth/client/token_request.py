"""Token request: a form to the token endpoint, its answer, and the DPoP proofs of tokens (RFC 9449).

Who asks is an :class:`~isthmus.auth.protocol.ClientIdentity`; what is asked is a grant's
form. The answer is :class:`TokenResponse`, or the error that the authorization server names.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.auth.cache import BoundedDict
from isthmus.auth.client.discovery import DiscoveryResult
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.net.network import Fetched, Network
from isthmus.auth.net.urls import origin_of
from isthmus.auth.protocol import (
    ClientIdentity,
    authenticate_form,
    parse_lifetime,
    parse_members,
    quote_foreign,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.core.principal import filter_scopes
from isthmus.errors import AuthRefused, AuthUnsafe

if TYPE_CHECKING:
    from isthmus.auth.tokens.dpop import DpopKey

# Once more where the server wants a nonce in the proof.
MAX_TOKEN_REQUESTS = 2

MAX_NONCES = 100  # servers whose nonces are remembered

MAX_NONCE_CHARS = 1024  # characters of a nonce

NONCE_HEADER = "dpop-nonce"

# The types of tokens by their names, whose case does not matter (RFC 6749 5.1).
TOKEN_TYPES = {"bearer": "Bearer", "dpop": "DPoP", "n_a": "N_A"}

TOKEN_ERROR_HINTS: Mapping[str, str] = {  # what helps, by the code of RFC 6749 5.2 and RFC 8707 2
    "invalid_client": "is the client registered there, and are its credentials current?",
    "unauthorized_client": "the client may not use this grant: allow it where it is registered",
    "invalid_target": "the authorization server does not know the resource: register its URL",
    "invalid_scope": "ask for others by scopes=…, or have these allowed to this client there",
    "unsupported_grant_type": "this authorization server does not offer this grant",
}


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Token response.

    Attributes:
        access: the token.
        kind: ``"Bearer"`` or ``"DPoP"``; for tokens that are exchanged it may be ``"N_A"``.
        expires_in: seconds it is good for, or None where nobody said.
        refresh: gets the next one, or None.
        scopes: what was granted; None where it is what was asked for.
        more: the whole answer, for grants that need more of it; it holds secrets in clear.
    """

    access: Secret
    kind: str
    expires_in: float | None = None
    refresh: Secret | None = None
    scopes: frozenset[str] | None = None
    more: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return f"TokenResponse(kind={self.kind!r}, scopes={self.scopes!r})"


class DpopProofs:
    """Makes the proofs of one client, and remembers the nonces that servers want in them.

    Args:
        key: what new tokens are to be bound to; None has them bound to nothing.
    """

    def __init__(self, key: "DpopKey | None" = None) -> None:
        self.key = key
        self._known: dict[str, DpopKey] = {}
        # A server may be both, and its two roles know nothing of one another's nonces.
        self._issuing: BoundedDict[str, str] = BoundedDict(MAX_NONCES)
        self._serving: BoundedDict[str, str] = BoundedDict(MAX_NONCES)

    @property
    def secret(self) -> Secret | None:
        """The key, as it is kept with the tokens that are bound to it."""
        return None if self.key is None else self.key.secret_jwk()

    def load(self, tokens: Tokens) -> None:
        """Go on with the key that kept tokens are bound to, or without one."""
        self.key = None if tokens.proof_key is None else self._key(tokens.proof_key)

    # Token requests

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        """The header with a new proof for a token request."""
        if self.key is None:
            return {}
        return {"DPoP": self.key.proof(method, url, nonce=self._issuing.get(origin_of(url)))}

    def wants_again(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Learn the nonce of an answer; True where the request is to be made again with it."""
        before = self._issuing.get(origin_of(url))
        store_nonce(self._issuing, url, headers)
        if self.key is None or status not in {400, 401}:
            return False
        error = parse_members(body).get("error")
        return error == "use_dpop_nonce" and self._issuing.get(origin_of(url)) != before

    # Requests to the MCP server

    def presented(self, tokens: Tokens, method: str, url: str) -> Mapping[str, str]:
        """The headers that show a token."""
        shown = tokens.access.reveal()
        if tokens.kind != "DPoP" or tokens.proof_key is None:
            return {"Authorization": f"Bearer {shown}"}
        key = self._key(tokens.proof_key)
        nonce = self._serving.get(origin_of(url))
        proof = key.proof(method, url, token=tokens.access, nonce=nonce)
        return {"Authorization": f"DPoP {shown}", "DPoP": proof}

    def learn(self, url: str, headers: Mapping[str, str]) -> None:
        """Take the nonce that the next proof for a server has to have, if there is a new one."""
        store_nonce(self._serving, url, headers)

    def _key(self, secret: Secret) -> "DpopKey":
        """The key of a token, read once."""
        from isthmus.auth.tokens.dpop import (
            DpopKey,  # the JOSE library is loaded where it is needed
        )

        found = self._known.get(secret.reveal())
        if found is None:
            self._known.clear()  # there is one at a time
            own = self.key
            ours = own is not None and own.secret_jwk() == secret
            found = own if own is not None and ours else DpopKey.load(secret)
            self._known[secret.reveal()] = found
        return found


async def request_token(
    network: Network,
    endpoint: str,
    fields: Mapping[str, str],
    identity: ClientIdentity,
    *,
    issuer: str,
    methods: Sequence[str] = (),
    proofs: DpopProofs | None = None,
) -> TokenResponse:
    """Ask a token endpoint for what a grant's form asks for.

    Args:
        network: sends it.
        endpoint: the token endpoint.
        fields: ``grant_type`` and what belongs to it.
        identity: who asks.
        issuer: whose endpoint it is: the audience of assertions.
        methods: how its metadata let clients authenticate; empty where they do not say.
        proofs: proves the possession of a key, and binds the token to it.

    Raises:
        AuthRefused: the server said no; ``error`` has its code.
        AuthRequired: the identity lacks what the server wants to see.
        AuthUnsafe: what it answered is no token response.
    """
    for _ in range(MAX_TOKEN_REQUESTS):
        form, headers = authenticate_form(fields, identity, issuer=issuer, methods=methods)
        if proofs is not None:
            headers = {**headers, **proofs.headers("POST", endpoint)}
        answer = await network.form(endpoint, form, headers)
        if proofs is None or not proofs.wants_again(
            endpoint, answer.status, answer.headers, answer.body
        ):
            break
    return parse_token_response(answer, issuer)


def make_tokens(
    granted: TokenResponse,
    *,
    discovered: DiscoveryResult,
    client_id: str,
    asked: frozenset[str],
    proofs: DpopProofs,
    now: float,
    account: str,
) -> Tokens:
    """The tokens of a token response, as they are kept."""
    server = discovered.server
    check_token_type(granted, server.issuer, proofs)
    return Tokens(
        access=granted.access,
        issuer=server.issuer,
        client_id=client_id,
        resource=discovered.resource,
        kind=granted.kind,
        refresh=granted.refresh,
        issued_at=now,
        expires_at=None if granted.expires_in is None else now + granted.expires_in,
        # RFC 6749 5.1: absent where it is what was asked for
        scopes=asked if granted.scopes is None else granted.scopes,
        asked=asked,
        token_endpoint=server.token_endpoint,
        methods=server.methods,
        proof_key=proofs.secret if granted.kind == "DPoP" else None,
        account=account,
        server=discovered.below,
    )


def check_token_type(granted: TokenResponse, issuer: str, proofs: DpopProofs) -> None:
    """See to it that a token is of a type that a request can carry.

    Raises:
        AuthUnsafe: it is not.
    """
    if granted.kind != "Bearer" and (granted.kind != "DPoP" or proofs.key is None):
        raise AuthUnsafe(f"{quote_foreign(issuer)} issued a token that nobody here can present")


def parse_token_response(answer: Fetched, issuer: str) -> TokenResponse:
    """A token endpoint's answer, read.

    Raises:
        AuthRefused: it is an error.
        AuthUnsafe: it is no token response.
    """
    read = parse_members(answer.body)
    # Some servers answer 201; what matters is that there is a token.
    if answer.status not in (200, 201):
        raise make_token_refusal(read, answer.status, issuer)
    access = read.get("access_token")
    if not isinstance(access, str) or not is_header_safe(access):
        raise AuthUnsafe(f"the token endpoint of {issuer} answered with what is no token response")
    refresh, scope = read.get("refresh_token"), read.get("scope")
    return TokenResponse(
        access=Secret(access),
        kind=parse_token_type(read.get("token_type"), issuer),
        expires_in=parse_lifetime(read.get("expires_in")),
        refresh=Secret(refresh) if refresh and isinstance(refresh, str) else None,
        scopes=filter_scopes(scope.split()) if isinstance(scope, str) and scope.strip() else None,
        more=read,
    )


def parse_token_type(named: Any, issuer: str) -> str:
    """The type of a token.

    Raises:
        AuthUnsafe: it is one that nobody here can present.
    """
    kind = TOKEN_TYPES.get(str(named).lower())
    if kind is None:
        raise AuthUnsafe(
            f"{issuer} issued a token of the type {quote_foreign(named)}, and this client can present "
            "tokens of the types Bearer and DPoP"
        )
    return kind


def is_header_safe(token: str) -> bool:
    """Whether a token can stand in a header, alone and as it is."""
    return bool(token) and token.isascii() and token.isprintable() and " " not in token


def make_token_refusal(read: Mapping[str, Any], status: int, issuer: str) -> AuthRefused:
    """The exception for an error of an authorization server's."""
    error = read.get("error")
    if not isinstance(error, str):
        refused = AuthRefused(f"{issuer} answered a token request with HTTP {status} and no reason")
        refused.status = status
        return refused
    more = read.get("error_description")
    words = f": {quote_foreign(more)}" if isinstance(more, str) and more else ""
    hint = TOKEN_ERROR_HINTS.get(error)
    mend = f" ({hint})" if hint else ""
    return AuthRefused(
        f"{issuer} refused a token: {quote_foreign(error)}{words}{mend}", quote_foreign(error)
    )


def store_nonce(nonces: BoundedDict[str, str], url: str, headers: Mapping[str, str]) -> None:
    """Remember the nonce of an answer, if there is one and it can be one."""
    nonce = headers.get("DPoP-Nonce") or headers.get(NONCE_HEADER)
    if nonce and len(nonce) <= MAX_NONCE_CHARS and nonce.isascii() and nonce.isprintable():
        nonces[origin_of(url)] = nonce
