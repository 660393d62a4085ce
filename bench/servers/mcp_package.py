"""The tool ``add`` on the PyPI package ``mcp``: ``stdio``, or ``http PORT json|sse``.

Served as its users would to be fast: uvicorn with uvloop and httptools, no access log.
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        uvicorn.run(
            server.streamable_http_app(json_response=sys.argv[3] == "json"),
            port=int(sys.argv[2]),
            loop="uvloop",
            http="httptools",
            log_level="warning",
            access_log=False,
        )
