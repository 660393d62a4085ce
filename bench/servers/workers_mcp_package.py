"""The smallest server of the PyPI package ``mcp`` as an ASGI application, for several processes."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


app = server.streamable_http_app(json_response=True)
