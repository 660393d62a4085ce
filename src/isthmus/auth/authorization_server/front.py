"""What browsers see of the authorization server: its pages by path, and where each visit begins."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.auth.authorization_server.browser import (
    binding_of,
    read_head,
    send_away,
    send_page,
)
from isthmus.auth.authorization_server.consent import Consent, target_of
from isthmus.auth.authorization_server.desk import Desk, Opened
from isthmus.auth.authorization_server.login import Login
from isthmus.auth.authorization_server.pages import astray_page
from isthmus.auth.authorization_server.pending import Pending
from isthmus.auth.authorization_server.style import STYLE
from isthmus.auth.authorization_server.tries import StoredTries, Tries
from isthmus.auth.authorization_server.users import Delegated, User
from isthmus.auth.numbers import check_number
from isthmus.auth.secret import Secret
from isthmus.transports.http.bearer import Asgi
from isthmus.transports.http.reply import Receive, Scope, Send, respond

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.authority import AuthorizationServer

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

    routes: Mapping[str, Asgi]

    def __init__(
        self,
        authority: "AuthorizationServer",
        *,
        idle: float = 3600.0,
        life: float = 12 * 3600.0,
        tries: Tries | None = None,
    ) -> None:
        check_number("idle", idle, above=0)
        check_number("life", life, above=0)
        desk = self._desk = Desk(authority, idle, life)
        self._consent = Consent(desk)
        login = Login(desk, StoredTries(authority.store, tries))
        routes = {
            desk.places.login: desk.page(login.page),
            desk.places.consent: desk.page(self._consent.page),
            desk.places.logout: desk.page(login.leave),
            desk.places.style: style,
        }
        users = authority.users
        if users is not None and isinstance(users, Delegated):
            routes.update(users.attach(authority))
        self.routes = routes

    async def begin(
        self,
        pending: Pending,
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
        page = astray_page(desk.places, desk.place, target_of(back)[0], back)
        await send_page(send, 400, page)

    async def _begin(self, pending: Pending, scope: Scope, send: Send) -> None:
        desk = self._desk
        visit = read_head(scope)
        known = desk.cookies.opaque(visit, desk.cookies.browser)
        browser = known or Secret.random()
        cookies = () if known else (desk.cookies.set(desk.cookies.browser, browser),)
        binding = binding_of(browser)
        handle = await desk.handle(pending, binding)
        place = desk.places.consent
        if not isinstance(desk.users, Delegated):
            session, user = await desk.login(visit)
            opened = Opened(pending, handle, binding, session, user)
            found = await desk.recognise(visit, opened)
            if not isinstance(found, User):
                place = desk.places.login
            elif (url := await self._consent.silently(visit, pending, found)) is not None:
                await send_away(send, url, cookies)
                return
        await send_away(send, desk.at(place, handle), cookies)


async def style(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - an ASGI app
    """The style sheet."""
    await respond(send, 200, STYLE_HEADERS, STYLE)
