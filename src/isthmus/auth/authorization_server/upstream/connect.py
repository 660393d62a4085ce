"""The page that connects an account at a provider, for a user that is logged in here already.

The link comes by way of the client, which may hand it to anybody. So it is good for one user only,
who must be the one at the browser; what comes back from the provider goes to nobody else.
"""

import time

import msgspec

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserRequest,
    browser_binding,
    send_page,
    send_redirect,
)
from isthmus.auth.authorization_server.pages.login import BrowserSessions, OpenedRequest
from isthmus.auth.authorization_server.pages.templates import ConnectView, render_connect_page
from isthmus.auth.authorization_server.storage.records import PendingAuthorization, Records
from isthmus.auth.authorization_server.upstream import token_rows
from isthmus.auth.authorization_server.upstream.api import UpstreamDenied
from isthmus.auth.authorization_server.upstream.connections import UpstreamConnections
from isthmus.auth.authorization_server.upstream.identity import identify
from isthmus.auth.authorization_server.upstream.provider import Provider
from isthmus.auth.authorization_server.upstream.redirects import (
    LOGIN_LOST_TEXT,
    ProviderPaths,
    ProviderRedirects,
    log_denial,
)
from isthmus.auth.authorization_server.users.users import Delegated, User
from isthmus.auth.tokens.secret import Secret
from isthmus.transports.http.reply import Send

CONNECT_TICKET = "upstream-connect"
CONNECT_TICKET_LIFE_S = 600.0
KNOWN_TICKET = "upstream-known"
KNOWN_LIFE_S = 600

OTHER_USER_TEXT = (
    "This link was made for another account than the one you are signed in with here. Nothing was "
    "done. If somebody sent it to you, tell them that it does not work."
)


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


class ConnectPage:
    """The page that a user is sent to when a tool needs their account at a provider.

    Args:
        sessions: opens requests and keeps logins.
        connections: keeps the tokens of providers.
        redirects: sends browsers to providers, and takes them back.
        paths: where the pages are.
        login: the provider where users log in; None where they log in here.
    """

    def __init__(
        self,
        sessions: BrowserSessions,
        connections: UpstreamConnections,
        redirects: ProviderRedirects,
        paths: ProviderPaths,
        login: Provider | None,
    ) -> None:
        self._sessions = sessions
        self._connections = connections
        self._redirects = redirects
        self._paths = paths
        self._login = login

    async def page(self, request: BrowserRequest, send: Send) -> None:
        """Answer a request to the page."""
        sessions = self._sessions
        name = request.fields.get("ticket", "")
        ticket = await self._load_ticket(name)
        browser = sessions.cookies.opaque(request, sessions.cookies.browser)
        pending = self._make_pending(ticket, name)
        user = None if browser is None else await self._find_user(request, pending, browser)
        if user is None or browser is None:
            await self._send_to_login(pending, browser, send)
            return
        # spec 2025-11-25 client/elicitation#phishing: whoever opens it is the user who caused it
        if user.id != ticket.user_id:
            raise RequestRefused(OTHER_USER_TEXT, status=403)
        token = (await sessions.seal()).tie("connect", name, browser_binding(browser), user.id)
        if request.posted:
            sessions.check_form(request, token)
            await self._handle_answer(request, name, send)
            return
        await send_page(send, 200, await self._render_question(ticket, name, user, token))

    async def finish(self, provider: Provider, request: BrowserRequest, send: Send) -> None:
        """Answer a browser that comes back from a provider."""
        sessions = self._sessions
        response = await self._redirects.end(provider, request)
        login = response.request
        if response.code is None:
            text = f"Your account at {provider.title} was not connected."
            await sessions.send_message(send, "Not connected", text, cookies=response.cookies)
            return
        try:
            tokens, members = await provider.exchange(
                response.code, Secret(login.verifier), login.redirect_uri
            )
            subject, _ = await identify(
                provider, tokens, members, Secret(login.nonce), required=False
            )
        except UpstreamDenied as denial:
            log_denial(provider, denial)
            text = f"{provider.title} did not let this server in. Your account was not connected."
            await sessions.send_message(
                send, "Not connected", text, status=403, cookies=response.cookies
            )
            return
        tokens = msgspec.structs.replace(tokens, subject=subject)
        id = token_rows.make_connection_id(login.user_id, provider.name)
        await self._connections.add(id, login.user_id, tokens)
        text = f"Your account at {provider.title} is connected. You may close this page."
        await sessions.send_message(send, "Connected", text, cookies=response.cookies)

    async def go_on(self, user: User, ticket: str, cookies: tuple[str, ...], send: Send) -> None:
        """Go on to the page with a user that the provider of logins has found at the browser.

        Args:
            user: who.
            ticket: what they came with.
            cookies: to be set as well.
            send: the ASGI callable.
        """
        sessions, known = self._sessions, Secret.random()

        def keep(records: Records) -> None:
            records.put_ticket(
                KNOWN_TICKET, known.reveal(), user.id.encode(), records.now + KNOWN_LIFE_S
            )

        await sessions.store.write(keep)
        cookie = sessions.cookies.set(self._cookie_name, known, KNOWN_LIFE_S)
        await send_redirect(send, self._paths.connect_url(ticket), (*cookies, cookie))

    @property
    def _cookie_name(self) -> str:
        return self._sessions.cookies.named("isthmus-known")

    async def _load_ticket(self, name: str, *, once: bool = False) -> ConnectTicket:
        """The ticket of a link.

        Raises:
            RequestRefused: nothing; it was used, or is too old.
        """
        store = self._sessions.store
        packed = await store.write(
            lambda records: (records.take_ticket if once else records.ticket)(CONNECT_TICKET, name)
        )
        if packed is None:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        return msgspec.json.decode(packed, type=ConnectTicket)

    def _make_pending(self, ticket: ConnectTicket, name: str) -> PendingAuthorization:
        """Make the request that the login page shows, if the user has to log in."""
        now = time.time()
        return PendingAuthorization(
            txn=Secret.random().reveal(),
            client_id=ticket.client_id,
            client_name=ticket.client_name,
            client_kind="static",
            redirect_uri=self._paths.connect_url(name),
            scopes=(),
            resource="",
            query=(),
            created_at=now,
            expires_at=now + self._sessions.settings.login.request_ttl,
            login_only=True,
        )

    async def _find_user(
        self, request: BrowserRequest, pending: PendingAuthorization, browser: Secret
    ) -> User | None:
        """The user at the browser; None where that is not known yet."""
        sessions = self._sessions
        if isinstance(sessions.users, Delegated):
            known = sessions.cookies.opaque(request, self._cookie_name)
            if known is None:
                return None
            found = await sessions.store.read(
                lambda records: records.ticket(KNOWN_TICKET, known.reveal())
            )
            user = None if found is None else await sessions.users.get(found.decode())
            return None if user is None or user.disabled else user
        session, user = await sessions.find_login(request)
        opened = OpenedRequest(pending, "", browser_binding(browser), session, user)
        outcome = await sessions.identify(request, opened)
        return outcome if isinstance(outcome, User) else None

    async def _send_to_login(
        self, pending: PendingAuthorization, browser: Secret | None, send: Send
    ) -> None:
        """Find out who is at the browser, and have it come back."""
        sessions = self._sessions
        fresh = Secret.random()
        cookies = () if browser else (sessions.cookies.set(sessions.cookies.browser, fresh),)
        if self._login is not None:
            ticket = pending.redirect_uri.rpartition("=")[2]
            url, more = await self._redirects.begin(
                self._login, self._paths.redirect_uri(self._login), "know", ticket
            )
            await send_redirect(send, url, (*cookies, *more))
            return
        await sessions.store.write(lambda records: records.save_pending(pending))
        handle = await sessions.make_handle(pending, browser_binding(browser or fresh))
        await send_redirect(send, sessions.page_url(sessions.paths.login, handle), cookies)

    async def _handle_answer(self, request: BrowserRequest, name: str, send: Send) -> None:
        sessions = self._sessions
        ticket = await self._load_ticket(name, once=True)
        provider = self._connections.providers[ticket.provider]
        if request.fields.get("decision") != "allow":
            text = f"Your account at {provider.title} was not connected."
            await sessions.send_message(send, "Not connected", text)
            return
        url, cookies = await self._redirects.begin(
            provider, self._paths.redirect_uri(provider), "connect", "", ticket.user_id
        )
        await send_redirect(send, url, cookies)

    async def _render_question(
        self, ticket: ConnectTicket, name: str, user: User, token: str
    ) -> bytes:
        sessions = self._sessions
        provider = self._connections.providers.get(ticket.provider)
        if provider is None:
            raise RequestRefused(LOGIN_LOST_TEXT, status=410)
        view = ConnectView(
            place=sessions.place,
            client=ticket.client_name,
            provider=provider.title,
            provider_scopes=provider.scopes,
            user=user.label,
            action=self._paths.connect,
            fields={"ticket": name, "token": token},
        )
        return render_connect_page(view, sessions.paths)
