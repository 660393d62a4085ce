"""AuthorizationServer: issues OAuth tokens for MCP servers; builds its parts and mounts them as an ASGI app."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from isthmus.auth import redaction
from isthmus.auth.arguments import require_library
from isthmus.auth.authorization_server.core.authorization import AuthorizationRequests
from isthmus.auth.authorization_server.core.endpoints import Front, OAuthEndpoints
from isthmus.auth.authorization_server.core.local_verifier import LocalVerifier
from isthmus.auth.authorization_server.core.lookups import (
    ClientDocuments,
    Lookups,
    is_known_client,
)
from isthmus.auth.authorization_server.core.requests import Limits, OAuthParameters
from isthmus.auth.authorization_server.core.settings import (
    LoginPolicy,
    RegistrationPolicy,
    TrustedIdp,
    Workload,
    gather_settings,
)
from isthmus.auth.authorization_server.core.tokens import Keyring
from isthmus.auth.authorization_server.core.transactions import OAuthTransactions
from isthmus.auth.authorization_server.pages.front import BrowserFront
from isthmus.auth.authorization_server.pages.login import BrowserSessions
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.storage.store import AuthStore
from isthmus.auth.authorization_server.users.users import Delegated, User, UserBackend
from isthmus.auth.net.network import (
    PUBLIC_ONLY,
    TOTAL_TIMEOUT_S,
    Network,
    NetworkPolicy,
    make_network,
)
from isthmus.auth.net.urls import origin_of
from isthmus.auth.resource_server.credentials import MAX_TOKEN_BYTES
from isthmus.auth.resource_server.resource_auth import ResourceAuth, check_choice, check_kind
from isthmus.errors import UsageError
from isthmus.transports.http.asgi_exchange import LingeringResponse
from isthmus.transports.http.reply import Receive, Scope, Send

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.upstream.provider import Provider
    from isthmus.auth.authorization_server.upstream.services import UpstreamServices
    from isthmus.auth.resource_server.replays import SQLiteReplays
    from isthmus.transports.http.authorizer import AsgiApp

MONTH_S = 30 * 86_400


class AuthorizationServer:
    """Issues tokens for MCP servers: OAuth 2.1 with PKCE, as every revision since 2025-03-26 wants.

    It is an ASGI app; beside an MCP server, that server's app answers for it, too.

    Example::

        authority = AuthorizationServer(
            issuer="https://mcp.example",
            resources=["https://mcp.example/mcp"],
            scopes={"files:read": "Read your files"},
            users=PasswordUsers("users.db"),
            store=SQLiteAuthStore("auth.db"),
        )
        server = Server("files", auth=authority.resource_auth("https://mcp.example/mcp"))

    Args:
        issuer: its URL, without a slash at the end unless it shall have one; kept letter by letter.
        resources: the URLs of the MCP servers that it issues tokens for; the first is the default.
        scopes: each scope, and the sentence that people read about it.
        users: who can log in; None where machines alone get tokens.
        store: where everything is kept.
        registration: how clients come to be known.
        consent: ``"always"`` asks each time, ``"remember"`` asks once per client and scopes.
        usual_scopes: the scopes of a request that names none; None is all there are.
        access_ttl: seconds that an access token lives.
        refresh_ttl: seconds that a refresh token may go unused.
        rotation_grace: seconds in which a refresh token that was just used gives the same next one
            again; 0 is strict, and ends the grants of clients that refresh twice at a time.
        trusted_idps: identity providers whose assertions about users are taken (ID-JAG).
        workloads: programs that are known by a JWT of their platform.
        providers: services behind the server, for ``ctx.upstream``.
        legacy_paths: answer at ``/authorize``, ``/token`` and ``/register`` of the origin, too, as
            clients of 2025-03-26 want that find no metadata.
        openid_alias: serve the metadata as ``openid-configuration``, too.
        dpop_nonce: want a nonce of ours in DPoP proofs.
        signing_alg: what access tokens are signed with.
        key_life: seconds after which the signing key changes.
        code_ttl: seconds that a code lives.
        front: makes what browsers see; our own pages by default.
        network: makes requests for documents and keys of clients, or the policy for them.
        limits: how often one may ask.
        login: how long logins last, and how often a password may be tried.
        max_token_bytes: bytes of an access token: a longer one is not issued, and not taken by
            :meth:`resource_auth`.
        clock: says the seconds since the epoch.

    Attributes:
        issuer: as it was given.
        users: as given.
        store: as given.
        consent: as given.
        front: what browsers see.
        settings: what requests are judged by.
        keyring: the keys that tokens are signed with.
        requests: judges requests for authorization, and answers them.
        verifier: tells whose one of our tokens is, without a request to anybody.
        routes: its endpoints and pages by exact path.

    Raises:
        UsageError: a URL is none or not secure, or there is no resource.
    """

    _services: "UpstreamServices | None" = None
    _replays: "SQLiteReplays | None" = None

    def __init__(
        self,
        issuer: str,
        *,
        resources: Sequence[str],
        scopes: Mapping[str, str],
        users: UserBackend | None,
        store: AuthStore,
        registration: RegistrationPolicy | None = None,
        consent: Literal["always", "remember"] = "always",
        usual_scopes: Sequence[str] | None = None,
        access_ttl: int = 600,
        refresh_ttl: int = MONTH_S,
        rotation_grace: float = 30.0,
        trusted_idps: Mapping[str, TrustedIdp] | Iterable[TrustedIdp] = (),
        workloads: Iterable[Workload] = (),
        providers: "Iterable[Provider]" = (),
        legacy_paths: bool = True,
        openid_alias: bool = False,
        dpop_nonce: bool = False,
        signing_alg: str = "ES256",
        key_life: float = 3.0 * MONTH_S,
        code_ttl: float = 60.0,
        front: "Callable[[AuthorizationServer], Front] | None" = None,
        network: Network | NetworkPolicy | None = None,
        limits: Limits | None = None,
        login: LoginPolicy | None = None,
        max_token_bytes: int = MAX_TOKEN_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        redaction.install()
        check_parts(users, store, consent)
        self.settings = gather_settings(
            issuer=issuer,
            resources=resources,
            scopes=scopes,
            usual_scopes=tuple(scopes if usual_scopes is None else usual_scopes),
            registration=registration or RegistrationPolicy(),
            trusted_idps=trusted_idps,
            workloads=workloads,
            access_ttl=access_ttl,
            refresh_ttl=refresh_ttl,
            rotation_grace=rotation_grace,
            code_ttl=code_ttl,
            signing_alg=signing_alg,
            key_life=key_life,
            dpop_nonce=dpop_nonce,
            has_users=users is not None,
            consent=consent,
            legacy_paths=legacy_paths,
            openid_alias=openid_alias,
            login=login or LoginPolicy(),
            max_token_bytes=max_token_bytes,
        )
        self.issuer, self.users, self.store = issuer, users, store
        self.consent, self.clock = consent, clock
        self._network = make_network(network or PUBLIC_ONLY, keep=False, total=TOTAL_TIMEOUT_S)
        self.keyring = Keyring(signing_alg, life=key_life, overlap=2.0 * access_ttl)
        self._providers = tuple(providers)
        self._assemble(front, limits or Limits(self.settings.registration.dcr.per_ip_hour))

    @property
    def resources(self) -> tuple[str, ...]:
        """The MCP servers it issues tokens for; the first is the default."""
        return self.settings.resources

    @property
    def scopes(self) -> Mapping[str, str]:
        """Each scope, and the sentence that people read about it."""
        return self.settings.scopes

    @property
    def services(self) -> "UpstreamServices":
        """The services behind it; see :meth:`resource_auth`."""
        if self._services is None:
            from isthmus.auth.authorization_server.upstream.login import UpstreamLogin
            from isthmus.auth.authorization_server.upstream.services import UpstreamServices

            self._services = UpstreamServices(
                self.settings,
                self.store,
                self._sessions,
                providers=self._providers,
                login=self.users.source if isinstance(self.users, UpstreamLogin) else None,
            )
        return self._services

    def __repr__(self) -> str:
        return f"AuthorizationServer({self.issuer!r})"

    # Set up

    def _assemble(
        self, front: "Callable[[AuthorizationServer], Front] | None", limits: Limits
    ) -> None:
        """Build the parts, the lower ones first, and mount them."""
        require_library("authlib", "An authorization server")
        settings, store, users = self.settings, self.store, self.users
        policy = settings.registration
        documents = ClientDocuments(policy.cimd, self._network, schemes=tuple(policy.dcr.schemes))
        lookups = Lookups(settings, store, users, documents, self._network)
        transactions = OAuthTransactions(
            settings, store, self.keyring, clock=self.clock, sweep=self.sweep
        )
        self.requests = AuthorizationRequests(settings, store, lookups, transactions)
        self.verifier = LocalVerifier(
            settings,
            store,
            users,
            self.keyring,
            upstream_stands=self._upstream_stands,
            clock=self.clock,
        )
        self._sessions = BrowserSessions(settings, store, users)
        self.front = BrowserFront(self._sessions, self.requests) if front is None else front(self)
        endpoints = OAuthEndpoints(
            settings,
            store,
            self.keyring,
            lookups=lookups,
            requests=self.requests,
            transactions=transactions,
            limits=limits,
            front=self.front,
            after_revocation=self._after_revocation,
        )
        elsewhere: Mapping[str, AsgiApp] = {}
        if front is None and users is not None and isinstance(users, Delegated):
            elsewhere = users.attach(self)
        services = self.services.routes if self._providers else {}
        self.routes = {**self.front.routes, **elsewhere, **services, **endpoints.routes}

    def resource_auth(self, resource: str, **more: Any) -> ResourceAuth:
        """Make the guard of an MCP server that takes our tokens.

        Our endpoints and pages are answered by that server's app where it is on our origin.

        Args:
            resource: the URL of the MCP server, one of ``resources``.
            more: further arguments of :class:`ResourceAuth`, such as ``scopes``.

        Raises:
            UsageError: it is none of ``resources``, or ``sse`` is not; or every request would
                take a scope that is never granted.
        """
        for one in {resource, more.get("sse") or resource} - set(self.resources):
            known = ", ".join(self.resources)
            raise UsageError(f"{one!r} is none of the resources tokens are issued for: {known}")
        if self._providers or self._services is not None:
            more.setdefault("upstream", self.services.upstream)
        if origin_of(resource) == origin_of(self.issuer):
            more["routes"] = {**self.routes, **more.get("routes", {})}
        more.setdefault("clock", self.clock)
        more.setdefault("max_token_bytes", self.settings.max_token_bytes)
        if more.get("dpop", "off") != "off" and "replays" not in more:
            more["replays"] = self._replays_beside_store()
        guard = ResourceAuth(resource, [self.issuer], self.verifier, **more)
        for scope in sorted(guard.scopes.base - guard.scopes.reached(frozenset(self.scopes))):
            raise UsageError(
                f"{scope!r} is required by every request and granted to nobody: add it to "
                "scopes= of AuthorizationServer"
            )
        return guard

    def _replays_beside_store(self) -> "SQLiteReplays | None":
        """The proofs that our resources took, in a file beside the store's; None without a file."""
        from isthmus.auth.resource_server.replays import SQLiteReplays  # few tokens are bound
        from isthmus.store.sqlite import MEMORY_PATH

        database = getattr(self.store, "database", None)
        if self._replays is None and database is not None and database.path != MEMORY_PATH:
            self._replays = SQLiteReplays(f"{database.path}.proofs", clock=self.clock)
        return self._replays

    # Requests for authorization

    async def ask(self, asked: OAuthParameters) -> PendingAuthorization | str:
        """Judge an authorization request (RFC 6749, section 4.1.1).

        Args:
            asked: the parameters of the request to ``/authorize``.

        Returns:
            The request, which is in the store now; or where to send the browser with an error.

        Raises:
            RequestRefused: neither client nor redirect URI can be believed, and nobody is sent anywhere.
        """
        return await self.requests.ask(asked)

    async def approve(
        self,
        pending: PendingAuthorization,
        user: User,
        *,
        scopes: Collection[str] | None = None,
        upstream_id: str | None = None,
        ends_at: float | None = None,
    ) -> str:
        """Give the client a code, because its user said yes.

        Args:
            pending: what was asked; it is answered by this, once.
            user: who said yes.
            scopes: what of it was allowed; None is all.
            upstream_id: the row of upstream tokens that stands behind the new grant.
            ends_at: when the grant ends in any case, such as with a session upstream.

        Returns:
            Where to send the browser: the client's redirect URI with code, state and iss.

        Raises:
            AuthRefused: it was answered before, or is too old.
        """
        return await self.requests.approve(
            pending, user, scopes=scopes, upstream_id=upstream_id, ends_at=ends_at
        )

    async def deny(self, pending: PendingAuthorization, error: str = "access_denied") -> str:
        """Tell the client that it gets nothing.

        Args:
            pending: what was asked; it is answered by this, once.
            error: why, as RFC 6749 4.1.2.1 spells it.

        Returns:
            Where to send the browser: the client's redirect URI with error, state and iss.

        Raises:
            AuthRefused: it was answered before, or is too old.
        """
        return await self.requests.deny(pending, error)

    # What was granted

    async def revoke(self, grant_id: str) -> bool:
        """End the grant ``grant_id`` with all its tokens; False if it had ended.

        Args:
            grant_id: the id of the grant.
        """
        grant = await self.store.read(lambda records: records.grant(grant_id))
        done = await self.store.write(lambda records: records.revoke_grant(grant_id))
        self.forget()
        if done and grant is not None and grant.upstream_id is not None:
            await self.services.end(grant.upstream_id)
        return done

    def forget(self) -> None:
        """Something was revoked: nothing that was looked up before counts any more."""
        self.verifier.forget()

    async def sweep(self) -> None:
        """End logins at providers on which no grant stands any more."""
        if self._services is not None:
            await self._services.connections.sweep()

    async def rotate_keys(self) -> None:
        """Sign with the next key from now on; tokens that were issued before stay good."""
        await self.store.write(self.keyring.rotate)

    async def public_keys(self) -> list[dict[str, Any]]:
        """The keys that tokens are verified with, as ``/jwks`` shows them."""
        return await self.keyring.published(self.store)

    async def known_client(self, client_id: str) -> bool:
        """Whether the client ``client_id`` may still use its tokens: it was not removed.

        Args:
            client_id: the id of the client.
        """
        return await is_known_client(self.settings, self.store, client_id)

    async def _after_revocation(self) -> None:
        self.forget()
        await self.sweep()

    async def _upstream_stands(self, upstream_id: str) -> bool:
        return await self.services.stands(upstream_id)

    # The app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an HTTP request, or the server's lifespan."""
        if scope["type"] == "lifespan":
            await serve_lifespan(self, receive, send)
        elif scope["type"] == "http":
            prefix, path = scope.get("root_path", "").rstrip("/"), scope["path"]
            page = self.routes.get(path) or self.routes.get(prefix + path)
            response = LingeringResponse(scope, receive, send)
            if page is None:
                await self.front.problem(404, "There is no such page.", response.send)
            else:
                await page(scope, response.receive, response.send)

    async def close(self) -> None:
        """Close the store and all connections; safe to call twice."""
        if self._services is not None:
            await self._services.close()
        if self._replays is not None:
            await self._replays.close()
        await self._network.close()
        await self.store.close()


def check_parts(users: object, store: object, consent: str) -> None:
    """See that what a server is made of is of the kind that it has to be.

    Raises:
        UsageError: it is not.
    """
    check_choice("consent", consent, ("always", "remember"))
    if users is not None:
        check_kind("users", users, "get", "PasswordUsers(path)")
    check_kind("store", store, "write", "SQLiteAuthStore(path)")


async def serve_lifespan(authority: AuthorizationServer, receive: Receive, send: Send) -> None:
    """The life of a server that runs an authority alone."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await authority.close()
    await send({"type": "lifespan.shutdown.complete"})
