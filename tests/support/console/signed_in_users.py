"""A console whose users sign in at our authorization server, and their browsers."""

from contextlib import AsyncExitStack
from urllib.parse import urlencode, urlsplit

from isthmus.console import AuthorizationLogin
from isthmus.core.principal import Principal
from isthmus.gateway.principals import make_principal
from support.auth.authority import Visitor, client_answer, make_authority, make_users
from support.console.console_browser import ADDRESS, ConsoleBrowser, ConsoledHost
from support.http.uvicorn_server import serve_uvicorn

RESOURCE = f"{ADDRESS}/console"


class SignedInUsers:
    """A host with a console, an authorization server, and people at browsers.

    Attributes:
        issuer: the authorization server's URL.
        login: of the console.
        hosted: the host with its console.
        clock: seconds since the epoch, as the login has them.
    """

    def __init__(self, folder, clients=(), **options):
        self._folder, self._clients, self._options = folder, clients, options
        self._stack = AsyncExitStack()
        self.clock = 1_000_000.0

    async def __aenter__(self):
        async def app(scope, receive, send):
            await self.authority(scope, receive, send)

        port = await self._stack.enter_async_context(serve_uvicorn(app, "h11"))
        self.issuer = f"http://127.0.0.1:{port}"
        users = make_users(self._folder, "ada", "bob")
        self.authority = make_authority(self.issuer, users, *self._clients, resources=[RESOURCE])
        self._stack.push_async_callback(self.authority.close)
        self.login = AuthorizationLogin(
            ADDRESS, self.issuer, now=lambda: self.clock, **self._options
        )
        self.hosted = await self._stack.enter_async_context(ConsoledHost(identity=self.login))
        return self

    async def __aexit__(self, *error):
        await self._stack.aclose()

    def open_browser(self):
        """A browser that has not been here."""
        return ConsoleBrowser(self.hosted.console)

    async def begin(self, browser, target=""):
        """Follow the link to sign in; where the browser is sent."""
        query = f"?{urlencode({'next': target})}" if target else ""
        status, head, text = await browser.send("GET", f"/console/login/begin{query}")
        assert status == 303, text
        return head["location"]

    async def agree(self, url, account="ada"):
        """Log in at the issuer and agree; the path of the console that the browser is sent back to."""
        person = Visitor(self.authority, self.issuer)
        page = await person.log_in(url, account=account)
        answer = await person.decide(page)
        assert "code" in client_answer(answer)
        back = urlsplit(answer.header("location"))
        assert f"{back.scheme}://{back.netloc}{back.path}" == f"{RESOURCE}/login/back"
        return f"{back.path}?{back.query}"

    async def sign_in(self, browser, account="ada", target=""):
        """Sign a browser in; the answer to the way back."""
        back = await self.agree(await self.begin(browser, target), account)
        return await browser.send("GET", back, sec_fetch_site="cross-site")

    def name(self, account):
        """The principal of an account."""
        return make_principal(Principal(issuer=self.issuer, subject=account))
