"""The consent page: asks whether a client may act for somebody, and remembers that where it is safe."""

import re

from isthmus.auth.authorization_server.core.authorization import AuthorizationRequests
from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import BrowserRequest, send_page, send_redirect
from isthmus.auth.authorization_server.pages.login import BrowserSessions, OpenedRequest
from isthmus.auth.authorization_server.pages.templates import ConsentView, render_consent_page
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.users.users import (
    Delegated,
    LoginPage,
    LoginRedirect,
    LoginRefused,
    User,
)
from isthmus.auth.net.urls import is_loopback, split_url
from isthmus.transports.http.reply import Send

URI_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

# of Sec-Fetch-Site, where no other site has a hand in it
OWN_SITE_VALUES = frozenset({"none", "same-origin"})


class ConsentPage:
    """The page that asks.

    Args:
        sessions: opens requests and keeps logins.
        requests: approves and denies what was asked.
    """

    def __init__(self, sessions: BrowserSessions, requests: AuthorizationRequests) -> None:
        self._sessions = sessions
        self._requests = requests

    async def page(self, request: BrowserRequest, send: Send) -> None:
        """Answer a request to the consent page."""
        sessions = self._sessions
        opened = await sessions.open_request(request)
        # Where users are elsewhere, they are asked first: that place may log them in silently.
        user: User | None = None
        if not isinstance(sessions.users, Delegated):
            found = await sessions.identify(request, opened)
            if not isinstance(found, User):
                await send_redirect(send, sessions.page_url(sessions.paths.login, opened.handle))
                return
            user = found
        if opened.pending.login_only:
            await send_redirect(send, opened.pending.redirect_uri)
            return
        token = await sessions.form_token("consent", opened, user)
        if not request.posted:
            await send_page(send, 200, await self._render_question(opened, user, token))
            return
        sessions.check_form(request, token)
        await self._handle_answer(request, opened, user, send)

    async def approve_silently(
        self, request: BrowserRequest, pending: PendingAuthorization, user: User
    ) -> str | None:
        """Approve what was approved before: the URL to go on to, or None where it has to be asked.

        Args:
            request: the browser's request to ``/authorize``.
            pending: what is asked.
            user: who is logged in.
        """
        settings, store = self._sessions.settings, self._sessions.store
        if settings.consent != "remember" or not may_remember_consent(pending):
            return None
        # Otherwise another site could use what was approved once, without anybody seeing it.
        if request.headers.get("sec-fetch-site") not in OWN_SITE_VALUES:
            return None
        known = await store.read(
            lambda records: records.consent(
                user.id, pending.client_id, pending.redirect_uri, pending.resource
            )
        )
        if not known or not known.issuperset(pending.scopes):
            return None
        return await self._requests.approve(pending, user)

    async def _handle_answer(
        self, request: BrowserRequest, opened: OpenedRequest, user: User | None, send: Send
    ) -> None:
        pending = opened.pending
        decision = request.fields.get("decision")
        if decision == "deny":
            await send_redirect(send, await self._requests.deny(pending))
        elif decision != "allow":
            raise RequestRefused("That form says neither yes nor no.", status=400)
        elif user is None:
            await self._redirect_to_login(request, opened, send)
        else:
            url = await self._requests.approve(pending, user)
            if self._sessions.settings.consent == "remember" and may_remember_consent(pending):
                await self._store_consent(pending, user)
            await send_redirect(send, url)

    async def _redirect_to_login(
        self, request: BrowserRequest, opened: OpenedRequest, send: Send
    ) -> None:
        """It was approved: now users are logged in where that is done."""
        sessions = self._sessions
        outcome = await sessions.users.begin(sessions.login_request(request, opened))
        match outcome:
            case LoginRedirect():
                await send_redirect(send, outcome.url, outcome.cookies)
            case LoginRefused():
                await sessions.send_message(
                    send, "You cannot sign in", outcome.text, status=outcome.status
                )
            case User():
                await send_redirect(send, await self._requests.approve(opened.pending, outcome))
            case LoginPage():
                raise RequestRefused("This server cannot sign anybody in.", status=500)

    async def _store_consent(self, pending: PendingAuthorization, user: User) -> None:
        await self._sessions.store.write(
            lambda records: records.save_consent(
                user.id, pending.client_id, pending.redirect_uri, pending.resource, pending.scopes
            )
        )

    async def _render_question(self, opened: OpenedRequest, user: User | None, token: str) -> bytes:
        sessions, pending = self._sessions, opened.pending
        users = sessions.users
        elsewhere = users if isinstance(users, Delegated) else None
        target, local = describe_target(pending.redirect_uri)
        session = opened.session
        logout = None
        if session is not None:
            logout = (await sessions.seal()).tie("logout", session.reveal())
        texts = sessions.settings.scopes
        view = ConsentView(
            place=sessions.place,
            client=pending.client_name,
            kind=pending.client_kind,
            domain=client_domain(pending),
            client_id=pending.client_id,
            redirect_uri=pending.redirect_uri,
            target=target,
            local=local,
            scopes={name: texts.get(name, "") for name in pending.scopes},
            resource=pending.resource,
            user=None if user is None else user.label,
            provider="" if elsewhere is None else elsewhere.provider,
            provider_scopes=() if elsewhere is None else elsewhere.provider_scopes,
            handle=opened.handle,
            token=token,
            logout=logout,
        )
        return render_consent_page(view, sessions.paths)


def describe_target(redirect_uri: str) -> tuple[str, bool]:
    """Name the host or scheme a redirect URI leads to, and whether that is a local program.

    Args:
        redirect_uri: of https, of http on this machine, or of a scheme that a program has taken.
    """
    try:
        parts = split_url(redirect_uri)
    except ValueError:
        found = URI_SCHEME.match(redirect_uri)
        return (found[0] if found else redirect_uri), True
    return parts.origin.partition("://")[2], is_loopback(parts.host)


def client_domain(pending: PendingAuthorization) -> str:
    """The domain that vouches for a client by a document of its own; empty where none does."""
    return split_url(pending.client_id).host if pending.client_kind == "document" else ""


def may_remember_consent(pending: PendingAuthorization) -> bool:
    """Whether consent may be remembered.

    Not where its answers go to a program on this computer: any program can name any client there,
    whether that registered or has a document that anybody can read, and listen where another did.
    """
    return not describe_target(pending.redirect_uri)[1]
