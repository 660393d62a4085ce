"""BrowserFront: the pages that browsers see of the authorization server, by path."""

from collections.abc import Mapping

from isthmus.auth.authorization_server.core.authorization import AuthorizationRequests
from isthmus.auth.authorization_server.pages.browser import (
    browser_binding,
    read_request_head,
    send_page,
    send_redirect,
)
from isthmus.auth.authorization_server.pages.consent import ConsentPage, describe_target
from isthmus.auth.authorization_server.pages.login import BrowserSessions, LoginPages, OpenedRequest
from isthmus.auth.authorization_server.pages.templates import STYLE_SHEET, render_astray_page
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.users.login_limits import LoginTries, StoredLoginTries
from isthmus.auth.authorization_server.users.users import Delegated, User
from isthmus.auth.tokens.secret import Secret
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import Receive, Scope, Send, send_response

STYLE_HEADERS = [
    (b"content-type", b"text/css; charset=utf-8"),
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class BrowserFront:
    """Login, consent, logout, and what is said where none of them is possible.

    Args:
        sessions: opens requests and keeps logins.
        requests: approves and denies what was asked.
        tries: how often a password may be tried, if not as the settings say; counted in the store.

    Attributes:
        routes: the pages by exact path.
    """

    routes: Mapping[str, AsgiApp]

    def __init__(
        self,
        sessions: BrowserSessions,
        requests: AuthorizationRequests,
        *,
        tries: LoginTries | None = None,
    ) -> None:
        self._sessions = sessions
        self._consent = ConsentPage(sessions, requests)
        policy = sessions.settings.login
        rules = tries or LoginTries(
            policy.same_account_and_address, policy.same_address, policy.same_account
        )
        login = LoginPages(sessions, StoredLoginTries(sessions.store, rules))
        self.routes = {
            sessions.paths.login: sessions.serve_page(login.page),
            sessions.paths.consent: sessions.serve_page(self._consent.page),
            sessions.paths.logout: sessions.serve_page(login.log_out),
            sessions.paths.style: serve_style,
        }

    async def begin(
        self,
        pending: PendingAuthorization,
        scope: Scope,
        receive: Receive,  # noqa: ARG002 - the body has been read
        send: Send,
    ) -> None:
        """Answer a validated request to ``/authorize``: log in, ask, or go on at once."""
        await self._sessions.send_or_explain(self._begin(pending, scope, send), send)

    async def problem(self, status: int, text: str, send: Send) -> None:
        """Show a page that says what was wrong; the browser is sent nowhere."""
        await self._sessions.send_problem(status, text, send)

    async def astray(self, back: str, send: Send) -> None:
        """Show a page that says what was wrong, with a link to whoever asked for it."""
        sessions = self._sessions
        page = render_astray_page(sessions.paths, sessions.place, describe_target(back)[0], back)
        await send_page(send, 400, page)

    async def _begin(self, pending: PendingAuthorization, scope: Scope, send: Send) -> None:
        sessions = self._sessions
        request = read_request_head(scope)
        known = sessions.cookies.opaque(request, sessions.cookies.browser)
        browser = known or Secret.random()
        cookies = () if known else (sessions.cookies.set(sessions.cookies.browser, browser),)
        binding = browser_binding(browser)
        handle = await sessions.make_handle(pending, binding)
        place = sessions.paths.consent
        if not isinstance(sessions.users, Delegated):
            session, user = await sessions.find_login(request)
            opened = OpenedRequest(pending, handle, binding, session, user)
            found = await sessions.identify(request, opened)
            if not isinstance(found, User):
                place = sessions.paths.login
            elif (url := await self._consent.approve_silently(request, pending, found)) is not None:
                await send_redirect(send, url, cookies)
                return
        await send_redirect(send, sessions.page_url(place, handle), cookies)


async def serve_style(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - an ASGI app
    """The style sheet."""
    await send_response(send, 200, STYLE_HEADERS, STYLE_SHEET)
