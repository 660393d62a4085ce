"""Tool and its result, under the names of ``fastmcp.tools.base`` (2.x: ``fastmcp.tools.tool``)."""

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from pydantic_core import PydanticSerializationError

from isthmus.compat.fastmcp.components.component import FastMCPComponent, drop_none, dump_model
from isthmus.compat.fastmcp.components.content import (
    MEDIA,
    is_content,
    load_types,
    to_blocks,
    to_jsonable,
    to_wire_block,
)
from isthmus.compat.fastmcp.exceptions import ToolError
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.utilities.types import NotSet, NotSetT
from isthmus.compat.outputs import decode_questions, dump_wire
from isthmus.wire import CallToolResult
from isthmus.wire import Tool as WireTool

__all__ = ["NotSet", "NotSetT", "Tool", "ToolResult"]

WRAP_KEY = "x-fastmcp-wrap-result"


class ToolResult:
    """Result of a tool: content blocks, and structured content.

    Args:
        content: blocks, or any value that becomes some; the structured content by default.
        structured_content: an object, or a model that is one.
        meta: meta of the result.
        is_error: it says what went wrong.

    Raises:
        ValueError: neither is given, or the structured content is no object.
    """

    def __init__(
        self,
        content: Any = None,
        structured_content: Any = None,
        meta: dict[str, Any] | None = None,
        is_error: bool = False,
    ) -> None:
        if content is None and structured_content is None:
            raise ValueError("Either content or structured_content must be provided")
        self.content: list[Any] = to_blocks(structured_content if content is None else content)
        if structured_content is not None:
            structured_content = to_jsonable(structured_content)
            if not isinstance(structured_content, dict):
                raise ValueError(
                    f"structured_content must be a dict or None. Got {type(structured_content).__name__}: "
                    f"{structured_content!r}. Tools should wrap non-dict values based on their output_schema."
                )
        self.structured_content: dict[str, Any] | None = structured_content
        self.meta = meta
        self.is_error = is_error

    def __repr__(self) -> str:
        return (
            f"ToolResult(content={self.content!r}, structured_content={self.structured_content!r})"
        )

    def to_mcp_result(self) -> Any:
        """Convert it to the result of ``mcp.types``, or to what stands for one there."""
        if self.meta is not None or self.is_error:
            return load_types().CallToolResult(
                content=self.content,
                structuredContent=self.structured_content,
                isError=self.is_error,
                _meta=self.meta,
            )
        if self.structured_content is None:
            return self.content
        return self.content, self.structured_content

    def to_wire(self) -> CallToolResult:
        """The result as isthmus sends it."""
        structured, meta = self.structured_content, self.meta
        return CallToolResult(
            content=[to_wire_block(block) for block in self.content],
            structured_content=msgspec.UNSET if structured is None else structured,
            is_error=True if self.is_error else msgspec.UNSET,
            meta=msgspec.UNSET if meta is None else meta,
        )


class WrittenToolResult(ToolResult):
    """Result that a tool wrote itself, in the form of ``mcp.types.CallToolResult``."""

    def __init__(self, written: Any) -> None:
        self._written = dump_model(written)
        self.content = list(written.content)
        self.structured_content = self._written.get("structuredContent")
        self.meta = self._written.get("_meta")
        self.is_error = bool(self._written.get("isError"))

    def to_wire(self) -> CallToolResult:
        """The result as isthmus sends it."""
        return msgspec.convert(self._written, CallToolResult)


class InputRequiredToolResult(ToolResult):
    """Result that asks the client for input, and is no content of the tool (2026-07-28).

    Attributes:
        input_required: the questions, as ``mcp.types.InputRequiredResult``.
    """

    def __init__(self, input_required: Any) -> None:
        super().__init__(content=[])
        self.input_required = input_required

    def to_wire(self) -> Any:
        """The questions as isthmus sends them."""
        return decode_questions(dump_wire(self.input_required))


class Tool(FastMCPComponent):
    """Tool of a server written for fastmcp; a subclass overrides ``run``.

    Attributes:
        parameters: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured content.
        annotations: hints on what it does.
        timeout: seconds that a call may take.
        return_type: the annotation by which values are written.
    """

    KEY_PREFIX: ClassVar[str] = "tool"

    parameters: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: Any = None
    execution: Any = None
    timeout: float | None = None
    return_type: Any = None
    serializer: Any = None

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **options: Any) -> Any:
        """Make a tool of a function; the options are those of ``@mcp.tool``."""
        from isthmus.compat.fastmcp.tools.function_tool import FunctionTool

        return FunctionTool.from_function(fn, **options)

    @classmethod
    def from_tool(cls, tool: Any, **options: Any) -> Any:
        """Make a tool that calls another one, under other names and with other arguments."""
        from isthmus.compat.fastmcp.tools.tool_transform import TransformedTool

        return TransformedTool.from_tool(
            tool if isinstance(tool, Tool) else cls.from_function(tool), **options
        )

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run it: a subclass does."""
        raise NotImplementedError("Subclasses must implement run()")

    def convert_result(self, value: Any) -> ToolResult:
        """Make a result of what a function returned.

        Raises:
            ToolError: there is an output schema, and the value has no form in JSON.
        """
        if isinstance(value, ToolResult):
            return value
        if type(value).__name__ == "CallToolResult":
            return WrittenToolResult(value)
        if type(value).__name__ == "InputRequiredResult":
            return InputRequiredToolResult(value)
        blocks = holds_content(value)
        if isinstance(value, bytes) or (blocks and self.output_schema is None):
            return ToolResult(to_blocks(value))
        return self._convert_value(value, blocks=blocks)

    def _convert_value(self, value: Any, *, blocks: bool) -> ToolResult:
        try:
            plain = to_jsonable(value, self.return_type)
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            if self.output_schema is None:
                return ToolResult(to_blocks(value))
            raise ToolError(
                f"Could not serialize the return value of tool {self.name!r} for its output schema: {error}. If this "
                f"is unexpected, set the tool's output_schema to None to disable automatic serialization."
            ) from error
        content = to_blocks(
            value if blocks else self._write(value if FLAVOUR.writes_values else plain)
        )
        if self.output_schema is None:
            return ToolResult(content, plain if isinstance(plain, dict) else None)
        if self.output_schema.get(WRAP_KEY):
            meta = {"fastmcp": {"wrap_result": True}} if FLAVOUR.tells_wrapping else None
            return ToolResult(content, {"result": plain}, meta)
        return ToolResult(content, plain)

    def _write(self, plain: Any) -> Any:
        return plain if self.serializer is None else self.serializer(plain)

    def to_wire(self, name: str) -> WireTool:
        """The tool as isthmus lists it."""
        annotations = dump_model(self.annotations)
        title = self.title or (annotations or {}).get("title")
        if title is None and FLAVOUR.makes_titles:
            title = make_title(name)
        listed = {
            **self.list_shared_members(),
            "name": name,
            "title": title,
            "inputSchema": self.parameters,
            "outputSchema": self.output_schema,
            "annotations": annotations,
            "execution": dump_model(self.execution) or self._describe_tasks(),
        }
        return msgspec.convert(drop_none(listed), WireTool)

    def _describe_tasks(self) -> dict[str, Any] | None:
        config = self.task_config
        return {"taskSupport": config.mode} if config.supports_tasks() else None

    def to_mcp_tool(self, **overrides: Any) -> Any:
        """Convert it to ``mcp.types.Tool``."""
        listed = msgspec.to_builtins(self.to_wire(overrides.pop("name", self.name)))
        return load_types().Tool.model_validate({**listed, **overrides})


def holds_content(value: Any) -> bool:
    """Whether a value is content, or a list with some in it."""
    if isinstance(value, list | tuple):
        return any(is_content(one) or isinstance(one, MEDIA) for one in value)
    return is_content(value) or isinstance(value, MEDIA)


def make_title(name: str) -> str:
    """A title for people, from a tool's name."""
    return name.replace("_", " ").replace("-", " ").title()


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(load_types(), name)  # what fastmcp imports there, as `TextContent`
