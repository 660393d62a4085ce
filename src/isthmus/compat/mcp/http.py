"""HTTP of the façades: options, apps, session managers and routes of ``mcp``, by those of isthmus."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from isthmus.compat.routes import add_route


class TransportSecuritySettings:
    """Hosts and origins that HTTP requests may come from.

    Args:
        enable_dns_rebinding_protection: whether the lists count.
        allowed_hosts: with ``*`` for any port.
        allowed_origins: of pages.
        **other: what isthmus decides itself.
    """

    def __init__(
        self,
        enable_dns_rebinding_protection: bool = True,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        **other: Any,
    ) -> None:
        del other
        self.enable_dns_rebinding_protection = enable_dns_rebinding_protection
        self.allowed_hosts = list(allowed_hosts)
        self.allowed_origins = list(allowed_origins)


def read_http_options(transport: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ``Server.run`` for those that ``mcp`` was given."""
    return {
        "host": given.get("host", "127.0.0.1"),
        "port": given.get("port", 8000),
        **read_app_options(transport, given),
    }


def read_app_options(transport: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ``Server.asgi`` for those that ``mcp`` was given."""
    options: dict[str, Any] = {"path": given.get("streamable_http_path") or "/mcp"}
    if given.get("stateless_http"):
        options["stateless"] = True
    if transport == "sse":
        options["sse"] = given.get("sse_path") or "/sse"
        options["messages"] = given.get("message_path") or "/messages/"
    security = given.get("transport_security")
    if security is not None:
        hosts = [host.removesuffix(":*") for host in security.allowed_hosts]
        if not security.enable_dns_rebinding_protection:
            hosts = ["*"]
        if hosts:
            options["allowed_hosts"] = hosts
        origins = [one.removesuffix(":*") for one in security.allowed_origins]
        if origins:
            options["allowed_origins"] = origins
    return options


class FacadeApp:
    """An ASGI app of a façade: isthmus' app, with the parts of Starlette's that programs use.

    Args:
        server: the isthmus server.
        app: its ASGI app.
    """

    def __init__(self, server: Any, app: Any) -> None:
        self.server = server
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a connection."""
        await self.app(scope, receive, send)

    def add_middleware(self, middleware: Any, *args: Any, **given: Any) -> None:
        """Put an ASGI layer around the app."""
        self.app = middleware(self.app, *args, **given)


def make_http_app(server: Any, given: Mapping[str, Any], transport: str = "http") -> FacadeApp:
    """The ASGI app of a server."""
    return FacadeApp(server, server.asgi(**read_app_options(transport, given)))


class SessionManager:
    """The sessions of an app, as ``StreamableHTTPSessionManager``: the app itself has them.

    Args:
        app: the low-level server, or the app of one.
        **options: as ``mcp`` has them.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        if not isinstance(app, FacadeApp):
            given = {"stateless_http": options.get("stateless"), "streamable_http_path": "/"}
            app = make_http_app(app.make_isthmus_server(), given)
        self._app = app

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Hold the server open."""
        await self._app.server.open()
        try:
            yield
        finally:
            await self._app.server.close()

    async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        await self._app({**scope, "path": "/", "root_path": ""}, receive, send)


def add_routes(server: Any, routes: Sequence[tuple[Any, ...]]) -> None:
    """Serve routes whose functions take and give what Starlette has."""
    for path, methods, fn in routes:
        add_route(server, path, methods, fn)


StreamableHTTPSessionManager = SessionManager
