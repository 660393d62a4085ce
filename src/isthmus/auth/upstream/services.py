"""The services behind an authorization server: logins at one, and accounts connected at others."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from isthmus.auth.authorization_server.browser import Visit
from isthmus.auth.authorization_server.desk import Desk, Handler
from isthmus.auth.authorization_server.requests import Unfit
from isthmus.auth.resource_server.verifier import VerifierUnavailable
from isthmus.auth.upstream import rows
from isthmus.auth.upstream.api import Upstream
from isthmus.auth.upstream.connect import Connect
from isthmus.auth.upstream.connections import Connections, RowTokens
from isthmus.auth.upstream.faults import UpstreamDenied, UpstreamUnavailable
from isthmus.auth.upstream.journey import Journeys
from isthmus.auth.upstream.tickets import TICKET, TICKET_LIFE, Ticket
from isthmus.auth.urls import split
from isthmus.errors import UpstreamRequired, UsageError
from isthmus.transports.http.reply import Send

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.authority import AuthorizationServer
    from isthmus.auth.authorization_server.records import Records
    from isthmus.auth.upstream.provider import Provider
    from isthmus.core.principal import Principal
    from isthmus.transports.http.bearer import Asgi

__all__ = ["Services"]

LOOK = 1.0
"""Seconds between two looks at whether another process has connected an account."""

RETRY = 5.0
"""Seconds after which a client may try again where a provider does not answer."""

DOWN = "The service that you were to sign in at does not answer at the moment. Try again later."

Arrived = Callable[["Provider", Visit, Send], Awaitable[None]]


class Services:
    """Everything between an authorization server and the providers behind it.

    Args:
        authority: whose users have accounts there.
        providers: where they may have them, beside the login.
    """

    def __init__(self, authority: "AuthorizationServer", providers: "Iterable[Provider]") -> None:
        self.authority = authority
        self.desk = Desk(authority)
        self.journeys = Journeys(authority.store, self.desk.cookies)
        self.connections = Connections(authority.store, ())
        self.connect = Connect(self)
        self.login: Provider | None = None
        self.extra: list[Provider] = []
        self._arrived: WeakValueDictionary[tuple[str, str], asyncio.Event] = WeakValueDictionary()
        base = split(authority.issuer).path.rstrip("/")
        self.connect_path = f"{base}/auth/connect"
        self.routes: dict[str, Asgi] = {}
        for provider in providers:
            self.add(provider, self.connect.arrived)
            self.extra.append(provider)
        if self.extra:
            self.routes[self.connect_path] = self.page(self.connect.page)

    def add(self, provider: "Provider", arrived: Arrived) -> None:
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
        self.routes[split(self.redirect_uri(provider)).path] = self.page(partial(arrived, provider))

    def redirect_uri(self, provider: "Provider") -> str:
        """Where a provider sends browsers back to; to be registered there.

        Each has one of its own, so that no provider's answer passes for another's.
        """
        return f"{self.authority.issuer.rstrip('/')}/auth/upstream/{provider.name}"

    def connect_url(self, ticket: str) -> str:
        """The page where an account is connected."""
        where = split(self.authority.issuer).origin + self.connect_path
        return f"{where}?ticket={ticket}"

    def page(self, handler: Handler) -> "Asgi":
        """A page of the desk's, which says besides that a provider does not answer."""

        async def answer(visit: Visit, send: Send) -> None:
            try:
                await handler(visit, send)
            except UpstreamUnavailable:
                raise Unfit(DOWN, status=503) from None

        return self.desk.page(answer)

    def note(self, provider: "Provider", denial: UpstreamDenied) -> None:
        """Log why somebody was not let in; it holds none of the provider's words."""
        logging.getLogger("isthmus.auth").warning("the provider %s: %s", provider.name, denial)

    # What others ask

    async def upstream(self, principal: "Principal", name: str) -> Upstream:
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
        if principal.issuer != self.authority.issuer:
            raise UsageError(
                f"ctx.upstream works for users of {self.authority.issuer}, and this caller is one "
                f"of {principal.issuer}"
            )
        # A program's name may be that of a user.
        if principal.subject == principal.client_id and "gid" not in principal.claims:
            raise UpstreamDenied(f"a program has no account at {provider.title}: users have")
        id = await self._row_of(principal, provider)
        if id is not None:
            try:
                row = await self.connections.usable(id)
            except UpstreamDenied:
                if provider not in self.extra:
                    raise
            else:
                return Upstream(provider, RowTokens(self.connections, id), row.tokens.subject)
        raise self._required(principal, provider)

    async def _row_of(self, principal: "Principal", provider: "Provider") -> str | None:
        """Where somebody's tokens of a provider are."""
        if provider in self.extra:
            id = rows.connection_id(principal.subject, provider.name)
            return id if await self.connections.get(id) is not None else None
        grant_id = str(principal.claims.get("gid", ""))
        grant = await self.authority.store.read(lambda records: records.grant(grant_id))
        if grant is None or grant.upstream_id is None:
            raise UpstreamDenied(f"this caller has not logged in through {provider.title}")
        return grant.upstream_id

    def _required(self, principal: "Principal", provider: "Provider") -> UpstreamRequired:
        message = f"Connect your account at {provider.title} to go on."

        async def page() -> str:
            # spec 2026-07-28 client/elicitation#safe-url-handling: it says nothing of the user, and
            # opens nothing by itself
            name = secrets.token_urlsafe(32)

            def keep(records: "Records") -> None:
                ticket = Ticket(
                    user_id=principal.subject,
                    provider=provider.name,
                    client_id=principal.client_id,
                    client_name=self._name_of(principal.client_id, records),
                )
                packed = msgspec.json.encode(ticket)
                records.put_ticket(TICKET, name, packed, records.now + TICKET_LIFE)

            await self.authority.store.write(keep)
            return self.connect_url(name)

        async def connected(seconds: float) -> bool:
            return await self._connected(principal.subject, provider, seconds)

        return UpstreamRequired(message, page, connected)

    def _name_of(self, client_id: str, records: "Records") -> str:
        """What a client calls itself; its id where that is all there is."""
        known = self.authority.settings.static.get(client_id)
        if known is None and (found := records.client(client_id)) is not None:
            known = found[0]
        return client_id if known is None else known.label

    async def _connected(self, user_id: str, provider: "Provider", seconds: float) -> bool:
        """Wait until somebody has connected an account, here or in another process."""
        key = (user_id, provider.name)
        arrived = self._arrived.setdefault(key, asyncio.Event())
        id = rows.connection_id(user_id, provider.name)
        try:
            async with asyncio.timeout(seconds):
                while await self.connections.get(id) is None:
                    try:
                        async with asyncio.timeout(LOOK):
                            await arrived.wait()
                    except TimeoutError:
                        continue
        except TimeoutError:
            return False
        return True

    def arrived(self, user_id: str, provider: "Provider") -> None:
        """Somebody has connected an account; whoever waits for it goes on."""
        waiting = self._arrived.pop((user_id, provider.name), None)
        if waiting is not None:
            waiting.set()

    async def stands(self, upstream_id: str) -> bool:
        """Whether the login that a grant stands on still does; see :meth:`Connections.stands`.

        Raises:
            VerifierUnavailable: the provider has to be asked, and does not answer.
        """
        try:
            return await self.connections.stands(upstream_id)
        except UpstreamUnavailable as error:
            # Not 401: the client would start a login, which fails for the same reason.
            raise VerifierUnavailable(str(error), RETRY) from None

    async def end(self, upstream_id: str) -> None:
        """A grant was revoked: its login at the provider is ended, too."""
        await self.connections.end(upstream_id)

    async def disconnect(self, user_id: str, provider: str) -> bool:
        """Forget somebody's account at a provider, and take the tokens back there.

        Returns:
            Whether there was one.
        """
        return await self.connections.end(rows.connection_id(user_id, provider))

    async def connected(self, user_id: str) -> list[str]:
        """The providers that somebody has an account with here."""
        found = await self.authority.store.read(lambda records: rows.rows_of(records, user_id))
        return sorted({provider for _, provider in found})

    async def close(self) -> None:
        """Finish what was begun and close the connections to providers; safe to call twice."""
        await self.connections.close()
