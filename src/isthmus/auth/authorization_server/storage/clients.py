"""Clients of the authorization server: how they are known, what each may do, and their metadata (RFC 7591)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.auth.net.urls import is_loopback, redirect_matches, split_url
from isthmus.auth.protocol import AUTHORIZATION_CODE_GRANT, REFRESH_GRANT, SECRET_METHODS
from isthmus.auth.tokens.jose import PRIVATE_MEMBERS
from isthmus.auth.tokens.secret import Secret
from isthmus.core.encoding import decode_base64url

AuthMethod: TypeAlias = Literal[
    "none", "client_secret_basic", "client_secret_post", "private_key_jwt"
]

# set up by the operator, described by the document that its id names, or registered by itself
ClientKind: TypeAlias = Literal["static", "document", "dynamic"]

MAX_REDIRECT_URIS = 20
MAX_URI_CHARS = 2000
MAX_CLIENT_KEYS = 10
APP_URI = re.compile(r"(?P<scheme>[a-z][a-z0-9+.\-]*):(?P<rest>[A-Za-z0-9\-._~:/?@!$&'()*+,;=%]+)")
DANGEROUS_SCHEMES = frozenset(
    {
        "javascript",
        "data",
        "vbscript",
        "file",
        "about",
        "blob",
        "filesystem",
        "view-source",
        "jar",
        "ftp",
        "ftps",
        "ws",
        "wss",
        "http",
        "https",
        "mailto",
        "tel",
        "sms",
        "intent",
        "content",
        "chrome",
        "resource",
        "mhtml",
        "mk",
        "res",
        "shell",
        "ms-msdt",
        "search-ms",
    }
)


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
    grant_types: tuple[str, ...] = (AUTHORIZATION_CODE_GRANT, REFRESH_GRANT)
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
        """The name of the client on pages for users."""
        return self.name or self.client_id

    @property
    def public(self) -> bool:
        """Whether the client is public: it has no credentials (RFC 6749, section 2.1)."""
        return self.auth_method == "none"


class AuthlibClient:
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
        return f"AuthlibClient({self.client.client_id!r})"

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
        return response_type == "code" and self.check_grant_type(AUTHORIZATION_CODE_GRANT)

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
        return method == mine or (method in SECRET_METHODS and mine in SECRET_METHODS)

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


class UnacceptableClient(Exception):
    """What a client says of itself cannot be; ``error`` is as RFC 7591 3.2.2 spells it."""

    def __init__(self, text: str, error: str = "invalid_client_metadata") -> None:
        super().__init__(text)
        self.error = error


class ClientMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Client metadata (RFC 7591 2), as far as it means something here; typed before it is used."""

    redirect_uris: list[str] = []
    token_endpoint_auth_method: str | None = None
    grant_types: list[str] = msgspec.field(default_factory=lambda: [AUTHORIZATION_CODE_GRANT])
    response_types: list[str] = msgspec.field(default_factory=lambda: ["code"])
    client_name: str | None = None
    client_uri: str | None = None
    logo_uri: str | None = None
    scope: str | None = None
    jwks_uri: str | None = None
    jwks: dict[str, Any] | None = None
    application_type: str | None = None
    dpop_bound_access_tokens: bool = False
    software_id: str | None = None
    software_version: str | None = None


def check_redirects(uris: Sequence[str], schemes: Sequence[str]) -> None:
    """See that a client's redirect URIs can be.

    Raises:
        UnacceptableClient: one cannot, or there are none or too many.
    """
    if not 0 < len(uris) <= MAX_REDIRECT_URIS:
        raise UnacceptableClient(
            f"redirect_uris has to list 1 to {MAX_REDIRECT_URIS}", "invalid_redirect_uri"
        )
    for uri in uris:
        check_redirect(uri, schemes)


def check_redirect(uri: str, schemes: Sequence[str]) -> None:
    """See that a redirect URI is one that a browser can safely be sent to.

    Args:
        uri: what it is.
        schemes: of apps, that it may have beside those with a dot in them.

    Raises:
        UnacceptableClient: it is not; says why, without it.
    """
    if len(uri) > MAX_URI_CHARS:
        raise UnacceptableClient("a redirect URI is too long", "invalid_redirect_uri")
    scheme = uri.partition(":")[0].lower()
    if scheme in {"http", "https"}:
        try:
            parts = split_url(uri)
        except ValueError:
            raise UnacceptableClient(
                "a redirect URI is no usable URL", "invalid_redirect_uri"
            ) from None
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if parts.scheme == "http" and not is_loopback(parts.host):
            raise UnacceptableClient(
                "a redirect URI is https, or http on this machine", "invalid_redirect_uri"
            )
        return
    found = APP_URI.fullmatch(uri)
    # RFC 8252 7.1: an app's own scheme is a domain name turned round; a few are well known.
    if found is None or scheme in DANGEROUS_SCHEMES or not ("." in scheme or scheme in schemes):
        raise UnacceptableClient(
            "a redirect URI has a scheme that is not allowed", "invalid_redirect_uri"
        )


def is_app_redirect(uri: str) -> bool:
    """Whether a redirect URI, which has been checked, leads to a program on the user's machine."""
    if uri.partition(":")[0].lower() not in {"http", "https"}:
        return True
    return is_loopback(split_url(uri).host)


def choose_grants(asked: Sequence[str]) -> tuple[str, ...]:
    """The grant types that a client gets of those it wants.

    Raises:
        UnacceptableClient: there is none that brings a code.
    """
    fitting = tuple(
        dict.fromkeys(one for one in asked if one in {AUTHORIZATION_CODE_GRANT, REFRESH_GRANT})
    )
    if AUTHORIZATION_CODE_GRANT not in fitting:
        raise UnacceptableClient(f"grant_types has to list {AUTHORIZATION_CODE_GRANT}")
    return fitting


def check_jwks(jwks: Mapping[str, Any]) -> None:
    """See that a set of keys has public ones, and nothing else.

    Raises:
        UnacceptableClient: it has not.
    """
    keys = jwks.get("keys")
    if not isinstance(keys, list) or not 0 < len(keys) <= MAX_CLIENT_KEYS:
        raise UnacceptableClient(f"jwks has to list 1 to {MAX_CLIENT_KEYS} keys")
    for key in keys:
        kind = key.get("kty") if isinstance(key, dict) else None
        if kind not in {"RSA", "EC", "OKP"} or PRIVATE_MEMBERS & set(key):
            raise UnacceptableClient("jwks has to list public keys only")
        texts = [key.get(name) for name in ("n", "x", "y", "e") if name in key]
        if not all(isinstance(text, str) and decode_base64url(text) is not None for text in texts):
            raise UnacceptableClient("a key of jwks cannot be read")
