"""Presets for well-known authorization servers: how their tokens are verified, and how users log in with them.

What differs between providers is data here: the spelling of the issuer, the type and the claims of tokens, the
audience, the endpoints. Two things can be done with a preset::

    auth = KEYCLOAK.resource_auth("https://mcp.example.com/mcp", url="https://login.example.com/realms/tools")
    users = UpstreamLogin(GITHUB.provider(client_id="Iv1.8a61", client_secret=os.environ["GITHUB_SECRET"]))

The first accepts the provider's own tokens: clients log in there. The second puts the authorization server of
this library before it: clients log in here, and users at the provider. Facts as of 2026-11.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.core.principal import Principal
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.upstream.api import Upstream
    from isthmus.auth.authorization_server.upstream.provider import Provider
    from isthmus.auth.net.network import Network, NetworkPolicy
    from isthmus.auth.resource_server.jwt import Profile
    from isthmus.auth.resource_server.resource_auth import ResourceAuth
    from isthmus.auth.resource_server.verifier import Presented, TokenVerifier
    from isthmus.auth.tokens.secret import Secret

__all__ = [
    "AUTH0",
    "COGNITO",
    "ENTRA",
    "GITHUB",
    "GOOGLE",
    "KEYCLOAK",
    "OKTA",
    "WORKOS",
    "Preset",
]

HOST_PATTERN = (
    r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+"
)
URL_PATTERN = r"https?://[^\s?#]+"
NAME_PATTERN = r"[A-Za-z0-9_-]+"
TENANT_PATTERN = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class PresetField(msgspec.Struct, frozen=True):
    """One part of an issuer that every customer has of their own.

    Attributes:
        pattern: a regular expression of what it may be: nothing that leads elsewhere.
        example: what it looks like.
        default: what it is where it is not given; None where it must be.
    """

    pattern: str
    example: str
    default: str | None = None


class LoginEndpoints(msgspec.Struct, frozen=True):
    """Endpoints of a provider without metadata.

    Attributes:
        authorize: where users are sent.
        token: where codes are exchanged.
        user: the path at its API that says who the user is, and ``user_key`` the member with the id.
    """

    authorize: str
    token: str
    user: str
    user_key: str


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one provider.

    Attributes:
        name: what ``ctx.upstream`` calls it.
        title: what pages call it.
        issuer: its issuer, with its fields in braces.
        fields: the fields.
        profile: what its access tokens are: see :class:`~isthmus.auth.JWTVerifier`.
        scope_claims: where scopes are in them.
        needs_audience: its tokens name an audience of its own spelling: give ``audience=``.
        full_scopes: clients ask for ``RESOURCE/scope``, and tokens have ``scope`` alone.
        opaque: why its access tokens cannot be accepted; empty where they can.
        scopes: what is asked of users who log in with it.
        parameters: further parameters of its authorization requests.
        endpoints: where it has no metadata.
        api: the origins of its API.
    """

    name: str
    title: str
    issuer: str = ""
    fields: Mapping[str, PresetField] = {}
    profile: "Profile" = "compat"
    scope_claims: tuple[str, ...] = ("scope", "scp")
    needs_audience: bool = False
    full_scopes: bool = False
    opaque: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    parameters: Mapping[str, str] = {}
    endpoints: LoginEndpoints | None = None
    api: tuple[str, ...] = ()

    def make_issuer(self, **fields: str) -> str:
        """The issuer of one customer, letter by letter as the provider spells it in tokens.

        Args:
            **fields: the fields of this customer by name, such as ``tenant``; one with a default
                may be left out.

        Raises:
            UsageError: a field is missing, unknown, or cannot be part of it.
        """
        for name in fields:
            if name not in self.fields:
                known = ", ".join(self.fields) or "none"
                raise UsageError(f"{self.title} has no field {name!r}; it has: {known}")
        values = {}
        for name, field in self.fields.items():
            value = fields.get(name, field.default)
            if value is None or not re.fullmatch(field.pattern, value):
                raise UsageError(f"{self.title}: {name}= is like {field.example!r}, not {value!r}")
            values[name] = value
        return self.issuer.format(**values)

    def resource_auth(
        self,
        resource: str,
        *,
        scopes: Collection[str] = (),
        audience: str | None = None,
        network: "Network | NetworkPolicy | None" = None,
        options: Mapping[str, Any] | None = None,
        **fields: str,
    ) -> "ResourceAuth":
        """Accept the provider's own access tokens, issued for this server.

        Args:
            resource: the URL of the MCP endpoint, as clients reach it.
            scopes: scopes that every request takes.
            audience: what ``aud`` of tokens must contain; the resource by default.
            network: fetches the provider's keys.
            options: further ones of :class:`~isthmus.auth.ResourceAuth`.
            **fields: those of the issuer.

        Raises:
            UsageError: the provider has no such tokens, or something is missing.
        """
        from isthmus.auth.resource_server.resource_auth import ResourceAuth

        issuer = self.make_issuer(**fields)
        verifier = self.verifier(resource, audience=audience, network=network, **fields)
        return ResourceAuth(resource, [issuer], verifier, scopes=scopes, **(options or {}))

    def verifier(
        self,
        resource: str,
        *,
        audience: str | None = None,
        network: "Network | NetworkPolicy | None" = None,
        **fields: str,
    ) -> "TokenVerifier":
        """Verify the provider's own access tokens; for several issuers at once, see ``ByIssuer``.

        Args:
            resource: the URL of the MCP endpoint, as clients reach it.
            audience: what ``aud`` of tokens must contain; the resource by default.
            network: fetches the provider's keys; one of the default policy if not given.
            **fields: those of the issuer.

        Raises:
            UsageError: as :meth:`resource_auth`.
        """
        from isthmus.auth.resource_server.jwt import JWTVerifier

        if self.opaque:
            raise UsageError(
                f"{self.title}: {self.opaque}; let users log in with it by "
                f"UpstreamLogin({self.name.upper()}.provider(…))"
            )
        if self.needs_audience and audience is None:
            raise UsageError(f"{self.title}: give audience=, the name of your API there")
        verifier = JWTVerifier(
            self.make_issuer(**fields),
            audience=audience,
            profile=self.profile,
            scope_claims=self.scope_claims,
            network=network,
        )
        return FullScopes(verifier, resource) if self.full_scopes else verifier

    def provider(
        self,
        *,
        client_id: str,
        client_secret: "Secret | str | None" = None,
        scopes: Sequence[str] | None = None,
        api: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        **fields: str,
    ) -> "Provider":
        """Let users log in with the provider, for ``UpstreamLogin`` or ``AuthorizationServer(providers=)``.

        Args:
            client_id: what this server is called there.
            client_secret: how it authenticates there.
            scopes: what it asks of users; enough to know them by default.
            api: the origins of the API that ``ctx.upstream`` calls.
            options: further ones of :class:`~isthmus.auth.Provider`.
            **fields: those of the issuer.

        Raises:
            UsageError: something is missing.
        """
        from isthmus.auth.authorization_server.upstream.provider import Endpoints, Provider

        settings: dict[str, Any] = {
            "client_id": client_id,
            "client_secret": client_secret,
            "title": self.title,
            "scopes": list(self.scopes if scopes is None else scopes),
            "api": list(self.api if api is None else api),
            "parameters": dict(self.parameters),
        }
        if self.endpoints is None:
            settings["issuer"] = self.make_issuer(**fields)
        else:
            self.make_issuer(**fields)
            settings["endpoints"] = Endpoints(
                authorize=self.endpoints.authorize, token=self.endpoints.token
            )
            settings["user_id"] = UserLookup(self.endpoints.user, self.endpoints.user_key)
        return Provider(self.name, **{**settings, **(options or {})})


class UserLookup(msgspec.Struct, frozen=True):
    """Finds out who a user is by the provider's API.

    Attributes:
        path: of the API.
        key: the member of its answer that has the id.
    """

    path: str
    key: str

    async def __call__(self, api: "Upstream") -> Any:
        """The id of the user."""
        return (await api.json(self.path))[self.key]


class FullScopes:
    """Spells the scopes of tokens as clients ask for them: the resource, a slash and the scope.

    Args:
        verifier: verifies the tokens.
        resource: what goes before their scopes.
    """

    def __init__(self, verifier: "TokenVerifier", resource: str) -> None:
        self._verifier = verifier
        self._resource = resource

    async def verify(self, presented: "Presented", resource: str) -> Principal | None:
        """Who presented a token, with scopes as clients ask for them."""
        who = await self._verifier.verify(presented, resource)
        if who is None:
            return None
        full = frozenset(f"{self._resource}/{scope}" for scope in who.scopes)
        return msgspec.structs.replace(who, scopes=full)


GITHUB = Preset(
    name="github",
    title="GitHub",
    opaque="its tokens are for GitHub's own API, and no other server may accept them",
    scopes=("read:user",),
    endpoints=LoginEndpoints(
        authorize="https://github.com/login/oauth/authorize",
        token="https://github.com/login/oauth/access_token",  # noqa: S106 - a URL
        user="/user",
        user_key="id",
    ),
    api=("https://api.github.com",),
)
"""GitHub: users log in with it; it has no tokens for other servers."""

GOOGLE = Preset(
    name="google",
    title="Google",
    issuer="https://accounts.google.com",
    opaque="its access tokens are for Google's own APIs, and no other server may accept them",
    scopes=("openid", "email", "profile"),
    # without these, Google gives no refresh token
    parameters={"access_type": "offline", "prompt": "consent"},
    api=("https://www.googleapis.com",),
)
"""Google: users log in with it; it has no tokens for other servers."""

ENTRA = Preset(
    name="entra",
    title="Microsoft Entra ID",
    issuer="https://login.microsoftonline.com/{tenant}/v2.0",
    fields={"tenant": PresetField(TENANT_PATTERN, "11111111-2222-3333-4444-555555555555")},
    scope_claims=("scp",),
    needs_audience=True,
    full_scopes=True,
    scopes=("openid", "profile", "offline_access"),
    api=("https://graph.microsoft.com",),
)
"""Microsoft Entra ID, with the field ``tenant``: the id of the directory."""

AUTH0 = Preset(
    name="auth0",
    title="Auth0",
    issuer="https://{domain}/",
    fields={"domain": PresetField(HOST_PATTERN, "example.eu.auth0.com")},
    scope_claims=("scope", "permissions"),
    scopes=("openid", "profile", "email", "offline_access"),
)
"""Auth0, with the field ``domain``."""

WORKOS = Preset(
    name="workos",
    title="WorkOS AuthKit",
    issuer="https://{domain}",
    fields={"domain": PresetField(HOST_PATTERN, "example.authkit.app")},
    scopes=("openid", "profile", "email", "offline_access"),
)
"""WorkOS AuthKit, with the field ``domain``."""

OKTA = Preset(
    name="okta",
    title="Okta",
    issuer="https://{domain}/oauth2/{server}",
    fields={
        "domain": PresetField(HOST_PATTERN, "example.okta.com"),
        "server": PresetField(NAME_PATTERN, "default", "default"),
    },
    scope_claims=("scp",),
    scopes=("openid", "profile", "email", "offline_access"),
)
"""Okta, with the fields ``domain`` and ``server``: the id of the authorization server, ``default`` by default."""

KEYCLOAK = Preset(
    name="keycloak",
    title="Keycloak",
    issuer="{url}",
    fields={"url": PresetField(URL_PATTERN, "https://login.example.com/realms/tools")},
)
"""Keycloak, with the field ``url``: the URL of the realm."""

COGNITO = Preset(
    name="cognito",
    title="Amazon Cognito",
    issuer="https://cognito-idp.{region}.amazonaws.com/{pool}",
    fields={
        "region": PresetField(r"[a-z]{2}(?:-[a-z]+)+-\d", "eu-central-1"),
        "pool": PresetField(r"[a-z]{2}(?:-[a-z]+)+-\d_[A-Za-z0-9]+", "eu-central-1_AbCdEfGhI"),
    },
)
"""Amazon Cognito, with the fields ``region`` and ``pool``: the id of the user pool."""

PRESETS = (GITHUB, GOOGLE, ENTRA, AUTH0, WORKOS, OKTA, KEYCLOAK, COGNITO)
