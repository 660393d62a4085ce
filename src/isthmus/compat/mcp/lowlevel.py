"""Low-level ``Server`` of ``mcp``: handlers by method, given to it (2.x) or decorated (1.x)."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from pydantic import BaseModel

from isthmus.compat import types
from isthmus.compat.caching import check_hints
from isthmus.compat.engine import (
    ITEMS_BY_METHOD,
    MAX_PAGES,
    PARAMS_BY_METHOD,
    Backend,
    NotificationOptions,
    make_server,
    read_list_result,
)
from isthmus.compat.exceptions import MCPError, UrlElicitationRequiredError
from isthmus.compat.outputs import dump_wire
from isthmus.compat.placement import run_placed_async
from isthmus.compat.session import REQUEST, ForeignRequest, ServerRequestContext
from isthmus.runtime.inbound import Inbound
from isthmus.wire import (
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

# ``async (ctx, params) -> result``, with the models of ``mcp.types``.
Handler = Callable[[Any, Any], Awaitable[Any]]

# The method of each handler that ``mcp`` 2 takes; those of the protocol itself are isthmus' own.
CONSTRUCTOR_HANDLERS = {
    "on_list_tools": "tools/list",
    "on_call_tool": "tools/call",
    "on_list_resources": "resources/list",
    "on_list_resource_templates": "resources/templates/list",
    "on_read_resource": "resources/read",
    "on_subscribe_resource": "resources/subscribe",
    "on_unsubscribe_resource": "resources/unsubscribe",
    "on_list_prompts": "prompts/list",
    "on_get_prompt": "prompts/get",
    "on_completion": "completion/complete",
    "on_set_logging_level": "logging/setLevel",
    "on_ping": "ping",
    "on_subscriptions_listen": "subscriptions/listen",
    "on_roots_list_changed": "notifications/roots/list_changed",
    "on_progress": "notifications/progress",
}


class InitializationOptions(BaseModel):
    """What a server says of itself when a client begins.

    Attributes:
        server_name: its name.
        server_version: its version.
        capabilities: as a client is told of them (up to 2025-11-25); by the handlers where there are none.
        instructions: for a model.
        website_url: where to read more.
        icons: pictures of it.
        title: a name for people.
        description: what it is.
    """

    server_name: str
    server_version: str = ""
    capabilities: Any = None
    instructions: str | None = None
    website_url: str | None = None
    icons: Any = None
    title: str | None = None
    description: str | None = None


class ReadResourceContents(NamedTuple):
    """The contents of a resource as a handler returns them."""

    content: str | bytes
    mime_type: str | None = None
    meta: dict[str, Any] | None = None


class Server(Backend):
    """A server of ``mcp``'s low level."""

    def __init__(
        self,
        name: str,
        version: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Any = None,
        lifespan: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        cache_hints: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        super().__init__()
        self.cache_hints = check_hints(cache_hints)
        self.name, self.version, self.instructions = name, version or "", instructions
        self.title, self.description, self.website_url = title, description, website_url
        self.icons = icons
        self.lifespan = lifespan
        self._handlers: dict[str, Handler] = {}
        self._tools: dict[str, Any] = {}
        self._decorated = False
        self._declared: Any = None
        for key, handler in given.items():
            if key in CONSTRUCTOR_HANDLERS:
                if handler is not None:
                    self._handlers[CONSTRUCTOR_HANDLERS[key]] = handler
            elif key != "get_tool_input_schema":
                raise TypeError(f"Server.__init__() got an unexpected keyword argument {key!r}")

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls

    def add_request_handler(self, method: str, params_type: Any, handler: Handler) -> None:
        """Serve a method by a handler."""
        del params_type
        self._handlers[method] = handler

    def get_request_handler(self, method: str) -> Handler | None:
        """The handler of a method, or None."""
        return self._handlers.get(method)

    # What the engine asks

    @property
    def listens(self) -> bool:  # type: ignore[override] # by its handlers
        """Whether a handler of streams of changes was given."""
        return "subscriptions/listen" in self._handlers

    @property
    def subscribes(self) -> bool:  # type: ignore[override] # as above
        """Whether a handler of subscriptions was given; in 1.x it was never told."""
        return "resources/subscribe" in self._handlers and not self._decorated

    @property
    def sets_level(self) -> bool:  # type: ignore[override] # as above
        """Whether a handler of log levels was given."""
        return "logging/setLevel" in self._handlers

    def find_capabilities(self) -> ServerCapabilities:
        """The capabilities of the methods that have handlers."""
        has = self._handlers
        return ServerCapabilities(
            tools=ToolsCapability(list_changed=True) if "tools/list" in has else UNSET,
            prompts=PromptsCapability(list_changed=True) if "prompts/list" in has else UNSET,
            resources=ResourcesCapability(subscribe=True, list_changed=True)
            if "resources/list" in has or "resources/templates/list" in has
            else UNSET,
            completions={} if "completion/complete" in has else UNSET,
        )

    async def tell_capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """The capabilities that a client is told of: those that the program declared, up to 2025-11-25."""
        if inbound.method == "initialize" and isinstance(self._declared, BaseModel):
            return msgspec.json.decode(dump_wire(self._declared), type=ServerCapabilities)
        return await super().tell_capabilities(inbound)

    def takes_context(self, method: str, params: Any) -> bool:  # noqa: ARG002 - every handler gets one
        """Whether a handler may ask its client: every one may."""
        return method != "completion/complete"

    async def list_items(self, method: str, request: ForeignRequest) -> Sequence[Wire]:
        """All items of a list, page by page.

        Raises:
            MCPError: there is no handler.
        """
        handler = self._handlers.get(method)
        if handler is None:
            raise self._make_not_found(method)
        items: list[Wire] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            result = await handler(request.make_context(), params)
            items += read_list_result(method, result)
            cursor = getattr(result, "next_cursor", None)
            if not cursor:
                break
        return items

    async def serve(self, method: str, params: Any, request: ForeignRequest) -> Any:
        """Serve a request by its handler.

        Raises:
            MCPError: there is none, or it raised.
        """
        handler = self._handlers.get(method)
        if handler is None:
            if method.endswith("subscribe"):
                return types.EmptyResult()
            raise self._make_not_found(method)
        read = getattr(types, PARAMS_BY_METHOD[method]).model_validate_json(encode(params))
        return await handler(request.make_context(), read)

    # Serving

    def _make_not_found(self, method: str) -> MCPError:
        """The error for a method without a handler; mcp 2 names it in the data."""
        data = None if self._decorated else method
        return MCPError(types.METHOD_NOT_FOUND, "Method not found", data)

    def make_isthmus_server(
        self, options: InitializationOptions | None = None, auth: Any = None
    ) -> Any:
        """The isthmus server that serves this one."""
        given = options or self.create_initialization_options()
        self._declared = given.capabilities
        if self._decorated and self.experimental is None:
            self.experimental = {}
        version = given.server_version or (find_library_version() if self._decorated else "")
        lifespan = self.lifespan
        return make_server(
            self,
            given.server_name,
            version=version,
            instructions=given.instructions,
            title=given.title,
            description=given.description,
            website_url=given.website_url,
            icons=given.icons,
            lifespan=None if lifespan is None else lambda: lifespan(self),
            auth=auth,
        )

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: Any = None,
        extensions: Any = None,
    ) -> InitializationOptions:
        """What the server says of itself."""
        if extensions is not None:
            self.extensions = dict(extensions)
        if experimental_capabilities is not None or self._decorated:
            self.experimental = dict(experimental_capabilities or {})
        if notification_options is not None:
            self.notification_options = notification_options
        return InitializationOptions(
            server_name=self.name,
            server_version=self.version,
            capabilities=self.get_capabilities(notification_options, experimental_capabilities),
            instructions=self.instructions,
            website_url=self.website_url,
            icons=self.icons,
            title=self.title,
            description=self.description,
        )

    def get_capabilities(
        self, notification_options: Any = None, experimental_capabilities: Any = None, **_: Any
    ) -> Any:
        """The capabilities of the methods that have handlers, as a client is told of them."""
        experimental = experimental_capabilities
        if experimental is None:
            experimental = {} if self._decorated else self.experimental
        made = self.make_capabilities(
            notification_options or self.notification_options, experimental
        )
        return types.ServerCapabilities.model_validate_json(encode(made))

    async def run(
        self,
        read_stream: Any,
        write_stream: Any,
        initialization_options: InitializationOptions | None = None,
        raise_exceptions: bool = False,
        stateless: bool = False,
    ) -> None:
        """Serve on standard input and output, or where the command line has it listen; or a client's stream."""
        del write_stream, raise_exceptions, stateless
        await run_streams(self, read_stream, initialization_options)

    def streamable_http_app(
        self,
        auth: Any = None,
        token_verifier: Any = None,
        auth_server_provider: Any = None,
        **options: Any,
    ) -> Any:
        """The server as an ASGI app."""
        from isthmus.compat.mcp.auth import make_authorizer
        from isthmus.compat.mcp.http import make_http_app

        login = make_authorizer(auth, auth_server_provider, token_verifier)
        return make_http_app(self.make_isthmus_server(auth=login), options)

    @property
    def request_context(self) -> ServerRequestContext:
        """The request that is being served.

        Raises:
            LookupError: none is.
        """
        return REQUEST.get().make_context()

    # Decorators of 1.x

    def list_tools(self) -> Callable[[Any], Any]:
        """Decorate the function that lists the tools."""
        return self._decorate_list("tools/list", types.ListToolsResult)

    def list_resources(self) -> Callable[[Any], Any]:
        """Decorate the function that lists the resources."""
        return self._decorate_list("resources/list", types.ListResourcesResult)

    def list_resource_templates(self) -> Callable[[Any], Any]:
        """Decorate the function that lists the templates of resources."""
        return self._decorate_list("resources/templates/list", types.ListResourceTemplatesResult)

    def list_prompts(self) -> Callable[[Any], Any]:
        """Decorate the function that lists the prompts."""
        return self._decorate_list("prompts/list", types.ListPromptsResult)

    def _decorate_list(self, method: str, result: Any) -> Callable[[Any], Any]:
        member = ITEMS_BY_METHOD[method]

        def decorate(fn: Any) -> Any:
            async def handle(_: Any, params: Any) -> Any:
                listed = await call_with_request(fn, method, params)
                made = listed if isinstance(listed, result) else result(**{member: list(listed)})
                if method == "tools/list":
                    self._tools = {tool.name: tool for tool in made.tools}
                return made

            self._handlers[method] = handle
            self._be_decorated()
            return fn

        return decorate

    def _be_decorated(self) -> None:
        """A decorator was used: this is a server of 1.x."""
        self._decorated = self.tells_errors = True

    def call_tool(self, *, validate_input: bool = True) -> Callable[[Any], Any]:
        """Decorate the function that calls a tool: ``async (name, arguments)``."""

        def decorate(fn: Any) -> Any:
            async def handle(_: Any, params: Any) -> Any:
                try:
                    return await self._call_tool(fn, params, validate_input=validate_input)
                except UrlElicitationRequiredError:
                    raise
                except Exception as error:  # noqa: BLE001 - as 1.x has it, the model reads its text
                    return make_error_result(str(error))

            self._handlers["tools/call"] = handle
            return fn

        return decorate

    async def _call_tool(self, fn: Any, params: Any, *, validate_input: bool) -> Any:
        arguments = params.arguments or {}
        tool = self._tools.get(params.name)
        if tool is None and "tools/list" in self._handlers:
            await self._handlers["tools/list"](None, None)
            tool = self._tools.get(params.name)
        if validate_input and tool is not None:
            flaw = find_schema_flaw(tool.input_schema, arguments)
            if flaw is not None:
                return make_error_result(f"Input validation error: {flaw}")
        given = await fn(params.name, arguments)
        if isinstance(given, types.CallToolResult):
            return given
        content, structured = split_result(given)
        if tool is not None and tool.output_schema is not None:
            if structured is None:
                return make_error_result(
                    "Output validation error: outputSchema defined but no structured output returned"
                )
            flaw = find_schema_flaw(tool.output_schema, structured)
            if flaw is not None:
                return make_error_result(f"Output validation error: {flaw}")
        return types.CallToolResult(content=content, structured_content=structured)

    def read_resource(self) -> Callable[[Any], Any]:
        """Decorate the function that reads a resource: ``async (uri)``."""

        def decorate(fn: Any) -> Any:
            async def handle(_: Any, params: Any) -> Any:
                url = read_url(params.uri)
                return make_contents(str(url), await fn(url))

            self._handlers["resources/read"] = handle
            return fn

        return decorate

    def get_prompt(self) -> Callable[[Any], Any]:
        """Decorate the function that gives a prompt: ``async (name, arguments)``."""
        return self._decorate("prompts/get", lambda fn, params: fn(params.name, params.arguments))

    def completion(self) -> Callable[[Any], Any]:
        """Decorate the function that completes an argument: ``async (ref, argument, context)``."""

        async def complete(fn: Any, params: Any) -> Any:
            found = await fn(params.ref, params.argument, params.context)
            return types.CompleteResult(completion=found or types.Completion(values=[]))

        return self._decorate("completion/complete", complete)

    def subscribe_resource(self) -> Callable[[Any], Any]:
        """Decorate the function that is told of a subscription: ``async (uri)``."""
        return self._decorate("resources/subscribe", _call_with_uri)

    def unsubscribe_resource(self) -> Callable[[Any], Any]:
        """Decorate the function that is told of the end of a subscription: ``async (uri)``."""
        return self._decorate("resources/unsubscribe", _call_with_uri)

    def set_logging_level(self) -> Callable[[Any], Any]:
        """Decorate the function that is told of a log level; isthmus keeps it itself, and tells none."""
        return self._decorate("logging/setLevel", _call_with_level)

    def progress_notification(self) -> Callable[[Any], Any]:
        """Decorate the function that is told of the client's progress; isthmus tells none."""
        return lambda fn: fn

    def _decorate(self, method: str, call: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        def decorate(fn: Any) -> Any:
            async def handle(_: Any, params: Any) -> Any:
                return await call(fn, params)

            self._be_decorated()
            self._handlers[method] = handle
            return fn

        return decorate


async def run_streams(
    server: Any, stream: Any, options: InitializationOptions | None = None
) -> None:
    """Serve the client of a stream, or standard input and output as the command line has them."""
    serve = getattr(stream, "serve", None)  # of SseServerTransport
    if serve is not None:
        await serve(server, options)
    else:
        await run_placed_async(server.make_isthmus_server(options), "stdio", {})


def find_library_version() -> str:
    """The version of ``mcp`` that is installed, which servers of 1.x say is theirs; "" where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("mcp")
    except PackageNotFoundError:
        return ""


async def _call_with_level(fn: Any, params: Any) -> Any:
    await fn(params.level)
    return types.EmptyResult()


async def _call_with_uri(fn: Any, params: Any) -> Any:
    from pydantic import AnyUrl

    await fn(AnyUrl(params.uri))
    return types.EmptyResult()


async def call_with_request(fn: Any, method: str, params: Any) -> Any:
    """Call a function that lists: without an argument, or with the request."""
    code = getattr(fn, "__code__", None)
    bound = 1 if hasattr(fn, "__self__") else 0
    if code is not None and code.co_argcount > bound:
        name = "".join(part.title() for part in method.removesuffix("/list").split("/"))
        return await fn(getattr(types, f"List{name}Request".replace("Templates", "Templates"))(
            method=method, params=params
        ))  # fmt: skip
    return await fn()


def split_result(given: Any) -> tuple[list[Any], dict[str, Any] | None]:
    """The content and the structured content of what a tool's function returned.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(given, tuple) and len(given) == 2:
        return list(given[0]), given[1]
    if isinstance(given, dict):
        return [types.TextContent(text=json.dumps(given, indent=2))], given
    if hasattr(given, "__iter__"):
        return list(given), None
    raise TypeError(f"Unexpected return type from tool: {type(given).__name__}")


def make_error_result(text: str) -> Any:
    """The result of a tool that failed."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def read_url(uri: Any) -> Any:
    """A URI as ``mcp`` 1.x has it: a URL, with a lower-case scheme, other than ASCII as percent escapes.

    Raises:
        MCPError: it is none.
    """
    from pydantic import AnyUrl, ValidationError

    try:
        return AnyUrl(str(uri))
    except ValidationError as error:
        raise MCPError(types.INVALID_PARAMS, "Invalid request parameters", "") from error


def make_contents(uri: str, given: Any) -> Any:
    """The result of reading a resource, of text, bytes, or contents."""
    if isinstance(given, str | bytes):
        given = [ReadResourceContents(given)]
    contents: list[Any] = []
    for one in given:
        meta = getattr(one, "meta", None)
        if isinstance(one.content, bytes):
            contents.append(
                types.BlobResourceContents(
                    uri=uri,
                    blob=base64.b64encode(one.content).decode(),
                    mime_type=one.mime_type or "application/octet-stream",
                    meta=meta,
                )
            )
        else:
            contents.append(
                types.TextResourceContents(
                    uri=uri, text=one.content, mime_type=one.mime_type or "text/plain", meta=meta
                )
            )
    return types.ReadResourceResult(contents=contents)


def find_schema_flaw(schema: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with a value by a JSON schema, in the words of ``jsonschema``; None where nothing is."""
    import jsonschema_rs

    validator = _get_validator(schema, jsonschema_rs)
    if validator.is_valid(value):
        return None
    try:  # the package's environment has it, since mcp 1.x needs it; only its words are wanted
        from jsonschema import ValidationError, validate
    except ImportError:
        error = next(iter(validator.iter_errors(value)))
        return str(error.message)
    try:
        validate(instance=value, schema=schema)
    except ValidationError as error:
        return str(error.message)
    return None


_validators: dict[int, tuple[Any, Any]] = {}


def _get_validator(schema: Mapping[str, Any], library: Any) -> Any:
    kept = _validators.get(id(schema))
    if kept is None or kept[0] is not schema:
        kept = _validators[id(schema)] = (schema, library.validator_for(dict(schema)))
    return kept[1]


@asynccontextmanager
async def default_lifespan(_: Any) -> Any:
    """Give nothing: the lifespan of a server that has none."""
    yield {}
