"""The smallest server, as ``isthmus run`` and ``isthmus call`` take it."""

from isthmus import Server

server = Server("bench", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
