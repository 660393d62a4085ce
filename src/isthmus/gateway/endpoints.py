"""Endpoints of a gateway over HTTP: one app, which hands each request to the app of its path."""

import asyncio
import re
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from isthmus.core.http.rules import Refusal
from isthmus.gateway.gateway import APPROVALS_PATH, ENDPOINT
from isthmus.gateway.metrics import MetricsPage
from isthmus.transports.http.asgi_exchange import AsgiExchange
from isthmus.transports.http.asgi_lifespan import serve_lifespan
from isthmus.transports.http.origin_guard import make_cors_headers
from isthmus.transports.http.reply import Receive, Scope, Send, send_response
from isthmus.transports.http.request import Exchange, ExchangeApp

if TYPE_CHECKING:
    from isthmus.gateway.gateway import Gateway
    from isthmus.transports.http.app import HttpApp
    from isthmus.transports.http.authorizer import AsgiApp

METRICS_PATH = "/metrics"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

NO_ENDPOINT = Refusal(404, -32600, "Not found: there is no such server or profile here")


class ConsoleRedirect:
    """Leads from the pages of approvals, which clients are told of, to those of the console.

    Args:
        prefix: the console's path.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - an ASGI app
        """Send a browser on; a fragment goes with it."""
        name = scope["path"].rstrip("/").removeprefix(APPROVALS_PATH).strip("/")
        below = "login" if name == "login" else f"inbox/{name}" if NAME.fullmatch(name) else "inbox"
        headers = [
            (b"location", f"{self._prefix}/{below}".encode()),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        ]
        await send_response(send, 303, headers)


class GatewayApp(ExchangeApp):
    """The endpoints of a gateway, as an ASGI app.

    Args:
        gateway: the gateway.
        options: those of each ``HttpApp``.

    Attributes:
        main: the app at ``/mcp``, which also has the probes and pages.
    """

    def __init__(self, gateway: "Gateway", options: Mapping[str, Any]) -> None:
        self._gateway = gateway
        own = {"path", "metrics"}
        self._options = {key: value for key, value in options.items() if key not in own}
        self.main: HttpApp = gateway.server.asgi(path=ENDPOINT, **self._options)
        metrics = options.get("metrics", METRICS_PATH)
        if metrics is not None:
            self.main.add_page(metrics, MetricsPage(gateway.render_metrics).bind)
        self._pages: AsgiApp | None = gateway.pages
        if gateway.console is not None:
            self._pages = ConsoleRedirect(gateway.console_prefix)
        if gateway.account_pages is not None:
            gateway.account_pages.place(self.main)
        self._others: dict[str, HttpApp] = {}

    # As an HttpApp is asked by what serves it

    @property
    def path(self) -> str:
        """The path of the endpoint that offers everything."""
        return self.main.path

    @property
    def head_limit(self) -> int:
        """The most bytes of a request's head."""
        return self.main.head_limit

    @property
    def target_limit(self) -> int:
        """The most bytes of a request's first line."""
        return self.main.target_limit

    @property
    def sockets(self) -> Any:
        """The WebSockets of the main endpoint; None where it takes none."""
        return self.main.sockets

    @property
    def drain(self) -> Any:
        """The end of the main endpoint; the others end with it."""
        return self.main.drain

    @property
    def failure(self) -> str | None:
        """The reason why it could not start, or None."""
        return self.main.failure

    # Requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            await self.begin(AsgiExchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await serve_lifespan(self, receive, send)
        else:
            await self.main(scope, receive, send)

    def begin(self, exchange: Exchange) -> Awaitable[Any]:
        """Begin to serve a request at the endpoint of its path."""
        path = exchange.request.path
        gateway = self._gateway
        if gateway.console is not None and f"{path}/".startswith(f"{gateway.console_prefix}/"):
            return self._serve_pages(exchange, gateway.console)
        if self._pages is not None and f"{path}/".startswith(f"{APPROVALS_PATH}/"):
            return self._serve_pages(exchange, self._pages)
        if not path.startswith(f"{ENDPOINT}/"):
            return self.main.begin(exchange)
        path = path.rstrip("/")
        if path == ENDPOINT:
            return self.main.begin(exchange)
        if not self._gateway.has_endpoint(path):
            return self._refuse_unknown(exchange)
        app = self._others.get(path)
        if app is None:
            server = self._gateway.find_server(path)
            app = self._others[path] = server.asgi(
                **{**self._options, "path": path, "sse": None, "health": None, "ready": None}
            )
        return app.begin(exchange)

    async def _refuse_unknown(self, exchange: Exchange) -> None:
        """Refuse a path where nothing stands, after whoever asks is judged as at every other path.

        A stranger, and a page elsewhere, would otherwise learn which servers and profiles there are.
        """
        main, request = self.main, exchange.request
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: MUST validate Origin
        refusal = main._guard.source(request.head, request.local)  # noqa: SLF001 - its app
        if refusal is not None:
            await exchange.refuse(refusal)
            return
        if request.head.origin is not None:
            exchange.extra = make_cors_headers(request.head.origin)
        admission = main._admission  # noqa: SLF001 - as above
        if request.method == "OPTIONS":
            await exchange.preflight()
        elif admission is None or await admission.admit(exchange):
            await exchange.refuse(NO_ENDPOINT)

    async def _serve_pages(self, exchange: Exchange, pages: "AsgiApp") -> None:
        """Serve a page for browsers under a name of ours: any other site could have brought the browser."""
        request = exchange.request
        refusal = self.main._guard.host(request.head, request.local)  # noqa: SLF001 - its app
        if refusal is not None:
            await exchange.refuse(refusal)
        else:
            await exchange.serve_asgi(pages)

    # Beginning and end

    async def start(self) -> None:
        """Get ready.

        Raises:
            Exception: the host cannot be opened.
        """
        await self.main.start()

    async def close(self, drain: float | None = None) -> None:
        """Stop all endpoints, and close the host."""
        await asyncio.gather(*(app.close(drain) for app in (*self._others.values(), self.main)))
        await self._gateway.close()
