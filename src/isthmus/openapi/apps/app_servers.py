"""Servers made of applications in the same process: ``Server.from_fastapi``, and ``from_openapi(app=…)``."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isthmus.errors import IsthmusError
from isthmus.openapi.apps.asgi_sender import AsgiSender
from isthmus.openapi.apps.fastapi_routes import FastApiRoutes
from isthmus.openapi.document import Document, read_document
from isthmus.openapi.operation import fill_server_url
from isthmus.openapi.request import BaseUrl, parse_base_url
from isthmus.openapi.tools.api_tools import ApiTools, choose_search, make_function
from isthmus.openapi.tools.facade import build_server, check_headers
from isthmus.openapi.tools.search_tools import offer_search_tools
from isthmus.runtime.failures import log_warning
from isthmus.runtime.middleware import Handler
from isthmus.server.openapi_options import FastApiOptions, OpenApiOptions
from isthmus.server.options import check_options

if TYPE_CHECKING:
    from isthmus.server.server import Server

S = TypeVar("S", bound="Server")

APP_URL = "http://localhost"
"""The origin at which an application believes to be asked, unless the author says otherwise."""

REFRESHED_METHODS = frozenset({"tools/list", "tools/call"})
SEARCH_TOOLS = ("search_tools", "get_tool_details", "call_tool", "list_servers")


def make_fastapi_server(kind: "type[S]", app: Any, options: "FastApiOptions") -> "S":
    """Make a server of a FastAPI application: see ``Server.from_fastapi``.

    Raises:
        DocumentError: one of its operations cannot be used.
        UsageError: it is no FastAPI application, or an option does not fit.
    """
    options = check_options(options, FastApiOptions)
    check_headers(options.get("headers"))
    passed = options.get("pass_headers", ())
    routes = FastApiRoutes(app, passed)
    sender = AsgiSender(app, pass_headers=passed, check_route=routes.check)
    base = parse_base_url(options.get("base_url", APP_URL))
    settings = cast("OpenApiOptions", {**options, "base_url": str(base)})
    late = LateRoutes(routes, sender, settings, base)
    document = Document(routes.read())
    settings["middleware"] = [late, *options.get("middleware", ())]
    settings["lifespan"] = open_before(sender, options.get("lifespan"))
    server = build_server(kind, document, sender, base, settings)
    late.begin(server, document)
    return server


def make_app_server(kind: "type[S]", spec: Any, options: OpenApiOptions) -> "S":
    """Make a server of any ASGI application, and the document that describes it.

    Raises:
        DocumentError: the document, or one of its operations, cannot be used.
        UsageError: it is no application, or an option does not fit.
    """
    document = read_document(spec, documents=options.get("documents"))
    sender = AsgiSender(options["app"], pass_headers=options.get("pass_headers", ()))
    base = find_app_base(document, options)
    settings = cast("OpenApiOptions", {**options, "base_url": str(base)})
    settings["lifespan"] = open_before(sender, options.get("lifespan"))
    return build_server(kind, document, sender, base, settings)


def find_app_base(document: Document, options: OpenApiOptions) -> BaseUrl:
    """The address that an application believes to have: at the path of the document's first server.

    Raises:
        DocumentError: that cannot be read.
        UsageError: it is no base URL.
    """
    if "base_url" in options:
        return parse_base_url(options["base_url"])
    servers = [*document.start.items("servers")]
    url = fill_server_url(servers[0], options.get("server_variables", {})) if servers else ""
    from urllib.parse import urljoin, urlsplit

    return parse_base_url(urljoin(APP_URL, urlsplit(url).path))


def open_before(
    sender: AsgiSender, lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """A lifespan that starts the application before the author's own."""

    @asynccontextmanager
    async def enter(server: Any) -> AsyncIterator[Any]:
        await sender.open()
        async with nullcontext() if lifespan is None else lifespan(server) as value:
            yield value

    return enter


class LateRoutes:
    """Offers routes that an application got after its server was made, and those it has no longer.

    It looks before tools are listed and called, which takes microseconds where nothing has changed.

    Args:
        routes: of the application.
        sender: sends the requests.
        options: those of ``Server.from_fastapi``.
        base: where the application believes to be.
    """

    def __init__(
        self, routes: FastApiRoutes, sender: AsgiSender, options: OpenApiOptions, base: BaseUrl
    ) -> None:
        self._routes = routes
        self._sender = sender
        self._options = cast("OpenApiOptions", {**options, "lenient": True})
        self._base = base
        self._server: Server | None = None
        self._document: Document | None = None
        self._tools: ApiTools | None = None
        self._searches = False

    def begin(self, server: "Server", document: Document) -> None:
        """Begin with a server that offers what a document has."""
        self._server, self._document = server, document

    async def __call__(self, inbound: Any, call_next: Any) -> Any:
        """As any middleware; where it can, a server asks for :meth:`wrap_handler` instead."""
        self.refresh()
        return await call_next(inbound)

    def wraps(self, _method: str) -> bool:
        """False: it looks into no result."""
        return False

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """The handler, after a look at the routes."""
        if method not in REFRESHED_METHODS:
            return handler

        def serve(params: Any, inbound: Any) -> Any:
            self.refresh()
            return handler(params, inbound)

        return serve

    def refresh(self) -> None:
        """Offer what the application has now."""
        server, before = self._server, self._document
        try:
            found = self._routes.read()
        except Exception as error:  # noqa: BLE001 - of the application's own models and routes
            log_warning("the routes of the app cannot be read: %s", error)
            return
        if server is None or before is None or found is before.root:
            return
        self._document = Document(found)
        try:
            old = self._tools or self._make_tools(before)
            new = self._tools = self._make_tools(self._document)
            self._replace(server, old, new)
        except IsthmusError as error:
            log_warning("routes that were added to the app are not offered: %s", error)

    def _make_tools(self, document: Document) -> ApiTools:
        return ApiTools(document, self._sender, self._options, base=self._base)

    def _replace(self, server: "Server", old: ApiTools, new: ApiTools) -> None:
        if choose_search(self._options.get("search", "auto"), len(old.tools)):
            self._searches = True
        if self._searches:
            for name in SEARCH_TOOLS:
                server.remove_tool(name)
            offer_search_tools(server, new)
            return
        for name, tool in new.tools.items():
            known = old.tools.get(name)
            if known is not None and known.options() == tool.options():
                new.tools[name] = known
                continue
            if known is not None:
                server.remove_tool(name)
            server.add_tool(make_function(tool), **tool.options())
        for name in list_gone(old.tools, new.tools):
            server.remove_tool(name)


def list_gone(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """The names that are there no longer."""
    return sorted({*old} - {*new})
