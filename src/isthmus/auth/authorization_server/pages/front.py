"""What browsers see of the authorization server: its pages by path, and where each visit begins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.auth.arguments import check_number
from isthmus.auth.authorization_server.pages.browser import (
    browser_binding,
    read_request_head,
    send_page,
    send_redirect,
)
from isthmus.auth.authorization_server.pages.consent import ConsentPage, describe_target
from isthmus.auth.authorization_server.pages.login import BrowserSessions, LoginPages, OpenedRequest
from isthmus.auth.authorization_server.pages.templates import STYLE_SHEET, render_astray_page
from isthmus.auth.authorization_server.storage.pending import PendingAuthorization
from isthmus.auth.authorization_server.users.login_limits import LoginTries, StoredLoginTries
from isthmus.auth.authorization_server.users.users import Delegated, User
from isthmus.auth.tokens.secret import Secret
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import Receive, Scope, Send, send_response

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.server import AuthorizationServer

__all__ = ["BrowserFront"]

STYLE_HEADERS = [
    (b"content-type", b"text/css; charset=utf-8"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class BrowserFront:
    """Login, consent, logout, and what is said where none of them is possible.

    Args:
        authority: whose pages they are.
        idle: seconds that a login lasts without being used.
        life: seconds that it lasts at most.
        tries: how often a password may be tried; the tries are counted in the store.

    Attributes:
        routes: the pages by exact path.
    """

    routes: Mapping[str, AsgiApp]

    def __init__(
        self,
        authority: "AuthorizationServer",
        *,
        idle: float = 3600.0,
        life: float = 12 * 3600.0,
        tries: LoginTries | None = None,
    ) -> None:
        check_number("idle", idle, above=0)
        check_number("life", life, above=0)
        desk = self._desk = BrowserSessions(authority, idle, life)
        self._consent = ConsentPage(desk)
        login = LoginPages(desk, StoredLoginTries(authority.store, tries))
        routes = {
            desk.places.login: desk.page(login.page),
            desk.places.consent: desk.page(self._consent.page),
            desk.places.logout: desk.page(login.leave),
            desk.places.style: serve_style,
        }
        users = authority.users
        if users is not None and isinstance(users, Delegated):
            routes.update(users.attach(authority))
        self.routes = routes

    async def begin(
        self,
        pending: PendingAuthorization,
        scope: Scope,
        receive: Receive,  # noqa: ARG002 - the body has been read
        send: Send,
    ) -> None:
        """Answer a validated request to ``/authorize``: log in, ask, or go on at once."""
        await self._desk.guarded(self._begin(pending, scope, send), send)

    async def problem(self, status: int, text: str, send: Send) -> None:
        """Show a page that says what was wrong; the browser is sent nowhere."""
        await self._desk.problem(status, text, send)

    async def astray(self, back: str, send: Send) -> None:
        """Show a page that says what was wrong, with a link to whoever asked for it."""
        desk = self._desk
        page = render_astray_page(desk.places, desk.place, describe_target(back)[0], back)
        await send_page(send, 400, page)

    async def _begin(self, pending: PendingAuthorization, scope: Scope, send: Send) -> None:
        desk = self._desk
        visit = read_request_head(scope)
        known = desk.cookies.opaque(visit, desk.cookies.browser)
        browser = known or Secret.random()
        cookies = () if known else (desk.cookies.set(desk.cookies.browser, browser),)
        binding = browser_binding(browser)
        handle = await desk.handle(pending, binding)
        place = desk.places.consent
        if not isinstance(desk.users, Delegated):
            session, user = await desk.login(visit)
            opened = OpenedRequest(pending, handle, binding, session, user)
            found = await desk.recognise(visit, opened)
            if not isinstance(found, User):
                place = desk.places.login
            elif (url := await self._consent.silently(visit, pending, found)) is not None:
                await send_redirect(send, url, cookies)
                return
        await send_redirect(send, desk.at(place, handle), cookies)


async def serve_style(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - an ASGI app
    """The style sheet."""
    await send_response(send, 200, STYLE_HEADERS, STYLE_SHEET)
