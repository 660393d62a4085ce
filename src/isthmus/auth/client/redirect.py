"""Redirect URI: the loopback server that a user's browser comes back to, for one answer.

:class:`Loopback` listens before the browser is opened, so that nobody else can take the port in
between, and keeps listening past what is not meant for it: favicons, guesses, answers with a state
that nobody has asked for. It answers the same page to everybody and repeats nothing of what it was
sent. :class:`ByHand` is for programs that have another way to learn where the browser was sent.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Protocol, TypeAlias

from isthmus.auth.arguments import check_number
from isthmus.auth.net.urls import check_browser_url
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRequired, AuthUnsafe, UsageError

LOGIN_TIMEOUT_S = 300.0  # seconds that a user has for logging in

READ_TIMEOUT_S = 10.0  # seconds that a browser has for sending its request

MAX_REQUEST_BYTES = 8 * 1024

MAX_CONNECTIONS = 16  # connections that are open at a time

# The parameters of an authorization response, each of which was there once.
AuthorizationParams: TypeAlias = Mapping[str, str]

ShowUrl: TypeAlias = Callable[[str], Awaitable[None]]  # shows the user a URL


class LoginTimeout(AuthRequired):
    """The user did not come back from the authorization server in time."""


class RedirectListener(Protocol):
    """A place where one user's browser may come back to, as long as it is open.

    Attributes:
        uri: the redirect URI.
    """

    uri: str

    async def visit(self, url: str, state: Secret, show: ShowUrl) -> AuthorizationParams:
        """Send the user to a URL and wait until they come back with a state.

        Raises:
            NobodyCame: the time is over.
            AuthUnsafe: whoever came cannot be meant.
        """
        ...

    async def close(self) -> None:
        """Nobody is waited for any more."""
        ...


class Redirect(Protocol):
    """A way for users to come back.

    Attributes:
        uri: as it is configured; port 0 stands for any.
        native: the program runs on its user's machine, and is no web application.
    """

    uri: str
    native: bool

    async def open(self, before: str | None = None) -> RedirectListener:
        """Be ready for somebody.

        Args:
            before: the redirect URI of the time before, which is used again if it is free.

        Raises:
            AuthRequired: the port is taken.
        """
        ...


class Loopback:
    """Redirect to a port of this machine (RFC 8252, section 7.3).

    Args:
        host: ``127.0.0.1``, ``localhost`` or ``[::1]``.
        port: 0 takes a free one.
        path: which one there.
        wait: seconds that a user has for logging in.

    Raises:
        UsageError: it is no such place.
    """

    native = True

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str = "/callback",
        *,
        wait: float = LOGIN_TIMEOUT_S,
    ) -> None:
        check_number("port", port, whole=True, unit="its place")
        check_number("wait", wait, above=0)
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if host not in LOOPBACK_ADDRESSES or not path.startswith("/") or not 0 <= port < 65536:
            raise UsageError(
                f"users cannot come back to {host}:{port}{path}: host= is 127.0.0.1, localhost or "
                "[::1], and path= begins with /"
            )
        self.uri = f"http://{host}:{port}{path}"
        self._host = host
        self._port = port
        self._path = path
        self._wait = wait

    async def open(self, before: str | None = None) -> "LoopbackListener":
        """Listen for the browser that comes back.

        Args:
            before: the redirect URI of the time before, whose port is used again where it is free.

        Raises:
            AuthRequired: the port that was given is taken.
        """
        wanted = self._port or parse_port(before)
        try:
            servers = await self._listen(wanted)
        except OSError as error:
            if self._port:
                raise AuthRequired(
                    f"port {self._port} is taken, and the user is to come back there after logging "
                    "in: end the program that uses it, or leave port= out"
                ) from error
            servers = await self._listen(0)
        return servers

    async def _listen(self, port: int) -> "LoopbackListener":
        listening = LoopbackListener(self._host, self._path, self._wait)
        try:
            for address in LOOPBACK_ADDRESSES[self._host]:
                port = await listening.bind(address, port)
        except OSError:
            await listening.close()
            raise
        return listening


# What to listen on: a browser may take either address for a name.
LOOPBACK_ADDRESSES: Mapping[str, tuple[str, ...]] = {
    "127.0.0.1": ("127.0.0.1",),
    "[::1]": ("::1",),
    "localhost": ("127.0.0.1", "::1"),
}


def parse_port(uri: str | None) -> int:
    """The port of a redirect URI; 0 without one."""
    port = (uri or "").partition("://")[2].partition("/")[0].rpartition(":")[2]
    return int(port) if port.isdigit() else 0


class LoopbackListener:
    """An open :class:`Loopback`."""

    def __init__(self, host: str, path: str, wait: float) -> None:
        self.uri = ""
        self._host = host
        self._path = path
        self._wait = wait
        self._servers: list[asyncio.Server] = []
        self._connections: dict[asyncio.Task[None], None] = {}  # the oldest one first
        self._state: Secret | None = None
        self._came: asyncio.Future[AuthorizationParams] = asyncio.get_running_loop().create_future()

    async def bind(self, address: str, port: int) -> int:
        """Listen on one address more; the port."""
        try:
            server = await asyncio.start_server(self._serve, address, port, limit=MAX_REQUEST_BYTES)
        except OSError as error:
            # Without IPv6 a browser takes the other address. Where somebody else listens it may not.
            if address == "::1" and self._servers and error.errno != errno.EADDRINUSE:
                return port
            raise
        self._servers.append(server)
        port = int(server.sockets[0].getsockname()[1])
        self.uri = f"http://{self._host}:{port}{self._path}"
        return port

    async def visit(self, url: str, state: Secret, show: ShowUrl) -> AuthorizationParams:
        """Send the user to a URL and wait until they come back with a state."""
        self._state = state
        await show(url)
        try:
            async with asyncio.timeout(self._wait):
                return await self._came
        except TimeoutError:
            raise LoginTimeout(
                f"nobody has logged in within {self._wait:g} s: try again when the user is there"
            ) from None

    async def close(self) -> None:
        """Listen no more; what is being answered is answered."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        if self._connections:
            await asyncio.wait(list(self._connections), timeout=1.0)
        for task in self._connections:
            task.cancel()
        for server in servers:
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        task = asyncio.current_task()
        if task is None:  # coroutines run in tasks; type checkers do not know it
            return
        if (
            len(self._connections) >= MAX_CONNECTIONS
        ):  # the browser is no longer among those who idle
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.cancel()
        self._connections[task] = None
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(render_page(*self._judge(head)))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever that was, it was not the browser
        except asyncio.CancelledError:
            pass  # by us; before Python 3.12 asyncio reports a handler that ends so as an error
        finally:
            self._connections.pop(task, None)
            writer.close()

    def _judge(self, head: bytes) -> tuple[str, str]:
        """Judge a request, and take its parameters where they are those waited for; the answer to it."""
        line, _, rest = head.decode("latin-1").partition("\r\n")
        method, _, target = line.partition(" ")
        target = target.partition(" ")[0]
        path, _, query = target.partition("?")
        hosts = [h[5:].strip().lower() for h in rest.split("\r\n") if h.lower().startswith("host:")]
        # A page elsewhere may point a name of its own at this machine.
        if hosts != [self.uri.partition("://")[2].partition("/")[0]] or path != self._path:
            return PAGE_NOT_FOUND
        if method != "GET":
            return PAGE_NOT_ALLOWED
        params = parse_params(query)
        # spec 2026-07-28 basic/authorization/security-considerations#open-redirection: discard
        # what has not the state that was sent
        if params is None or self._state is None or params.get("state", "") != self._state:
            return PAGE_WRONG_STATE
        if not self._came.done():
            self._came.set_result(params)
        return PAGE_DONE


class ByHand:
    """Redirect by hand: the application itself learns where the browser was sent, and says it.

    For programs without a browser, web applications that have a callback of their own, and tests.

    Example::

        async def visit(url: str) -> str:
            print("Log in at", url)
            return input("The address you were sent to: ")

        OAuth(redirect=ByHand("http://127.0.0.1:8976/callback", visit))

    Args:
        uri: the redirect URI; nothing of isthmus listens there.
        visit: gets the URL to show, and returns the one the browser was sent to.
        native: False where this is a web application at an https URL.
    """

    def __init__(
        self,
        uri: str,
        visit: Callable[[str], Awaitable[str]],
        *,
        native: bool | None = None,
    ) -> None:
        self.uri = uri
        self.native = uri.startswith("http:") if native is None else native
        self._visit = visit

    async def open(self, before: str | None = None) -> "ByHand":  # noqa: ARG002 - nothing to choose
        """Do nothing, as nothing has to be prepared; ``before`` is ignored.

        Args:
            before: the redirect URI of an earlier login; not used here.
        """
        return self

    async def visit(self, url: str, state: Secret, show: ShowUrl) -> AuthorizationParams:  # noqa: ARG002 - as above
        """Show the user a page through the application, and read the URL that the browser is sent back to.

        Args:
            url: the page of the authorization server.
            state: the state that came with the page (RFC 6749, section 10.12).
            show: not used: the application shows the URL.

        Raises:
            AuthUnsafe: the state that came back is not the one of this login.
        """
        from isthmus.auth.net.urls import check_browser_url

        landed = await self._visit(check_browser_url(url))
        params = parse_params(landed.partition("#")[0].partition("?")[2])
        if params is None or params.get("state", "") != state:
            raise AuthUnsafe(
                "the user was sent back with a state that is not the one of this login: nothing "
                "of it is used; log in anew, and copy the whole address"
            )
        return params

    async def close(self) -> None:
        """Do nothing: nothing has to be closed."""


def parse_params(query: str) -> AuthorizationParams | None:
    """The parameters of a query; None where one is there twice, or there are too many."""
    from urllib.parse import parse_qsl  # the HTTP client has imported it already

    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return None
    params = dict(pairs)
    return params if len(params) == len(pairs) else None


PAGE_DONE = ("200 OK", "You may close this window and go back to the program.")
PAGE_WRONG_STATE = ("400 Bad Request", "This is not the answer that is waited for.")
PAGE_NOT_FOUND = ("404 Not Found", "There is nothing here.")
PAGE_NOT_ALLOWED = ("405 Method Not Allowed", "There is nothing to send here.")


def render_page(status: str, text: str) -> bytes:
    """A response with a page that nothing can be made of."""
    body = f"<!doctype html><meta charset=utf-8><title>Login</title><p>{text}</p>".encode()
    head = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
    )
    return "\r\n".join((*head, "", "")).encode() + body


# Has the user visit a URL. It is checked before; the URL is never fetched by isthmus itself.
OpenBrowser: TypeAlias = Callable[[str], Awaitable[object] | object]


async def open_default_browser(url: str) -> None:
    """Open a URL in the browser that the user has set up; no shell sees it.

    Raises:
        AuthRequired: there is no browser to open.
    """
    import webbrowser  # needed for a login, and by no one else

    # Beside the loop: some browsers' programs end late.
    opened = await asyncio.to_thread(webbrowser.open, url)
    if not opened:
        raise AuthRequired(
            "there is no browser here to log in with: at a terminal, isthmus login --no-browser "
            "prints the URL; a program passes OAuth(open_browser=…) to show it to the user, or "
            "redirect=ByHand(…) to have them bring back where they were sent"
        )


async def visit_in_browser(open_browser: OpenBrowser, url: str) -> None:
    """Check a URL, and have the user visit it.

    Raises:
        AuthUnsafe: it is none that a browser should be given.
        AuthRequired: there is no browser.
    """
    # spec 2026-07-28 basic/authorization/security-considerations#open-redirection
    opened = open_browser(check_browser_url(url))
    if isawaitable(opened):
        await opened
