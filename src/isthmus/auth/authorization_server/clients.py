"""Clients as the authorization server knows them, and what is allowed to each."""

import hashlib
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.auth.authorization_server.pending import ClientKind
from isthmus.auth.names import BY_SECRET, CODE, REFRESH
from isthmus.auth.secret import Secret
from isthmus.auth.urls import redirect_matches

__all__ = ["AuthMethod", "Known", "RegisteredClient"]

AuthMethod: TypeAlias = Literal[
    "none", "client_secret_basic", "client_secret_post", "private_key_jwt"
]


class RegisteredClient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client: set up by the operator, described by its own document, or registered by itself.

    Example::

        RegisteredClient(
            client_id="nightly", secret=Secret("…"), grant_types=("client_credentials",),
            scopes=("files:read",),
        )

    Attributes:
        client_id: what it is called in requests.
        name: what people see.
        redirect_uris: where the browser may be sent with its codes.
        grant_types: how it may get tokens.
        auth_method: how it authenticates at the token endpoint; ``none`` is a public client. One
            with a secret may send it in a header or in the body, whichever this says.
        secret: of clients set up in code; never stored in clear, never sent out.
        jwks: its public keys as a JWK set, for ``private_key_jwt``.
        jwks_uri: where these are, instead.
        scopes: what it may ask for; None is everything there is. For one that registered itself,
            what it asks for where a request names none.
        application_type: ``native`` or ``web`` (OpenID Connect Registration 2).
        client_uri: its home page, for people.
        kind: how it is known.
        dpop_bound: gets tokens that are bound to a key, and no others (RFC 9449 5.2).
        introspects: may ask about tokens that were issued to others, as resource servers do.
        created_at: seconds since the epoch; 0 for clients set up in code.
    """

    client_id: str
    name: str = ""
    redirect_uris: tuple[str, ...] = ()
    grant_types: tuple[str, ...] = (CODE, REFRESH)
    auth_method: AuthMethod = "none"
    secret: Any = None
    jwks: dict[str, Any] | None = None
    jwks_uri: str | None = None
    scopes: tuple[str, ...] | None = None
    application_type: str = "web"
    client_uri: str = ""
    kind: ClientKind = "static"
    dpop_bound: bool = False
    introspects: bool = False
    created_at: float = 0.0

    @property
    def label(self) -> str:
        """How pages name it."""
        return self.name or self.client_id

    @property
    def public(self) -> bool:
        """It has nothing to authenticate with."""
        return self.auth_method == "none"


class Known:
    """A client while it is being served: the questions that Authlib asks of one.

    Args:
        client: which.
        digest: what is stored of its secret; None where there is none, or it is in the client.
        matches: compares a text with that.
        offered: the scopes of the server, in their order.
        usual: the scopes of a request that names none.
    """

    def __init__(
        self,
        client: RegisteredClient,
        *,
        digest: bytes | None,
        matches: Any,
        offered: tuple[str, ...],
        usual: tuple[str, ...],
    ) -> None:
        self.client = client
        self._digest = digest
        self._matches = matches
        self._offered = offered
        self._usual = usual

    def __repr__(self) -> str:
        return f"Known({self.client.client_id!r})"

    @property
    def client_id(self) -> str:
        """What it is called."""
        return self.client.client_id

    def get_client_id(self) -> str:
        """What it is called."""
        return self.client.client_id

    def get_default_redirect_uri(self) -> str | None:
        """Its redirect URI where a request names none: the only one there is."""
        uris = self.client.redirect_uris
        return uris[0] if len(uris) == 1 else None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Whether the browser may be sent there."""
        # spec 2026-07-28 basic/authorization/security-considerations#open-redirection
        return any(redirect_matches(uri, redirect_uri) for uri in self.client.redirect_uris)

    def check_response_type(self, response_type: str) -> bool:
        """Whether it may use ``/authorize`` in this way."""
        return response_type == "code" and self.check_grant_type(CODE)

    def check_grant_type(self, grant_type: str) -> bool:
        """Whether it may get tokens in this way."""
        return grant_type in self.client.grant_types

    def check_client_secret(self, client_secret: str) -> bool:
        """Whether this is its secret; compared in a time that tells nothing."""
        if self.client.secret is not None:
            given = hashlib.sha256(client_secret.encode("utf-8", "surrogatepass")).hexdigest()
            mine = Secret(self.client.secret).reveal().encode()
            return Secret(hashlib.sha256(mine).hexdigest()) == given
        return self._digest is not None and self._matches(self._digest, client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:  # noqa: ARG002 - all alike
        """Whether it may authenticate like this, which is the same for every endpoint."""
        mine = self.client.auth_method
        return method == mine or (method in BY_SECRET and mine in BY_SECRET)

    def get_allowed_scope(self, scope: str | None) -> str | None:
        """What it gets of the scopes asked for; None where it may have none of them."""
        mine = self.client.scopes
        # Who registers by itself says what it begins with: many name the first challenge's scopes,
        # and ask for more when they are told to. What limits them is what their users allow.
        begins, limit = (mine, None) if self.client.kind == "dynamic" else (None, mine)
        allowed = [s for s in self._offered if limit is None or s in limit]
        if not scope or not scope.split():
            return " ".join(s for s in begins or self._usual if s in allowed)
        asked = list(dict.fromkeys(scope.split()))
        if not set(asked) <= set(allowed):
            return None
        return " ".join(asked)
