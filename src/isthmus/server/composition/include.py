"""Included tools: tools of this server, of another one or of a function, transformed for clients here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw, structs

from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import UsageError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.server.composition.mount import Mount
from isthmus.server.composition.provided_tasks import ComposedTasks
from isthmus.server.composition.provider import Changed, ItemProvider
from isthmus.server.composition.transformation import (
    ForeignArguments,
    IncludeOptions,
    Transformation,
)
from isthmus.server.features.tools import Tools
from isthmus.server.subscriptions import TOOLS_CHANGED
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    ServerCapabilities,
    TextContent,
    Tool,
    ToolsCapability,
)
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.server.change_broadcast import Change
    from isthmus.server.declare import Declarations


class IncludedTool:
    """One tool, and where it comes from.

    Args:
        transformation: its changes.
        tools: the tools that it is one of; None for a provider's.
        source: its name there.
        provider: gives the provider that has it, where it is one's.
    """

    def __init__(
        self,
        transformation: Transformation,
        source: str,
        *,
        tools: Tools | None = None,
        provider: Callable[[], ItemProvider | None] = lambda: None,
    ) -> None:
        self.transformation = transformation
        self.source = source
        self.tools = tools
        self.provider = provider

    @property
    def is_there(self) -> bool:
        """Whether the tool that it is made of is offered now."""
        if self.tools is not None:
            return self.tools.listing.get(self.source) is not None
        return self.provider() is not None

    def translate(self, params: CallToolParams, principal: Any) -> CallToolParams:
        """The params of a call as the tool itself takes them.

        Raises:
            ForeignArguments: an argument is hidden, or has another name here.
        """
        arguments = self.transformation.arguments(params.arguments, principal)
        return structs.replace(params, name=self.source, arguments=arguments)


class IncludedTools:
    """The included tools of one server; an ``ItemProvider`` that stands before all others.

    Args:
        declared: the server's own declarations.
    """

    def __init__(self, declared: "Declarations") -> None:
        self.label = "included tools"
        self._declared = declared
        self._functions = Tools(declared.settings)
        self._own = Tools(declared.settings)
        self._mounts: list[Mount] = []
        self._tools: dict[str, IncludedTool] = {}
        self._warned: set[str] = set()

    # Including

    def include(
        self, tool: "str | Callable[..., Any]", source: Mount | None, options: IncludeOptions
    ) -> None:
        """Include a tool; see ``Server.include``.

        Raises:
            UsageError: there is no such tool, its name is taken, or the changes do not fit it.
        """
        if source is not None and isinstance(tool, str):
            source = self._find_mount(source)
        if callable(tool):
            included = self._take_function(tool, options)
        elif source is not None:
            included = _take_of_server(tool, source, options)
        else:
            included = self._take_own(tool, options)
        name = included.transformation.name
        if name in self._tools or self._declared.tools.listing.get(name) is not None:
            raise UsageError(f"there is a tool {name!r} already; give this one another name=")
        self._tools[name] = included
        if source is not None and source not in self._mounts:
            self._mounts.append(source)

    def _find_mount(self, wanted: Mount) -> Mount:
        """The mount of a server that tools were included of before, or this one."""
        for mount in self._mounts:
            if mount.inner.declared is wanted.inner.declared:
                return mount
        return wanted

    def _take_function(self, fn: "Callable[..., Any]", options: IncludeOptions) -> IncludedTool:
        name = str(options.get("name") or getattr(fn, "__name__", ""))
        transformation = Transformation(name, options)
        self._functions.add(fn, name=name)
        entry = self._functions.listing.get(name)
        if entry is not None:
            transformation.tool(entry.shown)
        return IncludedTool(transformation, name, tools=self._functions)

    def _take_own(self, source: str, options: IncludeOptions) -> IncludedTool:
        name = options.get("name") or source
        transformation, own = Transformation(name, options), self._declared.tools.listing
        entry = own.get(source)
        if entry is None:
            return self._take_provided(source, transformation)
        entries = [*own.find_versions(source).values()] or [entry]
        for one in entries:
            transformation.tool(one.shown)
        if self._own.listing.get(source) is None:
            for one in entries:
                self._own.listing.add(source, one, one.version)
        if name == source:  # the new one takes its place
            own.remove(source)
        return IncludedTool(transformation, source, tools=self._own)

    def _take_provided(self, source: str, transformation: Transformation) -> IncludedTool:
        """A tool of a mounted server, or of one behind a proxy: what that has may be known only later."""

        def find() -> ItemProvider | None:
            composition = self._declared.composition
            for provider in () if composition is None else composition.providers:
                if provider is not self and provider.serves("tools/call", source):
                    return provider
            return None

        provider = find()
        if provider is None:
            raise UsageError(
                f"there is no tool {source!r} here: include one of another server by "
                "include(name, source=server), or mount that first"
            )
        if isinstance(provider, Mount) and (tool := provider.find_tool(source)) is not None:
            transformation.tool(tool)
        return IncludedTool(transformation, source, provider=find)

    # As a provider

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """Tools, and tasks where a server has some that tools were included of."""
        found = ServerCapabilities(tools=ToolsCapability(list_changed=True))
        for mount in self._mounts:
            theirs = await mount.capabilities(inbound)
            found = structs.replace(found, tasks=theirs.tasks, extensions=theirs.extensions)
        return found

    def serves(self, method: str, key: str) -> bool:
        """As :meth:`ItemProvider.serves`."""
        if method != "tools/call":
            return False
        included = self._tools.get(key)
        return included is not None and included.is_there

    def guesses(self, method: str, key: str) -> bool:  # noqa: ARG002 - the protocol of providers
        """As :meth:`ItemProvider.guesses`: never."""
        return False

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """As :meth:`ItemProvider.list`."""
        found: list[Wire] = []
        if method != "tools/list":
            return found
        listed: dict[int, dict[str, Tool]] = {}
        for name, included in self._tools.items():
            tool = await self._find_item(included, listed, inbound)
            if tool is None:
                continue
            try:
                found.append(included.transformation.tool(tool))
            except UsageError as error:
                if name not in self._warned:
                    self._warned.add(name)
                    log_warning("an included tool is left out: %s", error)
        return found

    def find_item(self, method: str, key: str) -> Any:
        """A tool as it is listed; None for one that is not known before it is listed."""
        included = self._tools.get(key) if method == "tools/call" else None
        if included is None:
            return None
        if included.tools is not None:
            entry = included.tools.listing.get(included.source)
            tool: Any = None if entry is None else entry.shown
        else:
            provider = included.provider()
            tool = provider.find_tool(included.source) if isinstance(provider, Mount) else None
        return None if tool is None else included.transformation.tool(tool)

    def find_versions(
        self, method: str, key: str, principal: Principal | None
    ) -> Mapping[str, Tool]:
        """The versions of a tool as they are listed; see ``Declarations.find_versions``."""
        included = self._tools.get(key) if method == "tools/call" else None
        if included is None:
            return {}
        found: Mapping[str, Any]
        if included.tools is not None:
            offered = included.tools.listing.find_versions(included.source)
            found = {version: entry.shown for version, entry in offered.items()}
        else:
            find = getattr(included.provider(), "find_versions", None)
            found = {} if find is None else find(method, included.source, principal)
        try:
            return {one: included.transformation.tool(tool) for one, tool in found.items()}
        except UsageError:  # another server's, which has changed: it is left out of lists, too
            return {}

    async def _find_item(
        self, included: IncludedTool, listed: dict[int, dict[str, Tool]], inbound: Inbound
    ) -> Tool | None:
        """The tool as it is listed where it comes from; each provider is asked once."""
        if included.tools is not None:
            entry = included.tools.listing.get(included.source)
            return None if entry is None else entry.shown
        provider = included.provider()
        if provider is None:
            return None
        if id(provider) not in listed:
            items: Any = await provider.list("tools/list", inbound)
            listed[id(provider)] = {item.name: item for item in items}
        return listed[id(provider)].get(included.source)

    async def serve(self, method: str, params: Any, inbound: Inbound) -> Wire | Raw:
        """As :meth:`ItemProvider.serve`."""
        if method != "tools/call":
            for mount in self._mounts:
                tasks = mount.tasks
                if tasks is not None and await tasks.knows(params.task_id, inbound):
                    return await mount.serve(method, params, inbound)
        included = self._tools[params.name]
        try:
            inner = included.translate(params, inbound.principal)
        except ForeignArguments as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        result: Wire | Raw = included.transformation.result(
            await self._call(included, inner, inbound)
        )
        return result

    def _call(
        self, included: IncludedTool, params: CallToolParams, inbound: Inbound
    ) -> Awaitable[Wire | Raw]:
        if included.tools is not None:
            included.tools.tasks = self._declared.tools.tasks
            return included.tools.call(params, inbound)
        provider = included.provider()
        if provider is None:
            return self._declared.tools.call(params, inbound)  # unknown by now: refused as such
        return provider.serve("tools/call", params, inbound)

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:
        """As :meth:`ItemProvider.needs`: those of the tool that it is made of."""
        included = self._tools.get(params.name) if method == "tools/call" else None
        if included is None:
            return NO_SCOPES
        try:
            inner = included.translate(params, principal)
        except ForeignArguments:
            return NO_SCOPES  # it is refused for that anyhow
        if included.tools is not None:
            return included.tools.needs(inner, principal)
        provider = included.provider()
        return NO_SCOPES if provider is None else provider.needs(method, inner, principal)

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:
        """As :meth:`ItemProvider.fixed_scopes`."""
        included = self._tools.get(key) if method == "tools/call" else None
        if included is None:
            return NO_SCOPES
        if included.tools is not None:
            entry = included.tools.listing.get(included.source)
            scopes = NO_SCOPES if entry is None else entry.scopes
            return scopes if isinstance(scopes, frozenset) else NO_SCOPES
        provider = included.provider()
        return NO_SCOPES if provider is None else provider.fixed_scopes(method, included.source)

    def known_scopes(self) -> frozenset[str]:
        """As :meth:`ItemProvider.known_scopes`."""
        return NO_SCOPES.union(*(self.fixed_scopes("tools/call", name) for name in self._tools))

    @property
    def tasks(self) -> ComposedTasks | None:
        """The tasks of the servers that tools were included of."""
        if all(mount.tasks is None for mount in self._mounts):
            return None
        return ComposedTasks(self._mounts, None)

    def attach(self, changed: Changed) -> None:
        """As :meth:`ItemProvider.attach`; of those servers it is their tools that matter here."""
        self._functions.settle()
        self._own.settle()

        def hear(change: "Change") -> None:
            if change[0] == TOOLS_CHANGED:
                changed(change)

        for mount in self._mounts:
            mount.attach(hear)

    async def open(self) -> None:
        """Open the servers that tools were included of."""
        opened: list[Mount] = []
        try:
            for mount in self._mounts:
                await mount.open()
                opened.append(mount)
        except BaseException:
            for mount in reversed(opened):
                await mount.close()
            raise

    async def close(self) -> None:
        """Close them."""
        for mount in reversed(self._mounts):
            await mount.close()


def _take_of_server(source: str, mount: Mount, options: IncludeOptions) -> IncludedTool:
    """A tool of another server, which is served in that server's middleware, limits and lifespan.

    Raises:
        UsageError: it has no such tool now.
    """
    transformation = Transformation(options.get("name") or source, options)
    tool = mount.find_tool(source)
    if tool is None and not mount.serves("tools/call", source):
        raise UsageError(f"server {mount.inner.name!r} has no tool {source!r}")
    if tool is not None:
        transformation.tool(tool)
    return IncludedTool(transformation, source, provider=lambda: mount)
