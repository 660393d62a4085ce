"""Authorization under the names of ``fastmcp.server.auth``: tokens can be read, providers are isthmus' own."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

from isthmus.errors import UsageError

GUIDE = "docs/guide/auth-resource-server.md"


@dataclass
class AccessToken:
    """Access token of a caller, as it was verified.

    Attributes:
        token: the token; isthmus does not give it on.
        client_id: the client it was given to.
        scopes: what was granted.
        expires_at: when it ends, in seconds since 1970.
        claims: what it says.
    """

    token: str = ""
    client_id: str = ""
    scopes: list[str] = field(default_factory=list)
    expires_at: int | None = None
    claims: dict[str, Any] = field(default_factory=dict)


class AuthProvider:
    """Base of providers; a server that has one cannot be served here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        refuse_provider(type(self).__name__)


class TokenVerifier(AuthProvider):
    """Base of what verifies tokens."""


class RemoteAuthProvider(AuthProvider):
    """Provider that sends clients to an authorization server elsewhere."""


class OAuthProvider(AuthProvider):
    """Provider that is an authorization server."""


class OAuthProxy(AuthProvider):
    """Provider that is an authorization server in front of another one."""


def refuse_provider(name: str) -> NoReturn:
    """Say what isthmus has in the place of a provider.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"fastmcp's {name} is not offered by isthmus.compat.fastmcp: use Server(auth=ResourceAuth(…)) of isthmus; see "
        f"{GUIDE}"
    )


def make_authorizer(auth: Any) -> Any:
    """Isthmus' authorizer as it is; one of fastmcp cannot be had.

    Raises:
        UsageError: it is one of fastmcp.
    """
    if hasattr(auth, "authorize"):
        return auth
    refuse_provider(type(auth).__name__)


def make_access_token(principal: Any) -> AccessToken:
    """The token of a principal, without the secret itself."""
    return AccessToken(
        client_id=principal.client_id or "",
        scopes=sorted(principal.scopes),
        claims=dict(principal.claims),
    )
