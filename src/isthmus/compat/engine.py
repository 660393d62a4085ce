"""Engine of the façades: another library's server as what an isthmus server offers, and its serving.

A façade is a :class:`Backend`: it lists items and serves requests. :func:`make_server` puts it behind an isthmus
server, which has the protocol, its revisions, the transports and the sessions.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw
from pydantic import BaseModel

from isthmus.compat import types
from isthmus.compat.caching import NO_HINT, CacheHint, hint_read, make_list_options
from isthmus.compat.exceptions import MCPError
from isthmus.compat.outputs import decode_questions, dump_wire
from isthmus.compat.session import REQUEST, ForeignRequest
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import IsthmusError, Refuse
from isthmus.revisions import METHODS
from isthmus.runtime.failures import log_request_failure
from isthmus.runtime.inbound import Inbound
from isthmus.server.composition.provider import Changed
from isthmus.server.features.invocation import load_run_rounds
from isthmus.server.features.provided_items import ProvidedItems
from isthmus.server.server import Server
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    Icon,
    PromptReference,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

Change = tuple[str, str | None]

T = TypeVar("T")

MAX_PAGES = 1_000  # of a list that a server gives in pages

# The member of each list's result that has its items.
ITEMS_BY_METHOD = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}

# The model of ``mcp.types`` for the params of each method.
PARAMS_BY_METHOD = {
    "tools/list": "PaginatedRequestParams",
    "prompts/list": "PaginatedRequestParams",
    "resources/list": "PaginatedRequestParams",
    "resources/templates/list": "PaginatedRequestParams",
    "tools/call": "CallToolRequestParams",
    "prompts/get": "GetPromptRequestParams",
    "resources/read": "ReadResourceRequestParams",
    "completion/complete": "CompleteRequestParams",
    "resources/subscribe": "SubscribeRequestParams",
    "resources/unsubscribe": "UnsubscribeRequestParams",
}


class NotificationOptions:
    """Whether a server says that its lists change."""

    def __init__(
        self,
        prompts_changed: bool = False,
        resources_changed: bool = False,
        tools_changed: bool = False,
    ) -> None:
        self.prompts_changed = prompts_changed
        self.resources_changed = resources_changed
        self.tools_changed = tools_changed


class Backend:
    """Another library's server as the engine sees it.

    Attributes:
        middleware: layers around its handlers: ``async (ctx, call_next)``.
        lifespan_value: what its lifespan gave.
        engine_settings: those of the isthmus server that serves it; None before it serves.
        announce: tells of a change: ``(notification, uri or None)``.
        listens: it says that streams of changes are served (since 2026-07-28).
        subscribes: it says that resources can be subscribed to (up to 2025-11-25).
        sets_level: it says that there is a level of log messages.
        notification_options: which lists it says that change (up to 2025-11-25).
        extensions: the settings of its extensions.
        experimental: its experimental capabilities; None where it says nothing of any.
        cache_hints: how long and by whom its results may be kept, by method.
        tells_errors: clients of every revision are told the text of unexpected exceptions.
    """

    tells_errors = False

    listens = True
    subscribes = False
    sets_level = False

    def __init__(self) -> None:
        self.middleware: list[Any] = []
        self.lifespan_value: Any = {}
        self.engine_settings: SharedSettings | None = None
        self.announce: Callable[[Change], None] = ignore_change
        self.notification_options = NotificationOptions()
        self.extensions: dict[str, Any] = {}
        self.experimental: dict[str, Any] | None = None
        self.cache_hints: dict[str, CacheHint] = {}

    def find_capabilities(self) -> ServerCapabilities:
        """The capabilities of what it has now."""
        raise NotImplementedError  # each façade answers this itself

    async def tell_capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """The capabilities that the other library tells a client of: no changes of lists in older revisions."""
        listens = self.listens and inbound.method != "initialize"
        return self.make_capabilities(self.notification_options, self.experimental, listens=listens)

    def make_capabilities(
        self, options: NotificationOptions, experimental: Any, *, listens: bool = False
    ) -> ServerCapabilities:
        """The capabilities of what it has now, with the changes of lists that it tells of."""
        has = self.find_capabilities()
        return ServerCapabilities(
            tools=has.tools and ToolsCapability(list_changed=listens or options.tools_changed),
            prompts=has.prompts
            and PromptsCapability(list_changed=listens or options.prompts_changed),
            resources=has.resources
            and ResourcesCapability(
                subscribe=listens or self.subscribes,
                list_changed=listens or options.resources_changed,
            ),
            completions=has.completions,
            logging={} if self.sets_level else UNSET,
            extensions=self.extensions or UNSET,
            experimental=UNSET if experimental is None else experimental,
        )

    def takes_context(self, method: str, params: Any) -> bool:
        """Whether what serves a request may ask its client, or report to it."""
        raise NotImplementedError  # each façade answers this itself

    def list_items(self, method: str, request: ForeignRequest) -> Awaitable[Sequence[Wire]]:
        """All items that a method lists."""
        raise NotImplementedError  # each façade answers this itself

    def serve(self, method: str, params: Any, request: ForeignRequest) -> Awaitable[Any]:
        """Serve a request: the result on the wire, or as a model of ``mcp.types``."""
        raise NotImplementedError  # each façade answers this itself

    def refuse(self, error: Exception, inbound: Inbound) -> Exception:
        """What a request that ended by an exception is answered with.

        Up to 2025-11-25 it is the exception's text, as in the other library; its code there is 0, which isthmus
        never sends.
        """
        if isinstance(error, IsthmusError):
            return error
        if isinstance(error, MCPError):
            return Refuse(error.code, error.message, error.data)
        log_request_failure(inbound.method, error)
        has_sessions = inbound.caller.revision.allows("client", "initialize")
        told = self.tells_errors or has_sessions
        return Refuse(types.INTERNAL_ERROR, str(error) if told else "Internal server error")

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Run a function that is not async in a worker thread."""
        if self.engine_settings is None:
            return await asyncio.to_thread(function)
        return await self.engine_settings.workers.run(function)


def ignore_change(change: Change) -> None:
    """Tell nobody: the server does not serve."""


class ForeignProvider:
    """A backend as a provider of an isthmus server.

    Args:
        backend: the other library's server.
        settings: those of the server that offers it.

    Attributes:
        label: it as messages call it.
        tasks: none.
        keeps_lists: its lists stay the same object until they change.
    """

    tasks = None
    keeps_lists = True

    def __init__(self, backend: Backend, settings: SharedSettings) -> None:
        self.label = f"server {settings.info.name!r}"
        self._backend = backend
        self._settings = settings
        backend.engine_settings = settings

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:  # noqa: ARG002 - the same for everybody
        """The capabilities of what it has now."""
        return self._backend.find_capabilities()

    def serves(self, method: str, key: str) -> bool:  # noqa: ARG002 - its server refuses what it has not
        """Whether it has a method: the other library's server itself says that it has no such name."""
        has = self._backend.find_capabilities()
        kind = {
            "tools/call": has.tools,
            "prompts/get": has.prompts,
            "resources/read": has.resources,
            "completion/complete": has.completions,
        }.get(method, UNSET)
        return kind is not UNSET

    def guesses(self, method: str, key: str) -> bool:  # noqa: ARG002 - there is no other provider
        """Never: it is the only one."""
        return False

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """All items that a method lists."""
        backend, request = self._backend, ForeignRequest(self._backend, inbound)
        REQUEST.set(request)
        try:
            if not backend.middleware:
                items: Sequence[Wire] = await backend.list_items(method, request)
                return items
            return await self._list_inside(method, request)
        except Exception as error:
            raise backend.refuse(error, inbound) from error

    async def _list_inside(self, method: str, request: ForeignRequest) -> Sequence[Wire]:
        """As :meth:`list`, inside the layers of the server's middleware, which see the list as a model."""
        kept: list[Sequence[Wire]] = []

        async def call(_: Any) -> Any:
            kept.append(await self._backend.list_items(method, request))
            return make_list_result(method, kept[0])

        given = await self._run_layers(call, request)
        is_same = kept and getattr(given, "made_of", None) is kept[0]
        items: Sequence[Wire] = kept[0] if is_same else read_list_result(method, given)
        return items

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:  # noqa: ARG002 - the protocol of providers
        """None."""
        return NO_SCOPES

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:  # noqa: ARG002 - the protocol of providers
        """None."""
        return NO_SCOPES

    def known_scopes(self) -> frozenset[str]:
        """None."""
        return NO_SCOPES

    def attach(self, changed: Changed) -> None:
        """Tell of changes from now on."""
        self._backend.announce = changed

    async def open(self) -> None:
        """Nothing: the lifespan is the server's."""

    async def close(self) -> None:
        """Nothing."""

    async def serve(self, method: str, params: Any, inbound: Inbound) -> Wire | Raw:
        """Serve a request.

        Raises:
            Refuse: the other library's server refuses it.
        """
        backend, request = self._backend, ForeignRequest(self._backend, inbound)
        REQUEST.set(request)
        try:
            if not (backend.middleware or backend.takes_context(method, params)):
                answered = to_wire(method, await backend.serve(method, params, request))
                return hint_read(answered, backend.cache_hints)
            answer: Wire | Raw = await load_run_rounds()(
                _make_body(self, method, params, request), inbound, params, _get_key(params),
                self._settings,
            )  # fmt: skip
        except Exception as error:
            raise self._backend.refuse(error, inbound) from error
        return answer

    async def serve_layered(self, method: str, params: Any, request: ForeignRequest) -> Wire:
        """Serve a request inside the layers of the server's middleware."""
        backend = self._backend
        if not backend.middleware:
            answered = to_wire(method, await backend.serve(method, params, request))
            return hint_read(answered, backend.cache_hints)
        first = request.make_context()

        async def call(context: Any) -> Any:
            changed = params
            if context is not first and context.params is not first.params:
                changed = msgspec.convert(context.params, type(params))
            return await backend.serve(method, changed, request)

        answered = to_wire(method, await self._run_layers(call, request, first))
        return hint_read(answered, backend.cache_hints)

    async def _run_layers(
        self, call: Callable[[Any], Awaitable[Any]], request: ForeignRequest, first: Any = None
    ) -> Any:
        for layer in reversed(self._backend.middleware):
            call = _make_step(layer, call)
        return await call(request.make_context() if first is None else first)


def _make_step(
    layer: Any, call: Callable[[Any], Awaitable[Any]]
) -> Callable[[Any], Awaitable[Any]]:
    async def step(context: Any) -> Any:
        return await layer(context, call)

    return step


def _make_body(
    provider: ForeignProvider, method: str, params: Any, request: ForeignRequest
) -> Callable[[Any], Awaitable[Any]]:
    async def body(context: Any) -> Any:
        request.context = context
        try:
            return await provider.serve_layered(method, params, request)
        except Exception as error:
            raise request.backend.refuse(error, request.inbound) from error

    return body


def _get_key(params: Any) -> str:
    """The name or URI that a request is about."""
    for name in ("name", "uri"):
        key = getattr(params, name, None)
        if key is not None:
            return str(key)
    ref = params.ref
    return str(ref.name if isinstance(ref, PromptReference) else ref.uri)


def to_wire(method: str, value: Any) -> Wire:
    """A result as it goes over the wire, also one that a handler gave as a model or as plain data."""
    if isinstance(value, Wire):
        return value
    if isinstance(value, types.InputRequiredResult):
        return decode_questions(dump_wire(value))
    data = encode(value) if isinstance(value, Mapping) else dump_wire(value)
    result: Wire = METHODS[method].decode_result(data)
    return result


def make_list_result(method: str, items: Sequence[Wire]) -> Any:
    """The items of a list as the result that ``mcp`` has for it."""
    member = ITEMS_BY_METHOD[method]
    name = f"List{''.join(part.title() for part in member.split('_'))}Result"
    model = getattr(types, name)
    result = model.model_validate({member: msgspec.json.decode(encode(list(items)))})
    object.__setattr__(result, "made_of", items)
    return result


def read_list_result(method: str, result: Any) -> Sequence[Wire]:
    """The items of a list's result."""
    data = encode(result) if isinstance(result, Mapping) else dump_wire(result)
    read = METHODS[method].decode_result(data)
    items: Sequence[Wire] = getattr(read, ITEMS_BY_METHOD[method])
    return items


def keep_list(items: Sequence[Wire], hint: CacheHint = NO_HINT) -> ProvidedItems:
    """A list that stays the same until it changes, with the hint of its method."""
    return ProvidedItems(items, meta={}, cache_scope=hint.scope, ttl_ms=hint.ttl_ms)


def make_server(
    backend: Backend,
    name: str,
    *,
    lifespan: Callable[[], Any] | None = None,
    icons: Sequence[Any] | None = None,
    **options: Any,
) -> Server[Any]:
    """The isthmus server that serves another library's server.

    Args:
        backend: the other library's server.
        name: what it calls itself.
        lifespan: gives the async context manager that is open while it serves.
        icons: pictures of it, as models of ``mcp.types`` or as isthmus has them.
        **options: of :class:`isthmus.Server`.
    """

    @asynccontextmanager
    async def open_lifespan(_: Any) -> AsyncIterator[Any]:
        if lifespan is None:
            yield None
            return
        async with lifespan() as value:
            backend.lifespan_value = value
            yield value

    given = {key: value for key, value in options.items() if value is not None}
    given |= make_list_options(backend.cache_hints)
    if icons:
        given["icons"] = [
            msgspec.json.decode(
                dump_wire(one) if isinstance(one, BaseModel) else encode(one), type=Icon
            )
            for one in icons
        ]
    server: Server[Any] = Server(name, lifespan=open_lifespan, sanitise=None, redact=None, **given)
    provider = ForeignProvider(backend, server._settings)  # noqa: SLF001 - as Server.proxy does it
    server.add_provider(provider)
    server._handshake.capabilities = backend.tell_capabilities  # noqa: SLF001 - as above
    return server
