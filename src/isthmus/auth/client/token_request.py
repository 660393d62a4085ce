"""The one request that every grant comes down to: a form to the token endpoint, and its answer.

Who asks is an :class:`Identity`, which knows how it authenticates there; what is asked is a grant's
form. The answer is :class:`Granted`, or the error that the authorization server names.
"""

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from isthmus.auth.redaction import redact
from isthmus.auth.secret import Secret
from isthmus.core.scopes import real_scopes
from isthmus.errors import AuthRefused, AuthRequired, AuthUnsafe

if TYPE_CHECKING:
    from isthmus.auth.jose import PrivateKey

__all__ = [
    "Granted",
    "Identity",
    "Proving",
    "authenticated",
    "method_of",
    "request_token",
    "said",
    "showable",
]

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 60

TRIES = 2
"""How often a request is made: once more where the server wants a nonce in the proof."""

LONGEST = 200
"""Characters of another side's words that an error shows."""

METHODS = ("private_key_jwt", "none", "client_secret_basic", "client_secret_post")
"""How a client may authenticate, the best first."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A client as one authorization server knows it.

    Attributes:
        client_id: its name there.
        method: how it authenticates; None finds the best that the server takes.
        secret: with what, where that is a secret.
        key: with what, where that is a private key.
    """

    client_id: str
    method: str | None = None
    secret: Secret | None = None
    key: "PrivateKey | None" = None


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


class Fetched(Protocol):
    """An answer that was read whole."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By name in lower case."""
        ...

    @property
    def body(self) -> bytes:
        """The body."""
        ...


class Posting(Protocol):
    """The part of :class:`isthmus.auth.network.Network` that is needed here."""

    async def form(
        self, url: str, fields: Mapping[str, str], headers: Mapping[str, str]
    ) -> Fetched:
        """Post a form."""
        ...


class Proving(Protocol):
    """Proves the possession of the key that tokens are bound to (RFC 9449)."""

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        """The header with a new proof for one request."""
        ...

    def wants_again(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Learn the nonce of an answer; True where the request is to be made again with it."""
        ...


async def request_token(
    network: Posting,
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


def method_of(identity: Identity, methods: Sequence[str]) -> str:
    """How a client authenticates at a server that takes some methods.

    Raises:
        AuthRequired: it can do none of them.
    """
    if identity.method is not None:
        return identity.method
    able = {"none"} if identity.secret is None else {"client_secret_basic", "client_secret_post"}
    if identity.key is not None:
        able = {*able - {"none"}, "private_key_jwt"}
    for method in METHODS:
        if method in able and (method in methods or not methods):
            return method
    if able == {"none"}:  # public clients are often let in and not listed
        return "none"
    raise AuthRequired(
        f"the authorization server lets clients authenticate by {', '.join(map(said, methods))}, "
        f"and {identity.client_id!r} has what {' or '.join(sorted(able))} take: give it the other"
    )


def authenticated(
    fields: Mapping[str, str], identity: Identity, *, issuer: str, methods: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """A form and the headers with which a client shows who it is.

    Raises:
        AuthRequired: it lacks what the method takes.
    """
    # Also beside Basic, where it is not needed: servers made with PyPI mcp look for it there first.
    method, form = method_of(identity, methods), {**fields, "client_id": identity.client_id}
    if not identity.client_id:  # an assertion may say it all
        del form["client_id"]
    if method == "private_key_jwt":
        form["client_assertion_type"] = ASSERTION
        form["client_assertion"] = assertion(identity, issuer).reveal()
        return form, {}
    if method == "none":
        return form, {}
    if identity.secret is None:
        raise AuthRequired(
            f"{identity.client_id!r} authenticates at {issuer} by {method}, and has no secret: "
            "give it one, or register it as a public client"
        )
    if method == "client_secret_post":
        form["client_secret"] = identity.secret.reveal()
        return form, {}
    return form, {"Authorization": basic(identity.client_id, identity.secret)}


def basic(client_id: str, secret: Secret) -> str:
    """The credentials of a client in the scheme Basic."""
    from urllib.parse import quote_plus  # what posts the form has imported it

    # RFC 6749 2.3.1: both are form-encoded before they are put together
    pair = f"{quote_plus(client_id)}:{quote_plus(secret.reveal())}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def assertion(identity: Identity, issuer: str) -> Secret:
    """A JWT that says who the client is, for one server and one minute (RFC 7523 2.2)."""
    from isthmus.auth.jose import sign  # the JOSE library is loaded where something is signed

    if identity.key is None:
        raise AuthRequired(
            f"{identity.client_id!r} authenticates at {issuer} by private_key_jwt, and has no "
            "key: give it PrivateKey(…)"
        )
    now = int(time.time())
    claims = {
        "iss": identity.client_id,
        "sub": identity.client_id,
        "aud": issuer,
        "jti": Secret.random(16).reveal(),
        "iat": now,
        "exp": now + ASSERTION_SECONDS,
    }
    return Secret(sign(claims, identity.key))


def granted(answer: Fetched, issuer: str) -> Granted:
    """A token endpoint's answer, read.

    Raises:
        AuthRefused: it is an error.
        AuthUnsafe: it is no token response.
    """
    try:
        read: Any = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read = None
    # Some servers answer 201; what matters is that there is a token.
    if answer.status not in (200, 201):
        raise refusal(read if isinstance(read, dict) else {}, answer.status, issuer)
    access = read.get("access_token") if isinstance(read, dict) else None
    if not isinstance(access, str) or not showable(access):
        raise AuthUnsafe(f"the token endpoint of {issuer} answered with what is no token response")
    refresh, scope = read.get("refresh_token"), read.get("scope")
    return Granted(
        access=Secret(access),
        kind=kind_of(read.get("token_type"), issuer),
        expires_in=seconds(read.get("expires_in")),
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


def seconds(value: Any) -> float | None:
    """The life of a token; some servers write it as a text."""
    try:
        life = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return life if 0 < life < 1e12 else None


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


def said(words: Any) -> str:
    """Another side's words as an error may show them: some, on one line, without control.

    Secrets are taken out: who does not know a code or a refresh token may say which it was.
    """
    text = redact(words if isinstance(words, str) else repr(words))
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST])
