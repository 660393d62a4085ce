"""A server that several processes of any ASGI server share by its store."""

from isthmus import Server

server = Server("counter", version="1.0", store="sqlite:///counter.db")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


app = server.asgi(drain=30)
