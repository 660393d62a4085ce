"""Middleware that writes definitions where they are referred to, under the name of ``fastmcp.server.middleware.dereference``."""

from collections.abc import Sequence
from typing import Any

from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)
from isthmus.compat.fastmcp.server.provider import inline_schemas


class DereferenceRefsMiddleware(Middleware):
    """List tools and templates with schemas that refer to nothing."""

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the tools."""
        return [inline_schemas(one) for one in await call_next(context)]

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the templates."""
        return [inline_schemas(one) for one in await call_next(context)]
