"""Rules of the migration: what the foreign packages are called, and what came along with them."""

from collections.abc import Mapping

# modules of a foreign package, by which a string that names one is told from other words
FOREIGN_SUBMODULES: Mapping[str, frozenset[str]] = {
    "mcp": frozenset({"client", "cli", "os", "server", "shared", "types"}),
    "mcp_types": frozenset(),
    "fastmcp": frozenset(
        {
            "apps", "cli", "client", "contrib", "dependencies", "exceptions", "experimental",
            "mcp_config", "prompts", "resources", "server", "settings", "telemetry", "tools",
            "types", "utilities",
        }
    ),
}  # fmt: skip

# requirements that isthmus takes the place of
DISTRIBUTIONS = frozenset({"mcp", "mcp-types", "fastmcp", "fastmcp-slim"})

# modules that came along with mcp or fastmcp, and their requirements, which may now be missing
BROUGHT_LIBRARIES: Mapping[str, str] = {
    "anyio": "anyio",
    "dotenv": "python-dotenv",
    "httpx": "httpx",
    "httpx_sse": "httpx-sse",
    "jsonschema": "jsonschema",
    "pydantic_settings": "pydantic-settings",
    "sse_starlette": "sse-starlette",
    "starlette": "starlette",
    "typing_extensions": "typing-extensions",
    "typing_inspection": "typing-inspection",
}

# calls whose first argument, a string, is the path of a module or of a name in it
PATCHING_CALLS = frozenset(
    {"__import__", "delattr", "find_spec", "import_module", "importorskip", "patch", "resolve_name", "setattr"}
)  # fmt: skip


def is_foreign_path(text: str) -> bool:
    """Say whether a string is the path of a foreign module, or of a name in one.

    >>> is_foreign_path("mcp.server.fastmcp.FastMCP"), is_foreign_path("mcp.json")
    (True, False)
    """
    head, dot, rest = text.partition(".")
    known = FOREIGN_SUBMODULES.get(head)
    if known is None or not all(part.isidentifier() for part in text.split(".")):
        return False
    return bool(dot) and (not known or rest.split(".")[0] in known or rest[:1].isupper())
