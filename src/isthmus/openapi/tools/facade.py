"""Servers made of OpenAPI documents: what ``Server.from_openapi`` does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.errors import UsageError
from isthmus.openapi.document import Document, read_document
from isthmus.openapi.request import BaseUrl, parse_base_url
from isthmus.openapi.sending import HttpSender, Sender
from isthmus.openapi.tools.api_tools import ApiTools, choose_search, settle_base
from isthmus.openapi.tools.search_tools import offer_search_tools
from isthmus.server.openapi_options import OpenApiOptions
from isthmus.server.options import check_options

if TYPE_CHECKING:
    from isthmus.server.server import Server

S = TypeVar("S", bound="Server")

API_OPTIONS = frozenset({
    *("base_url", "allow_hosts", "server_variables", "documents", "document_url", "include"),
    *("exclude", "shape", "credentials", "headers", "strict", "lenient", "search", "timeout"),
    *("max_bytes", "tls", "name", "version", "lifespan", "app", "pass_headers"),
})  # fmt: skip
MAX_SERVER_NAME_CHARS = 100


def make_server(kind: "type[S]", spec: Any, options: OpenApiOptions) -> "S":
    """Make a server of a document: see ``Server.from_openapi``.

    Raises:
        DocumentError: the document, or one of its operations, cannot be used.
        UsageError: an option does not fit.
    """
    options = check_options(options, OpenApiOptions)
    check_headers(options.get("headers"))
    if options.get("app") is not None:
        from isthmus.openapi.apps.app_servers import make_app_server  # most APIs are elsewhere

        return make_app_server(kind, spec, options)
    if options.get("pass_headers"):
        raise UsageError(
            "pass_headers= is for an application in this process (app=): to an API elsewhere nothing "
            "of a caller's request is passed on; headers= and credentials= say what it gets"
        )
    document = read_document(
        spec, documents=options.get("documents"), url=options.get("document_url", "")
    )
    base, said = settle_base(document, options)
    named = [parse_base_url(url).origin for url in options.get("allow_hosts", ())]
    origins = [base.origin] if said else []
    sender = HttpSender(
        frozenset([*origins, *named]), frozenset([base.origin]), tls=options.get("tls")
    )
    return build_server(kind, document, sender, base, options)


def check_headers(headers: Any) -> None:
    """See that ``headers=`` is a mapping of texts and functions, or a function.

    Raises:
        UsageError: it is neither.
    """
    if headers is not None and not isinstance(headers, Mapping) and not callable(headers):
        kind = type(headers).__name__
        raise UsageError(f"headers= takes a mapping or a function of the context, not {kind}")
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if not isinstance(value, str) and not callable(value):
            raise UsageError(
                f"headers[{name!r}]: a text or a function of the context, not {type(value).__name__}"
            )


def build_server(
    kind: "type[S]",
    document: Document,
    sender: Sender,
    base: BaseUrl,
    options: OpenApiOptions,
) -> "S":
    """Build a server whose tools are the operations of a document.

    Args:
        kind: the class of the server.
        document: the document.
        sender: sends the requests; closed with the server.
        base: where the API is.
        options: those of ``Server.from_openapi``.

    Raises:
        DocumentError: an operation cannot be had.
        UsageError: an option does not fit the document.
    """
    tools = ApiTools(document, sender, options, base=base)
    tools.credentials.check_inbound(options.get("auth"))
    info = document.start.mapping("info")
    settings: dict[str, Any] = {k: v for k, v in options.items() if k not in API_OPTIONS}
    server = kind(
        options.get("name") or (info.text("title").strip() or "api")[:MAX_SERVER_NAME_CHARS],
        version=options.get("version") or info.text("version") or "0",
        lifespan=close_after(sender, options.get("lifespan")),
        **settings,
    )
    if choose_search(options.get("search", "auto"), len(tools.tools)):
        offer_search_tools(server, tools)
    else:
        tools.register(server)
    tools.warn_of_missing()
    return server


def close_after(sender: Sender, lifespan: Any) -> Any:
    """A lifespan that closes a sender at its end, around the author's own."""

    @asynccontextmanager
    async def enter(server: "Server") -> AsyncIterator[Any]:
        try:
            if lifespan is None:
                yield None
            else:
                inner: AbstractAsyncContextManager[Any] = lifespan(server)
                async with inner as value:
                    yield value
        finally:
            await sender.close()

    return enter
