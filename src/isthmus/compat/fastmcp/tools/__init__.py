"""Tools under the names of ``fastmcp.tools``."""

from isthmus.lazy import lazy_getattr

_TOOLS = "isthmus.compat.fastmcp.tools"

_HOMES = {
    "Tool": f"{_TOOLS}.model",
    "ToolResult": f"{_TOOLS}.model",
    "InputRequiredToolResult": f"{_TOOLS}.model",
    "FunctionTool": f"{_TOOLS}.function_tool",
    "tool": f"{_TOOLS}.function_tool",
    "ArgTransform": f"{_TOOLS}.tool_transform",
    "TransformedTool": f"{_TOOLS}.tool_transform",
    "forward": f"{_TOOLS}.tool_transform",
    "forward_raw": f"{_TOOLS}.tool_transform",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - the keys of the table

__getattr__ = lazy_getattr(__name__, _HOMES)
