"""The services behind an authorization server: logins at one, and accounts connected at others."""

import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import msgspec

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.auth.authorization_server.pages.login import BrowserSessions, PageHandler
from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.storage.store import AuthStore
from isthmus.auth.authorization_server.upstream import token_rows
from isthmus.auth.authorization_server.upstream.api import (
    Upstream,
    UpstreamDenied,
    UpstreamUnavailable,
)
from isthmus.auth.authorization_server.upstream.connect import (
    CONNECT_TICKET,
    CONNECT_TICKET_LIFE_S,
    ConnectPage,
    ConnectTicket,
)
from isthmus.auth.authorization_server.upstream.connections import (
    StoredTokenSource,
    UpstreamConnections,
)
from isthmus.auth.authorization_server.upstream.provider import Provider
from isthmus.auth.authorization_server.upstream.redirects import ProviderPaths, ProviderRedirects
from isthmus.auth.net.urls import split_url
from isthmus.auth.resource_server.verifier import VerifierUnavailable
from isthmus.core.principal import Principal
from isthmus.errors import UpstreamRequired, UsageError
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import Send

PROVIDER_RETRY_S = 5.0

PROVIDER_DOWN_TEXT = (
    "The service that you were to sign in at does not answer at the moment. Try again later."
)

ArrivalHandler = Callable[[Provider, BrowserRequest, Send], Awaitable[None]]


class UpstreamServices:
    """Everything between an authorization server and the providers behind it.

    Args:
        settings: what the authorization server was set up with.
        store: where it keeps everything.
        sessions: opens requests and keeps logins.
        providers: where users may have accounts, beside the login.
        login: where users log in; None where they log in here.

    Attributes:
        sessions: as given.
        paths: where the pages for providers are.
        redirects: sends browsers to providers, and takes them back.
        connections: keeps the tokens of providers.
        connect: the page that connects an account.
        routes: the pages by exact path.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: AuthStore,
        sessions: BrowserSessions,
        *,
        providers: Iterable[Provider],
        login: Provider | None,
    ) -> None:
        self._settings = settings
        self._store = store
        self.sessions = sessions
        self.paths = ProviderPaths(settings.issuer)
        self.redirects = ProviderRedirects(store, sessions.cookies)
        self.connections = UpstreamConnections(store, ())
        self.connect = ConnectPage(sessions, self.connections, self.redirects, self.paths, login)
        self._extra: list[Provider] = []
        self.routes: dict[str, AsgiApp] = {}
        for provider in providers:
            self.add(provider, self.connect.finish)
            self._extra.append(provider)
        if self._extra:
            self.routes[self.paths.connect] = self._page(self.connect.page)

    def add(self, provider: Provider, arrived: ArrivalHandler) -> None:
        """Know one more provider.

        Args:
            provider: which.
            arrived: answers browsers that come back from there.

        Raises:
            UsageError: there is one of that name.
        """
        if provider.name in self.connections.providers:
            raise UsageError(f"there are two providers {provider.name!r}: give one another name")
        self.connections.providers = {**self.connections.providers, provider.name: provider}
        path = split_url(self.paths.redirect_uri(provider)).path
        self.routes[path] = self._page(partial(arrived, provider))

    def _page(self, handler: PageHandler) -> AsgiApp:
        """A page for browsers, which says besides that a provider does not answer."""

        async def answer(request: BrowserRequest, send: Send) -> None:
            try:
                await handler(request, send)
            except UpstreamUnavailable:
                raise RequestRefused(PROVIDER_DOWN_TEXT, status=503) from None

        return self.sessions.serve_page(answer)

    # What others ask

    async def upstream(self, principal: Principal, name: str) -> Upstream:
        """A provider's API as somebody's; see ``ctx.upstream``.

        Raises:
            UpstreamRequired: the user has to connect their account first.
            UpstreamDenied: they have to log in again.
            UpstreamUnavailable: the provider does not answer.
            UsageError: there is no such provider, or the caller is nobody that we know.
        """
        provider = self.connections.providers.get(name)
        if provider is None:
            known = ", ".join(sorted(self.connections.providers)) or "none"
            raise UsageError(f"there is no provider {name!r}: there are {known}; see providers=")
        # Somebody else's users may have the same ids as ours.
        if principal.issuer != self._settings.issuer:
            raise UsageError(
                f"ctx.upstream works for users of {self._settings.issuer}, and this caller is one "
                f"of {principal.issuer}"
            )
        # A program's name may be that of a user.
        if principal.subject == principal.client_id and "gid" not in principal.claims:
            raise UpstreamDenied(f"a program has no account at {provider.title}: users have")
        id = await self._find_row_id(principal, provider)
        if id is not None:
            try:
                row = await self.connections.usable(id)
            except UpstreamDenied:
                if provider not in self._extra:
                    raise
            else:
                return Upstream(
                    provider, StoredTokenSource(self.connections, id), row.tokens.subject
                )
        raise self._make_required(principal, provider)

    async def _find_row_id(self, principal: Principal, provider: Provider) -> str | None:
        """The id under which somebody's tokens of a provider are kept."""
        if provider in self._extra:
            id = token_rows.make_connection_id(principal.subject, provider.name)
            return id if await self.connections.get(id) is not None else None
        grant_id = str(principal.claims.get("gid", ""))
        grant = await self._store.read(lambda records: records.grant(grant_id))
        if grant is None or grant.upstream_id is None:
            raise UpstreamDenied(f"this caller has not logged in through {provider.title}")
        return grant.upstream_id

    def _make_required(self, principal: Principal, provider: Provider) -> UpstreamRequired:
        message = f"Connect your account at {provider.title} to go on."

        async def page() -> str:
            # spec 2026-07-28 client/elicitation#safe-url-handling: it says nothing of the user, and
            # opens nothing by itself
            name = secrets.token_urlsafe(32)

            def keep(records: Records) -> None:
                ticket = ConnectTicket(
                    user_id=principal.subject,
                    provider=provider.name,
                    client_id=principal.client_id,
                    client_name=self._load_client_name(principal.client_id, records),
                )
                packed = msgspec.json.encode(ticket)
                records.put_ticket(
                    CONNECT_TICKET, name, packed, records.now + CONNECT_TICKET_LIFE_S
                )

            await self._store.write(keep)
            return self.paths.connect_url(name)

        async def connected(seconds: float) -> bool:
            id = token_rows.make_connection_id(principal.subject, provider.name)
            return await self.connections.wait_until_added(id, seconds)

        return UpstreamRequired(message, page, connected)

    def _load_client_name(self, client_id: str, records: Records) -> str:
        """A client's own name; its id where that is all there is."""
        known = self._settings.static.get(client_id)
        if known is None and (found := records.client(client_id)) is not None:
            known = found[0]
        return client_id if known is None else known.label

    async def stands(self, upstream_id: str) -> bool:
        """Whether the login that a grant stands on still does; see :meth:`Connections.stands`.

        Raises:
            VerifierUnavailable: the provider has to be asked, and does not answer.
        """
        try:
            return await self.connections.stands(upstream_id)
        except UpstreamUnavailable as error:
            # Not 401: the client would start a login, which fails for the same reason.
            raise VerifierUnavailable(str(error), PROVIDER_RETRY_S) from None

    async def end(self, upstream_id: str) -> None:
        """A grant was revoked: its login at the provider is ended, too."""
        await self.connections.end(upstream_id)

    async def disconnect(self, user_id: str, provider: str) -> bool:
        """Forget somebody's account at a provider, and take the tokens back there.

        Returns:
            Whether there was one.
        """
        return await self.connections.end(token_rows.make_connection_id(user_id, provider))

    async def connected(self, user_id: str) -> list[str]:
        """The providers that somebody has an account with here."""
        found = await self._store.read(lambda records: token_rows.list_user_rows(records, user_id))
        return sorted({provider for _, provider in found})

    async def close(self) -> None:
        """Finish what was begun and close the connections to providers; safe to call twice."""
        await self.connections.close()
