"""Authorization of ``mcp``'s servers, under the names of ``mcp.server.auth``: tokens that a verifier knows.

An authorization server in the same process is none of the façades': isthmus has one of its own.
"""

from typing import Any, Protocol

import pydantic

from isthmus.compat.session import REQUEST
from isthmus.compat.tokens import (
    AccessToken,
    BearerAuth,
    ForeignVerifier,
    find_access_token,
)
from isthmus.errors import UsageError

GUIDE = "docs/guide/compat.md"


class TokenVerifier(Protocol):
    """Verifier of access tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Verify a token; None where it is none."""
        ...


class ClientRegistrationOptions(pydantic.BaseModel):
    """Options of an authorization server in the same process, which cannot be had."""

    enabled: bool = False
    client_secret_expiry_seconds: int | None = None
    valid_scopes: list[str] | None = None
    default_scopes: list[str] | None = None


class RevocationOptions(pydantic.BaseModel):
    """Options of an authorization server in the same process, which cannot be had."""

    enabled: bool = False


class AuthSettings(pydantic.BaseModel):
    """Settings of a server's authorization.

    Attributes:
        issuer_url: the authorization server.
        resource_server_url: the URL of the endpoint; None where no metadata names it.
        required_scopes: scopes that every request takes.
        validate_token_resource: tokens must say that they were issued for ``resource_server_url``.
    """

    issuer_url: pydantic.AnyHttpUrl
    resource_server_url: pydantic.AnyHttpUrl | None
    required_scopes: list[str] | None = None
    service_documentation_url: pydantic.AnyHttpUrl | None = None
    client_registration_options: ClientRegistrationOptions | None = None
    revocation_options: RevocationOptions | None = None
    identity_assertion_enabled: bool = False
    validate_token_resource: bool | None = None

    model_config = pydantic.ConfigDict(url_preserve_empty_path=True)


def make_authorizer(auth: Any, provider: Any, verifier: Any) -> Any:
    """Isthmus' authorizer for the settings of a server; None where it has none.

    Args:
        auth: the settings, an :class:`AuthSettings`.
        provider: an authorization server in the same process.
        verifier: verifies tokens.

    Raises:
        ValueError: settings and verifier do not come together.
        UsageError: there is a provider, or a URL would have tokens travel unencrypted.
    """
    if provider is not None:
        raise UsageError(
            "auth_server_provider= of mcp is not among the façades: use isthmus.auth.AuthorizationServer; see "
            "docs/guide/auth-authorization-server.md"
        )
    if auth is None:
        if verifier is not None:
            raise ValueError(
                "Cannot specify auth_server_provider or token_verifier without auth settings"
            )
        return None
    if hasattr(auth, "admit"):
        return auth
    if verifier is None:
        raise ValueError(
            "Must specify either auth_server_provider or token_verifier when auth is enabled"
        )
    if not isinstance(auth, AuthSettings):
        raise UsageError(
            f"auth= of mcp takes AuthSettings(…), not {type(auth).__name__}: see {GUIDE}"
        )
    return make_resource_auth(auth, verifier)


def make_resource_auth(auth: AuthSettings, verifier: Any) -> Any:
    """Isthmus' resource server; one without metadata where no URL is given."""
    scopes = auth.required_scopes or ()
    if auth.resource_server_url is None:
        return BearerAuth(ForeignVerifier(verifier), scopes)
    from isthmus.auth.resource_server.resource_auth import ResourceAuth

    resource = str(auth.resource_server_url)
    bound = resource if auth.validate_token_resource else None
    known = ForeignVerifier(verifier, resource=bound)
    return ResourceAuth(resource, [str(auth.issuer_url)], known, scopes=scopes)


def get_access_token() -> Any:
    """The access token of the caller, as its verifier gave it; None where nobody authenticated."""
    request = REQUEST.get(None)
    return None if request is None else find_access_token(request.inbound.principal)
