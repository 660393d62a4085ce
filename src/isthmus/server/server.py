"""A server: what it offers is declared on it, and whatever the transport, it answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from msgspec import UNSET

from isthmus.core.redaction.messages import Redact
from isthmus.errors import UsageError
from isthmus.revisions import REVISIONS, Revision
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler, Middleware
from isthmus.runtime.router import Router
from isthmus.server.asking.logging import set_level
from isthmus.server.declare import Declarations
from isthmus.server.features.lifecycle import Pings, ServerHandshake
from isthmus.server.guard.caching import CacheHints
from isthmus.server.guard.limits import Limits
from isthmus.server.guard.sanitise import Sanitise
from isthmus.server.options import (
    HttpOptions,
    ServerSettings,
    SocketOptions,
    TcpOptions,
    check_options,
    check_setting,
    make_implementation,
    parse_revisions,
)
from isthmus.server.serve.lifespan import Lifespan
from isthmus.server.settings import SharedSettings
from isthmus.server.subscriptions import Subscriptions
from isthmus.wire import (
    Icon,
    InitializedParams,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)
from isthmus.wire.results import CacheScope

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from isthmus.runtime.extension import Extension, Extensions
    from isthmus.server.features.listing import Listing
    from isthmus.store.kv import KV
    from isthmus.transports.http.app import HttpApp
    from isthmus.transports.http.authorizer import Authorizer

__all__ = ["Server"]

DEFAULT_LIMITS, DEFAULT_SANITISE, DEFAULT_REDACT = (
    Limits(),
    Sanitise(),
    Redact(),
)  # the defaults: nothing in them changes


class Server(Declarations):
    """An MCP server, for every revision.

    Example:
        >>> server = Server("sums", version="1.0")
        >>> @server.tool
        ... async def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b

    Args:
        name: what it calls itself.
        version: its own version.
        title: a name for people.
        description: what it is.
        instructions: how to use it, for a model to read.
        website_url: where to read more.
        icons: pictures for it.
        secret: 16 random bytes or more that questions and cursors are sealed with, the same in
            every process that serves under one address; a list to rotate: the first one seals,
            all of them open. Made up for this process if not given.
        debug: let clients see the text of unexpected exceptions.
        page_size: the most items in a page of a list; all by default.
        list_ttl_ms: milliseconds a client may keep a list (since 2026-07-28), or for each of the
            methods that list, and ``server/discover``, its own.
        list_cache_scope: who may share a kept list, or for each method its own.
        middleware: layers around everything served, outermost first.
        lifespan: called with the server, gives an async context manager that is open while it
            serves; its value is ``ctx.state``.
        max_rounds: how often a call that returns questions may do so.
        state_ttl: seconds in which a question must be answered (since 2026-07-28).
        revisions: what it speaks, by name or as they are; everything by default.
        extensions: what it supports beside the specification: settings by identifier, or
            :class:`~isthmus.runtime.extension.Extension` objects (since 2026-07-28).
        limits: how much one caller may ask for, and how much anything from outside may be.
        sanitise: how tool output is made safe to show; None leaves it as it is.
        redact: what is taken out of log messages; None sends them as they are.
        ping_every: seconds from one ping of a session's client to the next (up to 2025-11-25);
            None does not ping.
        ping_misses: how many pings in a row without an answer mean that the client is gone.
        task_store: keeps what is known of tasks: a :class:`~isthmus.store.kv.KV` that other
            processes may read, too. In this process's memory if not given.
        auth: who may ask for what, over HTTP and WebSockets: a
            :class:`~isthmus.auth.resource_server.ResourceAuth`. Everybody may do everything if not
            given, and always over stdio, where whoever starts the server is its user.

    Raises:
        UsageError: the secret is too short, there are no such revisions, an extension cannot be
            put in place, or a setting is of another kind than it must be.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
        secret: bytes | Sequence[bytes] | None = None,
        debug: bool = False,
        page_size: int | None = None,
        list_ttl_ms: int | Mapping[str, int] = 0,
        list_cache_scope: CacheScope | Mapping[str, CacheScope] = "private",
        middleware: Sequence[Middleware] = (),
        lifespan: "Callable[[Server], AbstractAsyncContextManager[Any]] | None" = None,
        max_rounds: int = 10,
        state_ttl: float = 3600.0,
        revisions: Sequence[Revision | str] = REVISIONS,
        extensions: "Extensions | None" = None,
        limits: Limits = DEFAULT_LIMITS,
        sanitise: Sanitise | None = DEFAULT_SANITISE,
        redact: Redact | None = DEFAULT_REDACT,
        ping_every: float | None = None,
        ping_misses: int = 3,
        task_store: "KV | None" = None,
        auth: "Authorizer | None" = None,
    ) -> None:
        _check_settings(limits, sanitise, redact, auth)
        self.info = make_implementation(name, version, title, description, website_url, icons=icons)
        self.revisions = parse_revisions(revisions)
        self._middleware, self._debug = list(middleware), debug
        self._lifespan = Lifespan(None if lifespan is None else lambda: lifespan(self))
        self._changes = Subscriptions(self._offers, limits)
        self._pings = Pings(ping_every, ping_misses)
        facilities = SharedSettings(
            self.info,
            secret=secret,
            lifespan=self._lifespan,
            changes=self._changes,
            debug=debug,
            page_size=page_size,
            caching=CacheHints(list_ttl_ms, list_cache_scope, auth),
            max_rounds=max_rounds,
            state_ttl=state_ttl,
            limits=limits,
            sanitise=sanitise,
            redact=redact,
            task_store=task_store,
            auth=auth,
        )
        super().__init__(facilities)
        self._opening = ServerHandshake(
            self.info, instructions, self.revisions, self._capabilities, facilities.caching
        )
        self._routes.update(self._features())
        self._router: Router | None = None
        if extensions is not None:
            self._extend_by(extensions)

    def __repr__(self) -> str:
        return f"Server({self.info.name!r}, version={self.info.version!r})"

    def use(self, middleware: Middleware, /) -> Middleware:
        """Put a layer around everything that is served, inside those put before.

        Raises:
            UsageError: the server has begun to serve.
        """
        if self._router is not None:
            raise UsageError("a middleware must be put in place before the server serves")
        self._middleware.append(middleware)
        return middleware

    def configure(self, **settings: Unpack[ServerSettings]) -> None:
        """Change settings of a server that was made elsewhere, as one that is imported.

        They mean what they mean in ``Server(…)``, and those that are not named stay as they are.
        What tools and resources were declared with cannot be changed any more: ``auth``,
        ``revisions``, ``lifespan``, ``task_store``, how long lists may be kept, and of ``limits``
        those of schemas, files and folders that are there already. For middleware and extensions
        there are :meth:`use` and :meth:`extend`.

        Raises:
            UsageError: there is no such setting, it is of another kind than it must be, or the
                server has begun to serve.
        """
        if self._router is not None:
            raise UsageError("a server must be configured before it serves")
        given: dict[str, Any] = {**check_options(settings, ServerSettings)}
        _check_settings(
            given.get("limits", DEFAULT_LIMITS),
            given.get("sanitise"),
            given.get("redact"),
            auth=None,
        )
        pings = self._pings
        self._pings = Pings(
            given.get("ping_every", pings.every), given.get("ping_misses", pings.misses)
        )
        self._facilities.configure(given)
        self._debug, self._changes.limits = self._facilities.debug, self._facilities.limits
        if "instructions" in given:
            self._opening.instruct(given["instructions"])

    def extend(self, extension: "Extension", /) -> "Extension":
        """Put an extension in place: it is declared, and what it serves is served.

        Raises:
            UsageError: it is there already, one of its names is taken, one of its functions cannot
                serve a method, or the server has begun to serve.
        """
        if self._router is not None:
            raise UsageError("an extension must be put in place before the server serves")
        from isthmus.server.features.extensions import run_if_declared

        self._extend(extension)
        self._middleware += [run_if_declared(extension, layer) for layer in extension.middleware]
        return extension

    # Serving

    @property
    def auth(self) -> "Authorizer | None":
        """Who says who may ask for what, over HTTP; None where everybody may."""
        return self._facilities.auth

    @property
    def router(self) -> Router:
        """What serves requests: give it to a ``Peer`` or an ``HttpApp``."""
        if self._router is None:
            opened = [self._lifespan.opened] if self._lifespan.needed else []
            self._facilities.wrapped = bool(self._middleware)
            self._router = Router(
                self._routes,
                {
                    "notifications/initialized": self._joined,
                    "notifications/tasks/status": self._facilities.hear_task,
                    **self._listeners.heard,
                },
                supported=self.revisions,
                server=self.info,
                extra=self._custom,
                middleware=[*opened, *self._middleware],
                debug=self._debug,
                depth=self._facilities.limits.depth,
                in_flight=self._facilities.limits.in_flight,
                needs=self._needs,
                known_scopes=self._known_scopes,
            )
            self._completions.settle()
            self._tools.settle()
        return self._router

    def asgi(self, **options: Unpack[HttpOptions]) -> "HttpApp":
        """The server as an ASGI app; it may be mounted anywhere and needs no wiring."""
        from isthmus.transports.http.app import HttpApp

        if self.auth is None:
            self._warn_of_unasked_scopes()
        return HttpApp(
            self.router,
            auth=self.auth,
            on_start=self.open,
            on_stop=self.close,
            **check_options(options, HttpOptions),
        )

    @overload
    def run(self, transport: Literal["stdio"] = "stdio") -> None: ...
    @overload
    def run(
        self,
        transport: Literal["http", "websocket"],
        *,
        host: str = ...,
        port: int = ...,
        **options: Unpack[HttpOptions],
    ) -> None: ...
    @overload
    def run(
        self, transport: Literal["unix"], *, path: str, **options: Unpack[SocketOptions]
    ) -> None: ...
    @overload
    def run(
        self,
        transport: Literal["tcp"],
        *,
        port: int,
        host: str = ...,
        **options: Unpack[TcpOptions],
    ) -> None: ...
    def run(self, transport: str = "stdio", **given: Any) -> None:
        """Serve until the host hangs up, or until interrupted.

        Args:
            transport: ``"stdio"`` for a host that launched this process; ``"http"``; the same
                with ``"websocket"`` connections beside it; ``"unix"`` or ``"tcp"`` for lines
                through a socket.
            **given: ``host`` and ``port``, or the ``path`` of a Unix socket, and options. Only
                this machine reaches the default, 127.0.0.1 (and port 8000 for HTTP).

        Raises:
            UsageError: there is no such transport, or it has no such options.
            ConnectFailed: the socket cannot be listened on.
        """
        from isthmus.server.serve.run import run_server

        run_server(self, transport, given)

    async def open(self) -> None:
        """Enter the lifespan; happens by itself before the first request.

        Raises:
            LifespanFailed: it raised; the cause is what it raised.
        """
        await self._lifespan.open()

    async def close(self) -> None:
        """End streams of changes in good order, cancel tasks, and leave the lifespan."""
        self._changes.close()
        if self._tools.tasks is not None:
            await self._tools.tasks.close()
        self._listeners.close()
        self._facilities.workers.close()
        await self._lifespan.close()

    # Inside

    def _extend_by(self, extensions: "Extensions") -> None:
        from isthmus.runtime.extension import collect_extensions  # few servers have any

        for extension in collect_extensions(extensions):
            self.extend(extension)

    def _joined(self, params: InitializedParams, inbound: Inbound) -> None:
        self._changes.joined(params, inbound)
        self._pings.joined(inbound)

    def _features(self) -> dict[str, Handler]:
        return {
            "initialize": self._opening.initialize,
            "ping": self._opening.ping,
            "server/discover": self._opening.discover,
            "tools/list": self._tools.listing.page,
            "tools/call": self._tools.call,
            "resources/list": self._resources.listing.page,
            "resources/templates/list": self._resources.templates.page,
            "resources/read": self._resources.read,
            "resources/subscribe": self._changes.subscribe,
            "resources/unsubscribe": self._changes.unsubscribe,
            "prompts/list": self._prompts.listing.page,
            "prompts/get": self._prompts.get,
            "completion/complete": self._completions.complete,
            "logging/setLevel": set_level,
            "subscriptions/listen": self._changes.listen,
        }

    def _capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """What has been offered so far, to whoever sends this request."""
        tasks = self._tools.tasks
        tools, resources = (
            ToolsCapability(list_changed=True),
            ResourcesCapability(subscribe=True, list_changed=True),
        )
        return ServerCapabilities(
            tools=tools if self._tools.listing.used else UNSET,
            resources=resources if self._resources.listing.used else UNSET,
            prompts=PromptsCapability(list_changed=True) if self._prompts.listing.used else UNSET,
            completions={} if self._completions.used else UNSET,
            logging={},
            tasks=UNSET if tasks is None else tasks.capability(inbound),
            extensions=self._extensions or UNSET,
        )

    def _offers(self, kind: str) -> bool:
        listings: dict[str, Listing[Any]] = {
            "tools": self._tools.listing,
            "resources": self._resources.listing,
            "prompts": self._prompts.listing,
        }
        return listings[kind].used


def _check_settings(limits: Any, sanitise: Any, redact: Any, auth: Any) -> None:
    """See that settings are of their kinds.

    Raises:
        UsageError: one is not.
    """
    check_setting("limits", limits, Limits)
    check_setting("sanitise", sanitise, Sanitise, None)
    check_setting("redact", redact, Redact, None)
    if auth is not None and not hasattr(auth, "admit"):
        kind = type(auth).__name__  # and not itself, which may be a token
        hint = "; write auth=authority.resource_auth(url)" if hasattr(auth, "resource_auth") else ""
        raise UsageError(f"auth= takes isthmus.auth.ResourceAuth(…), not {kind}{hint}")
