"""Messages as middleware sees them: their params, as ``mcp.types`` has them."""

from typing import Any

from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.fastmcp.server.middleware.middleware import MiddlewareContext

PARAMS_NAMES = {
    "tools/call": "CallToolRequestParams",
    "resources/read": "ReadResourceRequestParams",
    "prompts/get": "GetPromptRequestParams",
}

REQUEST_NAMES = {
    "tools/list": "ListToolsRequest",
    "resources/list": "ListResourcesRequest",
    "resources/templates/list": "ListResourceTemplatesRequest",
    "prompts/list": "ListPromptsRequest",
}


def make_message_context(
    method: str, params: dict[str, Any], context: Any
) -> MiddlewareContext[Any]:
    """Make what the middleware gets of a request."""
    types = load_types()
    if method in PARAMS_NAMES:
        message = getattr(types, PARAMS_NAMES[method])(**params)
    else:
        message = getattr(types, REQUEST_NAMES[method])(method=method)
    return MiddlewareContext(message=message, method=method, fastmcp_context=context)
