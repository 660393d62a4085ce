"""Typed hooks of middleware: one async method per operation, with decoded params and results.

::

    class Guard(Middleware):
        async def on_call_tool(self, ctx, call_next):
            if ctx.params.name == "drop" and ctx.principal is None:
                raise Refuse(-32001, "Log in first.")
            return await call_next(ctx)

A request passes ``on_message``, then ``on_request``, then the hook of its method. Hooks are bound
once per method: an object with ``on_call_tool`` alone costs no other method anything.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, structs

from isthmus.errors import Refuse
from isthmus.revisions import Revision
from isthmus.runtime.inbound import Inbound
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    CompleteParams,
    CompleteResult,
    CreateTaskResult,
    DiscoverParams,
    DiscoverResult,
    EmptyResult,
    GetPromptParams,
    GetPromptResult,
    InitializeParams,
    InitializeResult,
    InputRequiredResult,
    ListenParams,
    ListenResult,
    ListPromptsParams,
    ListPromptsResult,
    ListResourcesParams,
    ListResourcesResult,
    ListResourceTemplatesParams,
    ListResourceTemplatesResult,
    ListToolsParams,
    ListToolsResult,
    ReadResourceParams,
    ReadResourceResult,
    SetLevelParams,
    SubscribeParams,
    TaskCreated,
    Tool,
    UnsubscribeParams,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.server.middleware.hook_layer import ServerParts

P = TypeVar("P")
R = TypeVar("R")

METHOD_HOOKS: Mapping[str, str] = {
    "on_call_tool": "tools/call",
    "on_list_tools": "tools/list",
    "on_read_resource": "resources/read",
    "on_list_resources": "resources/list",
    "on_list_resource_templates": "resources/templates/list",
    "on_get_prompt": "prompts/get",
    "on_list_prompts": "prompts/list",
    "on_complete": "completion/complete",
    "on_initialize": "initialize",
    "on_discover": "server/discover",
    "on_subscribe": "resources/subscribe",
    "on_unsubscribe": "resources/unsubscribe",
    "on_listen": "subscriptions/listen",
    "on_set_level": "logging/setLevel",
}
GENERAL_HOOKS = ("on_message", "on_request", "on_notification")
HOOKS = frozenset((*METHOD_HOOKS, *GENERAL_HOOKS))

LIST_METHODS = frozenset(
    ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
)


class MiddlewareContext(Generic[P]):
    """A request on its way through the hooks; each layer gets one of its own.

    Attributes:
        params: the decoded params, a struct of ``isthmus.types``; see :meth:`replace`.
        inbound: the request as the router has it, with the way back to its sender.
        server: what a layer may know of the server.
    """

    __slots__ = ("inbound", "params", "server")

    def __init__(self, params: P, inbound: Inbound, server: "ServerParts") -> None:
        self.params = params
        self.inbound = inbound
        self.server = server

    def __repr__(self) -> str:
        return f"MiddlewareContext({self.method!r})"

    @property
    def method(self) -> str:
        """The method of the request, such as ``"tools/call"``."""
        return self.inbound.method

    @property
    def request_id(self) -> Id:
        """The JSON-RPC id; empty for a notification."""
        return self.inbound.id

    @property
    def principal(self) -> Any:
        """The :class:`~isthmus.Principal` who authenticated, or None."""
        return self.inbound.principal

    @property
    def revision(self) -> Revision:
        """The revision that this is served in."""
        return self.inbound.caller.revision

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's headers by lower-case name; empty on other transports."""
        return self.inbound.origin.headers

    @property
    def transport(self) -> str:
        """The transport that it came by, as ``"stdio"`` or ``"http"``."""
        return self.inbound.origin.transport

    @property
    def session(self) -> str | None:
        """A name for the session it belongs to (up to 2025-11-25), or None."""
        return self.inbound.origin.session

    @property
    def state(self) -> Any:
        """The value of the server's lifespan, as ``ctx.state`` in a tool."""
        return self.server.state

    @property
    def name(self) -> str | None:
        """The tool's or prompt's name, or the resource's URI; None where there is neither."""
        named = getattr(self.params, "name", None) or getattr(self.params, "uri", None)
        return named if isinstance(named, str) else None

    @property
    def tool(self) -> Tool | None:
        """The called tool as the server lists it; None for one that it does not have itself."""
        if self.method != "tools/call":
            return None
        return self.server.find_tool(self.name or "", getattr(self.params, "meta", None))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a tool or a prompt, decoded anew each time; see :meth:`with_arguments`.

        Raises:
            Refuse: they are no object, or too deep.
        """
        given: Any = getattr(self.params, "arguments", None)
        try:
            read = msgspec.json.decode(given) if isinstance(given, Raw) else given
        except (msgspec.DecodeError, RecursionError):
            read = ()
        if not read and not isinstance(read, tuple | list):
            return {}
        if not isinstance(read, dict):
            raise Refuse(-32602, "Invalid params: Expected `object` - at `$.arguments`")
        return read

    def replace(self, params: P) -> "MiddlewareContext[P]":
        """The same request with other ``params``, to give to ``call_next``.

        Args:
            params: the other parameters.
        """
        changed = structs.replace(self.inbound, params=Raw(encode(params)))
        return MiddlewareContext(params, changed, self.server)

    def with_arguments(self, **changed: Any) -> "MiddlewareContext[P]":
        """The same request with the arguments in ``changed`` set to other values, to give to ``call_next``.

        Args:
            **changed: the new values by the names of the arguments.
        """
        given: Any = {**self.arguments, **changed}
        params: Any = self.params
        raw = isinstance(params, CallToolParams)
        return self.replace(structs.replace(params, arguments=Raw(encode(given)) if raw else given))


CallNext: TypeAlias = Callable[[MiddlewareContext[P]], Awaitable[R]]
"""``await call_next(ctx)`` serves the request by the layers within, and gives its result."""

ToolOutcome: TypeAlias = CallToolResult | InputRequiredResult | CreateTaskResult | TaskCreated
"""The outcome of a call of a tool: a result, questions to answer first, or a task."""


class Middleware:
    """A layer around what a server serves; subclasses define the hooks that they need.

    Any other object with hooks of these names will do as well. A hook may change the request
    (``call_next(ctx.replace(…))``), change the result, give a result of its own, call twice, or
    refuse (``raise Refuse(…)``).

    Attributes:
        methods: the methods that ``on_message`` and ``on_request`` are for; None for all.
        reads_results: False leaves pages of lists the bytes as which the server keeps them.
    """

    methods: Collection[str] | None = None
    reads_results: ClassVar[bool] = True

    def attach(self, server: "ServerParts") -> None:
        """Called when this is put in place on a server.

        Args:
            server: the parts of the server that a middleware may use.
        """

    async def on_message(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle every request and notification; as it stands, hand it on.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result; None for a notification.
        """
        return await call_next(ctx)

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Handle every request.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result of its method.
        """
        return await call_next(ctx)

    async def on_notification(
        self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        """Handle every notification of the client; one that is not handed on is dropped.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.
        """
        return await call_next(ctx)

    async def on_call_tool(
        self,
        ctx: MiddlewareContext[CallToolParams],
        call_next: CallNext[CallToolParams, ToolOutcome],
    ) -> ToolOutcome:
        """Handle ``tools/call``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            A result (with ``is_error`` where the tool failed), questions, or a task.
        """
        return await call_next(ctx)

    async def on_list_tools(
        self,
        ctx: MiddlewareContext[ListToolsParams],
        call_next: CallNext[ListToolsParams, ListToolsResult],
    ) -> ListToolsResult:
        """Handle ``tools/list``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            One page of tools.
        """
        return await call_next(ctx)

    async def on_read_resource(
        self,
        ctx: MiddlewareContext[ReadResourceParams],
        call_next: CallNext[ReadResourceParams, ReadResourceResult | InputRequiredResult],
    ) -> ReadResourceResult | InputRequiredResult:
        """Handle ``resources/read``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The contents, or questions to answer first.
        """
        return await call_next(ctx)

    async def on_list_resources(
        self,
        ctx: MiddlewareContext[ListResourcesParams],
        call_next: CallNext[ListResourcesParams, ListResourcesResult],
    ) -> ListResourcesResult:
        """Handle ``resources/list``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            One page of resources.
        """
        return await call_next(ctx)

    async def on_list_resource_templates(
        self,
        ctx: MiddlewareContext[ListResourceTemplatesParams],
        call_next: CallNext[ListResourceTemplatesParams, ListResourceTemplatesResult],
    ) -> ListResourceTemplatesResult:
        """Handle ``resources/templates/list``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            One page of templates.
        """
        return await call_next(ctx)

    async def on_get_prompt(
        self,
        ctx: MiddlewareContext[GetPromptParams],
        call_next: CallNext[GetPromptParams, GetPromptResult | InputRequiredResult],
    ) -> GetPromptResult | InputRequiredResult:
        """Handle ``prompts/get``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The messages, or questions to answer first.
        """
        return await call_next(ctx)

    async def on_list_prompts(
        self,
        ctx: MiddlewareContext[ListPromptsParams],
        call_next: CallNext[ListPromptsParams, ListPromptsResult],
    ) -> ListPromptsResult:
        """Handle ``prompts/list``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            One page of prompts.
        """
        return await call_next(ctx)

    async def on_complete(
        self,
        ctx: MiddlewareContext[CompleteParams],
        call_next: CallNext[CompleteParams, CompleteResult],
    ) -> CompleteResult:
        """Handle ``completion/complete``.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The values.
        """
        return await call_next(ctx)

    async def on_initialize(
        self,
        ctx: MiddlewareContext[InitializeParams],
        call_next: CallNext[InitializeParams, InitializeResult],
    ) -> InitializeResult:
        """Handle ``initialize`` (up to 2025-11-25).

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            Revision, capabilities and name of the server.
        """
        return await call_next(ctx)

    async def on_discover(
        self,
        ctx: MiddlewareContext[DiscoverParams],
        call_next: CallNext[DiscoverParams, DiscoverResult],
    ) -> DiscoverResult:
        """Handle ``server/discover`` (since 2026-07-28).

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            Revisions, capabilities and name of the server.
        """
        return await call_next(ctx)

    async def on_subscribe(
        self,
        ctx: MiddlewareContext[SubscribeParams],
        call_next: CallNext[SubscribeParams, EmptyResult],
    ) -> EmptyResult:
        """Handle ``resources/subscribe`` (up to 2025-11-25).

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.
        """
        return await call_next(ctx)

    async def on_unsubscribe(
        self,
        ctx: MiddlewareContext[UnsubscribeParams],
        call_next: CallNext[UnsubscribeParams, EmptyResult],
    ) -> EmptyResult:
        """Handle ``resources/unsubscribe`` (up to 2025-11-25).

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.
        """
        return await call_next(ctx)

    async def on_listen(
        self, ctx: MiddlewareContext[ListenParams], call_next: CallNext[ListenParams, ListenResult]
    ) -> ListenResult:
        """Handle ``subscriptions/listen`` (since 2026-07-28), which lasts as long as its stream.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result that ends the stream.
        """
        return await call_next(ctx)

    async def on_set_level(
        self,
        ctx: MiddlewareContext[SetLevelParams],
        call_next: CallNext[SetLevelParams, EmptyResult],
    ) -> EmptyResult:
        """Handle ``logging/setLevel`` (up to 2025-11-25).

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.
        """
        return await call_next(ctx)


def has_hint(tool: Tool | None, *hints: str) -> bool:
    """Whether a tool is annotated as one of these: ``read_only_hint``, ``idempotent_hint``."""
    annotations = None if tool is None else tool.annotations
    return any(getattr(annotations, hint, None) is True for hint in hints)


def describe_outcome(result: Any) -> str:
    """A word for how a request ended: ok, tool_error, input_required or task."""
    kind = type(result)
    if kind is CallToolResult and result.is_error is True:
        return "tool_error"
    if kind is InputRequiredResult:
        return "input_required"
    return "task" if kind is TaskCreated or kind is CreateTaskResult else "ok"


def continues_rounds(params: Any) -> bool:
    """Whether a request brings answers or a state from a round before (since 2026-07-28)."""
    answers, state = (
        getattr(params, "input_responses", None),
        getattr(params, "request_state", None),
    )
    return bool(answers or state)
