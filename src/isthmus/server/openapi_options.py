"""Options of servers that are made of the description of an HTTP API."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.server.options import ServerSettings

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from isthmus.runtime.middleware import Middleware
    from isthmus.server.asking.context import Context
    from isthmus.transports.http.authorizer import Authorizer

OperationChoice: TypeAlias = str | Callable[[Any], bool]
"""A choice of operations: ``"tag:pets"``, ``"GET /pets/*"``, ``"/pets*"``, an operationId, a function."""

HeaderValue: TypeAlias = str | Callable[["Context"], str | Awaitable[str]]
"""Value of a header: a text, or a function of the context that gives it for each call."""

HeadersSource: TypeAlias = (
    Mapping[str, HeaderValue]
    | Callable[["Context"], Mapping[str, str] | Awaitable[Mapping[str, str]]]
)
"""Headers of requests to an API. Those that a mapping names are no arguments of tools; what a function
sets is known only when it is called, so that a header of the document is an argument, too."""


class Shape(Struct, frozen=True, kw_only=True):
    """Shape of the tool that an operation becomes.

    Example::

        Shape(name="find_pets", hide={"per_page": 50}, describe={"q": "Words of the name."})

    Attributes:
        name: the tool's name.
        title: a name for people.
        description: what it does, for a model.
        hide: arguments that no model sees, and the value that each always has; None sends none.
        rename: new names of arguments, by those that they would have.
        describe: descriptions of arguments, by the names that they would have.
        split_body: whether the members of the body are arguments by themselves; else ``body`` is one.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    hide: Mapping[str, Any] = {}
    rename: Mapping[str, str] = {}
    describe: Mapping[str, str] = {}
    split_body: bool = True


class OpenApiOptions(ServerSettings, total=False):
    """Options of ``Server.from_openapi``; those of a server beside them.

    Attributes:
        name: of the server; the title of the document by default.
        version: of the server; that of the document by default.
        base_url: where the API is. By default the first of the document's ``servers``, where that is
            absolute; such a one is asked by ``https`` and at public addresses only.
        allow_hosts: further base URLs or origins, for operations that have ``servers`` of their own.
        server_variables: values for variables in the URLs of ``servers``.
        documents: other documents that references lead to, by the name before ``#``: as ``spec``.
        document_url: where the document was got; relative server URLs are meant from there.
        include: only these operations; see :data:`OperationChoice`.
        exclude: all but these.
        shape: how operations become tools, by operationId or ``"GET /path"``.
        credentials: for the document's security schemes, by name: a text, a function of the
            context, ``upstream("github")`` or ``inbound_token(audience)`` of ``isthmus.openapi``.
        headers: for every request: a mapping of texts and functions of the context, whose names are no
            arguments of tools, or a function of the context that gives a mapping of texts.
        strict: results must be what the document says, and tools have output schemas; else a
            difference is only logged.
        lenient: what cannot be had is left out and logged; else it is an error.
        search: whether the tools are found by searching; ``"auto"`` where there are more than 60.
        timeout: seconds for a call of the API; 30 by default.
        max_bytes: bytes of an answer; 1 MiB by default.
        tls: how certificates are checked; None trusts what the system trusts.
        app: the API as an ASGI application in this process: no socket, and its lifespan is run with
            the server's. ``base_url`` is then where it believes to be, ``http://localhost`` and the
            path of the document's server by default.
        pass_headers: with ``app``: names of headers that it gets from the caller's own HTTP request.
            Nothing of that is passed on otherwise.
        auth: who may ask this server for what; see ``Server``.
        lifespan: as of ``Server``.
        middleware: as of ``Server``.
    """

    name: str
    version: str
    base_url: str
    allow_hosts: Sequence[str]
    server_variables: Mapping[str, str]
    documents: Mapping[str, Any]
    document_url: str
    include: OperationChoice | Sequence[OperationChoice]
    exclude: OperationChoice | Sequence[OperationChoice]
    shape: Mapping[str, Shape]
    credentials: Mapping[str, Any]
    headers: HeadersSource
    strict: bool
    lenient: bool
    search: bool | Literal["auto"]
    timeout: float
    max_bytes: int
    tls: Any
    app: Any
    pass_headers: Sequence[str]
    auth: "Authorizer | None"
    lifespan: "Callable[[Any], AbstractAsyncContextManager[Any]] | None"
    middleware: "Sequence[Middleware]"


class FastApiOptions(ServerSettings, total=False):
    """Options of ``Server.from_fastapi``; those of a server beside them.

    Attributes:
        name: of the server; the application's title by default.
        version: of the server; the application's by default.
        base_url: where the application believes to be: ``http://localhost`` by default. One that
            only answers to its own host name takes that.
        include: only these operations; see :data:`OperationChoice`.
        exclude: all but these.
        shape: how operations become tools, by name or ``"GET /path"``.
        pass_headers: names of headers that the application gets from the caller's own HTTP request,
            such as ``"authorization"``. Nothing of that is passed on otherwise.
        credentials: for the application's security schemes, by name; see :class:`OpenApiOptions`.
        headers: for every request: a mapping of texts and functions of the context, whose names are no
            arguments of tools, or a function of the context that gives a mapping of texts.
        strict: results must be what the application's models say, and tools have output schemas.
        lenient: what cannot be had is left out and logged; else it is an error.
        search: whether the tools are found by searching; ``"auto"`` where there are more than 60.
        timeout: seconds for a call of the application; 30 by default.
        max_bytes: bytes of an answer; 1 MiB by default.
        auth: who may ask this server for what; see ``Server``.
        lifespan: as of ``Server``; the application's is open around it.
        middleware: as of ``Server``.
    """

    name: str
    version: str
    base_url: str
    include: OperationChoice | Sequence[OperationChoice]
    exclude: OperationChoice | Sequence[OperationChoice]
    shape: Mapping[str, Shape]
    pass_headers: Sequence[str]
    credentials: Mapping[str, Any]
    headers: HeadersSource
    strict: bool
    lenient: bool
    search: bool | Literal["auto"]
    timeout: float
    max_bytes: int
    auth: "Authorizer | None"
    lifespan: "Callable[[Any], AbstractAsyncContextManager[Any]] | None"
    middleware: "Sequence[Middleware]"
