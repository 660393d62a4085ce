"""Console of ``isthmus gateway``: at ``/console``, with the login that the configuration names."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from isthmus.auth.net.urls import is_loopback, split_url
from isthmus.cli.output import print_note
from isthmus.errors import UsageError
from isthmus.gateway.gateway import Gateway
from isthmus.host.model.gateway_options import ConsoleOptions

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.pages.browser import BrowserRequest
    from isthmus.console.login import ConsoleIdentity
    from isthmus.transports.http.authorizer import AsgiApp

ELSEWHERE_TEXT = (
    'host.gateway.console: {where} is reached from other machines, and "login": "local" is for this one '
    'alone: set "login" to "authorization" or "proxy", or leave the console out with --no-console'
)


def check_console(options: ConsoleOptions | None, host: str, public_url: str | None) -> bool:
    """Whether a gateway has a console; None as options means: where its address is of this machine.

    Args:
        options: of the configuration.
        host: the address that the gateway listens on.
        public_url: where the world reaches it, or None.

    Raises:
        UsageError: the login cannot be had there, or lacks something.
    """
    here = is_loopback(host) and public_url is None
    if options is None:
        return here
    if options.login == "local" and not here:
        raise UsageError(ELSEWHERE_TEXT.format(where=public_url or host))
    if options.login == "authorization" and not options.issuer:
        raise UsageError(
            'host.gateway.console: "login": "authorization" needs "issuer", the URL of the '
            "authorization server whose users sign in"
        )
    if options.login == "proxy" and not options.trusted_proxies:
        raise UsageError(
            'host.gateway.console: "login": "proxy" needs "trustedProxies", the addresses of the '
            "proxy that names users; anybody else could send its header"
        )
    return True


def print_login(address: str) -> None:
    """Print where the operator signs in, after a sign-out everywhere."""
    print_note(f"isthmus: signed out everywhere; sign in again at {address}")


class LazyConsole:
    """The console of a gateway, as an ASGI app: it is imported with its first request.

    Args:
        gateway: whose host it shows, and whose operator signs in.
        url: of the gateway, as browsers reach it; its path does not matter.
        options: of the console; None for the login of this machine.
    """

    def __init__(self, gateway: Gateway, url: str, options: ConsoleOptions | None = None) -> None:
        self._gateway = gateway
        self._url = split_url(url).origin
        self._options = options or ConsoleOptions()

    @property
    def visitors(self) -> "LazyConsole | None":
        """Says who is at a browser, for accounts; None where that is the operator."""
        return None if self._options.login == "local" else self

    @property
    def users_issuer(self) -> str | None:
        """The issuer whose users see here what is theirs, empty for none; None where operators sign in alone."""
        return None if self._options.login == "local" else self._options.issuer

    @cached_property
    def identity(self) -> "ConsoleIdentity":
        """The login."""
        options = self._options
        if options.login == "proxy":
            from isthmus.auth.authorization_server.users.users import HeaderUsers
            from isthmus.console import ProxyLogin

            users = HeaderUsers(options.header, trusted_proxies=options.trusted_proxies)
            return ProxyLogin(users, operators=options.operators, issuer=options.issuer)
        if options.login == "authorization":
            from isthmus.auth.client.registration import StaticClient
            from isthmus.console import AuthorizationLogin

            return AuthorizationLogin(
                self._url,
                options.issuer,
                operators=options.operators,
                operator_scope=options.operator_scope,
                resource=options.resource,
                client=StaticClient(options.client_id) if options.client_id else None,
            )
        from isthmus.console import LocalLogin

        pages = self._gateway.open_pages(self._url)
        return LocalLogin(self._url, pages.operator, assurance="authenticated_web")

    @cached_property
    def _console(self) -> "AsgiApp":
        from isthmus.console import Console

        view = self._gateway.host.view
        return Console(view, self._url, identity=self.identity, attends=True, tell=print_login)

    async def find(self, request: "BrowserRequest") -> str | None:
        """The principal of whoever has signed in to the console."""
        visitor = await self.identity.identify(request)
        return None if visitor is None else visitor.principal

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request of a browser."""
        await self._console(scope, receive, send)
