"""Pages about accounts: consent of ours first, then the login at the issuer, or a key that is pasted.

A link to them is sealed for one principal and expires. It comes by way of the client, which may hand it to
anybody, so that the page finds out who is at the browser. What the browser is then sent out with comes back to
the same browser, once.
"""

import hmac
import logging
from typing import TYPE_CHECKING, Any, Protocol

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserCookies,
    BrowserRequest,
    CsrfSeal,
    browser_binding,
    is_cross_site,
    read_browser_request,
    send_page,
    send_redirect,
)
from isthmus.auth.authorization_server.pages.front import serve_style
from isthmus.auth.net.urls import is_loopback, is_secure, split_url
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError, IsthmusError, UsageError
from isthmus.gateway.accounts.templates import (
    STYLE_PATH,
    ConnectQuestion,
    render_accounts,
    render_message,
    render_question,
)
from isthmus.host.accounts.accounts import LINK_LIFE_S, AccountLink, Accounts
from isthmus.host.accounts.ownership import IMPLICIT_KIND, LOCAL_PRINCIPAL
from isthmus.host.accounts.web_login import PENDING_DECODER, PENDING_ENCODER, PendingLogin
from isthmus.host.model.errors import Unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from isthmus.transports.http.admission import Admission
    from isthmus.transports.http.app import HttpApp
    from isthmus.transports.http.authorizer import AsgiApp
    from isthmus.transports.http.origin_guard import OriginGuard
    from isthmus.transports.http.reply import Receive, Scope, Send
    from isthmus.transports.http.request import Exchange

LINK_OVER_TEXT = (
    "This link is over, was used, or is none of ours. Ask the program that you work with again, and it "
    "gives you another one."
)
OTHER_USER_TEXT = (
    "This link was made for somebody else than you. Nothing was done. If somebody sent it to you, tell them "
    "that it does not work."
)
UNKNOWN_USER_TEXT = (
    "This gateway cannot tell who is at this browser, and the link is for one user only. Nothing was done. "
    "Whoever runs the gateway can set up how its users sign in on its pages."
)
SIGN_IN_TEXT = (
    "This link is for the operator of this gateway. Nothing was done. Sign in at {address} with the token that "
    "the gateway printed, and open the link again."
)
OTHER_BROWSER_TEXT = "This answer belongs to a login that another browser has begun, or that is over. Nothing was done."
CANCELLED_TEXT = "Your account was not connected. You may close this page."
CONNECTED_TEXT = (
    "Your account at {server} is connected. You may close this page, and go on where you were."
)

HEADINGS = {
    403: "This is not allowed",
    405: "This page is for browsers",
    410: "This link is over",
    502: "That did not work",
}

log = logging.getLogger("isthmus.gateway")


class Visitors(Protocol):
    """Says who is at a browser."""

    async def find(self, request: BrowserRequest) -> str | None:
        """The principal at the browser; None where that is not known."""
        ...


class LocalVisitors:
    """The user of this machine: whoever reaches the pages from there."""

    async def find(self, request: BrowserRequest) -> str | None:
        """The user of this machine."""
        return LOCAL_PRINCIPAL if is_loopback(bracket_address(request.address)) else None


class AccountPages:
    """The pages of a gateway about accounts.

    Example::

        pages = AccountPages(host.accounts, "https://gateway.example", visitors=users)
        pages.place(app)

    Args:
        accounts: those of the host; they give links to these pages from now on.
        public_url: the origin of the pages, as browsers reach it.
        visitors: says who is at a browser. Without it the pages are for the user of this machine alone.
        sign_in: the address at which the user of this machine signs in, where they have to.

    Attributes:
        routes: the pages by path, as ASGI apps.

    Raises:
        UsageError: the URL cannot be that of pages, or has a path.
    """

    def __init__(
        self,
        accounts: Accounts,
        public_url: str,
        *,
        visitors: Visitors | None = None,
        sign_in: str = "",
    ) -> None:
        parts = split_url(public_url)
        if parts.path.strip("/") or not is_secure(public_url):
            raise UsageError(
                f"public_url={public_url!r}: the pages stand at an https origin without a path, or at "
                "http on this machine"
            )
        self.accounts = accounts
        self.origin = parts.origin
        self.place_name = parts.origin.partition("://")[2]
        self._visitors = visitors or LocalVisitors()
        self._sign_in = sign_in
        self._cookies = BrowserCookies(parts.origin)
        self._seal = CsrfSeal(self._make_mac)
        accounts.public_url = parts.origin
        self.routes: Mapping[str, AsgiApp] = {
            "/connect": self._serve(self._connect),
            "/connect/back": self._serve(self._come_back),
            "/accounts": self._serve(self._list),
            STYLE_PATH: serve_style,
        }

    def place(self, app: "HttpApp") -> None:
        """Put the pages beside the endpoint of an app, behind its check of hosts."""
        for path, page in self.routes.items():
            app.add_page(path, make_exchange_page(page))

    # Pages

    async def _connect(self, request: BrowserRequest, send: "Send") -> None:
        """Ask whether an account is connected, and take the answer."""
        link, browser, cookies = await self._open(request)
        if not link.server:
            raise RequestRefused(LINK_OVER_TEXT, status=410)
        token = self._seal.tie("connect", request.fields["handle"], browser_binding(browser))
        if not request.posted:
            await send_page(send, 200, await self._render_question(request, link, token), cookies)
            return
        self._check_form(request, token)
        allowed = request.fields.get("decision") == "allow"
        key = Secret(request.fields.get("key", "").strip())
        by_key = self.accounts.find_kind(link.server) == "pasted-key"
        if allowed and by_key and not is_usable_key(key):
            page = await self._render_question(
                request, link, token, notice="This is not a key: it is empty, or has spaces."
            )
            await send_page(send, 200, page)
            return
        # each link is good once, whoever has it
        if not await self.accounts.vault.use_once(link.nonce, LINK_LIFE_S):
            raise RequestRefused(LINK_OVER_TEXT, status=410)
        if not allowed:
            await self._say(send, "Not connected", CANCELLED_TEXT)
        elif by_key:
            await self.accounts.put_key(link.principal, link.server, key)
            await self._say(send, "Connected", CONNECTED_TEXT.format(server=link.server))
        else:
            await self._begin_login(link, browser, send)

    async def _begin_login(self, link: AccountLink, browser: Secret, send: "Send") -> None:
        """Send the browser to the issuer."""
        accounts = self.accounts
        login = accounts.make_web_login(link.server, link.principal)
        prospect = await login.prepare(link.scopes, accounts.find_metadata(link.server))
        url, pending = await login.begin(prospect, browser_binding(browser))
        await accounts.vault.put_login(pending.state, PENDING_ENCODER.encode(pending))
        await send_redirect(send, url)

    async def _come_back(self, request: BrowserRequest, send: "Send") -> None:
        """Take a browser back from the issuer, with tokens or without."""
        vault, state = self.accounts.vault, Secret(request.fields.get("state", ""))
        browser = self._cookies.opaque(request, self._cookies.browser)
        binding = browser_binding(browser)
        # spec 2025-11-25 basic/authorization#confused-deputy-problem: what one browser began ends in
        # the same, and a foreign one does not even end it
        begun = read_pending(await vault.get_login(state))
        if request.posted or begun is None or not binding or begun.browser != binding:
            raise RequestRefused(OTHER_BROWSER_TEXT, status=403)
        await self._check_visitor(request, begun.principal)
        # of two that come at once, one gets it
        pending = read_pending(await vault.take_login(state))
        if pending is None:
            raise RequestRefused(OTHER_BROWSER_TEXT, status=403)
        login = self.accounts.make_web_login(pending.server, pending.principal)
        await login.finish(pending, request.fields)
        await self.accounts.note_connected(pending.principal, pending.server)
        await self._say(send, "Connected", CONNECTED_TEXT.format(server=pending.server))

    async def _list(self, request: BrowserRequest, send: "Send") -> None:
        """List accounts; forget one, or begin to connect it."""
        link, browser, cookies = await self._open(request)
        handle, accounts = request.fields["handle"], self.accounts
        binding = browser_binding(browser)
        if request.posted:
            server = request.fields.get("server", "")
            self._check_form(request, self._seal.tie("accounts", handle, server, binding))
            if request.fields.get("decision") == "connect":
                await send_redirect(send, accounts.connect(link.principal, server))
                return
            await accounts.forget(link.principal, server)
        rows = [
            (
                status,
                {
                    "handle": handle,
                    "server": status.server,
                    "token": self._seal.tie("accounts", handle, status.server, binding),
                },
            )
            for status in await accounts.list(link.principal)
        ]
        await send_page(send, 200, render_accounts(self.place_name, link.principal, rows), cookies)

    def make_list_url(self, principal: str) -> str:
        """The URL of the page that lists the accounts of a principal, for a while."""
        return f"{self.origin}/accounts?handle={self.accounts.seal_link(principal)}"

    # Who is there

    async def _open(self, request: BrowserRequest) -> tuple[AccountLink, Secret, tuple[str, ...]]:
        """The link of a request, the browser's mark, and the cookie that sets it.

        Raises:
            RequestRefused: the link is over, or for somebody else.
        """
        link = self.accounts.open_link(request.fields.get("handle", ""))
        if link is None:
            raise RequestRefused(LINK_OVER_TEXT, status=410)
        await self._check_visitor(request, link.principal)
        known = self._cookies.opaque(request, self._cookies.browser)
        if known is not None:
            return link, known, ()
        fresh = Secret.random()
        return link, fresh, (self._cookies.set(self._cookies.browser, fresh),)

    async def _check_visitor(self, request: BrowserRequest, principal: str) -> None:
        """See that whoever is at the browser is the one that a link is for.

        Raises:
            RequestRefused: they are not, or nobody knows.
        """
        # spec 2025-11-25 client/elicitation#phishing: whoever opens it is the user who caused it
        found = await self._visitors.find(request)
        if found is None and principal == LOCAL_PRINCIPAL and self._sign_in:
            raise RequestRefused(SIGN_IN_TEXT.format(address=self._sign_in), status=403)
        if found is None:
            raise RequestRefused(UNKNOWN_USER_TEXT, status=403)
        if found != principal:
            raise RequestRefused(OTHER_USER_TEXT, status=403)

    def _check_form(self, request: BrowserRequest, token: str) -> None:
        """See that a form came from this page, in this browser.

        Raises:
            RequestRefused: it did not.
        """
        sent = request.fields.get("token", "")
        if is_cross_site(request, self.origin) or Secret(token) != sent:
            raise RequestRefused(
                "This form was not sent by our page. Nothing was done.", status=403
            )

    def _make_mac(self, text: str) -> bytes:
        key = self.accounts.vault.storage.list_keys()[0]
        return hmac.digest(key, b"account pages " + text.encode(), "sha256")

    # Responses

    async def _render_question(
        self, request: BrowserRequest, link: AccountLink, token: str, *, notice: str = ""
    ) -> bytes:
        accounts, kind = self.accounts, self.accounts.find_kind(link.server)
        issuer, scopes = "", frozenset[str]()
        if kind in {IMPLICIT_KIND, "user-oauth"}:
            login = accounts.make_web_login(link.server, link.principal)
            prospect = await login.prepare(link.scopes, accounts.find_metadata(link.server))
            issuer, scopes = prospect.issuer, prospect.scopes
        elif kind != "pasted-key":
            raise RequestRefused("There is no account that a person connects.", status=410)
        return render_question(
            ConnectQuestion(
                place=self.place_name,
                server=link.server,
                where=split_url(accounts.find_url(link.server)).origin,
                principal=link.principal,
                fields={"handle": request.fields["handle"], "token": token},
                issuer=issuer,
                scopes=sorted(scopes),
                notice=notice,
            )
        )

    async def _say(self, send: "Send", heading: str, text: str, status: int = 200) -> None:
        await send_page(send, status, render_message(self.place_name, heading, text))

    def _serve(self, page: "Callable[[BrowserRequest, Send], Awaitable[None]]") -> "AsgiApp":
        """A page as an ASGI app, which says on a page what is wrong."""

        async def serve(scope: "Scope", receive: "Receive", send: "Send") -> None:
            try:
                await page(await read_browser_request(scope, receive), send)
            except RequestRefused as error:
                heading = HEADINGS.get(error.status, "This link does not work")
                await self._say(send, heading, error.text, error.status)
            except Unknown:
                await self._say(send, HEADINGS[410], LINK_OVER_TEXT, 410)
            except (AuthError, UsageError) as error:
                await self._say(send, HEADINGS[502], f"Nothing was connected. {error}", 502)
            except IsthmusError as error:
                log.warning("a page about accounts failed: %s", error)
                await self._say(send, HEADINGS[502], "It does not work at the moment.", 502)

        return serve


def make_exchange_page(
    page: "AsgiApp",
) -> "Callable[[OriginGuard, Admission | None], Callable[[Exchange], Awaitable[Any]]]":
    """An ASGI app as a page beside an endpoint: a name that is none of ours does not reach it."""

    def bind(guard: "OriginGuard", _admission: "Admission | None") -> Any:
        async def begin(exchange: "Exchange") -> None:
            # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: against DNS rebinding
            refusal = guard.host(exchange.request.head, exchange.request.local)
            if refusal is None:
                await exchange.serve_asgi(page)
            else:
                await exchange.refuse(refusal)

        return begin

    return bind


def read_pending(body: bytes | None) -> PendingLogin | None:
    """A login that is under way, as it was kept."""
    return None if body is None else PENDING_DECODER.decode(body)


def is_usable_key(key: Secret) -> bool:
    """Whether a text that was pasted can be a key."""
    from isthmus.auth.client.token_request import is_header_safe

    return is_header_safe(key.reveal())


def bracket_address(address: str) -> str:
    """A peer's address as it stands in a URL."""
    return f"[{address}]" if ":" in address else address
