"""Logins of browsers: sessions, the requests that they opened, and the pages for logging in and out."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from isthmus.auth.arguments import check_number
from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
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
from isthmus.auth.authorization_server.pages.templates import (
    LoginView,
    PagePaths,
    render_login_page,
    render_message_page,
)
from isthmus.auth.authorization_server.storage.records import PendingAuthorization, Records
from isthmus.auth.authorization_server.storage.store import (
    LOCKED_RETRY_S,
    AuthStore,
    StoreLocked,
)
from isthmus.auth.authorization_server.users.login_limits import StoredLoginTries
from isthmus.auth.authorization_server.users.users import (
    LoginOutcome,
    LoginPage,
    LoginRedirect,
    LoginRefused,
    LoginRequest,
    User,
    UserBackend,
)
from isthmus.auth.net.urls import split_url
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import Receive, Scope, Send

REQUEST_OVER_TEXT = (
    "This request was answered already, or it is too old, or it was begun in another browser. If "
    "you still want to connect, start again in the program that sent you here."
)
FOREIGN_FORM_TEXT = (
    "This form was sent from another page than ours. Nothing was done. Close that page."
)
BROKEN_TEXT = "This server could not answer. Its log says why. Try again later."
BUSY_TEXT = "This server is busy. Nothing was done. Try again in a few seconds."
NO_USERS_TEXT = "Nobody can sign in here: this server gives access to machines only."
DISABLED_TEXT = "This account is disabled."

PROBLEM_HEADINGS = {
    400: "This link does not work",
    403: "This is not allowed",
    405: "This page is for browsers",
    410: "This request is over",
    429: "Too many requests",
    500: "Something went wrong here",
    503: "This does not work at the moment",
}

PageHandler: TypeAlias = Callable[[BrowserRequest, Send], Awaitable[None]]

log = logging.getLogger("isthmus.auth")


class OpenedRequest(msgspec.Struct, frozen=True):
    """An authorization request, in the browser that brought it.

    Attributes:
        pending: the request.
        handle: how links and forms of this browser name it.
        binding: what the browser is recognised by.
        session: the browser's login; None where it has none.
        user: who is logged in, and not disabled.
    """

    pending: PendingAuthorization
    handle: str
    binding: str
    session: Secret | None
    user: User | None


class BrowserSessions:
    """Opens requests, keeps logins, and answers browsers with pages.

    Args:
        settings: what the server was set up with.
        store: keeps requests and logins.
        users: who can log in; None where nobody can.
        idle: seconds that a login lasts without being used; None is what the settings say.
        life: seconds that it lasts at most; None is what the settings say.

    Attributes:
        settings: as given.
        store: as given.
        origin: of the pages.
        place: its host, for people.
        paths: where the pages are.
        cookies: how ours are set.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: AuthStore,
        users: UserBackend | None,
        *,
        idle: float | None = None,
        life: float | None = None,
    ) -> None:
        for name, seconds in (("idle", idle), ("life", life)):
            if seconds is not None:
                check_number(name, seconds, above=0)
        parts = split_url(settings.issuer)
        self.settings = settings
        self.store = store
        self._users = users
        self.origin = parts.origin
        self.place = parts.origin.partition("://")[2]
        self.paths = PagePaths(parts.path.rstrip("/"))
        self.cookies = BrowserCookies(settings.issuer)
        self._idle = settings.login.idle if idle is None else idle
        self._life = settings.login.life if life is None else life
        self._seal: CsrfSeal | None = None

    @property
    def users(self) -> UserBackend:
        """The backend of users who can log in.

        Raises:
            RequestRefused: nobody can.
        """
        if self._users is None:
            raise RequestRefused(NO_USERS_TEXT, status=403)
        return self._users

    async def seal(self) -> CsrfSeal:
        """The seal that ties links and forms to a browser."""
        if self._seal is None:
            vault = await self.store.read(lambda records: records.vault)
            self._seal = CsrfSeal(vault.digest)
        return self._seal

    async def make_handle(self, pending: PendingAuthorization, binding: str) -> str:
        """Make the name of a request for links and forms of one browser; of no use in another."""
        return f"{pending.txn}.{(await self.seal()).tie('request', pending.txn, binding)}"

    def page_url(self, place: str, handle: str) -> str:
        """The URL of a page for a request."""
        from urllib.parse import quote  # slow to import

        return f"{place}?request={quote(handle, safe='')}"

    async def open_request(self, request: BrowserRequest) -> OpenedRequest:
        """The request that a page is about.

        Raises:
            RequestRefused: there is none, or this is not the browser that brought it.
        """
        handle = request.fields.get("request", "")
        txn, _, tied = handle.rpartition(".")
        binding = browser_binding(self.cookies.opaque(request, self.cookies.browser))
        # spec 2025-11-25 basic/authorization#confused-deputy-problem: bound to this browser
        if not binding or not (await self.seal()).holds(tied, "request", txn, binding):
            raise RequestRefused(REQUEST_OVER_TEXT, status=410)
        pending = await self.store.read(lambda records: records.pending(txn))
        if pending is None:
            raise RequestRefused(REQUEST_OVER_TEXT, status=410)
        session, user = await self.find_login(request)
        return OpenedRequest(pending, handle, binding, session, user)

    async def find_login(self, request: BrowserRequest) -> tuple[Secret | None, User | None]:
        """The login of a browser and whose it is; ``(None, None)`` without a good one."""
        token = self.cookies.opaque(request, self.cookies.session)
        if token is None or self._users is None:
            return None, None
        user_id = await self.store.read(lambda records: records.session(token.reveal()))
        user = None if user_id is None else await self._users.get(user_id)
        if user is None or user.disabled:
            return None, None
        await self.store.write(
            lambda records: records.prolong_session(token.reveal(), self._idle, self._life)
        )
        return token, user

    async def start_login(self, user: User, before: Secret | None) -> Secret:
        """Begin a login, in the place of the one that the browser had before.

        It gets a new name, so that nobody who knew the old one is logged in, too.
        """
        token = Secret.random()

        def begin(records: Records) -> None:
            if before is not None:
                records.end_session(before.reveal())
            until = records.now + min(self._idle, self._life)
            records.add_session(token.reveal(), user.id, until)
            records.audit("login", user_id=user.id)

        await self.store.write(begin)
        return token

    async def end_login(self, session: Secret) -> None:
        """End a login."""
        await self.store.write(lambda records: records.end_session(session.reveal()))

    def login_request(self, request: BrowserRequest, opened: OpenedRequest) -> LoginRequest:
        """Make the request that the users' backend gets."""
        return LoginRequest(
            pending=opened.pending,
            address=request.address,
            headers=request.headers,
            binding=opened.binding,
        )

    async def identify(self, request: BrowserRequest, opened: OpenedRequest) -> LoginOutcome:
        """Find out who is at the browser, or what it takes to know that."""
        if opened.user is not None:
            return opened.user
        found = await self.users.begin(self.login_request(request, opened))
        if isinstance(found, User) and found.disabled:
            raise RequestRefused(DISABLED_TEXT, status=403)
        return found

    async def form_token(self, form: str, opened: OpenedRequest, user: User | None = None) -> str:
        """Make the CSRF token of a form, for this browser, request and user.

        Args:
            form: which of our forms.
            opened: the request it is about.
            user: whom the page was shown to.
        """
        pending = opened.pending
        whose = "" if user is None else user.id
        # spec 2025-11-25 basic/authorization#confused-deputy-problem: bound to the client
        return (await self.seal()).tie(
            form, pending.txn, opened.binding, pending.client_id, pending.redirect_uri, whose
        )

    # Answers

    def serve_page(self, handler: PageHandler) -> AsgiApp:
        """Wrap a handler of requests as an ASGI app; what goes wrong in it is a page, too."""

        async def page(scope: Scope, receive: Receive, send: Send) -> None:
            async def answer() -> None:
                await handler(await read_browser_request(scope, receive), send)

            await self.send_or_explain(answer(), send)

        return page

    async def send_or_explain(self, answer: Awaitable[None], send: Send) -> None:
        """Wait for an answer to be sent; where it goes wrong, a page says so."""
        try:
            await answer
        except RequestRefused as refusal:
            await self.send_problem(refusal.status, refusal.text, send)
        except StoreLocked:
            await self.send_problem(503, BUSY_TEXT, send)
        except AuthRefused:  # approved or denied before, perhaps at this moment
            await self.send_problem(410, REQUEST_OVER_TEXT, send)
        except Exception:
            logging.getLogger("isthmus.auth").exception("a page of the authorization server failed")
            await self.send_problem(500, BROKEN_TEXT, send)

    async def send_problem(self, status: int, text: str, send: Send) -> None:
        """Answer with a page that says what was wrong; the browser is sent nowhere."""
        heading = PROBLEM_HEADINGS.get(
            status, PROBLEM_HEADINGS[400] if status < 500 else PROBLEM_HEADINGS[500]
        )
        page = render_message_page(self.paths, self.place, heading, text)
        await send_page(send, status, page, retry_after=LOCKED_RETRY_S if status == 503 else None)

    async def send_message(
        self,
        send: Send,
        heading: str,
        text: str,
        *,
        status: int = 200,
        cookies: tuple[str, ...] = (),
        logout: str | None = None,
    ) -> None:
        """Answer with a page that says something.

        Args:
            send: the ASGI callable.
            heading: what it is about.
            text: what it says.
            status: of the response.
            cookies: values of ``Set-Cookie``.
            logout: what proves that a form to sign out came from this page; None for no such form.
        """
        page = render_message_page(self.paths, self.place, heading, text, logout=logout)
        await send_page(send, status, page, cookies)

    def check_form(self, request: BrowserRequest, token: str) -> None:
        """See that a form is ours.

        Raises:
            RequestRefused: it is not.
        """
        if is_cross_site(request, self.origin) or Secret(token) != request.fields.get("token", ""):
            raise RequestRefused(FOREIGN_FORM_TEXT, status=403)


class LoginPages:
    """The pages for logging in and out.

    Args:
        sessions: opens requests and keeps logins.
        tries: how often a password may be tried.
    """

    def __init__(self, sessions: BrowserSessions, tries: StoredLoginTries) -> None:
        self._sessions = sessions
        self._tries = tries

    async def page(self, request: BrowserRequest, send: Send) -> None:
        """Answer a request to the login page."""
        opened = await self._sessions.open_request(request)
        if request.posted:
            self._sessions.check_form(request, await self._sessions.form_token("login", opened))
            await self._handle_form(request, opened, send)
            return
        await self._send_outcome(await self._sessions.identify(request, opened), opened, send)

    async def log_out(self, request: BrowserRequest, send: Send) -> None:
        """Answer a request to the logout page."""
        sessions = self._sessions
        session, user = await sessions.find_login(request)
        if session is None or user is None:
            await sessions.send_message(send, "Signed out", "You are not signed in here.")
            return
        token = (await sessions.seal()).tie("logout", session.reveal())
        if not request.posted:
            text = f"You are signed in as {user.label}."
            await sessions.send_message(send, "Sign out?", text, logout=token)
            return
        sessions.check_form(request, token)
        await sessions.end_login(session)
        cleared = (sessions.cookies.clear(sessions.cookies.session),)
        if "request" in request.fields:  # somebody else goes on with the same request
            where = sessions.page_url(sessions.paths.login, request.fields["request"])
            await send_redirect(send, where, cleared)
        else:
            await sessions.send_message(
                send, "Signed out", "You may close this page.", cookies=cleared
            )

    async def _handle_form(
        self, request: BrowserRequest, opened: OpenedRequest, send: Send
    ) -> None:
        sessions = self._sessions
        account = request.fields.get("account", "")
        wait = await self._tries.take(account, request.address)
        if wait:
            # without the name: people type passwords there
            log.warning("too many logins were tried from %s", request.address or "a socket")
            await self._send_form(opened, make_throttled_page(account, wait), send)
            return
        outcome = await sessions.users.submit(
            sessions.login_request(request, opened), request.fields
        )
        if isinstance(outcome, User) and not outcome.disabled:
            await self._tries.succeeded(account, request.address)
            session = await sessions.start_login(outcome, opened.session)
            cookies = (sessions.cookies.set(sessions.cookies.session, session),)
            await send_redirect(
                send, sessions.page_url(sessions.paths.consent, opened.handle), cookies
            )
        else:
            await self._send_outcome(outcome, opened, send)

    async def _send_outcome(
        self,
        outcome: User | LoginPage | LoginRedirect | LoginRefused,
        opened: OpenedRequest,
        send: Send,
    ) -> None:
        match outcome:
            case LoginPage():
                await self._send_form(opened, outcome, send)
            case LoginRedirect():
                await send_redirect(send, outcome.url, outcome.cookies)
            case LoginRefused():
                await self._sessions.send_message(
                    send, "You cannot sign in", outcome.text, status=outcome.status
                )
            case User():
                await send_redirect(
                    send, self._sessions.page_url(self._sessions.paths.consent, opened.handle)
                )

    async def _send_form(self, opened: OpenedRequest, form: LoginPage, send: Send) -> None:
        sessions = self._sessions
        view = LoginView(
            place=sessions.place,
            client=opened.pending.client_name,
            handle=opened.handle,
            token=await sessions.form_token("login", opened),
            account=form.account,
            notice=form.notice,
        )
        page = render_login_page(view, sessions.paths)
        await send_page(send, form.status, page, retry_after=form.retry_after)


def make_throttled_page(account: str, wait: int) -> LoginPage:
    """Make the login page for somebody who has no tries left.

    Args:
        account: the name that was typed.
        wait: seconds until there is another one.
    """
    minutes = -(-wait // 60)
    span = "a minute" if minutes == 1 else f"{minutes} minutes"
    notice = f"There were too many tries. Wait {span}, then try again."
    return LoginPage(notice=notice, account=account, status=429, retry_after=wait)
