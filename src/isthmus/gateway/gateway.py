"""Gateway: all servers of a host as one server, for any client, in every revision.

In front stand plain servers of isthmus, one for each endpoint; behind them the host, which is the only one
that reaches a server, through its one pipeline.
"""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from isthmus.bridge.forwarded import ParkedCalls
from isthmus.errors import UsageError
from isthmus.gateway.approvals.waiting import ApprovalWaiting
from isthmus.gateway.callers import GatewayCallers
from isthmus.gateway.connections import CallerConnections
from isthmus.gateway.logs import ConnectionLevels
from isthmus.gateway.loops import GatewayMark, extend_trail, passing_on
from isthmus.gateway.offers.profiles import ProfileRules, find_profile_faults
from isthmus.gateway.offers.updates import ResourceUpdates
from isthmus.gateway.offers.views import GatewayView, MergedView, ServerView
from isthmus.gateway.principals import check_users_issuer
from isthmus.gateway.provider import GatewayParts, GatewayProvider
from isthmus.gateway.tasks import GatewayTasks
from isthmus.gateway.traffic import AccessLog, GatewayTraffic
from isthmus.host.host import Host
from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile, SearchMode
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.server.server import Server

if TYPE_CHECKING:
    from isthmus.gateway.accounts.pages import AccountPages, Visitors
    from isthmus.gateway.approvals.pages import ApprovalPages
    from isthmus.gateway.endpoints import GatewayApp
    from isthmus.host.model.entries import HostConfig
    from isthmus.transports.http.authorizer import AsgiApp

ENDPOINT = "/mcp"
APPROVALS_PATH = "/approvals"
CONSOLE_PREFIX = "/console"
PROFILE_ENDPOINT = "/mcp/p/"


class Gateway:
    """All servers of a host as one server.

    Example::

        gateway = Gateway(Host.from_config("mcp.json"))
        gateway.run("http", port=8080)

    Args:
        host: reaches the servers; the gateway opens it, and closes it in the end.
        options: of the gateway; by default what the host's configuration says.
        **server: further options of the servers in front, as of ``Server``: ``auth``, ``store``,
            ``secret``, ``middleware``, ``limits`` and so on.
    """

    def __init__(self, host: Host, *, options: GatewayOptions | None = None, **server: Any) -> None:
        self.host = host
        self._given = options
        self._server_options = server
        self._opening: asyncio.Task[None] | None = None
        self._servers: dict[str, Server] = {}
        self._log_path: str | None = None
        self._access_log: AccessLog | None = None
        host.core.limits.follow_clients(lambda: self.options.limits.calls)
        self.pages: ApprovalPages | None = None
        self.account_pages: AccountPages | None = None
        self.console: AsgiApp | None = None
        self.console_prefix = CONSOLE_PREFIX
        host.expect_callers()
        parking = self.options.parking
        self._rules = ProfileRules(host)
        self._followed: GatewayOptions | None = None
        self._followed_config: HostConfig | None = None
        self._parts = GatewayParts(
            host=host,
            connections=CallerConnections(host, lambda: self.options.limits),
            parked=ParkedCalls(parking.calls, parking.calls_of_principal, parking.ttl),
            open=self.open,
            mark=GatewayMark(),
            traffic=GatewayTraffic(self._find_era),
            levels=ConnectionLevels(host),
            approvals=ApprovalWaiting(
                lambda: self.options.approvals, self.find_approval_page, self._has_people
            ),
            answerers=lambda: self.options.answer,
            updates=ResourceUpdates(host),
            follow_options=self._follow_options,
        )
        host.callers = GatewayCallers(host, lambda: self.options, self._parts.connections.places)

    @property
    def options(self) -> GatewayOptions:
        """The options in force."""
        return self.host.config.options.gateway if self._given is None else self._given

    # Pages

    def open_pages(self, url: str, *, visitors: "Visitors | None" = None) -> "ApprovalPages":
        """Have people approve calls, and connect accounts, on pages of the gateway; before :meth:`asgi`.

        Args:
            url: of the gateway, as browsers reach it; its path does not matter.
            visitors: says who is at a browser, for accounts; by default the operator is, and the user of
                this machine where the gateway's address is of this machine.
        """
        from isthmus.gateway.approvals.pages import ApprovalPages

        if self.pages is None:
            scheme, _, rest = url.partition("://")
            address = f"{scheme}://{rest.partition('/')[0]}"
            self.pages = ApprovalPages(self.host, address)
            self.host.core.broker.attach(self.pages.surface)
            self._open_account_pages(address, self.pages, visitors)
        return self.pages

    def _open_account_pages(
        self, address: str, pages: "ApprovalPages", visitors: "Visitors | None"
    ) -> None:
        """Open the pages on which accounts are connected, where nobody else can read what goes to them."""
        from isthmus.auth.net.urls import is_secure
        from isthmus.gateway.accounts.pages import AccountPages
        from isthmus.gateway.accounts.visitors import OperatorVisitors

        if not is_secure(address):
            log_warning("no accounts are connected at %s: only https keeps them secret", address)
            return
        self.account_pages = AccountPages(
            self.host.accounts,
            address,
            visitors=visitors or OperatorVisitors(pages.operator, address),
            sign_in=f"{address}{APPROVALS_PATH}/login",
        )

    def mount_console(self, console: "AsgiApp", prefix: str = CONSOLE_PREFIX) -> None:
        """Put a console beside the endpoints, to which the pages of approvals lead then; before :meth:`asgi`.

        Args:
            console: an ASGI app that serves everything below its prefix.
            prefix: its path.

        Raises:
            UsageError: users sign in there who are nobody's who calls here.
        """
        issuer = getattr(console, "users_issuer", None)
        auth = self._server_options.get("auth")
        if issuer is not None and auth is not None:
            check_users_issuer(issuer, auth.authorization_servers)
        self.console, self.console_prefix = console, prefix

    def find_approval_page(self, id: str) -> str:
        """The address of the page of an approval; empty where the gateway has no pages.

        Args:
            id: the id of the question.
        """
        return "" if self.pages is None else self.pages.find_address(id)

    def _has_people(self) -> bool:
        return self.host.core.broker.attended

    # Endpoints

    @property
    def server(self) -> Server:
        """The server that offers everything."""
        return self.find_server(ENDPOINT)

    def find_server(self, path: str) -> Server:
        """The server that stands at a path: ``/mcp``, ``/mcp/SERVER`` or ``/mcp/p/PROFILE``.

        Args:
            path: the path of the URL.

        Raises:
            UsageError: nothing stands there.
        """
        server = self._servers.get(path)
        if server is None:
            server = self._servers[path] = self._make_server(path)
        return server

    def has_endpoint(self, path: str) -> bool:
        """Whether something stands at a path now.

        Args:
            path: the path of the URL.
        """
        return self._make_view(path) is not None

    def _make_view(self, path: str) -> tuple[GatewayView, str, str] | None:
        """The view at a path, its title and its instructions; None where there is none."""
        options, host = self.options, self.host
        entries = host.config.servers
        if path == ENDPOINT:
            return MergedView(host), options.title, options.instructions
        if path.startswith(PROFILE_ENDPOINT):
            name = path.removeprefix(PROFILE_ENDPOINT)
            profile = options.profiles.get(name)
            if profile is None:
                return None
            said = profile.instructions or options.instructions

            def find() -> GatewayProfile | None:
                return self.options.profiles.get(name)

            return MergedView(host, find, name), profile.title or options.title, said
        name = path.removeprefix(f"{ENDPOINT}/")
        if name not in entries or name == path:
            return None
        return ServerView(host, name), options.title, options.instructions

    def _make_server(self, path: str) -> Server:
        found, options = self._make_view(path), self.options
        if found is None:
            raise UsageError(f"the gateway has no server and no profile at {path}")
        view, title, _ = found
        server: Server = Server(
            options.name, version=options.version, title=title or None, **self._server_options
        )
        server.with_router(self.host.traffic.fronts.add)
        declared = server._declared  # noqa: SLF001 - its engine
        tasks = GatewayTasks(declared.offer_tasks())

        def find_mode() -> SearchMode:
            profile = view.profile
            return (profile and profile.search) or self.options.search

        provider = GatewayProvider(
            view,
            self._parts,
            declared.settings,
            tasks,
            find_mode,
            is_open=self._server_options.get("auth") is None,
        )
        server.add_provider(provider)

        async def instruct(inbound: Inbound) -> str:
            now = self._make_view(path)  # the options may be others by now
            return (now and now[2]) or await provider.compose_instructions(inbound)

        server._handshake.compose = instruct  # noqa: SLF001 - as above
        return server

    def _follow_options(self) -> None:
        """Have the options count that are in force now, where they are others than before."""
        options = self.options
        if options is self._followed and self.host.config is self._followed_config:
            return
        self._followed, self._followed_config = options, self.host.config
        parking = options.parking
        self._parts.parked.set_limits(parking.calls, parking.calls_of_principal, parking.ttl)
        self.host.core.approvals.set_options(options.approvals)
        self._rules.follow(options)

    # Serving

    async def open(self) -> None:
        """Open the host, once."""
        if self._opening is None:
            self._open_access_log()
            # What the host asks by itself comes from this gateway, too.
            with passing_on(extend_trail({}, self._parts.mark.make(self.host.config))):
                self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        await self.host.open()
        await self.host.core.approvals.open(self.options.approvals)
        self._follow_options()
        for fault in find_profile_faults(self.options, self.host.config):
            log_warning("%s", fault)
            self.host.notice("config", str(fault))

    async def close(self) -> None:
        """Close the servers in front, give up what is parked, and close the host."""
        for server in list(self._servers.values()):
            await server.close()
        self._parts.parked.close()
        await self._parts.connections.close()
        await self._parts.updates.close()
        await self.host.close()
        self._parts.traffic.write = None
        if self._access_log is not None:
            self._access_log.close()

    def write_access_log(self, path: str) -> None:
        """Write a line of JSON about each call, whatever the options say; before it is opened.

        Args:
            path: the file; ``-`` for standard error, empty for none.
        """
        self._log_path = path

    def _open_access_log(self) -> None:
        """Begin to write a line about each call, where the options say so.

        Raises:
            UsageError: the file cannot be opened.
        """
        path = self.options.access_log if self._log_path is None else self._log_path
        if not path:
            return
        try:
            self._access_log = AccessLog(path)
        except OSError as error:
            raise UsageError(f"the access log cannot be opened: {error}") from error
        self._parts.traffic.write = self._access_log.write

    def _find_era(self, server: str) -> str:
        """The revision that a server speaks just now; empty where it is not connected."""
        hosted = self.host.servers.get(server)
        client = None if hosted is None else hosted.connections[""].client
        return "" if client is None else client.revision.name

    def render_metrics(self) -> str:
        """The metrics of now, as ``/metrics`` has them."""
        from isthmus.gateway.metrics import render_metrics

        parts = self._parts
        return render_metrics(
            self.host, parts.traffic, parts.connections.places.counts, len(parts.parked)
        )

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def asgi(self, **options: Any) -> "GatewayApp":
        """The gateway as an ASGI app, with all its endpoints.

        Args:
            **options: those of ``Server.asgi``, but for ``path``; ``metrics``, the path of the page for
                Prometheus, ``/metrics`` by default, or None for no such page; and ``visitors``, as for
                :meth:`open_pages`. With ``public_url`` there are pages at ``/approvals``, for people who
                approve calls, and at ``/connect`` and ``/accounts``, for users who connect accounts.
        """
        visitors = options.pop("visitors", None)
        if options.get("public_url"):
            self.open_pages(options["public_url"], visitors=visitors)
        from isthmus.gateway.endpoints import GatewayApp

        return GatewayApp(self, options)

    def run(self, transport: str = "stdio", **given: Any) -> None:
        """Serve until the client hangs up, or until interrupted.

        Args:
            transport: ``"stdio"``, or ``"http"``.
            **given: ``host`` and ``port`` (127.0.0.1 and 8080), and options as for :meth:`asgi`.
        """
        if transport == "http":
            from isthmus.transports.http.serve import run as serve

            address = given.pop("host", "127.0.0.1"), given.pop("port", 8080)
            pages = self.open_pages(given.get("public_url") or spell_address(*address))
            log_warning("people approve calls at %s", pages.login_address)
            serve(self.asgi(**given), *address)
        else:
            self.server.run(transport, **given)  # type: ignore[call-overload]  # says what is wrong


def spell_address(host: str, port: int) -> str:
    """The URL by which a browser on this machine reaches a gateway that listens there."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - it is replaced
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
