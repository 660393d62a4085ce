"""Middleware that cuts long results, under the name of ``fastmcp.server.middleware.response_limiting``."""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import pydantic_core

from isthmus.compat.fastmcp.components.content import to_wire_block
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)
from isthmus.compat.fastmcp.tools.model import ToolResult
from isthmus.wire import TextContent

logger = logging.getLogger("fastmcp.server.middleware.response_limiting")

FRAME_BYTES = 50  # that fastmcp allows for what stands around the text


class ResponseLimitingMiddleware(Middleware):
    """Cut the text of results that are longer than a limit.

    Args:
        max_size: bytes of a result as JSON.
        truncation_suffix: what the text ends with where it was cut.
        tools: those that this is for; all by default.

    Raises:
        ValueError: there is no room for anything.
    """

    def __init__(
        self,
        *,
        max_size: int = 1_000_000,
        truncation_suffix: str = "\n\n[Response truncated due to size limit]",
        tools: Sequence[str] | None = None,
    ) -> None:
        if max_size <= 0:
            raise ValueError(f"max_size must be positive, got {max_size}")
        self.max_size, self.truncation_suffix = max_size, truncation_suffix
        self.tools = None if tools is None else set(tools)

    def _limits(self, name: str) -> bool:
        return self.tools is None or name in self.tools

    async def on_list_tools(
        self, context: MiddlewareContext[Any], call_next: CallNext
    ) -> Sequence[Any]:
        """List the tools without the schemas of results that may be cut."""
        listed: Sequence[Any] = await call_next(context)
        if not FLAVOUR.hides_cut_schemas:
            return listed
        return [
            one.model_copy(update={"output_schema": None}) if self._limits(one.name) else one
            for one in listed
        ]

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Call a tool, and cut its result."""
        result = await call_next(context)
        name = context.message.name
        if not (self._limits(name) and isinstance(result, ToolResult)):
            return result
        written = write_result(result)
        if len(written) <= self.max_size:
            return result
        logger.warning(
            "Tool %r response exceeds size limit: %d bytes > %d bytes, truncating",
            name,
            len(written),
            self.max_size,
        )
        blocks = [to_wire_block(one) for one in result.content]
        texts = [one.text for one in blocks if isinstance(one, TextContent)]
        text = "\n\n".join(texts) if texts else written.decode("utf-8", "replace")
        return ToolResult(content=self._cut(text), meta=result.meta, is_error=result.is_error)

    def _cut(self, text: str) -> str:
        room = self.max_size - len(self.truncation_suffix.encode()) - FRAME_BYTES
        kept = text.encode()[: max(room, 0)].decode("utf-8", "ignore")
        return f"{kept}{self.truncation_suffix}"


def write_result(result: ToolResult) -> bytes:
    """A result as JSON, as fastmcp measures it."""
    return pydantic_core.to_json(
        {
            "content": [
                msgspec.to_builtins(one) if isinstance(one, msgspec.Struct) else one
                for one in result.content
            ],
            "structured_content": result.structured_content,
            "meta": result.meta,
            "is_error": result.is_error,
        },
        fallback=str,
    )
