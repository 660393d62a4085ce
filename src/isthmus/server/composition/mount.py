"""Mounted server: another server's tools, resources and prompts, offered live.

A request goes through the mounted server's own handlers, inside its own middleware, limits and lifespan,
and these stand inside the outer server's. Who asks, the way back to the client, and a cancellation are
the outer request's, so that questions, progress and log messages need no translation.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, structs

from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import LifespanFailed, Refuse
from isthmus.revisions import METHODS, Revision
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler, Middleware, compose
from isthmus.runtime.router import Router
from isthmus.server.composition.names import NameMap
from isthmus.server.composition.provided_tasks import ComposedTasks
from isthmus.server.composition.provider import LISTED_BY, Changed
from isthmus.server.composition.translation import TranslatedLink, Translator
from isthmus.server.settings import SharedSettings
from isthmus.server.subscriptions import ELICITATION_COMPLETE
from isthmus.wire import (
    CallToolResult,
    EmptyResult,
    PromptReference,
    ServerCapabilities,
    Task,
    TextContent,
    Tool,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Meta, Wire

if TYPE_CHECKING:
    from isthmus.server.change_broadcast import Change
    from isthmus.server.declare import Declarations

LIST_MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}

NAME_METHODS = frozenset({"tools/call", "prompts/get"})
URI_METHODS = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
SUBSCRIPTION_METHODS = frozenset({"resources/subscribe", "resources/unsubscribe"})


class MountedServer:
    """What a :class:`Mount` needs of the server that is mounted.

    Args:
        declared: its declarations.
        middleware: its layers, outermost first.
        router: gives its router, which settles it when it is first asked for.
        open: enters its lifespan.
        close: ends it.
    """

    def __init__(
        self,
        declared: "Declarations",
        middleware: Sequence[Middleware],
        router: Callable[[], Router],
        open: Callable[[], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.declared = declared
        self.settings: SharedSettings = declared.settings
        self.name = self.settings.info.name
        self.middleware = middleware
        self.router = router
        self.open = open
        self.close = close


class Mount:
    """One server, mounted in another; an :class:`~isthmus.server.composition.provider.ItemProvider`.

    Args:
        inner: the server that is mounted.
        outer: the settings of the one it is mounted in.
        prefix: what its names have outside, or None.

    Attributes:
        inner: the server that is mounted.
        prefix: what its names have outside, or None.
        label: the server as messages call it.
    """

    def __init__(self, inner: MountedServer, outer: SharedSettings, prefix: str | None) -> None:
        self.inner = inner
        self.prefix = prefix
        self.label = f"mounted server {inner.name!r}"
        self._outer = outer
        self._names = NameMap(prefix)
        self._translator = Translator(self._names, self._has_resource)
        self._start = self._names.start
        self._cut = len(self._start)
        self._get_tool = inner.declared.tools.listing.get
        self._callers: dict[Revision, Handler] = {}
        self._handlers: dict[tuple[str, Revision], Handler] = {}
        self._pages: dict[tuple[str, Revision], tuple[Raw, Sequence[Wire]]] = {}

    # What it has

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """As :meth:`ItemProvider.capabilities`."""
        return await self.inner.declared.capabilities(inbound)

    def serves(self, method: str, key: str) -> bool:
        """As :meth:`ItemProvider.serves`."""
        if method == "tools/call" and key.startswith(self._start):  # the path of every call
            name = key[self._cut :]
            if self._get_tool(name) is not None:
                return True
        inner = self._to_inner(method, key)
        return inner is not None and self.inner.declared.has(method, inner)

    def guesses(self, method: str, key: str) -> bool:
        """As :meth:`ItemProvider.guesses`."""
        declared = self.inner.declared
        if declared.composition is None:  # what it has it knows
            return False
        inner = self._to_inner(method, key)
        if inner is None or declared.owns(method, inner):
            return False
        provider = declared.composition.find(method, inner)
        return provider is not None and provider.guesses(method, inner)

    def find_item(self, method: str, key: str) -> Any:
        """Something as it is listed outside; None for what is not known before it is listed."""
        inner = self._to_inner(method, key)
        if inner is None:
            return None
        item = self.inner.declared.find_item(method, inner)
        if item is None and (composition := self.inner.declared.composition) is not None:
            item = composition.find_provided(method, inner)
        return None if item is None else self._translator.item(item)

    def find_versions(
        self, method: str, key: str, principal: Principal | None
    ) -> Mapping[str, Wire]:
        """The versions of something as they are listed outside; see ``Declarations.find_versions``."""
        inner = self._to_inner(method, key)
        found = {} if inner is None else self.inner.declared.find_versions(method, inner, principal)
        shown = ((version, self._translator.item(item)) for version, item in found.items())
        return {version: item for version, item in shown if item is not None}

    def find_tool(self, name: str) -> Tool | None:
        """A tool as it is listed outside; None for one that is not known before it is listed."""
        found: Tool | None = self.find_item("tools/call", name)
        return found

    def _has_resource(self, uri: str) -> bool:
        return self.inner.declared.has("resources/read", uri)

    def _to_inner(self, method: str, key: str) -> str | None:
        """The name that the mounted server knows; a completion is for a name or for a URI."""
        if method in NAME_METHODS:
            return self._names.inner_name(key)
        if method == "completion/complete":
            name = self._names.inner_name(key)
            if name is not None and self.inner.declared.has("prompts/get", name):
                return name
        return self._names.inner_uri(key)

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """As :meth:`ItemProvider.list`."""
        handler, row = self._find_handler(method, inbound), METHODS[method]
        items: Sequence[Wire] = ()
        cursor: Any = UNSET
        while True:
            params = row.params(cursor=cursor)
            page: Any = await handler(params, self._to_inner_request(params, inbound))
            key = (method, inbound.caller.revision)
            if isinstance(page, Raw):
                known = self._pages.get(key)
                if known is not None and known[0] is page:  # nothing has changed in it since
                    return known[1]
                raw, page = page, row.decode_result(page)
                if cursor is UNSET and page.next_cursor is UNSET:
                    items = self._translate_items(getattr(page, LIST_MEMBERS[method]))
                    self._pages[key] = raw, items
                    return items
            items = [*items, *self._translate_items(getattr(page, LIST_MEMBERS[method]))]
            cursor = page.next_cursor
            if cursor is UNSET:
                return items

    def _translate_items(self, items: Sequence[Wire]) -> Sequence[Wire]:
        return [one for item in items if (one := self._translator.item(item)) is not None]

    # Requests

    def serve(self, method: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        """As :meth:`ItemProvider.serve`."""
        if self.prefix is None:
            return self._find_handler(method, inbound)(params, inbound)
        if method == "tools/call":
            return self._call_tool(params, inbound)
        handler = self._find_handler(method, inbound)
        return self._serve(handler, method, self._to_inner_params(method, params), inbound)

    async def _call_tool(self, params: Any, inbound: Inbound) -> Wire | Raw:
        """As :meth:`_serve`, for the path of every call."""
        handler = self._callers.get(inbound.caller.revision)
        if handler is None:
            handler = self._find_handler("tools/call", inbound)
            self._callers[inbound.caller.revision] = handler
        params = structs.replace(params, name=params.name[self._cut :])
        if self.inner.middleware:
            inbound = self._to_inner_request(params, inbound)
        result: Any = await handler(params, inbound)
        if type(result) is CallToolResult:
            content = result.content
            if len(content) == 1 and type(content[0]) is TextContent:
                return result
        return self._translate(result, "tools/call")

    async def _serve(
        self, handler: Handler, method: str, params: Any, inbound: Inbound
    ) -> Wire | Raw:
        result = await handler(params, self._to_inner_request(params, inbound))
        return self._translate(result, method)

    def _translate(self, result: Any, method: str) -> Wire:
        if type(result) is Raw:  # a middleware's, finished for this revision
            result = METHODS[method].decode_result(result)
        translated: Wire = self._translator.result(result)
        return translated

    def _find_handler(self, method: str, inbound: Inbound) -> Handler:
        """The mounted server's handler in its middleware and lifespan.

        Raises:
            Refuse: it has none.
        """
        revision = inbound.caller.revision
        key = (method, revision)
        if (known := self._handlers.get(key)) is not None:
            return known
        if method in SUBSCRIPTION_METHODS:
            lifespan = self.inner.settings.lifespan
            layers = compose(self._note_subscription, self.inner.middleware, method)
            self._handlers[key] = handler = lifespan.open_first(layers)
            return handler
        plan = self.inner.router().plan(method, revision)
        if plan is None:
            raise Refuse(-32601, f"Method not found: {method} in revision {revision.name}")
        self._handlers[key] = found = plan.handler
        return found  # type: ignore[no-any-return]  # msgspec cannot check callables

    async def _note_subscription(self, params: Any, inbound: Inbound) -> EmptyResult:
        """Tell a provider of the mounted server; the outermost server remembers who subscribed."""
        composition = self.inner.declared.composition
        provider = None if composition is None else composition.find_resource(params.uri)
        if provider is not None:
            await provider.serve(inbound.method, params, inbound)
        return EmptyResult()

    def _to_inner_params(self, method: str, params: Any) -> Any:
        if method in NAME_METHODS:
            return structs.replace(params, name=self._names.inner_name(params.name))
        if method in URI_METHODS:
            return structs.replace(params, uri=self._names.inner_uri(params.uri))
        if method == "completion/complete":
            ref = params.ref
            if isinstance(ref, PromptReference):
                ref = structs.replace(ref, name=self._names.inner_name(ref.name))
            else:
                ref = structs.replace(ref, uri=self._names.inner_uri(ref.uri))
            return structs.replace(params, ref=ref)
        return params

    def _to_inner_request(self, params: Any, inbound: Inbound) -> Inbound:
        """The request as a middleware of the mounted server reads it: in its own names."""
        if not self.inner.middleware or self.prefix is None:
            return inbound
        return structs.replace(inbound, params=Raw(encode(params)))

    # Scopes

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:
        """As :meth:`ItemProvider.needs`."""
        needs = self.inner.declared.needs.get(method)
        if needs is None:
            return NO_SCOPES
        inner = params if self.prefix is None else self._to_inner_params(method, params)
        return needs(inner, principal)

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:
        """As :meth:`ItemProvider.fixed_scopes`."""
        inner = self._to_inner(method, key)
        return NO_SCOPES if inner is None else self.inner.declared.fixed_scopes(method, inner)

    def known_scopes(self) -> frozenset[str]:
        """As :meth:`ItemProvider.known_scopes`."""
        return self.inner.declared.known_scopes()

    # Tasks

    @property
    def tasks(self) -> "MountedTasks | None":
        """As :attr:`ItemProvider.tasks`."""
        declared = self.inner.declared
        providers = () if declared.composition is None else declared.composition.providers
        if declared.tools.tasks is None and all(one.tasks is None for one in providers):
            return None
        return MountedTasks(ComposedTasks(providers, declared.tools.tasks), self._translator)

    # Beginning and end

    def attach(self, changed: Changed) -> None:
        """As :meth:`ItemProvider.attach`; what the mounted server was not given, it takes over."""
        began, label = self.inner.declared.is_serving, self.prefix or self.inner.name
        if not self.inner.settings.inherit(self._outer, label, began=began):
            log_warning(
                "the %s has begun to serve by itself before: it keeps its own secret and store",
                self.label,
            )
        self.inner.router()

        def hear(change: "Change") -> None:
            method, what = change
            if method == ELICITATION_COMPLETE:  # the mounted server tells those whom it asked
                return
            outer = None if what is None else self._names.outer_uri(what)
            if what is None or outer is not None:
                changed((method, outer))

        self.inner.settings.changes.echo(hear, self._outer.changes.announce_to)

    async def open(self) -> None:
        """As :meth:`ItemProvider.open`.

        Raises:
            LifespanFailed: its lifespan raised; the message has its name.
        """
        self.inner.declared.mounts_open += 1
        try:
            await self.inner.open()
        except LifespanFailed as failed:
            self.inner.declared.mounts_open -= 1
            cause = failed.__cause__
            raise LifespanFailed(
                f"the {self.label}: {failed}" if cause is None else
                f"the lifespan of the {self.label} failed: {type(cause).__name__}: {cause}"
            ) from cause  # fmt: skip

    async def close(self) -> None:
        """As :meth:`ItemProvider.close`: the last of its outer servers ends it."""
        self.inner.declared.mounts_open -= 1
        if self.inner.declared.mounts_open == 0:
            await self.inner.close()


class MountedTasks:
    """The tasks of a mounted server, their results as clients of the outer one see them.

    Args:
        tasks: the tasks.
        translator: translates what they came to.
    """

    def __init__(self, tasks: ComposedTasks, translator: Translator) -> None:
        self._tasks = tasks
        self._translator = translator

    async def knows(self, id: str, inbound: Inbound) -> bool:
        """Whether there is a task of this id, and it is its caller's."""
        return await self._tasks.knows(id, inbound)

    async def list_all(self, inbound: Inbound) -> Sequence[Task]:
        """All tasks of a caller (2025-11-25)."""
        return await self._tasks.list_all(inbound)

    async def granted(self, ids: Sequence[str], inbound: Inbound) -> Sequence[str]:
        """The tasks of these ids that a stream will be told of (since 2026-07-28)."""
        return await self._tasks.granted(ids, inbound)

    async def follow(self, ids: Sequence[str], inbound: Inbound, meta: Meta) -> Callable[[], None]:
        """Tell a stream how tasks stand, now and whenever that changes; returns what ends it."""
        link = TranslatedLink(inbound.link, self._translator)
        return await self._tasks.follow(ids, structs.replace(inbound, link=link), meta)


def list_names(declared: "Declarations") -> dict[tuple[str, str], str]:
    """The names and URIs that a server and those mounted in it have now, by the method that uses them.

    Returns:
        By the method and the name, which server has it.
    """
    found: dict[tuple[str, str], str] = {}
    name = repr(declared.settings.info.name)
    for use, lists in LISTED_BY.items():
        found |= {(use, key): name for key in declared.listings[lists].list_keys()}
    found |= {
        ("template", key): name for key in declared.listings["resources/templates/list"].list_keys()
    }
    for provider in () if declared.composition is None else declared.composition.providers:
        if isinstance(provider, Mount):
            found |= provider_names(provider)
    return found


def provider_names(mount: Mount) -> dict[tuple[str, str], str]:
    """As :func:`list_names`, of a mounted server, as clients of the outer one see them."""
    names = NameMap(mount.prefix)
    found: dict[tuple[str, str], str] = {}
    for (use, key), owner in list_names(mount.inner.declared).items():
        outer = names.outer_name(key) if use in NAME_METHODS else names.outer_uri(key)
        if outer is not None:
            found[use, outer] = owner
    return found


def find_mounted(declared: "Declarations") -> "set[int]":
    """The servers that are mounted in one, directly and in others, each by its declarations."""
    found = {id(declared)}
    for provider in () if declared.composition is None else declared.composition.providers:
        if isinstance(provider, Mount):
            found |= find_mounted(provider.inner.declared)
    return found
