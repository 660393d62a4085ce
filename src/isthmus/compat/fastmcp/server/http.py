"""Serving of a façade over pipes and HTTP, and the names of ``fastmcp.server.http``."""

import os
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from isthmus.compat.placement import run_placed, run_placed_async
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.compat.fastmcp.server.server_options import ServerOptions
    from isthmus.server.server import Server

GUIDE = "docs/guide/from-fastmcp.md"

HTTP_TRANSPORTS = {"http", "streamable-http"}

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000


class FacadeRunner:
    """Serving of a server written for fastmcp: ``run``, ``run_async``, ``http_app``, ``custom_route``."""

    server: "Server[Any]"
    options: "ServerOptions"
    transport: str | None

    def place_login(self, path: str) -> None:
        """Have the login, if there is one, name the endpoint by its path."""
        if self.options.auth is not None:
            from isthmus.compat.fastmcp.server.auth.auth import make_authorizer

            settings = self.server._settings  # noqa: SLF001 - as it gives them to its own parts
            settings.auth = settings.upstreams = make_authorizer(self.options.auth, path)

    def run(
        self, transport: str | None = None, show_banner: bool | None = None, **given: Any
    ) -> None:
        """Serve until interrupted.

        Args:
            transport: ``stdio``, ``http``, ``streamable-http`` or ``sse``.
            show_banner: nothing: isthmus prints none.
            **given: ``host``, ``port``, ``path`` and more, for HTTP.
        """
        del show_banner
        name, options = self._plan(transport, given)
        run_placed(self.server, name, options)

    async def run_async(
        self, transport: str | None = None, show_banner: bool | None = None, **given: Any
    ) -> None:
        """Serve until cancelled."""
        del show_banner
        name, options = self._plan(transport, given)
        await run_placed_async(self.server, name, options)

    async def run_stdio_async(self, show_banner: bool | None = None, **_: Any) -> None:
        """Serve over pipes until cancelled."""
        await self.run_async("stdio", show_banner)

    async def run_http_async(
        self, show_banner: bool | None = None, transport: str = "http", **given: Any
    ) -> None:
        """Serve over HTTP until cancelled."""
        await self.run_async(transport, show_banner, **given)

    async def run_streamable_http_async(self, **given: Any) -> None:
        """Serve over HTTP until cancelled (2.x)."""
        await self.run_async("http", **given)

    async def run_sse_async(self, **given: Any) -> None:
        """Serve over HTTP with the transport of 2024-11-05 until cancelled (2.x)."""
        await self.run_async("sse", **given)

    def _plan(self, transport: str | None, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The transport of isthmus, and its options.

        Raises:
            ValueError: there is no such transport.
        """
        name = transport or os.environ.get("FASTMCP_TRANSPORT") or "stdio"
        if name == "stdio":
            self.transport = name
            return "stdio", {}
        if name not in HTTP_TRANSPORTS | {"sse"}:
            raise ValueError(f"Unknown transport: {name}")
        self.transport = "sse" if name == "sse" else "streamable-http"
        said = self.options
        host = given.get("host") or said.host or os.environ.get("FASTMCP_HOST") or DEFAULT_HOST
        port = given.get("port") or said.port or int(os.environ.get("FASTMCP_PORT") or DEFAULT_PORT)
        return "http", {"host": host, "port": port, **self._make_http_options(name, given)}

    def _make_http_options(self, transport: str, given: dict[str, Any]) -> dict[str, Any]:
        said = self.options
        options: dict[str, Any] = {}
        if transport == "sse":
            options["sse"] = given.get("path") or said.sse_path or "/sse"
        else:
            options["path"] = given.get("path") or said.streamable_http_path or "/mcp"
        self.place_login(options.get("path") or options["sse"])
        if given.get("stateless_http", said.stateless_http) or given.get("stateless"):
            options["stateless"] = True
        if given.get("json_response", said.json_response):
            options["stream_answers"] = False
        if given.get("allowed_hosts"):
            options["allowed_hosts"] = given["allowed_hosts"]
        if given.get("allowed_origins"):
            options["allowed_origins"] = given["allowed_origins"]
        return options

    def http_app(
        self, path: str | None = None, middleware: Any = None, transport: str = "http", **given: Any
    ) -> Any:
        """The server as an application of starlette, with ``lifespan`` for the one it is mounted in."""
        options = self._make_http_options(transport, {**given, "path": path})
        return make_starlette_app(self.server, options, middleware)

    def streamable_http_app(self, **given: Any) -> Any:
        """The server as an application of starlette (2.x)."""
        return self.http_app(**given)

    def sse_app(self, path: str | None = None, **given: Any) -> Any:
        """The server as an application of starlette, with the transport of 2024-11-05 (2.x)."""
        return self.http_app(path, transport="sse", **given)

    def custom_route(
        self, path: str, methods: list[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[Any], Any]:
        """Decorate a function of starlette's request as what answers at a path beside the endpoint."""
        from isthmus.compat.routes import add_route  # few servers have routes

        del name, include_in_schema

        def decorate(fn: Any) -> Any:
            add_route(self.server, path, methods, fn)
            return fn

        return decorate


def make_starlette_app(server: "Server[Any]", options: dict[str, Any], middleware: Any) -> Any:
    """Make an application of starlette around isthmus' own.

    Raises:
        UsageError: starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Mount
    except ImportError as missing:
        raise UsageError(
            f"http_app() gives an application of starlette, which is not installed; server.asgi() needs none: {GUIDE}"
        ) from missing

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        await server.open()
        try:
            yield
        finally:
            await server.close()

    app: Any = Starlette(
        routes=[Mount("/", app=server.asgi(**options))], middleware=middleware, lifespan=lifespan
    )
    app.lifespan = lifespan
    app.state.path = options.get("path") or options.get("sse")
    return app


def refuse_other_login(server: Any, given: dict[str, Any]) -> None:
    """Refuse a login for an application whose server has another one, or none.

    Raises:
        UsageError: there is one.
    """
    auth = given.pop("auth", None)
    if auth is not None and auth is not server.auth:
        raise UsageError(
            f"an application has the login of its server: pass auth= to FastMCP(…) and not beside it; see {GUIDE}"
        )


def create_streamable_http_app(server: Any, streamable_http_path: str, **given: Any) -> Any:
    """Make an application of starlette that serves a server.

    Raises:
        UsageError: it is to have another login than the server.
    """
    refuse_other_login(server, given)
    return server.http_app(streamable_http_path, **given)


def create_sse_app(server: Any, message_path: str, sse_path: str, **given: Any) -> Any:
    """Make an application of starlette that serves a server with the transport of 2024-11-05.

    Raises:
        UsageError: it is to have another login than the server.
    """
    del message_path
    refuse_other_login(server, given)
    return server.http_app(sse_path, transport="sse", **given)


def __getattr__(name: str) -> Any:
    if name == "StarletteWithLifespan":
        from starlette.applications import Starlette  # of the environment of whoever asks for it

        return Starlette
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
