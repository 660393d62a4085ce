"""Settings of an authorization server: policies for registration and logins, trusted issuers, lifetimes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from isthmus.auth.arguments import check_number
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.records import PENDING_LIFE_S
from isthmus.auth.authorization_server.users.login_limits import (
    SAME_ACCOUNT,
    SAME_ACCOUNT_AND_ADDRESS,
    SAME_ADDRESS,
    Allowance,
)
from isthmus.auth.net.urls import is_secure, split_url, well_known_url
from isthmus.auth.tokens.jose import DEFAULT_ALGORITHMS
from isthmus.core.principal import is_scope
from isthmus.errors import UsageError

APP_SCHEMES = ("cursor", "vscode", "vscode-insiders", "windsurf", "zed", "claude")


class CimdPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Clients whose id is the URL of a document about them.

    Attributes:
        enabled: whether there are such clients.
        allow_domains: the hosts that may serve such documents; None allows all.
        cache: seconds that a document is believed for which says nothing about it.
        cache_most: seconds that it is believed at most, whatever it says.
        fetches: documents, and sets of keys that strangers name, that are fetched at a time.
        fetches_per_address: those of them that one address may have fetched. It is the address that
            the ASGI server gives: behind a proxy, have that read the proxy's header, or all share one.
    """

    enabled: bool = True
    allow_domains: frozenset[str] | None = None
    cache: float = 300.0
    cache_most: float = 86_400.0
    fetches: int = 20
    fetches_per_address: int = 4


class DcrPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Clients that register themselves (RFC 7591).

    Deprecated since 2026-07-28 (PR #2858); a revision from 2027-07-28 on may remove it. New clients have
    metadata documents, :class:`CimdPolicy`.

    Attributes:
        enabled: whether anybody may register.
        per_ip_hour: registrations of one address in an hour. It is the address that the ASGI server
            gives: behind a proxy, have that read the proxy's header, or all share one.
        ttl_unused_days: after so many days a client that never got a token is forgotten.
        most: clients that may be registered at a time. Beyond it, those give way that no grant is of.
        schemes: schemes of apps that redirect URIs may have beside ``https``, loopback ``http`` and
            those that contain a dot.
    """

    enabled: bool = True
    per_ip_hour: int = 20
    ttl_unused_days: float = 1.0
    most: int = 10_000
    schemes: Sequence[str] = APP_SCHEMES


class RegistrationPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Ways in which clients come to be known.

    Attributes:
        cimd: by the documents that their ids name.
        dcr: by registering themselves.
        static: by being listed here. Those of ``isthmus auth add-client`` are in the store.
    """

    cimd: CimdPolicy = CimdPolicy()
    dcr: DcrPolicy = DcrPolicy()
    static: Sequence[RegisteredClient] = ()


class LoginPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of logins: how long one lasts, and how often people may try.

    Attributes:
        idle: seconds that a login lasts without being used.
        life: seconds that it lasts at most.
        request_ttl: seconds that people have for a request: to log in, and to answer it.
        same_account_and_address: tries of one address at one account.
        same_address: tries of one address at all accounts together.
        same_account: tries of all addresses together at one account.

    Example:
        >>> from isthmus.auth import Allowance
        >>> LoginPolicy(idle=600, same_account_and_address=Allowance(3, 3600)).life
        43200.0
    """

    idle: float = 3600.0
    life: float = 12 * 3600.0
    request_ttl: float = PENDING_LIFE_S
    same_account_and_address: Allowance = SAME_ACCOUNT_AND_ADDRESS
    same_address: Allowance = SAME_ADDRESS
    same_account: Allowance = SAME_ACCOUNT


class TrustedIdp(msgspec.Struct, frozen=True, kw_only=True):
    """An identity provider whose assertions about users are taken (ID-JAG).

    Attributes:
        issuer: as its assertions spell it.
        jwks_uri: where its keys are.
        jwks: its keys, instead.
        user: the id of our user for the claims of an assertion, or None to refuse it. By default
            ``ISSUER|SUBJECT``; an assertion that names a ``tenant`` is refused then, since a
            subject is only unique in one, and which of them are yours is for you to say.
        algorithms: what its assertions may be signed with.
    """

    issuer: str
    jwks_uri: str | None = None
    jwks: Mapping[str, Any] | None = None
    user: Callable[[Mapping[str, Any]], str | None] | None = None
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is known by a JWT of the platform that it runs on.

    Attributes:
        issuer: the platform, as its tokens spell it.
        subject: the program, as they spell it.
        client_id: the client that it is.
        jwks_uri: where the platform's keys are.
        jwks: its keys, instead.
        audience: what its tokens are for; None is our issuer.
        algorithms: what they may be signed with.
    """

    issuer: str
    subject: str
    client_id: str
    jwks_uri: str | None = None
    jwks: Mapping[str, Any] | None = None
    audience: str | None = None
    algorithms: tuple[str, ...] = DEFAULT_ALGORITHMS


class AuthorizationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that requests are judged by."""

    issuer: str
    resources: tuple[str, ...]
    scopes: Mapping[str, str]
    usual_scopes: tuple[str, ...]
    static: Mapping[str, RegisteredClient]
    registration: RegistrationPolicy
    trusted_idps: Mapping[str, TrustedIdp]
    workloads: Mapping[tuple[str, str], Workload]
    access_ttl: int
    refresh_ttl: int
    rotation_grace: float
    code_ttl: float
    signing_alg: str
    key_life: float
    dpop_nonce: bool
    has_users: bool
    consent: Literal["always", "remember"]
    legacy_paths: bool
    openid_alias: bool
    login: LoginPolicy
    max_token_bytes: int

    def url(self, name: str) -> str:
        """The URL of one of our endpoints, such as ``token``."""
        return f"{self.issuer.rstrip('/')}/{name}"

    def path(self, name: str) -> str:
        """The path of an endpoint on our origin."""
        return f"{split_url(self.issuer).path.rstrip('/')}/{name}"

    def metadata_paths(self) -> list[str]:
        """The paths of our metadata."""
        suffixes = ["oauth-authorization-server"]
        suffixes += ["openid-configuration"] if self.openid_alias else []
        return [split_url(well_known_url(self.issuer, suffix)).path for suffix in suffixes]


def gather_settings(
    *,
    resources: Sequence[str],
    scopes: Mapping[str, str],
    registration: RegistrationPolicy,
    trusted_idps: Mapping[str, TrustedIdp] | Iterable[TrustedIdp],
    workloads: Iterable[Workload],
    **rest: Any,
) -> AuthorizationSettings:
    """Settings from what an authorization server was given.

    Raises:
        UsageError: they cannot be; says which and why.
    """
    if isinstance(resources, str) or not isinstance(scopes, Mapping):
        raise UsageError(
            "resources= is a list, ['https://your.server/mcp'], and scopes= has the text that "
            "people read, {'files:read': 'Read your files'}"
        )
    idps = trusted_idps.values() if isinstance(trusted_idps, Mapping) else trusted_idps
    settings = AuthorizationSettings(
        resources=tuple(resources),
        scopes=dict(scopes),
        registration=registration,
        static={client.client_id: client for client in registration.static},
        trusted_idps={idp.issuer: idp for idp in idps},
        workloads={(one.issuer, one.subject): one for one in workloads},
        **rest,
    )
    check_settings(settings)
    return settings


def check_settings(settings: AuthorizationSettings) -> None:
    """See that settings can be.

    Raises:
        UsageError: they cannot.
    """
    if not settings.resources:
        raise UsageError("resources= lists the URLs of the MCP servers that tokens are for")
    for what, url in (("issuer", settings.issuer), *(("resource", r) for r in settings.resources)):
        try:
            parts = split_url(url)
        except ValueError as flaw:
            raise UsageError(f"{what}: {flaw}") from None
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if not is_secure(url) or (what == "issuer" and parts.query):
            raise UsageError(
                f"{what}: {url!r} has to be https, or http on this machine, and an issuer has no "
                "query; behind a proxy it is the URL that clients use"
            )
    unknown = [scope for scope in settings.usual_scopes if scope not in settings.scopes]
    if unknown:
        raise UsageError(f"usual_scopes= names {unknown[0]!r}, which scopes= does not have")
    bad = [scope for scope in settings.scopes if not is_scope(scope)]
    if bad:
        raise UsageError(
            f"{bad[0]!r} is no scope: RFC 6749 3.3 has no spaces, quotes or backslashes"
        )
    check_numbers(settings)
    for static in settings.static.values():
        if static.auth_method.startswith("client_secret") and static.secret is None:
            raise UsageError(f"the client {static.client_id!r} authenticates by a secret: give one")
        check_client_scopes(static.client_id, static.scopes or (), settings.scopes)


def check_client_scopes(client_id: str, named: Iterable[str], scopes: Collection[str]) -> None:
    """See that a client is set up with scopes that there are.

    Raises:
        UsageError: one of them is granted to nobody.
    """
    for scope in named:
        if scope not in scopes:
            known = ", ".join(sorted(scopes)) or "none at all"
            raise UsageError(
                f"the client {client_id!r} asks for {scope!r}, which is no scope of this server: "
                f"it has {known}"
            )


def check_numbers(settings: AuthorizationSettings) -> None:
    """See that the numbers among settings can be.

    Raises:
        UsageError: one of them cannot.
    """
    check_number("access_ttl", settings.access_ttl, least=1, whole=True)
    check_number("refresh_ttl", settings.refresh_ttl, least=1, whole=True)
    check_number("rotation_grace", settings.rotation_grace)
    check_number("code_ttl", settings.code_ttl, above=0)
    check_number("key_life", settings.key_life, above=0)
    check_number("max_token_bytes", settings.max_token_bytes, least=256, whole=True, unit="bytes")
    login = settings.login
    for name in ("idle", "life", "request_ttl"):
        check_number(name, getattr(login, name), above=0)
    for name in ("same_account_and_address", "same_address", "same_account"):
        allowance = getattr(login, name)
        check_number(f"{name}.tries", allowance.tries, least=1, whole=True, unit="tries")
        check_number(f"{name}.seconds", allowance.seconds, above=0)
    cimd, dcr = settings.registration.cimd, settings.registration.dcr
    check_number("fetches", cimd.fetches, least=1, whole=True, unit="documents")
    check_number(
        "fetches_per_address", cimd.fetches_per_address, least=1, whole=True, unit="documents"
    )
    check_number("cache", cimd.cache)
    check_number("cache_most", cimd.cache_most)
    check_number("per_ip_hour", dcr.per_ip_hour, above=0, unit="registrations")
    check_number("ttl_unused_days", dcr.ttl_unused_days, unit="days")
    check_number("most", dcr.most, least=1, whole=True, unit="clients")
