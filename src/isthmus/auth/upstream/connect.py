"""Connecting an account at a provider, for a user that is logged in here already.

The link comes by way of the client, which may hand it to anybody. So it is good for one user only,
who must be the one at the browser; what comes back from the provider goes to nobody else.

What a link to connect an account is good for.
"""

import time
from typing import TYPE_CHECKING

import msgspec

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserRequest,
    browser_binding,
    send_page,
    send_redirect,
)
from isthmus.auth.authorization_server.pages.login import OpenedRequest
from isthmus.auth.authorization_server.pages.templates import ConnectView, render_connect_page
from isthmus.auth.authorization_server.storage.pending import PendingAuthorization
from isthmus.auth.authorization_server.users.users import Delegated, User
from isthmus.auth.tokens.secret import Secret
from isthmus.auth.upstream import token_rows
from isthmus.auth.upstream.api import UpstreamDenied
from isthmus.auth.upstream.identity import identify
from isthmus.auth.upstream.redirects import LOGIN_LOST_TEXT

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.storage.records import Records
    from isthmus.auth.upstream.provider import Provider
    from isthmus.auth.upstream.services import UpstreamServices
    from isthmus.transports.http.reply import Send

__all__ = ["CONNECT_TICKET", "CONNECT_TICKET_LIFE_S", "ConnectPage", "ConnectTicket"]

KNOWN_TICKET = "upstream-known"
KNOWN_LIFE_S = 600

OTHER_USER_TEXT = (
    "This link was made for another account than the one you are signed in with here. Nothing was "
    "done. If somebody sent it to you, tell them that it does not work."
)


class ConnectPage:
    """The page that a user is sent to when a tool needs their account at a provider.

    Args:
        services: whose page it is.
    """

    def __init__(self, services: "UpstreamServices") -> None:
        self._services = services

    async def page(self, visit: BrowserRequest, send: "Send") -> None:
        """Answer a visit."""
        desk = self._services.desk
        name = visit.fields.get("ticket", "")
        ticket = await self._ticket(name)
        browser = desk.cookies.opaque(visit, desk.cookies.browser)
        pending = self._pending(ticket, name)
        user = None if browser is None else await self._user(visit, pending, browser)
        if user is None or browser is None:
            await self._log_in(pending, browser, send)
            return
        # spec 2025-11-25 client/elicitation#phishing: whoever opens it is the user who caused it
        if user.id != ticket.user_id:
            raise RequestRefused(OTHER_USER_TEXT, status=403)
        token = (await desk.seal()).tie("connect", name, browser_binding(browser), user.id)
        if visit.posted:
            desk.check(visit, token)
            await self._answered(visit, name, send)
            return
        await send_page(send, 200, await self._question(ticket, name, user, token))

    async def arrived(self, provider: "Provider", visit: BrowserRequest, send: "Send") -> None:
        """Answer a browser that comes back from a provider."""
        services = self._services
        arrival = await services.journeys.end(provider, visit)
        journey = arrival.journey
        if arrival.code is None:
            text = f"Your account at {provider.title} was not connected."
            await services.desk.say(send, "Not connected", text, cookies=arrival.cookies)
            return
        try:
            tokens, told = await provider.exchange(
                arrival.code, Secret(journey.verifier), journey.redirect_uri
            )
            subject, _ = await identify(
                provider, tokens, told, Secret(journey.nonce), required=False
            )
        except UpstreamDenied as denial:
            services.note(provider, denial)
            text = f"{provider.title} did not let this server in. Your account was not connected."
            await services.desk.say(
                send, "Not connected", text, status=403, cookies=arrival.cookies
            )
            return
        tokens = msgspec.structs.replace(tokens, subject=subject)
        id = token_rows.make_connection_id(journey.user_id, provider.name)
        await services.connections.add(id, journey.user_id, tokens)
        services.arrived(journey.user_id, provider)
        text = f"Your account at {provider.title} is connected. You may close this page."
        await services.desk.say(send, "Connected", text, cookies=arrival.cookies)

    async def known(self, user: User, ticket: str, cookies: tuple[str, ...], send: "Send") -> None:
        """Somebody was found to be at a browser, by the provider of logins: go on.

        Args:
            user: who.
            ticket: what they came with.
            cookies: to be set as well.
            send: the ASGI callable.
        """
        services, known = self._services, Secret.random()

        def keep(records: "Records") -> None:
            records.put_ticket(
                KNOWN_TICKET, known.reveal(), user.id.encode(), records.now + KNOWN_LIFE_S
            )

        await services.authority.store.write(keep)
        cookie = services.desk.cookies.set(self._cookie, known, KNOWN_LIFE_S)
        await send_redirect(send, services.connect_url(ticket), (*cookies, cookie))

    @property
    def _cookie(self) -> str:
        return self._services.desk.cookies.named("isthmus-known")

    async def _ticket(self, name: str, *, once: bool = False) -> "ConnectTicket":
        """What a link is good for.

        Raises:
            Unfit: nothing; it was used, or is too old.
        """
        store = self._services.authority.store
        packed = await store.write(
            lambda records: (records.take_ticket if once else records.ticket)(CONNECT_TICKET, name)
        )
        if packed is None:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        return msgspec.json.decode(packed, type=ConnectTicket)

    def _pending(self, ticket: "ConnectTicket", name: str) -> PendingAuthorization:
        """What the login page is about, if one has to log in."""
        services, now = self._services, time.time()
        return PendingAuthorization(
            txn=Secret.random().reveal(),
            client_id=ticket.client_id,
            client_name=ticket.client_name,
            client_kind="static",
            redirect_uri=services.connect_url(name),
            scopes=(),
            resource="",
            query=(),
            created_at=now,
            expires_at=now + services.authority.settings.login.request_ttl,
            login_only=True,
        )

    async def _user(
        self, visit: BrowserRequest, pending: PendingAuthorization, browser: Secret
    ) -> User | None:
        """Who is at the browser; None where that is not known yet."""
        desk = self._services.desk
        if isinstance(desk.users, Delegated):
            known = desk.cookies.opaque(visit, self._cookie)
            if known is None:
                return None
            found = await desk.authority.store.read(
                lambda records: records.ticket(KNOWN_TICKET, known.reveal())
            )
            user = None if found is None else await desk.users.get(found.decode())
            return None if user is None or user.disabled else user
        session, user = await desk.login(visit)
        opened = OpenedRequest(pending, "", browser_binding(browser), session, user)
        outcome = await desk.recognise(visit, opened)
        return outcome if isinstance(outcome, User) else None

    async def _log_in(
        self, pending: PendingAuthorization, browser: Secret | None, send: "Send"
    ) -> None:
        """Find out who is at the browser, and have it come back."""
        services, desk = self._services, self._services.desk
        fresh = Secret.random()
        cookies = () if browser else (desk.cookies.set(desk.cookies.browser, fresh),)
        if services.login is not None:
            ticket = pending.redirect_uri.rpartition("=")[2]
            url, more = await services.journeys.begin(
                services.login, services.redirect_uri(services.login), "know", ticket
            )
            await send_redirect(send, url, (*cookies, *more))
            return
        await desk.authority.store.write(lambda records: records.save_pending(pending))
        handle = await desk.handle(pending, browser_binding(browser or fresh))
        await send_redirect(send, desk.at(desk.places.login, handle), cookies)

    async def _answered(self, visit: BrowserRequest, name: str, send: "Send") -> None:
        services = self._services
        ticket = await self._ticket(name, once=True)
        provider = services.connections.providers[ticket.provider]
        if visit.fields.get("decision") != "allow":
            text = f"Your account at {provider.title} was not connected."
            await services.desk.say(send, "Not connected", text)
            return
        url, cookies = await services.journeys.begin(
            provider, services.redirect_uri(provider), "connect", "", ticket.user_id
        )
        await send_redirect(send, url, cookies)

    async def _question(self, ticket: "ConnectTicket", name: str, user: User, token: str) -> bytes:
        services, desk = self._services, self._services.desk
        provider = services.connections.providers.get(ticket.provider)
        if provider is None:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        view = ConnectView(
            place=desk.place,
            client=ticket.client_name,
            provider=provider.title,
            provider_scopes=provider.scopes,
            user=user.label,
            action=services.connect_path,
            fields={"ticket": name, "token": token},
        )
        return render_connect_page(view, desk.places)


CONNECT_TICKET = "upstream-connect"
"""The kind of it in the store."""

CONNECT_TICKET_LIFE_S = 600.0
"""Seconds in which the page must be visited."""


class ConnectTicket(msgspec.Struct, frozen=True, kw_only=True):
    """Lets one user connect one account; it is worth nothing to anybody else.

    Attributes:
        user_id: whose account it is to be.
        provider: where.
        client_id: the client for which it was needed.
        client_name: what that calls itself.
    """

    user_id: str
    provider: str
    client_id: str
    client_name: str
