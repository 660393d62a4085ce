"""Logging in with a name and a password, and out again."""

import logging

from isthmus.auth.authorization_server.browser import Visit, send_away, send_page
from isthmus.auth.authorization_server.desk import Desk, Opened
from isthmus.auth.authorization_server.pages import LoginView, login_page
from isthmus.auth.authorization_server.tries import StoredTries
from isthmus.auth.authorization_server.users import LoginPage, LoginRedirect, LoginRefused, User
from isthmus.transports.http.reply import Send

__all__ = ["Login"]

log = logging.getLogger("isthmus.auth")


class Login:
    """The pages for logging in and out.

    Args:
        desk: opens requests and keeps logins.
        tries: how often a password may be tried.
    """

    def __init__(self, desk: Desk, tries: StoredTries) -> None:
        self._desk = desk
        self._tries = tries

    async def page(self, visit: Visit, send: Send) -> None:
        """Answer a request to the login page."""
        opened = await self._desk.open(visit)
        if visit.posted:
            self._desk.check(visit, await self._desk.token("login", opened))
            await self._submitted(visit, opened, send)
            return
        await self._next(await self._desk.recognise(visit, opened), opened, send)

    async def leave(self, visit: Visit, send: Send) -> None:
        """Answer a request to the logout page."""
        desk = self._desk
        session, user = await desk.login(visit)
        if session is None or user is None:
            await desk.say(send, "Signed out", "You are not signed in here.")
            return
        token = (await desk.seal()).tie("logout", session.reveal())
        if not visit.posted:
            text = f"You are signed in as {user.label}."
            await desk.say(send, "Sign out?", text, logout=token)
            return
        desk.check(visit, token)
        await desk.log_out(session)
        cleared = (desk.cookies.clear(desk.cookies.session),)
        if "request" in visit.fields:  # somebody else goes on with the same request
            where = desk.at(desk.places.login, visit.fields["request"])
            await send_away(send, where, cleared)
        else:
            await desk.say(send, "Signed out", "You may close this page.", cookies=cleared)

    async def _submitted(self, visit: Visit, opened: Opened, send: Send) -> None:
        desk = self._desk
        account = visit.fields.get("account", "")
        wait = await self._tries.take(account, visit.address)
        if wait:
            # without the name: people type passwords there
            log.warning("too many logins were tried from %s", visit.address or "a socket")
            await self._form(opened, too_many(account, wait), send)
            return
        outcome = await desk.users.submit(desk.request(visit, opened), visit.fields)
        if isinstance(outcome, User) and not outcome.disabled:
            await self._tries.succeeded(account, visit.address)
            session = await desk.log_in(outcome, opened.session)
            cookies = (desk.cookies.set(desk.cookies.session, session),)
            await send_away(send, desk.at(desk.places.consent, opened.handle), cookies)
        else:
            await self._next(outcome, opened, send)

    async def _next(
        self, outcome: User | LoginPage | LoginRedirect | LoginRefused, opened: Opened, send: Send
    ) -> None:
        match outcome:
            case LoginPage():
                await self._form(opened, outcome, send)
            case LoginRedirect():
                await send_away(send, outcome.url, outcome.cookies)
            case LoginRefused():
                await self._desk.say(
                    send, "You cannot sign in", outcome.text, status=outcome.status
                )
            case User():
                await send_away(send, self._desk.at(self._desk.places.consent, opened.handle))

    async def _form(self, opened: Opened, form: LoginPage, send: Send) -> None:
        desk = self._desk
        view = LoginView(
            place=desk.place,
            client=opened.pending.client_name,
            handle=opened.handle,
            token=await desk.token("login", opened),
            account=form.account,
            notice=form.notice,
        )
        page = login_page(view, desk.places)
        await send_page(send, form.status, page, retry_after=form.retry_after)


def too_many(account: str, wait: int) -> LoginPage:
    """What somebody reads who has no tries left.

    Args:
        account: the name that was typed.
        wait: seconds until there is another one.
    """
    minutes = -(-wait // 60)
    span = "a minute" if minutes == 1 else f"{minutes} minutes"
    notice = f"There were too many tries. Wait {span}, then try again."
    return LoginPage(notice=notice, account=account, status=429, retry_after=wait)
