"""Middleware that offers further tools, under the name of ``fastmcp.server.middleware.tool_injection``."""

from collections.abc import Sequence
from typing import Any

from isthmus.compat.fastmcp.exceptions import NotFoundError
from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)
from isthmus.compat.fastmcp.utilities.authorization import check_auth, may_use


class ToolInjectionMiddleware(Middleware):
    """Offer tools beside those of the server, before one of the same name.

    Args:
        tools: the tools.
    """

    def __init__(self, tools: Sequence[Any]) -> None:
        for one in tools:
            if one.auth is not None:
                check_auth(one.auth, f"the tool {one.name!r}")
        self._tools = {one.name: one for one in tools}

    @property
    def injected_tools(self) -> Sequence[Any]:
        """The tools."""
        return [*self._tools.values()]

    def get_injected_tool(self, name: str) -> Any:
        """A tool; None for none."""
        return self._tools.get(name)

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the tools, its own first; those that the caller may not use are left out."""
        others = [one for one in await call_next(context) if one.name not in self._tools]
        return [*[one for one in self._tools.values() if await may_use(one)], *others]

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Call a tool, its own or one of the server.

        Raises:
            NotFoundError: the check of one of its own does not admit the caller.
        """
        tool = self._tools.get(context.message.name)
        if tool is None:
            return await call_next(context)
        if not await may_use(tool):
            raise NotFoundError(f"Unknown tool: {tool.name!r}")
        return await tool.run(context.message.arguments or {})
