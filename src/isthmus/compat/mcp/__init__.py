"""Façade of the official SDK, ``mcp`` 2.x and 1.x: names of its servers and clients, imported on first use."""

from typing import Any

from isthmus.lazy import lazy_getattr

# The module of each name, below this one.
_HOMES = {
    "mcpserver": "MCPServer FastMCP Tool",
    "context": (
        "Context AcceptedElicitation DeclinedElicitation CancelledElicitation ElicitationResult"
    ),
    "prompts": "Message UserMessage AssistantMessage Prompt",
    "resources": (
        "Resource TextResource BinaryResource FileResource DirectoryResource FunctionResource "
        "ResourceTemplate"
    ),
    "lowlevel": "Server NotificationOptions InitializationOptions ReadResourceContents",
    "resolve": "Resolve Elicit Sample ListRoots",
    "stdio": "stdio_server",
    "http": "TransportSecuritySettings",
    "client.client": "Client",
    "client.session": "ClientSession",
    "client.session_group": "ClientSessionGroup",
    "client.stdio": "StdioServerParameters stdio_client",
}

HOMES = {
    **{name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names.split()},
    **dict.fromkeys(("Image", "Audio"), "isthmus.compat.media"),
    "CacheHint": "isthmus.compat.caching",
    **dict.fromkeys(("ServerRequestContext", "ServerSession"), "isthmus.compat.session"),
    **dict.fromkeys(
        (
            "MCPError",
            "McpError",
            "MCPDeprecationWarning",
            "UrlElicitationRequiredError",
            "ToolError",
            "ResourceError",
        ),
        "isthmus.compat.exceptions",
    ),
}

__all__ = [*HOMES]  # noqa: PLE0604 - the keys of the table

_get_own = lazy_getattr(__name__, HOMES)


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return _get_own(name)
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isthmus.compat import types  # `from mcp import Tool`: one of the protocol's types

    if name in types.__all__:
        return getattr(types, name)
    from importlib import import_module

    try:  # `import mcp; mcp.server.stdio`
        return import_module(f"mcp.{name}")
    except ModuleNotFoundError:
        from isthmus.compat.imports import describe_missing

        raise ImportError(describe_missing(f"mcp.{name}"), name="mcp") from None
