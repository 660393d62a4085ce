"""What the pages share: whose request it is, who is at the browser, and how both are told."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from isthmus.auth.authorization_server.browser import (
    Cookies,
    Seal,
    Visit,
    binding_of,
    foreign,
    read_visit,
    send_page,
)
from isthmus.auth.authorization_server.locked import RETRY, StoreLocked
from isthmus.auth.authorization_server.pages import Places, message_page
from isthmus.auth.authorization_server.pending import Pending
from isthmus.auth.authorization_server.requests import Unfit
from isthmus.auth.authorization_server.users import LoginRequest, Outcome, User, UserBackend
from isthmus.auth.secret import Secret
from isthmus.auth.urls import split
from isthmus.errors import AuthRefused
from isthmus.transports.http.bearer import Asgi
from isthmus.transports.http.reply import Receive, Scope, Send

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.authority import AuthorizationServer
    from isthmus.auth.authorization_server.records import Records

__all__ = ["OVER", "Desk", "Opened"]

IDLE, LIFE = 3600.0, 12 * 3600.0
"""Seconds that a login lasts without being used, and at most."""

OVER = (
    "This request was answered already, or it is too old, or it was begun in another browser. If "
    "you still want to connect, start again in the program that sent you here."
)
FOREIGN = "This form was sent from another page than ours. Nothing was done. Close that page."
BROKEN = "This server could not answer. Its log says why. Try again later."
BUSY = "This server is busy. Nothing was done. Try again in a few seconds."
NO_USERS = "Nobody can sign in here: this server gives access to machines only."
DISABLED = "This account is disabled."

HEADINGS = {
    400: "This link does not work",
    403: "This is not allowed",
    405: "This page is for browsers",
    410: "This request is over",
    429: "Too many requests",
    500: "Something went wrong here",
    503: "This does not work at the moment",
}

Handler: TypeAlias = Callable[[Visit, Send], Awaitable[None]]


class Opened(msgspec.Struct, frozen=True):
    """An authorization request, in the browser that brought it.

    Attributes:
        pending: the request.
        handle: how links and forms of this browser name it.
        binding: what the browser is recognised by.
        session: the browser's login; None where it has none.
        user: who is logged in, and not disabled.
    """

    pending: Pending
    handle: str
    binding: str
    session: Secret | None
    user: User | None


class Desk:
    """Opens requests and keeps logins.

    Args:
        authority: whose pages they are.
        idle: seconds that a login lasts without being used.
        life: seconds that it lasts at most.
    """

    def __init__(
        self, authority: "AuthorizationServer", idle: float = IDLE, life: float = LIFE
    ) -> None:
        parts = split(authority.issuer)
        self.authority = authority
        self.origin = parts.origin
        self.place = parts.origin.partition("://")[2]
        self.places = Places(parts.path.rstrip("/"))
        self.cookies = Cookies(authority.issuer)
        self._idle = idle
        self._life = life
        self._seal: Seal | None = None

    @property
    def users(self) -> UserBackend:
        """Who can log in.

        Raises:
            Unfit: nobody can.
        """
        if self.authority.users is None:
            raise Unfit(NO_USERS, status=403)
        return self.authority.users

    async def seal(self) -> Seal:
        """What ties links and forms to a browser."""
        if self._seal is None:
            vault = await self.authority.store.read(lambda records: records.vault)
            self._seal = Seal(vault.digest)
        return self._seal

    async def handle(self, pending: Pending, binding: str) -> str:
        """How links and forms of one browser name a request; of no use in another browser."""
        return f"{pending.txn}.{(await self.seal()).tie('request', pending.txn, binding)}"

    def at(self, place: str, handle: str) -> str:
        """The URL of a page for a request."""
        from urllib.parse import quote  # slow to import

        return f"{place}?request={quote(handle, safe='')}"

    async def open(self, visit: Visit) -> Opened:
        """The request that a page is about.

        Raises:
            Unfit: there is none, or this is not the browser that brought it.
        """
        handle = visit.fields.get("request", "")
        txn, _, tied = handle.rpartition(".")
        binding = binding_of(self.cookies.opaque(visit, self.cookies.browser))
        # spec 2025-11-25 basic/authorization#confused-deputy-problem: bound to this browser
        if not binding or not (await self.seal()).holds(tied, "request", txn, binding):
            raise Unfit(OVER, status=410)
        pending = await self.authority.store.read(lambda records: records.pending(txn))
        if pending is None:
            raise Unfit(OVER, status=410)
        session, user = await self.login(visit)
        return Opened(pending, handle, binding, session, user)

    async def login(self, visit: Visit) -> tuple[Secret | None, User | None]:
        """The login of a browser and whose it is; ``(None, None)`` without a good one."""
        token = self.cookies.opaque(visit, self.cookies.session)
        if token is None or self.authority.users is None:
            return None, None
        user_id = await self.authority.store.read(lambda records: records.session(token.reveal()))
        user = None if user_id is None else await self.authority.users.get(user_id)
        if user is None or user.disabled:
            return None, None
        await self.authority.store.write(
            lambda records: records.prolong_session(token.reveal(), self._idle, self._life)
        )
        return token, user

    async def log_in(self, user: User, before: Secret | None) -> Secret:
        """Begin a login, in the place of the one that the browser had before.

        It gets a new name, so that nobody who knew the old one is logged in, too.
        """
        token = Secret.random()

        def begin(records: "Records") -> None:
            if before is not None:
                records.end_session(before.reveal())
            until = records.now + min(self._idle, self._life)
            records.add_session(token.reveal(), user.id, until)
            records.audit("login", user_id=user.id)

        await self.authority.store.write(begin)
        return token

    async def log_out(self, session: Secret) -> None:
        """End a login."""
        await self.authority.store.write(lambda records: records.end_session(session.reveal()))

    def request(self, visit: Visit, opened: Opened) -> LoginRequest:
        """What the users' backend may know."""
        return LoginRequest(
            pending=opened.pending,
            address=visit.address,
            headers=visit.headers,
            binding=opened.binding,
        )

    async def recognise(self, visit: Visit, opened: Opened) -> Outcome:
        """Who is at the browser, or what it takes to find out."""
        if opened.user is not None:
            return opened.user
        found = await self.users.begin(self.request(visit, opened))
        if isinstance(found, User) and found.disabled:
            raise Unfit(DISABLED, status=403)
        return found

    async def token(self, form: str, opened: Opened, user: User | None = None) -> str:
        """What proves that a form came from our page, for this browser, request and user.

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

    def page(self, handler: Handler) -> Asgi:
        """What answers visits, as an ASGI app; what goes wrong in it is a page, too."""

        async def page(scope: Scope, receive: Receive, send: Send) -> None:
            async def answer() -> None:
                await handler(await read_visit(scope, receive), send)

            await self.guarded(answer(), send)

        return page

    async def guarded(self, answer: Awaitable[None], send: Send) -> None:
        """Wait for an answer to be sent; where it goes wrong, a page says so."""
        try:
            await answer
        except Unfit as unfit:
            await self.problem(unfit.status, unfit.text, send)
        except StoreLocked:
            await self.problem(503, BUSY, send)
        except AuthRefused:  # approved or denied before, perhaps at this moment
            await self.problem(410, OVER, send)
        except Exception:
            logging.getLogger("isthmus.auth").exception("a page of the authorization server failed")
            await self.problem(500, BROKEN, send)

    async def problem(self, status: int, text: str, send: Send) -> None:
        """Answer with a page that says what was wrong; the browser is sent nowhere."""
        heading = HEADINGS.get(status, HEADINGS[400] if status < 500 else HEADINGS[500])
        page = message_page(self.places, self.place, heading, text)
        await send_page(send, status, page, retry_after=RETRY if status == 503 else None)

    async def say(
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
        page = message_page(self.places, self.place, heading, text, logout=logout)
        await send_page(send, status, page, cookies)

    def check(self, visit: Visit, token: str) -> None:
        """See that a form is ours.

        Raises:
            Unfit: it is not.
        """
        if foreign(visit, self.origin) or Secret(token) != visit.fields.get("token", ""):
            raise Unfit(FOREIGN, status=403)
