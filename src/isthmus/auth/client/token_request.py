"""The one request that every grant comes down to: a form to the token endpoint, and its answer.

Who asks is an :class:`~isthmus.auth.client_identity.Identity`; what is asked is a grant's
form. The answer is :class:`Granted`, or the error that the authorization server names.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from isthmus.auth.client_identity import Identity, authenticated
from isthmus.auth.foreign import lifetime, members, said
from isthmus.auth.network import Fetched, Network
from isthmus.auth.secret import Secret
from isthmus.core.scopes import real_scopes
from isthmus.errors import AuthRefused, AuthUnsafe

__all__ = ["Granted", "Proving", "request_token", "showable"]

TRIES = 2
"""How often a request is made: once more where the server wants a nonce in the proof."""


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a token request.

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
        return f"Granted(kind={self.kind!r}, scopes={self.scopes!r})"


class Proving(Protocol):
    """Proves the possession of the key that tokens are bound to (RFC 9449)."""

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        """The header with a new proof for one request."""
        ...

    def wants_again(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Learn the nonce of an answer; True where the request is to be made again with it."""
        ...


async def request_token(
    network: Network,
    endpoint: str,
    fields: Mapping[str, str],
    identity: Identity,
    *,
    issuer: str,
    methods: Sequence[str] = (),
    proofs: Proving | None = None,
) -> Granted:
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
    for _ in range(TRIES):
        form, headers = authenticated(fields, identity, issuer=issuer, methods=methods)
        if proofs is not None:
            headers = {**headers, **proofs.headers("POST", endpoint)}
        answer = await network.form(endpoint, form, headers)
        if proofs is None or not proofs.wants_again(
            endpoint, answer.status, answer.headers, answer.body
        ):
            break
    return granted(answer, issuer)


def granted(answer: Fetched, issuer: str) -> Granted:
    """A token endpoint's answer, read.

    Raises:
        AuthRefused: it is an error.
        AuthUnsafe: it is no token response.
    """
    read = members(answer.body)
    # Some servers answer 201; what matters is that there is a token.
    if answer.status not in (200, 201):
        raise refusal(read, answer.status, issuer)
    access = read.get("access_token")
    if not isinstance(access, str) or not showable(access):
        raise AuthUnsafe(f"the token endpoint of {issuer} answered with what is no token response")
    refresh, scope = read.get("refresh_token"), read.get("scope")
    return Granted(
        access=Secret(access),
        kind=kind_of(read.get("token_type"), issuer),
        expires_in=lifetime(read.get("expires_in")),
        refresh=Secret(refresh) if refresh and isinstance(refresh, str) else None,
        scopes=real_scopes(scope.split()) if isinstance(scope, str) and scope.strip() else None,
        more=read,
    )


KINDS = {"bearer": "Bearer", "dpop": "DPoP", "n_a": "N_A"}
"""The types of tokens by their names, whose case does not matter (RFC 6749 5.1)."""


def kind_of(named: Any, issuer: str) -> str:
    """The type of a token.

    Raises:
        AuthUnsafe: it is one that nobody here can present.
    """
    kind = KINDS.get(str(named).lower())
    if kind is None:
        raise AuthUnsafe(
            f"{issuer} issued a token of the type {said(named)}, and this client can present "
            "tokens of the types Bearer and DPoP"
        )
    return kind


def showable(token: str) -> bool:
    """Whether a token can stand in a header, alone and as it is."""
    return bool(token) and token.isascii() and token.isprintable() and " " not in token


def refusal(read: Mapping[str, Any], status: int, issuer: str) -> AuthRefused:
    """The exception for an error of an authorization server's."""
    error = read.get("error")
    if not isinstance(error, str):
        refused = AuthRefused(f"{issuer} answered a token request with HTTP {status} and no reason")
        refused.status = status
        return refused
    more = read.get("error_description")
    words = f": {said(more)}" if isinstance(more, str) and more else ""
    hint = HINTS.get(error)
    mend = f" ({hint})" if hint else ""
    return AuthRefused(f"{issuer} refused a token: {said(error)}{words}{mend}", said(error))


HINTS: Mapping[str, str] = {
    "invalid_client": "is the client registered there, and are its credentials current?",
    "unauthorized_client": "the client may not use this grant: allow it where it is registered",
    "invalid_target": "the authorization server does not know the resource: register its URL",
    "invalid_scope": "ask for others by scopes=…, or have these allowed to this client there",
    "unsupported_grant_type": "this authorization server does not offer this grant",
}
"""What helps, by the code of RFC 6749 5.2 and RFC 8707 2."""
