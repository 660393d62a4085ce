"""Middleware with hooks, under the names of ``fastmcp.server.middleware.middleware``."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

T = TypeVar("T")

CallNext: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Goes on to the next middleware, and in the end to the handler; gives the result."""

HOOKS = {
    "initialize": "on_initialize",
    "server/discover": "on_discover",
    "tools/call": "on_call_tool",
    "resources/read": "on_read_resource",
    "prompts/get": "on_get_prompt",
    "tools/list": "on_list_tools",
    "resources/list": "on_list_resources",
    "resources/templates/list": "on_list_resource_templates",
    "prompts/list": "on_list_prompts",
}


@dataclass(kw_only=True, frozen=True)
class MiddlewareContext(Generic[T]):
    """Message on its way through the middleware.

    Attributes:
        message: its params, as ``mcp.types`` has them.
        fastmcp_context: the context of the request.
        source: who sent it.
        type: request or notification.
        method: the method.
        timestamp: when it came.
    """

    message: T
    fastmcp_context: Any = None
    source: Literal["client", "server"] = "client"
    type: Literal["request", "notification"] = "request"
    method: str | None = None
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))

    def copy(self, **changes: Any) -> Self:
        """Copy it with other values for some attributes."""
        return replace(self, **changes)


class Middleware:
    """Layer around messages; a subclass overrides the hooks that it needs."""

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Run the hooks of a message: ``on_message``, ``on_request``, and that of its method."""
        handle = call_next
        hooks = [HOOKS.get(context.method or "", ""), f"on_{context.type}", "on_message"]
        for name in filter(None, hooks):
            handle = _bind(getattr(self, name), handle)
        return await handle(context)

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around every message."""
        return await call_next(context)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around every request."""
        return await call_next(context)

    async def on_notification(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around every notification."""
        return await call_next(context)

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around the handshake."""
        return await call_next(context)

    async def on_discover(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around ``server/discover``."""
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around a call of a tool; gives a ``ToolResult``."""
        return await call_next(context)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around the reading of a resource; gives a ``ResourceResult``."""
        return await call_next(context)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Around the rendering of a prompt; gives a ``PromptResult``."""
        return await call_next(context)

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """Around the list of tools."""
        listed: Sequence[Any] = await call_next(context)
        return listed

    async def on_list_resources(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """Around the list of resources."""
        listed: Sequence[Any] = await call_next(context)
        return listed

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """Around the list of templates."""
        listed: Sequence[Any] = await call_next(context)
        return listed

    async def on_list_prompts(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """Around the list of prompts."""
        listed: Sequence[Any] = await call_next(context)
        return listed


def _bind(hook: Callable[..., Awaitable[Any]], call_next: CallNext) -> CallNext:
    async def handle(context: Any) -> Any:
        return await hook(context, call_next)

    return handle


def compose_layers(layers: Sequence[Any], handle: CallNext) -> CallNext:
    """Put layers around what handles a message, the first of them outermost."""
    for layer in reversed(layers):
        handle = _bind(layer, handle)
    return handle
