"""Middleware that logs how long requests take, under the names of ``fastmcp.server.middleware.timing``."""

import logging
import time
from typing import Any

from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)


class TimingMiddleware(Middleware):
    """Log how long each request takes.

    Args:
        logger: the logger; ``fastmcp.timing`` by default.
        log_level: the level of its lines.
    """

    logger_name = "fastmcp.timing"

    def __init__(self, logger: logging.Logger | None = None, log_level: int = logging.INFO) -> None:
        self.logger = logger or logging.getLogger(self.logger_name)
        self.log_level = log_level

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time a request."""
        return await self.time(f"Request {context.method or 'unknown'}", context, call_next)

    async def time(self, label: str, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Serve a message, and log under a label how long that took."""
        begun = time.perf_counter()
        ending = "completed in"
        failure = ""
        try:
            return await call_next(context)
        except Exception as error:
            ending, failure = "failed after", f": {error}"
            raise
        finally:
            taken = (time.perf_counter() - begun) * 1000
            self.logger.log(self.log_level, "%s %s %.2fms%s", label, ending, taken, failure)


class DetailedTimingMiddleware(TimingMiddleware):
    """Log how long calls, reads, prompts and lists take, by what they are of.

    Args:
        logger: the logger; ``fastmcp.timing.detailed`` by default.
        log_level: the level of its lines.
    """

    logger_name = "fastmcp.timing.detailed"

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Nothing of its own: the hooks of each operation time it."""
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time a call."""
        return await self.time(f"Tool '{context.message.name}'", context, call_next)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time a read."""
        return await self.time(f"Resource '{context.message.uri}'", context, call_next)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time the rendering of a prompt."""
        return await self.time(f"Prompt '{context.message.name}'", context, call_next)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time the list of tools."""
        return await self.time("List tools", context, call_next)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time the list of resources."""
        return await self.time("List resources", context, call_next)

    async def on_list_resource_templates(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Any:
        """Time the list of templates."""
        return await self.time("List resource templates", context, call_next)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Time the list of prompts."""
        return await self.time("List prompts", context, call_next)
