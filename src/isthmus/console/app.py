"""Console: an ASGI app by which people see and decide in a browser what a host does."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    BrowserCookies,
    BrowserRequest,
    read_browser_request,
    read_request_head,
)
from isthmus.auth.authorization_server.pages.form_tokens import FormTokens
from isthmus.auth.tokens.secret import Secret
from isthmus.console.attendance import ConsoleAttendance, ConsoleWatch
from isthmus.console.guard import FOREVER, NO_STORE, SAFETY_HEADERS, ConsoleGuard
from isthmus.console.layout import (
    SIGN_IN_TEXT,
    THEME_COOKIE,
    THEMES,
    load_static,
    make_icon,
    make_issuer_page,
    make_login_page,
    make_message_page,
    make_page,
)
from isthmus.console.live import LiveUpdates, list_tab_events
from isthmus.console.login import (
    ConsoleIdentity,
    ConsoleVisitor,
    LocalLogin,
    RedirectIdentity,
)
from isthmus.console.pages.inbox import list_pending
from isthmus.console.pages.takers import free_all, renew_takes
from isthmus.console.requests import (
    NOT_HERE_TEXT,
    ConsoleReply,
    ConsoleRequest,
    Download,
    PageRedirect,
    PageReply,
)
from isthmus.console.routes import find_route, split_path
from isthmus.errors import IsthmusError
from isthmus.host.model.view import TrafficQuery
from isthmus.host.remote.principal_view import OwnEvents, PrincipalView
from isthmus.transports.http.asgi_lifespan import serve_lifespan
from isthmus.transports.http.reply import (
    STREAM_HEADERS,
    Header,
    Receive,
    Scope,
    Send,
    send_response,
)

if TYPE_CHECKING:
    from isthmus.host.model.events import HostEvent
    from isthmus.host.remote.view import HostView

PREFIX = "/console"
MAX_FORM_BYTES = 1024 * 1024  # arguments that a person has edited
MAX_FORM_FIELDS = 500
HTML: Header = (b"content-type", b"text/html; charset=utf-8")


class Console:
    """The console of a host, as an ASGI app.

    Example::

        console = Console(host.view, "http://127.0.0.1:8765")
        print(console.login_address)

    Args:
        attends: answer questions of the host at this console: it counts as a surface where somebody
            is; False by default.
        view: the host, in this process or in another one.
        address: of the console, as browsers reach it: scheme, host and port.
        identity: says who is at a browser; by default the user of this machine, who has a token.
        prefix: the path below which the pages stand.
        view_of: the host as one visitor sees it; by default operators see all of it, and others what
            is theirs.
        tell: gets the address to sign in at anew, after the user of this machine has signed out everywhere,
            for their terminal; without it that is not offered.
        now: says the seconds since the epoch.
    """

    def __init__(
        self,
        view: "HostView",
        address: str,
        *,
        identity: ConsoleIdentity | None = None,
        prefix: str = PREFIX,
        view_of: "Callable[[ConsoleVisitor], HostView] | None" = None,
        attends: bool = False,
        tell: "Callable[[str], None] | None" = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._view = view
        self._address = address.rstrip("/")
        self._prefix = prefix
        self.identity: ConsoleIdentity = identity or LocalLogin(self._address)
        self._guard = ConsoleGuard(self._address)
        self._cookies = BrowserCookies(self._address)
        self._tokens = FormTokens(now)
        self._view_of = view_of or self._choose_view
        self._now = now
        self.live = LiveUpdates(view)
        self._attendance = ConsoleAttendance(view) if attends else None
        self._states: dict[type, Any] = {}
        self._watch = ConsoleWatch(view, lambda: len(self.live) > 0)
        self._tell = tell

    @property
    def login_address(self) -> str:
        """The address that the user of this machine opens, with the token in its fragment."""
        address = f"{self._address}{self._prefix}/login"
        if isinstance(self.identity, LocalLogin):
            return f"{address}#{self.identity.token.reveal()}"
        return address

    @property
    def users_issuer(self) -> str | None:
        """The issuer whose users see here what is theirs, empty for none; None where operators sign in alone."""
        return getattr(self.identity, "users_issuer", None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a browser."""
        if scope["type"] == "lifespan":
            await serve_lifespan(self, receive, send)
            return
        try:
            self._guard.check(read_request_head(scope))  # before a form is read
            request = await read_browser_request(
                scope, receive, max_bytes=MAX_FORM_BYTES, max_fields=MAX_FORM_FIELDS
            )
            await self._serve(request, self._read_path(scope), receive, send)
        except RequestRefused as refusal:
            await self._send_message(send, refusal.status, "Not possible", refusal.text)
        except IsthmusError as error:
            await self._send_message(send, 503, "That did not work", str(error))

    # As serve_lifespan asks

    failure: str | None = None

    async def start(self) -> None:
        """Get ready."""

    async def close(self, drain: float | None = None) -> None:  # noqa: ARG002 - of serve_lifespan
        """End what is live, and what pages have begun.

        Args:
            drain: not used: the lifespan of every app is closed with it.
        """
        await self.live.close()
        if self._attendance is not None:
            await self._attendance.close()
        for state in self._states.values():
            await state.close()
        await self._watch.close()

    def _read_path(self, scope: Scope) -> tuple[str, ...]:
        """The parts of the path below the prefix, decoded.

        Raises:
            RequestRefused: it is none of ours, or no text.
        """
        from urllib.parse import unquote_to_bytes  # slow to import

        raw = scope.get("raw_path") or scope["path"].encode()
        prefix = self._prefix.encode()
        if not (raw + b"/").startswith(prefix + b"/"):
            raise RequestRefused(NOT_HERE_TEXT, status=404)
        try:
            path = raw[len(prefix) :].partition(b"?")[0].decode("ascii")
            return tuple(unquote_to_bytes(part).decode() for part in split_path(path))
        except UnicodeDecodeError:
            raise RequestRefused(NOT_HERE_TEXT, status=404) from None

    async def _serve(
        self,
        request: BrowserRequest,
        segments: tuple[str, ...],
        receive: Receive,
        send: Send,
    ) -> None:
        if segments[:1] == ("static",):
            await self._send_file(send, load_static().get("/".join(segments[1:])))
        elif segments == ("icon.svg",):
            await self._send_file(send, make_icon(request.fields.get("n", "")))
        elif segments[:1] == ("login",):
            await self._log_in(request, segments[1:], send)
        elif (visitor := await self.identity.identify(request)) is None:
            # The same words whether or not there is such a page.
            page = self._make_login_page(SIGN_IN_TEXT, () if request.posted else segments)
            await send_response(send, 401, [HTML, NO_STORE, *SAFETY_HEADERS], page)
        elif segments == ("events",):
            await self._serve_events(self._bind(request, segments, visitor), receive, send)
        else:
            await self._watch.look()
            asked = self._bind(request, segments, visitor)
            await self._send_reply(send, asked, await self._answer(asked))

    def _choose_view(self, visitor: ConsoleVisitor) -> "HostView":
        return self._view if visitor.operator else PrincipalView(self._view, visitor.principal)

    async def look(self) -> None:
        """Have calls recorded from now on, for a while: somebody is about to look."""
        await self._watch.look()

    def _bind(
        self, request: BrowserRequest, segments: tuple[str, ...], visitor: ConsoleVisitor
    ) -> ConsoleRequest:
        return ConsoleRequest(
            browser=request,
            segments=segments,
            parameters={},
            visitor=visitor,
            view=self._view_of(visitor),
            prefix=self._prefix,
            tokens=self._tokens,
            now=self._now,
            states=self._states,
            renews=self._tell is not None and isinstance(self.identity, LocalLogin),
        )

    # Signing in and out

    def _make_login_page(self, notice: str, target: Sequence[str] = ()) -> bytes:
        """The page to sign in on; a login elsewhere leads back to the page that was asked for."""
        if not isinstance(self.identity, RedirectIdentity):
            return make_login_page(self._prefix, notice)
        return make_issuer_page(self._prefix, notice, self.identity.issuer, target)

    async def _log_in(self, request: BrowserRequest, step: tuple[str, ...], send: Send) -> None:
        if step:
            await self._redirect(send, await self._take_login_step(request, step))
            return
        if not request.posted:
            page = self._make_login_page("")
            await send_response(send, 200, [HTML, NO_STORE, *SAFETY_HEADERS], page)
            return
        cookie = self.identity.sign_in(request.fields.get("token", "").strip().lstrip("#"))
        if cookie is None:
            page = self._make_login_page("This token is wrong: use the one that was printed.")
            await send_response(send, 403, [HTML, NO_STORE, *SAFETY_HEADERS], page)
            return
        await self._redirect(send, PageRedirect(f"{self._prefix}/", (cookie,)))

    async def _take_login_step(
        self, request: BrowserRequest, step: tuple[str, ...]
    ) -> PageRedirect:
        """Send a browser to the issuer, or sign it in when it comes back.

        Raises:
            RequestRefused: there is no such step, or the answer of the issuer is not to be believed.
        """
        identity = self.identity
        if not isinstance(identity, RedirectIdentity) or request.method != "GET":
            raise RequestRefused(NOT_HERE_TEXT, status=404)
        if step == ("begin",):
            done = await identity.begin(request)
        elif step == ("back",):
            done = await identity.finish(request)
        else:
            raise RequestRefused(NOT_HERE_TEXT, status=404)
        return PageRedirect(done.url, done.cookies)

    async def _log_out(self, asked: ConsoleRequest) -> ConsoleReply:
        await free_all(asked)
        cookie = self.identity.sign_out(asked.browser)
        identity = self.identity
        everywhere = asked.fields.get("everywhere") == "yes"
        if everywhere and self._tell is not None and isinstance(identity, LocalLogin):
            identity.renew_token()
            self._tell(self.login_address)
        return PageRedirect(asked.link("login"), () if cookie is None else (cookie,))

    def _set_theme(self, asked: ConsoleRequest) -> ConsoleReply:
        theme = asked.fields.get("theme", "")
        if theme not in THEMES:
            raise RequestRefused("There is no such theme.")
        cookie = self._cookies.set(THEME_COOKIE, Secret(theme), 365 * 24 * 3600)
        return PageRedirect(find_page(asked, asked.fields.get("page", "")), (cookie,))

    # Pages

    async def _answer(self, asked: ConsoleRequest) -> ConsoleReply:
        """The reply of a page; the token of a form is checked before its page is called.

        Raises:
            RequestRefused: there is no such page for this visitor, or the form is not of ours.
        """
        if asked.browser.posted:
            asked.check_form()
            if asked.segments == ("logout",):
                return await self._log_out(asked)
            if asked.segments == ("theme",):
                return self._set_theme(asked)
        for route, parameters in find_route(asked.browser.method, asked.segments):
            if route.operator and not asked.visitor.operator:
                break
            return await route.find_page()(structs.replace(asked, parameters=parameters))
        raise RequestRefused(NOT_HERE_TEXT, status=404)

    async def _serve_events(self, asked: ConsoleRequest, receive: Receive, send: Send) -> None:
        """Tell a tab what has changed, until it is closed."""
        if asked.browser.method != "GET":
            raise RequestRefused("Live updates need a GET request.", status=405)
        if not self.live.has_room(asked.visitor.session):
            raise RequestRefused("Too many tabs are open.", status=503)
        may_hear = await self._find_filter(asked)

        async def is_signed_in() -> bool:
            visitor = await self.identity.identify(asked.browser)
            if visitor is None or visitor.session != asked.visitor.session:
                return False
            await renew_takes(asked)
            return True

        def count() -> str:
            waiting = list_pending(asked)
            return f"{len(waiting)} {sum(one.risk == 'high' for one in waiting)}"

        headers = [*STREAM_HEADERS, *SAFETY_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with AsyncExitStack() as stack:
            tab = stack.enter_context(self.live.open_tab(asked.visitor.session, may_hear))
            if self._attendance is not None and asked.visitor.operator:
                page = self._attendance.open_page(asked.visitor.assurance)
                await stack.enter_async_context(page)
            events = list_tab_events(tab, is_signed_in, count)
            left = asyncio.ensure_future(wait_until_left(receive))
            left.add_done_callback(lambda _: tab.end())
            try:
                async with aclosing(events):
                    async for event in events:
                        if left.done():
                            return
                        await send({"type": "http.response.body", "body": event, "more_body": True})
            finally:
                left.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    @staticmethod
    async def _find_filter(asked: ConsoleRequest) -> "Callable[[HostEvent], bool] | None":
        """Which events a visitor may know of; None for all of them."""
        visitor = asked.visitor
        if visitor.operator:
            return None
        running = TrafficQuery(principal=visitor.principal, outcome="running")
        calls = await asked.view.traffic(running)
        known = [*(one.id for one in list_pending(asked)), *(one.id for one in calls)]
        return OwnEvents(visitor.principal, known).holds

    # Answers

    async def _send_reply(self, send: Send, asked: ConsoleRequest, reply: ConsoleReply) -> None:
        if isinstance(reply, PageRedirect):
            await self._redirect(send, reply)
        elif isinstance(reply, Download):
            await self._send_file(send, reply)
        else:
            await self._send_page(send, asked, reply)

    async def _send_page(self, send: Send, asked: ConsoleRequest, reply: PageReply) -> None:
        page = make_page(asked, reply, len(list_pending(asked)))
        verb = asked.browser.method
        headers = [HTML, NO_STORE, *SAFETY_HEADERS]
        await send_response(send, reply.status, headers, page, verb=verb)

    async def _send_message(self, send: Send, status: int, heading: str, text: str) -> None:
        page = make_message_page(self._prefix, heading, text)
        await send_response(send, status, [HTML, NO_STORE, *SAFETY_HEADERS], page)

    async def _send_file(self, send: Send, file: Download | None) -> None:
        if file is None:
            raise RequestRefused(NOT_HERE_TEXT, status=404)
        headers = [
            (b"content-type", file.kind.encode()),
            FOREVER if file.forever else NO_STORE,
            *SAFETY_HEADERS,
        ]
        if file.name:
            name = re.sub(r"[^A-Za-z0-9._-]", "_", file.name)
            headers.append((b"content-disposition", f'attachment; filename="{name}"'.encode()))
        if isinstance(file.content, bytes):
            await send_response(send, 200, headers, file.content)
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(file.content) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _redirect(self, send: Send, reply: PageRedirect) -> None:
        headers = [
            (b"location", reply.path.encode("ascii")),
            *((b"set-cookie", value.encode()) for value in reply.cookies),
            NO_STORE,
            *SAFETY_HEADERS,
        ]
        await send_response(send, 303, headers)


async def wait_until_left(receive: Receive) -> None:
    """Wait until a browser has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def find_page(asked: ConsoleRequest, path: str) -> str:
    """The path of a page of this console; that of the Inbox where a form names anything else."""
    from urllib.parse import unquote  # slow to import

    segments = tuple(map(unquote, split_path(path.removeprefix(asked.prefix))))
    ours = path.startswith(f"{asked.prefix}/") and any(find_route("GET", segments))
    return asked.link(*segments) if ours else asked.link()
