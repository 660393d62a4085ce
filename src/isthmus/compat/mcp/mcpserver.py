"""``MCPServer`` of ``mcp`` 2 and ``FastMCP`` of 1.x: tools, resources and prompts by decorators."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pydantic
from msgspec import UNSET

from isthmus.compat import types
from isthmus.compat.caching import NO_HINT, check_hints
from isthmus.compat.dialect import MCP1, MCP2, Dialect
from isthmus.compat.engine import Backend, keep_list, make_server
from isthmus.compat.exceptions import (
    MCPError,
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
    UrlElicitationRequiredError,
)
from isthmus.compat.functions import FunctionTool, decode_arguments, get_function_name
from isthmus.compat.mcp.context import Context
from isthmus.compat.mcp.lowlevel import (
    ReadResourceContents,
    find_library_version,
    make_contents,
    split_result,
)
from isthmus.compat.mcp.prompts import Prompt
from isthmus.compat.mcp.resolve import ResolverRun, find_resolved
from isthmus.compat.mcp.resources import (
    FunctionResource,
    OlderTemplate,
    Resource,
    ResourceTemplate,
    describe_older_failure,
    prepare_older_resource,
    spell_uri,
)
from isthmus.compat.outputs import dump_wire
from isthmus.compat.placement import run_placed, run_placed_async
from isthmus.compat.session import REQUEST, ForeignRequest
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    InputRequiredResult,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    TextContent,
    ToolsCapability,
)
from isthmus.wire import Prompt as WirePrompt
from isthmus.wire import Resource as WireResource
from isthmus.wire import ResourceTemplate as WireTemplate
from isthmus.wire import Tool as WireTool
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger("mcp.server")

NOTHING: ServerCapabilities = ServerCapabilities()
TOOLS_CHANGED = ("notifications/tools/list_changed", None)
PROMPTS_CHANGED = ("notifications/prompts/list_changed", None)
RESOURCES_CHANGED = ("notifications/resources/list_changed", None)

WIRE_BY_METHOD: dict[str, Any] = {
    "tools/list": WireTool,
    "prompts/list": WirePrompt,
    "resources/list": WireResource,
    "resources/templates/list": WireTemplate,
}


class Tool:
    """A tool of a server: its function, and how it is listed."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Any = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        dialect: Dialect = MCP2,
    ) -> None:
        self.name = name or get_function_name(fn)
        if self.name == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        self.title, self.annotations, self.icons, self.meta = title, annotations, icons, meta
        self.description = description or fn.__doc__ or ""
        self.resolved = find_resolved(fn)
        self.function = FunctionTool(
            fn,
            context_class=Context,
            skip=self.resolved,
            structured_output=structured_output,
            dialect=dialect,
        )
        self.takes_context = self.function.context_name is not None or bool(self.resolved)
        self.fn = fn
        self.parameters = self.function.parameters
        self.is_async = self.function.is_async

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **given: Any) -> "Tool":
        """The tool of a function."""
        return cls(fn, **given)

    @property
    def fn_metadata(self) -> FunctionTool:
        """The tool's function: ``fn_metadata.arg_model`` is the model of its arguments."""
        return self.function

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON schema of structured results, or None."""
        return self.function.output_schema

    def list_item(self) -> Any:
        """The tool as it is listed."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.parameters,
            output_schema=self.output_schema,
            annotations=self.annotations,
            icons=self.icons,
            meta=self.meta,
        )


class MCPServer(Backend):
    """A server of ``mcp`` 2, its tools, resources and prompts declared by decorators."""

    dialect = MCP2
    template_class = ResourceTemplate
    spell_uri: Callable[[Any], str] = staticmethod(str)
    tells_errors = False
    default_name = "mcp-server"

    def __init__(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Any = None,
        version: str = "",
        auth_server_provider: Any = None,
        token_verifier: Any = None,
        *,
        tools: Sequence[Any] | None = None,
        resources: Sequence[Any] | None = None,
        lifespan: Callable[[Any], Any] | None = None,
        middleware: Sequence[Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._auth_server_provider, self._token_verifier = auth_server_provider, token_verifier
        self.name, self.title, self.description = name or self.default_name, title, description
        self.instructions, self.website_url = instructions, website_url
        self.icons, self.version = icons, version
        self.settings = SimpleNamespace(
            **{"host": "127.0.0.1", "port": 8000, "log_level": "INFO", "debug": False, **settings}
        )
        self._make_authorizer()  # which refuses a login that cannot be had
        self.dependencies = settings.get("dependencies") or []
        self.cache_hints = check_hints(settings.get("cache_hints"))
        self.listens = settings.get("subscriptions") is not False
        self.middleware.extend(middleware or ())
        self._lifespan = lifespan
        self._tools: dict[str, Tool] = {}
        self._resources: dict[str, Any] = {}
        self._templates: dict[str, ResourceTemplate] = {}
        self._prompts: dict[str, Prompt] = {}
        self._completer: Any = None
        self._routes: list[tuple[Any, ...]] = []
        self._lists: dict[str, Any] = {}
        for tool in tools or ():
            self._tools[tool.name] = tool
        for resource in resources or ():
            self.add_resource(resource)

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls

    def _make_authorizer(self) -> Any:
        """Isthmus' authorizer for the settings; None where there is no login."""
        given = (vars(self.settings).get("auth"), self._auth_server_provider, self._token_verifier)
        if all(one is None for one in given):
            return None
        from isthmus.compat.mcp.auth import make_authorizer

        return make_authorizer(*given)

    @cached_property
    def _lowlevel_server(self) -> Any:
        """The low-level server below, for programs that reach for it."""
        from isthmus.compat.mcp.lowlevel_view import LowLevelView

        return LowLevelView(self)

    @property
    def _mcp_server(self) -> Any:
        """The low-level server, as 1.x calls it."""
        return self._lowlevel_server

    @property
    def _tool_manager(self) -> Any:
        """The tools, for programs that reach for them."""
        from isthmus.compat.mcp.lowlevel_view import ToolManagerView

        return ToolManagerView(self, self._tools)

    def _change(self, method: str, change: tuple[str, str | None]) -> None:
        self._lists.pop(method, None)
        self.announce(change)

    # Tools

    def add_tool(self, fn: Callable[..., Any], name: str | None = None, **given: Any) -> None:
        """Offer a function as a tool."""
        made = Tool(fn, name=name, dialect=self.dialect, **given)
        if made.name in self._tools:
            logger.warning("Tool already exists: %s", made.name)
            return
        self._tools[made.name] = made
        self._change("tools/list", TOOLS_CHANGED)

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer.

        Raises:
            ToolError: there is none of this name.
        """
        if name not in self._tools:
            raise ToolError(f"Unknown tool: {name}")
        del self._tools[name]
        self._change("tools/list", TOOLS_CHANGED)

    def tool(self, name: str | None = None, *args: Any, **given: Any) -> Callable[[F], F]:
        """Decorate a function that is a tool: ``@server.tool()``.

        Raises:
            TypeError: the parentheses are missing.
        """
        if callable(name):
            raise TypeError(
                "The @tool decorator was used incorrectly. Did you forget to call it? Use @tool() instead of @tool"
            )
        given.update(zip(("title", "description", "annotations"), args, strict=False))

        def decorate(fn: F) -> F:
            self.add_tool(fn, name=name, **given)
            return fn

        return decorate

    # Resources

    def add_resource(self, resource: Any) -> None:
        """Offer a resource."""
        if str(resource.uri) in self._resources:
            logger.warning("Resource already exists: %s", resource.uri)
            return
        self._resources[str(resource.uri)] = resource
        self._change("resources/list", RESOURCES_CHANGED)

    def resource(self, uri: str, **given: Any) -> Callable[[F], F]:
        """Decorate a function that reads a resource, or the resources of a template.

        Raises:
            TypeError: the parentheses are missing.
        """
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. Did you forget to call it? "
                "Use @resource('uri') instead of @resource"
            )
        given.pop("security", None)

        def decorate(fn: F) -> F:
            self._add_function_resource(fn, uri, given)
            return fn

        return decorate

    def _add_function_resource(self, fn: Any, uri: str, given: dict[str, Any]) -> None:
        import inspect

        from isthmus.compat.functions import find_context_name

        takes = {*inspect.signature(fn).parameters} - {find_context_name(fn, Context)}
        if "{" not in uri and not takes:
            self.add_resource(FunctionResource.from_function(fn, uri, **given))
            return
        template = self.template_class(fn, uri, **given)
        if {*template.names} != takes:
            raise ValueError(
                f"Mismatch between URI parameters {set(template.names)} and function parameters {takes}"
            )
        self._templates[uri] = template
        self._change("resources/templates/list", RESOURCES_CHANGED)

    # Prompts and completion

    def add_prompt(self, prompt: Any) -> None:
        """Offer a prompt."""
        if prompt.name in self._prompts:
            logger.warning("Prompt already exists: %s", prompt.name)
            return
        self._prompts[prompt.name] = prompt
        self._change("prompts/list", PROMPTS_CHANGED)

    def prompt(self, name: str | None = None, *args: Any, **given: Any) -> Callable[[F], F]:
        """Decorate a function that gives the messages of a prompt: ``@server.prompt()``.

        Raises:
            TypeError: the parentheses are missing.
        """
        if callable(name):
            raise TypeError(
                "The @prompt decorator was used incorrectly. Did you forget to call it? "
                "Use @prompt() instead of @prompt"
            )
        given.update(zip(("title", "description"), args, strict=False))

        def decorate(fn: F) -> F:
            self.add_prompt(Prompt(fn, name=name, dialect=self.dialect, **given))
            return fn

        return decorate

    def completion(self) -> Callable[[F], F]:
        """Decorate the function that completes arguments: ``async (ref, argument, context)``."""

        def decorate(fn: F) -> F:
            self._completer = fn
            return fn

        return decorate

    def custom_route(
        self,
        path: str,
        methods: Sequence[str],
        name: str | None = None,
        include_in_schema: bool = True,
    ) -> Callable[[F], F]:
        """Decorate a function that answers HTTP requests: it takes and gives what Starlette has."""
        del name, include_in_schema

        def decorate(fn: F) -> F:
            self._routes.append((path, tuple(methods), fn))
            return fn

        return decorate

    # What the engine asks

    def find_capabilities(self) -> ServerCapabilities:
        """The capabilities of a server of this class: all three kinds, whatever it has."""
        return ServerCapabilities(
            tools=ToolsCapability(list_changed=True),
            prompts=PromptsCapability(list_changed=True),
            resources=ResourcesCapability(subscribe=True, list_changed=True),
            completions=UNSET if self._completer is None else {},
        )

    def takes_context(self, method: str, params: Any) -> bool:
        """Whether the function of a request takes a context."""
        if method == "tools/call":
            tool = self._tools.get(params.name)
            return tool is not None and tool.takes_context
        return method in {"prompts/get", "resources/read"} and (
            any(one.context_name for one in self._templates.values())
            or any(one.context_name for one in self._prompts.values())
        )

    async def list_items(self, method: str, request: ForeignRequest) -> Sequence[Wire]:  # noqa: ARG002 - all get the same
        """All items of a list, which stays the same until it changes."""
        kept = self._lists.get(method)
        if kept is None:
            by_method: dict[str, Any] = {
                "tools/list": self._tools,
                "prompts/list": self._prompts,
                "resources/list": self._resources,
                "resources/templates/list": self._templates,
            }
            held = by_method[method]
            kind = WIRE_BY_METHOD[method]
            listed = [list_one(one) for one in held.values()]
            kept = keep_list(
                [msgspec.json.decode(dump_wire(one), type=kind) for one in listed],
                self.cache_hints.get(method, NO_HINT),
            )
            self._lists[method] = kept
        items: Sequence[Wire] = kept
        return items

    async def serve(self, method: str, params: Any, request: ForeignRequest) -> Any:
        """Serve a request.

        Raises:
            MCPError: it is refused.
        """
        match method:
            case "tools/call":
                return await self._serve_call(params, request)
            case "resources/read":
                return await self._serve_read(params, request)
            case "prompts/get":
                return await self._serve_prompt(params, request)
            case "completion/complete":
                return await self._serve_completion(params)
            case _:
                return types.EmptyResult()

    async def _serve_call(self, params: Any, request: ForeignRequest) -> Any:
        context = Context(request, self)
        try:
            if type(self).call_tool.__module__ != __name__:  # a subclass has its own
                return await call_overridden(self, params, context)
            return await self.run_tool(params.name, params.arguments, context)
        except (MCPError, asyncio.CancelledError):
            raise
        except Exception as error:
            if isinstance(error, UnexpectedToolError) or not isinstance(error, ToolError):
                logger.exception("Tool %r raised an unexpected exception", params.name)
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)

    async def run_tool(self, name: str, arguments: Any, context: Context) -> Any:
        """The result of a tool, as it goes over the wire.

        Raises:
            ToolError: there is none of this name, its arguments do not fit, or it failed.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        function = tool.function
        failed = f"Error executing tool {name}"
        try:
            bound = function.bind(arguments)
        except (pydantic.ValidationError, msgspec.DecodeError) as error:
            raise ToolError(f"{failed}: {error}") from error
        except Exception as error:  # of a validator of the program's own
            told = f": {error}" if self.tells_errors else ""
            raise UnexpectedToolError(f"{failed}{told}") from error
        try:
            if tool.resolved:
                run = ResolverRun(bound, context, self.run_in_thread)
                bound = {**bound, **await run.fill(tool.resolved)}
            return function.convert(await function.call(bound, context, self.run_in_thread))
        except UrlElicitationRequiredError:
            raise
        except MCPError as error:
            if self.tells_errors:
                raise ToolError(f"{failed}: {error}") from error
            raise
        except (ToolError, ResourceError) as error:
            broke = isinstance(error, UnexpectedToolError | UnexpectedResourceError)
            kind = UnexpectedToolError if broke else ToolError
            raise kind(f"{failed}: {error}") from error
        except Exception as error:
            told = f": {error}" if self.tells_errors else ""
            raise UnexpectedToolError(f"{failed}{told}") from error

    async def _serve_read(self, params: Any, request: ForeignRequest) -> Any:
        try:
            contents = await self.read_resource(params.uri, Context(request, self))
        except ResourceError as error:
            if self.tells_errors:
                raise  # its text is the answer, without more
            missing = isinstance(error, ResourceNotFoundError)
            code = types.INVALID_PARAMS if missing else types.INTERNAL_ERROR
            raise MCPError(code, str(error), {"uri": str(params.uri)}) from error
        if isinstance(contents, types.InputRequiredResult):
            return contents
        return make_contents(self.spell_uri(params.uri), contents)

    async def _serve_prompt(self, params: Any, request: ForeignRequest) -> Any:
        arguments = {} if params.arguments is UNSET else dict(params.arguments)
        return await self.get_prompt(params.name, arguments, Context(request, self))

    async def _serve_completion(self, params: Any) -> Any:
        read = types.CompleteRequestParams.model_validate_json(encode(params))
        found = None
        if self._completer is not None:
            found = await self._completer(read.ref, read.argument, read.context)
        return types.CompleteResult(completion=found or types.Completion(values=[]))

    # What a program may call itself

    async def list_tools(self) -> list[Any]:
        """All tools, as they are listed."""
        return [list_one(one) for one in self._tools.values()]

    async def list_resources(self) -> list[Any]:
        """All resources, as they are listed."""
        return [list_one(one) for one in self._resources.values()]

    async def list_resource_templates(self) -> list[Any]:
        """All templates, as they are listed."""
        return [list_one(one) for one in self._templates.values()]

    async def list_prompts(self) -> list[Any]:
        """All prompts, as they are listed."""
        return [list_one(one) for one in self._prompts.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> Any:
        """Call a tool.

        Raises:
            ToolError: there is none of this name, its arguments do not fit, or it failed.
        """
        result = await self.run_tool(name, arguments, context or self.get_context())
        if isinstance(result, InputRequiredResult):
            return types.InputRequiredResult.model_validate_json(encode(result))
        return types.CallToolResult.model_validate_json(encode(result))

    async def read_resource(self, uri: Any, context: Context | None = None) -> Any:
        """The contents of a resource.

        Raises:
            ResourceError: there is none at this URI, or it failed.
        """
        address = self.spell_uri(uri)
        resource = self._resources.get(address)
        if resource is not None:
            try:
                content = await resource.read()
            except Exception as error:
                if self.tells_errors:
                    told = describe_older_failure(resource, error)
                    raise UnexpectedResourceError(told) from error
                if isinstance(error, MCPError | ResourceError):
                    raise
                raise UnexpectedResourceError(f"Error reading resource {uri}") from error
            return [ReadResourceContents(content, resource.mime_type, resource.meta)]
        for template in self._templates.values():
            values = template.match(address)
            if values is not None:
                given = context or self.get_context()
                content = await template.read(address, values, given, self.run_in_thread)
                if isinstance(content, types.InputRequiredResult):
                    return content
                return [ReadResourceContents(content, template.mime_type, template.meta)]
        raise ResourceNotFoundError(f"Unknown resource: {address}")

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context | None = None
    ) -> Any:
        """The messages of a prompt.

        Raises:
            ValueError: there is none of this name, or it failed.
        """
        prompt = self._prompts.get(name)
        if prompt is None:
            raise ValueError(f"Unknown prompt: {name}")
        made = await prompt.render(arguments, context or self.get_context(), self.run_in_thread)
        if isinstance(made, types.InputRequiredResult):
            return made
        return types.GetPromptResult(description=prompt.description, messages=made)

    def get_context(self) -> Context:
        """The context of the request that is being served; outside of one it can do nothing."""
        return Context(REQUEST.get(None), self)

    # Serving

    def make_isthmus_server(self) -> Any:
        """The isthmus server that serves this one."""
        lifespan = self._lifespan
        server = make_server(
            self,
            self.name,
            version=self.version or (find_library_version() if self.tells_errors else ""),
            title=self.title,
            description=self.description,
            instructions=self.instructions,
            website_url=self.website_url,
            icons=self.icons,
            lifespan=None if lifespan is None else lambda: lifespan(self),
            auth=self._make_authorizer(),
        )
        if self._routes:
            from isthmus.compat.mcp.http import add_routes

            add_routes(server, self._routes)
        return server

    def run(self, transport: str = "stdio", mount_path: str | None = None, **options: Any) -> None:
        """Serve until the host hangs up, or until interrupted."""
        del mount_path
        run_placed(self.make_isthmus_server(), transport, self._read_options(transport, options))

    async def run_stdio_async(self) -> None:
        """Serve on standard input and output, or where the command line has it listen."""
        await run_placed_async(self.make_isthmus_server(), "stdio", {})

    async def run_streamable_http_async(self, **options: Any) -> None:
        """Serve over Streamable HTTP."""
        given = self._read_options("streamable-http", options)
        await run_placed_async(self.make_isthmus_server(), "streamable-http", given)

    async def run_sse_async(self, mount_path: str | None = None, **options: Any) -> None:
        """Serve over HTTP with SSE, and Streamable HTTP beside it."""
        del mount_path
        given = self._read_options("sse", options)
        await run_placed_async(self.make_isthmus_server(), "sse", given)

    def _read_options(self, transport: str, options: dict[str, Any]) -> dict[str, Any]:
        if transport == "stdio":
            return {}
        from isthmus.compat.mcp.http import read_http_options

        return read_http_options(transport, {**vars(self.settings), **options})

    def streamable_http_app(self, **options: Any) -> Any:
        """The server as an ASGI app."""
        from isthmus.compat.mcp.http import make_http_app

        self._app = make_http_app(self.make_isthmus_server(), {**vars(self.settings), **options})
        return self._app

    def sse_app(self, mount_path: str | None = None, **options: Any) -> Any:
        """The server as an ASGI app, with the older transport of two URLs, too."""
        from isthmus.compat.mcp.http import make_http_app

        del mount_path
        given = {**vars(self.settings), **options}
        return make_http_app(self.make_isthmus_server(), given, transport="sse")

    @property
    def session_manager(self) -> Any:
        """The sessions of the app: ``async with server.session_manager.run():``."""
        from isthmus.compat.mcp.http import SessionManager

        return SessionManager(self._app)


class FastMCP(MCPServer):
    """A server of ``mcp`` 1.x."""

    dialect = MCP1
    template_class = OlderTemplate
    spell_uri = staticmethod(spell_uri)
    tells_errors = True
    default_name = "FastMCP"

    def __init__(
        self,
        name: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Any = None,
        auth_server_provider: Any = None,
        token_verifier: Any = None,
        **given: Any,
    ) -> None:
        super().__init__(
            name,
            instructions=instructions,
            website_url=website_url,
            icons=icons,
            auth_server_provider=auth_server_provider,
            token_verifier=token_verifier,
            **given,
        )
        self.experimental = {}

    def add_resource(self, resource: Any) -> None:
        """Offer a resource."""
        prepare_older_resource(resource)
        super().add_resource(resource)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> Any:
        """Call a tool: its content, with its structured content where it has an output schema.

        Raises:
            ToolError: there is none of this name, its arguments do not fit, or it failed.
        """
        result = await self.run_tool(name, arguments, context or self.get_context())
        made = types.CallToolResult.model_validate_json(encode(result))
        written = made.is_error or made.meta is not None  # only a CallToolResult of the program's
        if written or made.structured_content is None:
            return made if written else made.content
        return made.content, made.structured_content


def list_one(item: Any) -> Any:
    """Something that a server has as it is listed, also one of a class of the author's own."""
    return item.list_item()


__all__ = ["Context", "FastMCP", "MCPServer", "Resource", "Tool"]


async def call_overridden(server: MCPServer, params: CallToolParams, context: Context) -> Any:
    """The result of a call by the ``call_tool`` of a subclass, which may give content alone, as in 1.x."""
    arguments = {} if params.arguments is UNSET else decode_arguments(params.arguments)
    given = await server.call_tool(params.name, arguments, context)
    if isinstance(given, types.CallToolResult | types.InputRequiredResult):
        return given
    content, structured = split_result(given)
    return types.CallToolResult(content=content, structured_content=structured)
