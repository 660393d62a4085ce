"""Vocabulary of the façades that has native words: classes, decorators, options and functions."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

FACADE_ROOT = "isthmus.compat"


class Library(Enum):
    """A library that code was written for."""

    FASTMCP = "fastmcp"
    MCP1 = "mcp 1"
    MCP2 = "mcp 2"


class Role(Enum):
    """The part that a foreign name has in a server; its value is the native name, if there is one."""

    SERVER = "Server"
    CONTEXT = "Context"
    TOOL_ERROR = "ToolError"
    TOOL_ANNOTATIONS = ""


class ForeignName(NamedTuple):
    """A name of a façade that has a native word."""

    role: Role
    library: Library | None = None


def _list_names() -> Mapping[str, ForeignName]:
    names: dict[str, ForeignName] = {
        "isthmus.compat.fastmcp.exceptions.ToolError": ForeignName(Role.TOOL_ERROR),
        "isthmus.compat.types.ToolAnnotations": ForeignName(Role.TOOL_ANNOTATIONS),
        "isthmus.compat.mcp.ToolAnnotations": ForeignName(Role.TOOL_ANNOTATIONS),
    }
    for home in ("fastmcp", "fastmcp.server", "fastmcp.server.server", "fastmcp.server.context"):
        names[f"isthmus.compat.{home}.FastMCP"] = ForeignName(Role.SERVER, Library.FASTMCP)
        names[f"isthmus.compat.{home}.Context"] = ForeignName(Role.CONTEXT)
    for home in ("mcp", "mcp.mcpserver", "mcp.context"):
        names[f"isthmus.compat.{home}.FastMCP"] = ForeignName(Role.SERVER, Library.MCP1)
        names[f"isthmus.compat.{home}.MCPServer"] = ForeignName(Role.SERVER, Library.MCP2)
        names[f"isthmus.compat.{home}.Context"] = ForeignName(Role.CONTEXT)
    return names


FOREIGN_NAMES = _list_names()

# Options of a server's constructor that are the same natively; all take keywords.
SERVER_OPTIONS: Mapping[Library, frozenset[str]] = {
    Library.FASTMCP: frozenset({"name", "instructions", "version"}),
    Library.MCP1: frozenset({"name", "instructions"}),
    Library.MCP2: frozenset({"name", "instructions", "version", "title", "description"}),
}

# Options of decorators that are the same natively, by decorator.
ITEM_OPTIONS: Mapping[str, frozenset[str]] = {
    "tool": frozenset({"name", "title", "description"}),
    "resource": frozenset({"name", "title", "description", "mime_type"}),
    "prompt": frozenset({"name", "title", "description"}),
}

HINTS: Mapping[str, str] = {
    "readOnlyHint": "read_only",
    "read_only_hint": "read_only",
    "destructiveHint": "destructive",
    "destructive_hint": "destructive",
    "idempotentHint": "idempotent",
    "idempotent_hint": "idempotent",
    "openWorldHint": "open_world",
    "open_world_hint": "open_world",
}

LOG_METHODS = frozenset({"debug", "info", "warning", "error"})

# Names of functions that raise nothing for values of fitting types.
QUIET_BUILTINS = frozenset(
    {
        "abs", "all", "any", "bool", "dict", "enumerate", "isinstance", "len", "list", "range", "repr",
        "reversed", "set", "sorted", "str", "sum", "tuple",
    }
)  # fmt: skip

QUIET_FUNCTIONS = frozenset(
    {"asyncio.sleep", "time.time", "time.monotonic", "datetime.datetime.now", "datetime.date.today"}
)

# Methods of texts, lists, dictionaries and sets that raise nothing for values of fitting types.
QUIET_METHODS = frozenset(
    {
        "add", "append", "capitalize", "casefold", "copy", "count", "endswith", "get", "isalpha", "isdigit",
        "items", "keys", "lower", "lstrip", "replace", "rstrip", "splitlines", "startswith", "strip", "swapcase",
        "title", "upper", "values",
    }
)  # fmt: skip
