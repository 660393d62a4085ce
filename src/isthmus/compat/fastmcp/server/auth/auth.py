"""Token verifiers and the login by an authorization server elsewhere, under the names of ``fastmcp.server.auth.auth``.

Each is put on isthmus' own authorization by :func:`make_authorizer`. One that cannot be enforced is refused when
its server is made: no server is served without the login that its program asks for.
"""

from typing import Any, NoReturn

import pydantic

from isthmus.compat import tokens
from isthmus.compat.tokens import BearerAuth, ForeignVerifier, find_access_token
from isthmus.errors import UsageError

GUIDE = tokens.GUIDE

DEFAULT_PATH = "/mcp"

# Methods by which a provider has pages or layers of its own
PAGE_METHODS = ("get_routes", "get_well_known_routes", "get_middleware")


class AccessToken(tokens.AccessToken):
    """Access token of a caller, with all its claims.

    Attributes:
        claims: the claims.
    """

    claims: dict[str, Any] = pydantic.Field(default_factory=dict)


class AuthProvider:
    """Base of what verifies the tokens of a server's callers.

    Args:
        base_url: the public URL of the server, without the path of its endpoint.
        required_scopes: scopes that every request takes.
        resource_base_url: the same URL, where that of the endpoint differs.
    """

    def __init__(
        self, base_url: Any = None, required_scopes: Any = None, resource_base_url: Any = None
    ) -> None:
        self.base_url = None if base_url is None else str(base_url)
        self.resource_base_url = None if resource_base_url is None else str(resource_base_url)
        self.required_scopes: list[str] = list(required_scopes or ())

    async def verify_token(self, token: str) -> Any:
        """Verify a token; None where it is none.

        Raises:
            NotImplementedError: the subclass does not say how.
        """
        raise NotImplementedError("Subclasses must implement verify_token")

    @property
    def scopes_supported(self) -> list[str]:
        """Scopes that the metadata lists."""
        return self.required_scopes


class TokenVerifier(AuthProvider):
    """Base of verifiers that know no authorization server."""


class RemoteAuthProvider(AuthProvider):
    """Login by an authorization server elsewhere, which the metadata names.

    Args:
        token_verifier: verifies the tokens.
        authorization_servers: the issuers of tokens.
        base_url: the public URL of the server, without the path of its endpoint.
        scopes_supported: scopes that the metadata lists; the required ones by default.
        resource_base_url: the same URL, where that of the endpoint differs.
        resource_name: what the metadata calls it.
        resource_documentation: a URL with more.
        challenge_scopes: nothing: a challenge names the required scopes.
    """

    def __init__(
        self,
        token_verifier: Any,
        authorization_servers: Any,
        base_url: Any,
        scopes_supported: list[str] | None = None,
        resource_base_url: Any = None,
        resource_name: str | None = None,
        resource_documentation: Any = None,
        challenge_scopes: list[str] | None = None,
    ) -> None:
        super().__init__(base_url, token_verifier.required_scopes, resource_base_url)
        del challenge_scopes
        self.token_verifier = token_verifier
        self.authorization_servers = [str(one) for one in authorization_servers]
        self.resource_name = resource_name
        self.resource_documentation = resource_documentation
        self._scopes_supported = scopes_supported

    @property
    def scopes_supported(self) -> list[str]:
        """Scopes that the metadata lists."""
        if self._scopes_supported is not None:
            return self._scopes_supported
        listed: list[str] = self.token_verifier.scopes_supported
        return listed

    async def verify_token(self, token: str) -> Any:
        """Verify a token by the verifier; None where it is none."""
        return await self.token_verifier.verify_token(token)


class RefusedProvider(AuthProvider):
    """Base of providers that cannot be had; a server that has one is not served."""

    def __init__(self, *_: Any, **__: Any) -> None:
        refuse_provider(type(self).__name__)


# What isthmus has in the place of a provider, and the page, by the beginning of the provider's name
REPLACEMENTS = {
    "GitHub": ("UpstreamLogin(GITHUB, …)", "github"),
    "Google": ("UpstreamLogin(GOOGLE, …)", "google"),
    "Azure": ("ENTRA", "entra"),
    "Auth0": ("AUTH0", "auth0"),
    "WorkOS": ("WORKOS", "workos"),
    "AuthKit": ("WORKOS", "workos"),
    "Keycloak": ("KEYCLOAK", "keycloak"),
    "AWSCognito": ("COGNITO", "cognito"),
    "Introspection": ("IntrospectionVerifier(…)", "external-providers"),
    "OAuthProxy": ("AuthorizationServer(…) with UpstreamLogin(…)", "authorization-server"),
    "OIDCProxy": ("AuthorizationServer(…) with UpstreamLogin(…)", "authorization-server"),
    "OAuthProvider": ("AuthorizationServer(…)", "authorization-server"),
    "InMemoryOAuth": ("AuthorizationServer(…)", "authorization-server"),
}

DEFAULT_REPLACEMENT = ("Server(auth=ResourceAuth(…))", "resource-server")


def refuse_provider(name: str) -> NoReturn:
    """Say what isthmus has in the place of a provider.

    Raises:
        UsageError: always.
    """
    found = (one for start, one in REPLACEMENTS.items() if name.startswith(start))
    ours, page = next(found, DEFAULT_REPLACEMENT)
    raise UsageError(
        f"fastmcp's {name} is not offered by isthmus.compat.fastmcp: use {ours} of isthmus; see docs/guide/auth-{page}.md"
    )


def make_authorizer(auth: Any, path: str = DEFAULT_PATH) -> Any:
    """Isthmus' authorizer for a provider; one of isthmus is taken as it is.

    Args:
        auth: the provider.
        path: the path of the endpoint.

    Raises:
        UsageError: it cannot be enforced here, or a URL would have tokens travel unencrypted.
    """
    if hasattr(auth, "admit"):
        return auth
    if isinstance(auth, RefusedProvider) or not isinstance(auth, AuthProvider):
        refuse_provider(type(auth).__name__)
    own = [name for name in PAGE_METHODS if hasattr(auth, name)]
    if own:
        raise UsageError(
            f"{type(auth).__name__}.{own[0]} is not offered by isthmus.compat.fastmcp: use routes= of ResourceAuth(…) "
            f"of isthmus, or Server.route; see {GUIDE}"
        )
    verifier = ForeignVerifier(auth)
    if not isinstance(auth, RemoteAuthProvider):
        return BearerAuth(verifier, auth.required_scopes)
    return make_resource_auth(auth, verifier, path)


def make_resource_auth(auth: RemoteAuthProvider, verifier: ForeignVerifier, path: str) -> Any:
    """Isthmus' resource server for a login elsewhere.

    Raises:
        UsageError: a URL would have tokens travel unencrypted.
    """
    from isthmus.auth.resource_server.metadata import list_metadata_paths, make_metadata_page
    from isthmus.auth.resource_server.resource_auth import ResourceAuth

    base = (auth.resource_base_url or auth.base_url or "").rstrip("/")
    resource = f"{base}/{path.lstrip('/')}"
    made = ResourceAuth(
        resource,
        auth.authorization_servers,
        verifier,
        scopes=auth.required_scopes,
        name=auth.resource_name,
        documentation=None
        if auth.resource_documentation is None
        else str(auth.resource_documentation),
    )
    listed = auth.scopes_supported
    if listed != auth.required_scopes:
        made.metadata["scopes_supported"] = listed
        page = make_metadata_page(made.metadata)
        made.routes = dict.fromkeys(list_metadata_paths(resource, alone=True), page)
    return made


def make_access_token(principal: Any) -> Any:
    """The token of a principal, as its verifier gave it; without the secret where isthmus' own verified it."""
    found = find_access_token(principal)
    if found is not None:
        return found
    return AccessToken(
        token="",
        client_id=principal.client_id or "",
        scopes=sorted(principal.scopes),
        subject=principal.subject,
        claims=dict(principal.claims),
    )
