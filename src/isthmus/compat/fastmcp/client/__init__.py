"""Client and its transports under the names of ``fastmcp.client``."""

from isthmus.lazy import lazy_getattr

_CLIENT = "isthmus.compat.fastmcp.client"

__getattr__ = lazy_getattr(
    __name__,
    {
        **dict.fromkeys(("Client", "CallToolResult"), f"{_CLIENT}.client"),
        **dict.fromkeys(
            (
                *(
                    "ClientTransport",
                    "FastMCPTransport",
                    "MCPConfigTransport",
                    "NodeStdioTransport",
                ),
                *("NpxStdioTransport", "PythonStdioTransport", "SSETransport", "StdioTransport"),
                *("StreamableHttpTransport", "UvxStdioTransport"),
            ),
            f"{_CLIENT}.transports",
        ),
    },
)
