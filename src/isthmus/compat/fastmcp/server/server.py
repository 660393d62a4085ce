"""``FastMCP``: a server written for fastmcp, served by isthmus' server underneath."""

import inspect
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from isthmus.compat.fastmcp.exceptions import (
    OWN_ERRORS,
    FastMCPError,
    NotFoundError,
    PromptError,
    ResourceError,
    ResourceSecurityError,
    ToolError,
)
from isthmus.compat.fastmcp.prompts.model import PromptResult
from isthmus.compat.fastmcp.resources.model import ResourceResult
from isthmus.compat.fastmcp.server.component_holder import ComponentHolder
from isthmus.compat.fastmcp.server.context import Context, find_context
from isthmus.compat.fastmcp.server.http import FacadeRunner
from isthmus.compat.fastmcp.server.messages import make_message_context
from isthmus.compat.fastmcp.server.middleware.middleware import compose_layers
from isthmus.compat.fastmcp.server.provider import FacadeProvider, SessionIds
from isthmus.compat.fastmcp.server.registry import (
    LIST_METHODS,
    ComponentRegistry,
    Duplicates,
    Kind,
    MountedFacade,
)
from isthmus.compat.fastmcp.server.server_options import ServerOptions, read_options
from isthmus.compat.fastmcp.tools.model import ToolResult
from isthmus.compat.fastmcp.utilities.authorization import may_use
from isthmus.compat.fastmcp.utilities.tasks import TASKS_EXTENSION_ID, check_queue
from isthmus.errors import UsageError
from isthmus.server.server import Server

if TYPE_CHECKING:
    from isthmus.server.features.tasks import Tasks

QUEUE_VARIABLE = "FASTMCP_DOCKET_URL"  # by which 2.x and 3.x have tasks run elsewhere

logger = logging.getLogger("fastmcp.server")

T = TypeVar("T")

PASSED_ON = (FastMCPError, *OWN_ERRORS)


class FastMCP(ComponentHolder, FacadeRunner):
    """Server written for fastmcp: decorators, mounted servers, middleware, lifespan.

    Args:
        name: what it calls itself; one is made up if not given.
        instructions: how to use it, for a model to read.
        **options: see :class:`~isthmus.compat.fastmcp.server.server_options.ServerOptions`.

    Attributes:
        server: isthmus' server, which serves it.
        registry: its components, and mounted servers.
        middleware: layers around messages, the first outermost.
        outer: the servers that it is mounted in.
        lifespan_value: what its lifespan gave.
    """

    def __init__(
        self, name: str | None = None, instructions: str | None = None, **options: Any
    ) -> None:
        given = read_options(options)
        self.options: ServerOptions = given
        super().__init__(ComponentRegistry(given.duplicates))
        self.registry.on_tasks = self.offer_tasks
        self.middleware: list[Any] = []
        self.sessions = SessionIds()
        self.natives: list[Server[Any]] = []
        self.lifespan_value: Any = None
        self.transport: str | None = None
        self.strict_input_validation = given.strict_input_validation
        self.outer: list[FastMCP] = []
        self._lifespan = given.lifespan
        self._instructions = instructions
        self.server: Server[Any] = Server(
            name or f"FastMCP-{secrets.token_hex(2)}",
            instructions=instructions,
            lifespan=lambda _: self.open_lifespan(),
            sanitise=None,
            redact=None,
            **given.make_server_settings(),
        )
        settings = self.server._settings  # noqa: SLF001 - as `Server.proxy` gives them to its provider
        self.server.add_provider(FacadeProvider(self, settings))
        for one in given.middleware:
            self.add_middleware(one)
        for one in given.tools:
            self.add_tool(one)
        for one in given.providers:
            self.add_provider(one)
        if given.include_tags:
            self.enable(tags=given.include_tags, only=True)
        if given.exclude_tags:
            self.disable(tags=given.exclude_tags)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """What it calls itself."""
        return self.server.info.name

    @property
    def version(self) -> str | None:
        """Its own version."""
        return self.server.info.version

    @property
    def instructions(self) -> str | None:
        """How to use it, for a model to read."""
        return self._instructions

    @instructions.setter
    def instructions(self, text: str | None) -> None:
        self._instructions = text
        self.server.configure(instructions=text)

    @property
    def auth(self) -> Any:
        """Who says who may ask for what over HTTP; None where everybody may."""
        return self.options.auth

    @asynccontextmanager
    async def open_lifespan(self) -> AsyncIterator[Any]:
        """Open its lifespan, and those of mounted servers in it."""
        async with AsyncExitStack() as stack:
            if self._lifespan is not None:
                self.lifespan_value = await stack.enter_async_context(self._lifespan(self))
            for provided in self.registry.providers:
                await stack.enter_async_context(provided.server.lifespan())
                if any(
                    one.task_config.supports_tasks() for one in await provided.server.list_tools()
                ):
                    self.offer_tasks()
            for mount in self.registry.mounts:
                await stack.enter_async_context(mount.server.open_lifespan())
            yield self.lifespan_value

    def complete_tool(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a tool with what the server says for all of them."""
        return self.options.complete_tool(options)

    # Tasks and extensions

    @property
    def tasks(self) -> "Tasks | None":
        """The tasks of isthmus' server; None as long as no tool may be one."""
        return self.server._declared.tools.tasks  # noqa: SLF001 - as its own tools have them

    def offer_tasks(self) -> None:
        """Let calls of tools run as tasks, also in the servers that it is mounted in.

        Raises:
            UsageError: the environment has tasks run in workers of a queue.
        """
        check_queue(os.environ.get(QUEUE_VARIABLE), QUEUE_VARIABLE)
        if self.tasks is None:
            self.server._declared.offer_tasks()  # noqa: SLF001 - as `@server.tool(task=…)` does it
        for one in self.outer:
            one.offer_tasks()

    def add_extension(self, extension: Any) -> None:
        """Put an extension in place: that of tasks is there without it.

        Raises:
            UsageError: it is another one.
        """
        if getattr(extension, "identifier", None) != TASKS_EXTENSION_ID:
            raise UsageError(
                f"add_extension({type(extension).__name__}(…)) is not offered by isthmus.compat.fastmcp: use "
                "Server(extensions=…) of isthmus; see docs/guide/extensions.md"
            )
        self.offer_tasks()

    # What else is offered

    def add_middleware(self, middleware: Any) -> None:
        """Put a layer around messages, inside those put before.

        Raises:
            UsageError: it guards components, and the lists of a proxy or an HTTP API would pass it by.
        """
        if self.natives and getattr(middleware, "guards_components", False):
            refuse_unguarded(self)
        prepare = getattr(middleware, "prepare_server", None)
        if prepare is not None:
            prepare(self.server)
        self.middleware.append(middleware)

    def mount(
        self,
        server: Any,
        namespace: str | None = None,
        *,
        prefix: str | None = None,
        tool_names: dict[str, str] | None = None,
        **_: Any,
    ) -> None:
        """Offer what another server offers, now and later, under a prefix."""
        if isinstance(server, str):  # 2.x before 2.9 had the prefix first
            server, namespace = namespace, server
        if isinstance(server, Server):
            self.add_native(server, namespace or prefix)
            return
        if server.natives and server.middleware:
            raise UsageError(
                f"{server!r} is a proxy or an HTTP API with middleware, which would not run where it is mounted: put the "
                f"middleware on {self!r}; see docs/guide/from-fastmcp.md"
            )
        server.outer.append(self)
        if server.tasks is not None:
            self.offer_tasks()
        self.registry.sources.append(MountedFacade(server, namespace or prefix, tool_names or {}))
        for native in server.natives:
            self.add_native(native, namespace or prefix)

    def add_provider(self, provider: Any, *, namespace: str = "") -> None:
        """Offer what a provider has, after its own components; under a prefix, if there is one.

        Raises:
            UsageError: it is no provider.
        """
        from isthmus.compat.fastmcp.server.providers.component_provider import (
            Provider,
        )  # few have any

        if not isinstance(provider, Provider):
            raise UsageError(
                f"add_provider({type(provider).__name__}(…)) is not offered by isthmus.compat.fastmcp: give a Provider of "
                "fastmcp.server.providers, or use Server.add_provider of isthmus; see docs/guide/from-fastmcp-differences.md"
            )
        provider.attach(self, namespace or None)

    def add_native(self, server: Server[Any], prefix: str | None = None) -> None:
        """Offer what a server of isthmus offers, beside what is declared here.

        Raises:
            UsageError: middleware that guards components would not see its lists.
        """
        if any(getattr(one, "guards_components", False) for one in self.middleware):
            refuse_unguarded(self)
        if not self.natives:
            from isthmus.compat.fastmcp.server.native_layer import NativeLayer  # few have any

            layer = NativeLayer(self)

            async def serve(inbound: Any, call_next: Any) -> Any:
                return await layer.serve(inbound, call_next)

            self.server.use(serve)
        self.natives.append(server)
        self.server.mount(server, prefix)

    @classmethod
    def as_proxy(cls, backend: Any, name: str | None = None, **options: Any) -> "FastMCP":
        """Make a server that offers what another one offers: anything that a client can be pointed at (2.x)."""
        from isthmus.compat.fastmcp.client.transports import find_transport  # few have any

        transport = getattr(backend, "transport", None) or find_transport(backend)
        made = cls(name, **options)
        made.add_native(Server.proxy(transport.target, name=made.name, headers=transport.headers))
        return made

    @classmethod
    def from_openapi(
        cls, openapi_spec: Any, client: Any = None, name: str | None = None, **options: Any
    ) -> "FastMCP":
        """Make a server of an HTTP API; requests are made by isthmus, with the base URL and headers of ``client``.

        Raises:
            UsageError: an option has another form in isthmus.
        """
        refuse_mapping(options)
        made = cls(name or openapi_spec.get("info", {}).get("title"), **options)
        given: dict[str, Any] = {} if client is None else {"headers": dict(client.headers)}
        if client is not None and str(client.base_url):
            given["base_url"] = str(client.base_url)
        made.add_native(Server.from_openapi(openapi_spec, **given))
        return made

    @classmethod
    def from_fastapi(cls, app: Any, name: str | None = None, **options: Any) -> "FastMCP":
        """Make a server of a FastAPI application in this process.

        Raises:
            UsageError: an option has another form in isthmus.
        """
        refuse_mapping(options)
        made = cls(name or app.title, **options)
        made.add_native(Server.from_fastapi(app))
        return made

    async def import_server(self, server: "FastMCP", prefix: str | None = None) -> None:
        """Copy what another server offers now (2.x)."""
        if isinstance(server, str):
            server, prefix = prefix, server  # type: ignore[assignment]  # as they were swapped
        mount = MountedFacade(server, prefix)
        for kind in LIST_METHODS:
            for one in await server.registry.list_all(kind, checked=False):
                self.registry.add(kind, mount.rename(kind, one))

    async def list_components(self, kind: Kind, *, run_middleware: bool = True) -> Sequence[Any]:
        """The components of a kind, through the middleware."""
        if not (self.middleware and run_middleware):
            return await self.registry.list_all(kind)
        async with Context(self, find_own_context()) as context:
            message = make_message_context(LIST_METHODS[kind], {}, context)
            listed = compose_layers(self.middleware, lambda _: self.registry.list_all(kind))
            found: Sequence[Any] = await listed(message)
            return found

    async def offers(self, kind: Kind, key: str) -> bool:
        """Whether it, or a server mounted in it, has a component itself, for whomever: none of isthmus' own servers."""
        listed = await self.registry.list_all(kind, checked=False)
        if kind == "template":
            return any(one.uri_template == key or one.matches(key) is not None for one in listed)
        return any(one.identifier == key for one in listed)

    async def find_component(self, kind: Kind, key: str) -> Any:
        """A component, also of a mounted server, under the name it has here; None for one that the caller may not use."""
        try:
            found = await self.registry.find_admitted(kind, key)
        except NotFoundError:
            return None
        if found is None and (mounted := await self.registry.find_mount(kind, key)):
            mount, inner = mounted
            found = mount.rename(kind, await mount.server.find_component(kind, inner))
            return found if self.registry.is_visible(found) else None
        return found

    async def list_tools(self, *, run_middleware: bool = True) -> Sequence[Any]:
        """The tools."""
        return await self.list_components("tool", run_middleware=run_middleware)

    async def list_resources(self, *, run_middleware: bool = True) -> Sequence[Any]:
        """The resources."""
        return await self.list_components("resource", run_middleware=run_middleware)

    async def list_resource_templates(self, *, run_middleware: bool = True) -> Sequence[Any]:
        """The templates."""
        return await self.list_components("template", run_middleware=run_middleware)

    async def list_prompts(self, *, run_middleware: bool = True) -> Sequence[Any]:
        """The prompts."""
        return await self.list_components("prompt", run_middleware=run_middleware)

    async def get_tools(self, **_: Any) -> Mapping[str, Any]:
        """The tools by name (2.x)."""
        return {one.identifier: one for one in await self.registry.list_all("tool")}

    async def get_resources(self, **_: Any) -> Mapping[str, Any]:
        """The resources by URI (2.x)."""
        return {one.identifier: one for one in await self.registry.list_all("resource")}

    async def get_resource_templates(self, **_: Any) -> Mapping[str, Any]:
        """The templates by URI (2.x)."""
        return {one.identifier: one for one in await self.registry.list_all("template")}

    async def get_prompts(self, **_: Any) -> Mapping[str, Any]:
        """The prompts by name (2.x)."""
        return {one.identifier: one for one in await self.registry.list_all("prompt")}

    async def get_tool(self, name: str, version: Any = None) -> Any:  # noqa: ARG002 - as fastmcp has it
        """A tool, also one that middleware offers; None for one that the caller may not use."""
        for layer in self.middleware:
            find = getattr(layer, "get_injected_tool", None)
            injected = None if find is None else find(name)
            if injected is not None:
                return injected if await may_use(injected) else None
        return await self.find_component("tool", name)

    async def get_resource(self, uri: str, version: Any = None) -> Any:  # noqa: ARG002 - same
        """A resource; None for none."""
        return await self.find_component("resource", str(uri))

    async def get_resource_template(self, uri: str, version: Any = None) -> Any:  # noqa: ARG002 - same
        """A template, by its own URI or by one that it matches; None for none."""
        for one in await self.registry.list_all("template"):
            if one.uri_template == uri or one.matches(uri) is not None:
                return one
        return None

    async def get_prompt(self, name: str, version: Any = None) -> Any:  # noqa: ARG002 - same
        """A prompt; None for none."""
        return await self.find_component("prompt", name)

    # Requests

    async def _serve_message(
        self, method: str, params: dict[str, Any], handle: Callable[[Any], Any], *, layered: bool
    ) -> Any:
        """Serve a request through the middleware."""
        async with Context(self, find_own_context()) as context:
            if not (self.middleware and layered):
                return await handle(params)
            message = make_message_context(method, params, context)

            async def serve(changed: Any) -> Any:
                said = changed.message
                return await handle({key: getattr(said, key) for key in params})

            return await compose_layers(self.middleware, serve)(message)

    async def _guard(self, failed: str, kind: type[Exception], work: Awaitable[T]) -> T:
        """Await work of a component; an exception of the author's becomes one whose text clients may read.

        Args:
            failed: what clients are told.
            kind: the exception that tells them.
            work: the work.
        """
        try:
            return await work
        except PASSED_ON:
            raise
        except Exception as error:
            logger.exception(failed)
            raise kind(self.options.describe(failed, error)) from error

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: Any = None,  # noqa: ARG002 - as fastmcp has it
        run_middleware: bool = True,
    ) -> ToolResult:
        """Call a tool.

        Raises:
            NotFoundError: there is none of this name.
            ToolError: it failed.
            ValidationError: the arguments do not fit.
        """
        params = {"name": name, "arguments": arguments or {}}
        result: ToolResult = await self._serve_message(
            "tools/call", params, self._call_tool, layered=run_middleware
        )
        return result

    async def _call_tool(self, params: dict[str, Any]) -> ToolResult:
        name, arguments = params["name"], params["arguments"] or {}
        tool = await self.registry.find_admitted("tool", name)
        if tool is None:
            mounted = await self.registry.find_mount("tool", name)
            if mounted is None or await self.find_component("tool", name) is None:
                raise NotFoundError(f"Unknown tool: {name!r}")
            mount, inner = mounted
            result: ToolResult = await mount.server.call_tool(inner, arguments)
            return result
        return await self._guard(f"Error calling tool {name!r}", ToolError, tool.run(arguments))

    async def read_resource(
        self,
        uri: str,
        *,
        version: Any = None,  # noqa: ARG002 - as fastmcp has it
        run_middleware: bool = True,
    ) -> ResourceResult:
        """Read a resource.

        Raises:
            NotFoundError: there is none at this URI.
            ResourceError: it cannot be read.
        """
        result: ResourceResult = await self._serve_message(
            "resources/read", {"uri": str(uri)}, self._read_resource, layered=run_middleware
        )
        return result

    async def _read_resource(self, params: dict[str, Any]) -> ResourceResult:
        uri = str(params["uri"])
        resource = await self.registry.find_admitted("resource", uri)
        if resource is not None:
            return await self._read(uri, resource, resource.read())
        found = await self.registry.match_template(uri)
        if found is not None:
            template, values = found
            if not await may_use(template):
                raise NotFoundError(f"Unknown resource: {uri!r}")
            self.options.check_values(uri, template.security, values)
            return await self._read(uri, template, template.read(values))
        for mount in self.registry.mounts:
            inner = mount.to_inner("resource", uri)
            if inner is not None:
                try:
                    result: ResourceResult = await mount.server.read_resource(inner)
                except ResourceSecurityError:
                    raise
                except NotFoundError:
                    continue
                else:
                    return result
        raise NotFoundError(f"Unknown resource: {uri!r}")

    async def _read(self, uri: str, source: Any, reading: Any) -> ResourceResult:
        async def convert() -> ResourceResult:
            result: ResourceResult = source.convert_result(await reading)
            return result

        return await self._guard(f"Error reading resource {uri!r}", ResourceError, convert())

    async def render_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: Any = None,  # noqa: ARG002 - as fastmcp has it
        run_middleware: bool = True,
    ) -> PromptResult:
        """Render a prompt.

        Raises:
            NotFoundError: there is none of this name.
            PromptError: it failed.
        """
        params = {"name": name, "arguments": arguments}
        result: PromptResult = await self._serve_message(
            "prompts/get", params, self._render_prompt, layered=run_middleware
        )
        return result

    async def _render_prompt(self, params: dict[str, Any]) -> PromptResult:
        name, arguments = params["name"], params["arguments"]
        prompt = await self.registry.find_admitted("prompt", name)
        if prompt is None:
            mounted = await self.registry.find_mount("prompt", name)
            if mounted is None:
                raise NotFoundError(f"Unknown prompt: {name!r}")
            mount, inner = mounted
            given: PromptResult = await mount.server.render_prompt(inner, arguments)
            return given

        async def render() -> PromptResult:
            rendered = prompt.render(arguments)
            found = await rendered if inspect.isawaitable(rendered) else rendered
            result: PromptResult = prompt.convert_result(found)
            return result

        return await self._guard(f"Error rendering prompt {name!r}", PromptError, render())


def refuse_unguarded(server: FastMCP) -> NoReturn:
    """Say that what a proxy or an HTTP API lists would pass by the middleware that guards a server's components.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"AuthMiddleware of {server!r} would not see what a proxy or an HTTP API lists: use scopes= or "
        "Server.visibility of isthmus; see docs/guide/auth-resource-server.md"
    )


def find_own_context() -> Any:
    """The context of isthmus for the request that is served; None outside of one."""
    context = find_context()
    return None if context is None else context.find_own()


def create_proxy(target: Any, name: str | None = None, **options: Any) -> FastMCP:
    """Make a server that offers what another one offers: anything that a client can be pointed at."""
    return FastMCP.as_proxy(target, name, **options)


# Options of `from_openapi` that have another form, by what isthmus has
MAPPING_OPTIONS = {
    "route_maps": "include= and exclude=",
    "route_map_fn": "include= and exclude=",
    "mcp_names": 'shape={"getPet": Shape(name=…)}',
    "mcp_component_fn": 'shape={"getPet": Shape(…)}',
    "httpx_client_kwargs": "headers= and credentials=",
}


def refuse_mapping(options: dict[str, Any]) -> None:
    """Take out options that say nothing, and refuse those that have another form.

    Raises:
        UsageError: there is one.
    """
    options.pop("timeout", None)
    for name, ours in MAPPING_OPTIONS.items():
        if options.pop(name, None):
            raise UsageError(
                f"from_openapi({name}=…) is not offered by isthmus.compat.fastmcp: use {ours} of Server.from_openapi; see "
                "docs/guide/openapi.md"
            )


__all__ = ["Duplicates", "FastMCP", "create_proxy"]
