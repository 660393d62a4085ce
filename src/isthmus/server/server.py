"""``Server``: an MCP server, on which tools, resources and prompts are declared."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from isthmus.core.principal import NO_SCOPES
from isthmus.core.redaction.messages import Redact
from isthmus.errors import UsageError
from isthmus.revisions import REVISIONS, Revision
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.server.asking.context import StateT
from isthmus.server.declare import Declarations
from isthmus.server.features.lifecycle import Pings, ServerHandshake
from isthmus.server.guard.caching import CacheHints
from isthmus.server.guard.limits import Limits
from isthmus.server.guard.sanitise import Sanitise
from isthmus.server.guard.scopes import OwnScopes
from isthmus.server.options import (
    Completable,
    FolderOptions,
    HttpOptions,
    PromptOptions,
    ResourceOptions,
    RouteOptions,
    ServerSettings,
    SkillOptions,
    SocketOptions,
    TcpOptions,
    ToolOptions,
    check_options,
    check_settings,
    make_completable,
    make_implementation,
    parse_revisions,
)
from isthmus.server.serve.lifespan import Lifespan
from isthmus.server.settings import SharedSettings
from isthmus.server.subscriptions import Subscriptions
from isthmus.wire import Icon, InitializedParams
from isthmus.wire.results import CacheScope

if TYPE_CHECKING:
    import os
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from isthmus.runtime.extension import Extension, Extensions
    from isthmus.server.composition.mount import MountedServer
    from isthmus.server.composition.provider import ItemProvider
    from isthmus.server.composition.transformation import IncludeOptions
    from isthmus.server.openapi_options import FastApiOptions, OpenApiOptions
    from isthmus.store.kv import KV
    from isthmus.store.store import Store
    from isthmus.transports.http.app import HttpApp
    from isthmus.transports.http.authorizer import Authorizer

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")
P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_LIMITS, DEFAULT_SANITISE, DEFAULT_REDACT = Limits(), Sanitise(), Redact()


class Server(Generic[StateT]):
    """An MCP server, for every revision; ``Server[Database]`` where its lifespan gives a ``Database``.

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
        secret: 16 random bytes or more that questions and cursors are sealed with, the same in every process that
            serves under one address; a list to rotate: the first one seals, all of them open. Made up for this process
            if not given.
        debug: let clients see the text of unexpected exceptions.
        page_size: the most items in a page of a list; all by default.
        list_ttl_ms: milliseconds a client may keep a list (since 2026-07-28), or for each of the methods that list,
            and ``server/discover``, its own.
        list_cache_scope: who may share a kept list, or for each method its own.
        middleware: layers around everything served, outermost first.
        lifespan: called with the server, gives an async context manager that is open while it serves; its value is
            ``ctx.state``.
        max_rounds: how often a call that returns questions may do so.
        state_ttl: seconds in which a question must be answered (since 2026-07-28).
        revisions: what it speaks, by name or as they are; everything by default.
        extensions: what it supports beside the specification: settings by identifier, or
            :class:`~isthmus.runtime.extension.Extension` objects (since 2026-07-28).
        limits: how much one caller may ask for, and how much anything from outside may be.
        sanitise: how tool output is made safe to show; None leaves it as it is.
        redact: what is taken out of log messages; None sends them as they are.
        ping_every: seconds from one ping of a session's client to the next (up to 2025-11-25); None does not ping.
        ping_misses: how many pings in a row without an answer mean that the client is gone.
        task_store: keeps what is known of tasks: a :class:`~isthmus.store.kv.KV` that other processes may read, too.
            In this process's memory if not given.
        state_store: keeps answers and results of ``ctx.once`` that are too large for a client to carry (since
            2026-07-28), encrypted and for twice ``state_ttl``: a :class:`~isthmus.store.kv.KV` that every process
            which serves under one address reads. Without it the client carries all, up to ``Limits(request_state=…)``.
        store: what several processes that serve under one address share: ``"redis://HOST:6379/0"``,
            ``"sqlite:///PATH"``, or a :class:`~isthmus.store.store.Store`. One process needs none.
        auth: who may ask for what, over HTTP and WebSockets: a :class:`~isthmus.auth.ResourceAuth`. Everybody may do
            everything if not given, and always over stdio, where whoever starts the server is its user.

    Raises:
        UsageError: the secret is too short, there are no such revisions, an extension cannot be put in place, or a
            setting is of another kind than it must be.
    """

    _router: Router | None = None
    _middleware: list[Any]
    _router_users: list[Callable[[Router], None]]

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
        middleware: Sequence[Any] = (),
        lifespan: "Callable[[Server[Any]], AbstractAsyncContextManager[StateT]] | None" = None,
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
        state_store: "KV | None" = None,
        store: "str | Store | None" = None,
        auth: "Authorizer | None" = None,
    ) -> None:
        check_settings(limits, sanitise, redact, auth)
        self.info = make_implementation(name, version, title, description, website_url, icons=icons)
        self.revisions = parse_revisions(revisions)
        self._lifespan = Lifespan(None if lifespan is None else lambda: lifespan(self))
        self._changes = Subscriptions(limits)
        self._pings = Pings(ping_every, ping_misses)
        self._settings = SharedSettings(
            self.info, secret=secret, lifespan=self._lifespan, changes=self._changes,
            debug=debug, page_size=page_size, caching=CacheHints(list_ttl_ms, list_cache_scope, auth),
            max_rounds=max_rounds, state_ttl=state_ttl, limits=limits, sanitise=sanitise, redact=redact,
            task_store=task_store, state_store=state_store, store=store, auth=auth,
        )  # fmt: skip
        self._declared = Declarations(self._settings)
        has, hints = self._declared.capabilities, self._settings.caching
        self._handshake = ServerHandshake(self.info, instructions, self.revisions, has, hints)
        self._declared.routes.update(self._handshake.routes)
        self._middleware, self._router_users = [], []
        self._middleware += map(self._make_layer, middleware)
        self._extend_by(extensions)

    def __repr__(self) -> str:
        return f"Server({self.info.name!r}, version={self.info.version!r})"

    @classmethod
    def from_openapi(cls, spec: Any, /, **options: "Unpack[OpenApiOptions]") -> Self:
        """Make a server of an HTTP API: each operation of an OpenAPI document is a tool.

        Args:
            spec: the document: a dict, JSON or YAML as text or bytes, or a path.
            **options: see :class:`~isthmus.server.openapi_options.OpenApiOptions`.

        Raises:
            UsageError: the document, or an operation, cannot be used; says where in it and why.
        """
        from isthmus.openapi.tools.facade import make_server

        return make_server(cls, spec, options)

    @classmethod
    def from_fastapi(cls, app: Any, /, **options: "Unpack[FastApiOptions]") -> Self:
        """Make a server of ``app``, a FastAPI application in this process: each operation is a tool.

        For the options see :class:`~isthmus.server.openapi_options.FastApiOptions`.

        Raises:
            UsageError: it is none, or an operation of it cannot be used.
        """
        from isthmus.openapi.apps.app_servers import make_fastapi_server

        return make_fastapi_server(cls, app, options)

    def use(self, middleware: M, /) -> M:
        """Put ``middleware`` around everything that is served, inside those put before.

        It is an object with hooks, see :mod:`isthmus.server.middleware`, or an async function.

        Raises:
            UsageError: the server has begun to serve, or this is no middleware.
        """
        if self._router is not None:
            raise UsageError("a middleware must be put in place before the server serves")
        self._middleware.append(self._make_layer(middleware))
        return middleware

    def configure(self, **settings: Unpack[ServerSettings]) -> None:
        """Change settings of a server that was made elsewhere, as one that is imported.

        They mean what they mean in ``Server(…)``, and those that are not named stay as they are. What tools and
        resources were declared with cannot be changed any more: ``auth``, ``revisions``, ``lifespan``, the stores,
        how long lists may be kept, and of ``limits`` those of schemas, files and folders that are there already. For
        middleware and extensions there are :meth:`use` and :meth:`extend`.

        Raises:
            UsageError: there is no such setting, it is of another kind, or the server has begun to serve.
        """
        if self._router is not None:
            raise UsageError("a server must be configured before it serves")
        given: dict[str, Any] = {**check_options(settings, ServerSettings)}
        sanitise, redact = given.get("sanitise"), given.get("redact")
        check_settings(given.get("limits", DEFAULT_LIMITS), sanitise, redact, auth=None)
        every, misses = self._pings.every, self._pings.misses
        self._pings = Pings(given.get("ping_every", every), given.get("ping_misses", misses))
        self._settings.configure(given)
        self._changes.limits = self._settings.limits
        if "instructions" in given:
            self._handshake.instruct(given["instructions"])

    def extend(self, extension: "Extension", /) -> "Extension":
        """Put ``extension`` in place: it is declared, and what it serves is served.

        Raises:
            UsageError: it or one of its names is there already, a function of it cannot serve a method, or the server
                has begun to serve.
        """
        if self._router is not None:
            raise UsageError("an extension must be put in place before the server serves")
        from isthmus.server.features.extensions import DeclaredLayer

        self._declared.add_extension(extension)
        layers = map(self._make_layer, extension.middleware)
        self._middleware += [DeclaredLayer(extension, layer) for layer in layers]
        return extension

    # Tools

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(
        self, fn: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[..., Any]:
        """Decorate ``fn``, a function that a model may call; it stays what it is.

        ``@server.tool`` and ``@server.tool(title="Add", read_only=True)`` both work; for the options see
        :class:`~isthmus.server.options.ToolOptions`. What the function returns is the result; it raises ``ToolError``
        to tell the model what went wrong.

        Raises:
            UsageError: the name is taken, or the function cannot be a tool; it says why.
        """

        def decorate(fn: F) -> F:
            self.add_tool(fn, **options)
            return fn

        return decorate if fn is None else decorate(fn)

    def add_tool(self, fn: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> None:
        """Offer ``fn`` as a tool, also while serving: clients that listen for changes are notified.

        For the options see :class:`~isthmus.server.options.ToolOptions`.

        Raises:
            UsageError: the name is taken, or the function cannot be a tool; it says why.
        """
        self._declared.add_tool(fn, check_options(options, ToolOptions))

    def remove_tool(self, name: str, *, version: str | None = None) -> None:
        """Remove a tool by its name, or one ``version`` of it.

        Raises:
            UsageError: there is no such tool.
        """
        self._declared.tools.listing.remove(name, version)

    # Resources

    def resource(
        self, uri: str, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[Callable[P, R]], Completable[P, R]]:
        """Decorate a function that is read at ``uri``, or at each URI of a template.

        ``@server.resource("notes://{id}")`` makes a template: its variables are the function's arguments. For the
        options see :class:`~isthmus.server.options.ResourceOptions`. None says that there is nothing at this URI.

        Raises:
            UsageError: the URI is taken, or the function does not fit it; it says why.
        """
        if callable(uri):
            name = getattr(uri, "__name__", "notes")
            raise UsageError(f"a resource needs a URI: write @server.resource('{name}://all')")

        def decorate(fn: Callable[P, R]) -> Completable[P, R]:
            self.add_resource(fn, uri, **options)
            return make_completable(fn, uri, self.completes)

        return decorate

    def add_resource(
        self, fn: Callable[..., Any], uri: str, /, **options: Unpack[ResourceOptions]
    ) -> None:
        """Offer ``fn`` as a resource at ``uri``, or as a template, also while serving.

        Args:
            fn: gives the content; a template's variables are its arguments.
            uri: the URI or the template.
            **options: see :class:`~isthmus.server.options.ResourceOptions`.

        Raises:
            UsageError: the URI is taken, or the function does not fit it; it says why.
        """
        self._declared.add_resource(fn, uri, check_options(options, ResourceOptions))

    def add_file(
        self,
        path: "str | os.PathLike[str]",
        /,
        uri: str | None = None,
        **options: Unpack[ResourceOptions],
    ) -> None:
        """Offer a file as a resource: text where it is text, and its size and age as they are.

        Args:
            path: where it is; links are followed.
            uri: its URI; its ``file://`` URI by default.
            **options: see :class:`~isthmus.server.options.ResourceOptions`. The name is the file's, and the MIME type
                by its ending, if not given.

        Raises:
            UsageError: the URI is taken.
        """
        self._declared.add_file(path, uri, check_options(options, ResourceOptions))

    def add_directory(
        self,
        root: "str | os.PathLike[str]",
        prefix: str,
        /,
        **options: Unpack[FolderOptions],
    ) -> None:
        """Offer the files of a folder as resources, below a URI of yours.

        ``server.add_directory("docs", "docs://", pattern="**/*.md")`` reads ``docs/a/b.md`` at ``docs://a/b.md``, and
        lists what is in ``docs/a`` at ``docs://a/``. No URI leads out of the folder, and no link in it is followed.

        Args:
            root: the folder.
            prefix: what the URIs begin with.
            **options: see :class:`~isthmus.server.options.FolderOptions`.

        Raises:
            UsageError: there is no such folder, the prefix is taken or none, or a pattern is none.
        """
        self._declared.add_directory(root, prefix, check_options(options, FolderOptions))

    def add_skills(
        self, root: "str | os.PathLike[str]", /, prefix: str = "", **options: Unpack[SkillOptions]
    ) -> int:
        """Offer the skills of the folder ``root`` (SEP-2640): each folder in it, or itself, with a ``SKILL.md``.

        Their files are resources below ``skill://``, and ``prefix`` if it is given; they are read anew whenever they
        are asked for. The entries are listed by ``skills/list``.

        Returns:
            How many skills there are.

        Raises:
            UsageError: a skill breaks the rules, there is none, or PyYAML is not installed.
        """
        return self._declared.add_skills(root, prefix, check_options(options, SkillOptions))

    def remove_resource(self, uri: str) -> None:
        """Remove the resource, template or folder that was added with this ``uri``.

        Raises:
            UsageError: there is none of this URI.
        """
        self._declared.resources.remove(uri)

    def notify_resource_updated(self, uri: str) -> None:
        """Tell all subscribers of the resource at ``uri`` that it changed; from any thread."""
        self._changes.announce_update(uri)

    def notify_elicitation_complete(self, elicitation_id: str) -> None:
        """Tell the client whose user was sent to a page that it was dealt with (2025-11-25).

        Args:
            elicitation_id: what ``ctx.elicit_url`` was given; unknown ones are told to nobody.
        """
        # spec 2025-11-25 client/elicitation: MUST only go to the client that was asked
        self._changes.announce_page_done(elicitation_id)

    # Prompts

    @overload
    def prompt(self, fn: Callable[P, R], /) -> Completable[P, R]: ...
    @overload
    def prompt(
        self, /, **options: Unpack[PromptOptions]
    ) -> Callable[[Callable[P, R]], Completable[P, R]]: ...
    def prompt(
        self, fn: Callable[P, R] | None = None, /, **options: Unpack[PromptOptions]
    ) -> Completable[P, R] | Callable[[Callable[P, R]], Completable[P, R]]:
        """Decorate ``fn``, a function that gives messages to start from.

        ``@server.prompt`` and ``@server.prompt(title="…")`` both work; for the options see
        :class:`~isthmus.server.options.PromptOptions`. It returns text, content, messages, or pairs of role and
        content.

        Raises:
            UsageError: the name is taken, or the function cannot be a prompt; it says why.
        """

        def decorate(fn: Callable[P, R]) -> Completable[P, R]:
            name = self._declared.add_prompt(fn, check_options(options, PromptOptions))
            return make_completable(fn, name, self.completes)

        return decorate if fn is None else decorate(fn)

    def add_prompt(self, fn: Callable[..., Any], /, **options: Unpack[PromptOptions]) -> None:
        """Offer ``fn`` as a prompt, with :class:`~isthmus.server.options.PromptOptions`, also while serving.

        Raises:
            UsageError: the name is taken, or the function cannot be a prompt; it says why.
        """
        self._declared.add_prompt(fn, check_options(options, PromptOptions))

    def remove_prompt(self, name: str, *, version: str | None = None) -> None:
        """Remove a prompt by its name, or one ``version`` of it.

        Raises:
            UsageError: there is no such prompt.
        """
        self._declared.prompts.listing.remove(name, version)

    # Completers, and methods of one's own

    def completes(self, ref: str, argument: str, /) -> Callable[[F], F]:
        """Decorate the function that completes an argument.

        Args:
            ref: a prompt's name, or a resource template's URI.
            argument: the argument's name.

        Returns:
            The decorator, for ``fn(typed)`` or ``fn(typed, others)`` that gives strings, or ``fn()`` whose strings are
            filtered by what was typed.

        Raises:
            UsageError: it is completed already, or there is no such argument. What is completed may be added later,
                but must be there when the server begins to serve.
        """

        def decorate(fn: F) -> F:
            self._declared.completions.add(ref, argument, fn)
            return fn

        return decorate

    def method(
        self,
        name: str,
        /,
        *,
        params: type,
        result: type | None = None,
        scopes: OwnScopes = NO_SCOPES,
    ) -> Callable[[F], F]:
        """Decorate a function that serves a method of your own: ``fn(params)`` or with a context.

        Args:
            name: the method, with a prefix of yours: ``"acme/refund"``.
            params: what its params decode to.
            result: what its results decode to, for clients; the function returns it.
            scopes: what its callers must have been granted: a set, or ``(params, principal) -> set``, where tokens
                are.

        Raises:
            UsageError: the name is taken, or the function takes anything else.
        """

        def decorate(fn: F) -> F:
            self._declared.add_method(fn, name, params, result, scopes)
            return fn

        return decorate

    def on_notification(
        self, name: str, /, *, params: Any = dict, scopes: OwnScopes = NO_SCOPES
    ) -> Callable[[F], F]:
        """Decorate a function told of a notification of your own: ``fn(params)`` or with a context.

        Nothing is answered, and what it raises is logged. Notifications that do not fit ``params`` are ignored.

        Args:
            name: the notification's method, with a prefix of yours: ``"acme/moved"``.
            params: what its params decode to.
            scopes: what whoever sends it must have been granted; as for methods.

        Raises:
            UsageError: the name is taken, or the function takes anything else.
        """

        def decorate(fn: F) -> F:
            self._declared.add_listener(fn, name, params, scopes)
            return fn

        return decorate

    # Other servers

    def mount(self, other: "Server", /, prefix: str | None = None) -> None:
        """Offer all that ``other`` offers, now and later: ``x`` as ``prefix_x``, ``a://b`` as ``a://prefix/b``.

        Its middleware, limits and lifespan stay around it, inside those here; secret and store are those here,
        where it has none. What is declared here wins, then what was mounted first. See docs/guide/composition.md.

        Raises:
            UsageError: it cannot be mounted, a name is taken, or this server has begun to serve.
        """
        from isthmus.server.composition.mounting import mount_server  # most servers mount none

        make = getattr(other, "_make_mounted", None)
        mount_server(self._declared, self.revisions, other, make, prefix)

    def include(
        self,
        tool: str | Callable[..., Any],
        /,
        *,
        source: "Server | None" = None,
        **options: Unpack["IncludeOptions"],
    ) -> None:
        """Offer a function, or a tool of this server or of ``source``, with other names and arguments.

        ``server.include("search", hide={"key": KEY}, rename={"q": "query"})`` takes the place of the tool
        ``search``; with ``name=`` both are offered. For the options see
        :class:`~isthmus.server.composition.transformation.IncludeOptions`.

        Raises:
            UsageError: there is no such tool or argument, a name is taken, or this server serves.
        """
        from isthmus.server.composition.mounting import include_tool  # few servers have any

        inner = None if source is None else source._make_mounted()  # noqa: SLF001 - of this class
        include_tool(self._declared, tool, inner, options)

    def enable(self, *names: str, tags: Collection[str] = (), only: bool = False) -> None:
        """Offer what was disabled, by ``names`` (or URIs) or ``tags``; ``only`` hides all else. The last rule wins."""
        self._declared.add_rule(names, tags, enables=True, only=only)

    def disable(self, *names: str, tags: Collection[str] = ()) -> None:
        """Hide items by ``names`` (or URIs) or ``tags``: a call of a hidden one is a call of an unknown one."""
        self._declared.add_rule(names, tags, enables=False)

    def visibility(self, fn: F | None = None, /, *, sessions: bool = False) -> F | None:
        """Decide by caller what is there: ``fn(item, principal) -> bool``; ``sessions`` allows rules per session."""
        self._declared.restrict(fn, sessions=sessions)
        return fn

    def add_provider(self, provider: "ItemProvider", /) -> None:
        """Offer what a :class:`~isthmus.server.composition.provider.ItemProvider` has, after all else.

        Raises:
            UsageError: the server has begun to serve.
        """
        self._declared.add_provider(provider)

    def override(
        self, functions: Mapping[Callable[..., Any], Callable[..., Any]]
    ) -> "AbstractContextManager[None]":
        """Put functions in the place of dependencies, as in tests, until the block is left.

        ``with server.override({current_user: lambda: ANN}):``

        Raises:
            UsageError: nothing depends on one of them, or what stands in its place is no function.
        """
        from isthmus.server.features.dependency_scope import override_dependencies

        return override_dependencies(self._settings, functions)

    @classmethod
    def proxy(cls, target: Any, /, *, name: str | None = None, **options: Any) -> Self:
        """A server that offers what another one offers: whatever a client can be pointed at.

        Questions of the server behind go to the client whose call it is, whichever revisions both speak.

        Args:
            target: a URL, ``Http(…)``, ``Command(…)``, an entry of ``mcpServers``, a server.
            name: what it calls itself, and the server behind in messages.
            **options: :class:`~isthmus.bridge.proxy.ProxyOptions`, and those of ``Server(…)``.
        """
        from isthmus.bridge.proxy import ProxyProvider, split_options

        name, proxying, own = split_options(target, name, options)
        server = cls(name, **own)
        instruct = None if "instructions" in own else server._handshake.instruct
        server.add_provider(ProxyProvider(target, name, server._settings, proxying, instruct))
        return server

    def route(self, path: str, /, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        """Decorate a function that answers HTTP requests at a path beside the endpoint.

        For the options, what it takes and what it returns see :mod:`isthmus.server.routes`.

        Raises:
            UsageError: the path is taken or none, the server has begun to serve, or an option is none.
        """
        from isthmus.server.routes import add_route  # most servers have none

        return lambda fn: add_route(
            self._settings, fn, path, **check_options(options, RouteOptions)
        )

    # Serving

    @property
    def auth(self) -> "Authorizer | None":
        """The authorizer, which decides over HTTP and WebSockets who may ask for what; None where everybody may."""
        return self._settings.auth

    @property
    def store(self) -> "Store | None":
        """The store that the processes of this server share; None where there is one process."""
        return self._settings.store

    @property
    def takes_secret(self) -> bool:
        """Whether a secret may still be set: none was given, nor a store, and it has not begun to serve."""
        return self._router is None and not self._settings.is_settled

    @property
    def router(self) -> Router:
        """The router, which serves requests: give it to a ``Peer`` or an ``HttpApp``."""
        if self._router is None:
            self._router = self._declared.make_router(
                self.revisions, self._middleware, self._add_session, self._restore_session
            )
            self._declared.settle()
            for use in self._router_users:
                use(self._router)
        return self._router

    def with_router(self, use: Callable[[Router], None], /) -> None:
        """Call ``use`` with the router: now, or as soon as the server begins to serve."""
        if self._router is None:
            self._router_users.append(use)
        else:
            use(self._router)

    def asgi(self, **options: Unpack[HttpOptions]) -> "HttpApp":
        """The server as an ASGI app, with :class:`~isthmus.server.options.HttpOptions`; it may be mounted anywhere."""
        from isthmus.transports.http.app import HttpApp

        if self.auth is None:
            self._declared.warn_of_unasked_scopes()
        app = HttpApp(
            self.router,
            auth=self.auth,
            node=self._settings.node,
            session_keys=lambda: self._settings.session_keys,
            on_start=self.open,
            on_stop=self.close,
            **check_options(options, HttpOptions),
        )
        if self._settings.routes:
            from isthmus.server.routes import place_routes  # most servers have none

            place_routes(app, self._settings)
        return app

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
            transport: ``"stdio"`` for a host that launched this process; ``"http"``; the same with ``"websocket"``
                connections beside it; ``"unix"`` or ``"tcp"`` for lines through a socket.
            **given: ``host`` and ``port``, or the ``path`` of a Unix socket, and options. Only this machine reaches
                the default, 127.0.0.1 (and port 8000 for HTTP).

        Raises:
            UsageError: there is no such transport, or it has no such options.
            ConnectFailed: the socket cannot be listened on.
        """
        from isthmus.server.serve.run import run_server

        run_server(self, transport, given)

    async def run_async(self, transport: str = "stdio", **given: Any) -> None:
        """As :meth:`run`, with the same arguments, in an event loop that runs already; cancel it to stop.

        Raises:
            UsageError: there is no such transport, or it has no such options.
            LifespanFailed: the lifespan raised.
            ConnectFailed: the socket cannot be listened on.
        """
        from isthmus.server.serve.run import run_server_async

        await run_server_async(self, transport, given)

    async def open(self) -> None:
        """Enter the lifespan; happens by itself before the first request.

        Raises:
            LifespanFailed: it raised; the cause is what it raised.
        """
        await self._lifespan.open()

    async def close(self) -> None:
        """End streams of changes in good order, cancel tasks, and leave the lifespan."""
        self._changes.close()
        await self._declared.close()
        self._settings.workers.close()
        await self._lifespan.close()

    # Inside

    def _make_layer(self, middleware: Any) -> Any:
        if isinstance(middleware, FunctionType):
            return middleware
        from isthmus.server.middleware.hook_layer import make_layer  # many servers have none

        return make_layer(middleware, self._settings, self._declared)

    def _make_mounted(self) -> "MountedServer":
        from isthmus.server.composition.mount import MountedServer

        return MountedServer(
            self._declared, self._middleware, lambda: self.router, self.open, self.close
        )

    def _extend_by(self, extensions: "Extensions | None") -> None:
        if extensions is None:
            return
        from isthmus.runtime.extension import collect_extensions  # few servers have any

        for extension in collect_extensions(extensions):
            self.extend(extension)

    def _add_session(self, params: InitializedParams, inbound: Inbound) -> None:
        self._changes.add_session(params, inbound)
        self._pings.watch(inbound.link)

    def _restore_session(self, link: Any, resources: Sequence[str], stale: bool) -> None:
        """As :meth:`_add_session`, for a session that was opened elsewhere."""
        self._changes.restore_session(link, resources, stale=stale)
        self._pings.watch(link)
