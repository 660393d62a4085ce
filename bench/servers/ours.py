"""The tool ``add`` on isthmus: ``stdio``, or ``http PORT json|sse``."""

import sys

from isthmus import Server

server = Server("bench", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run("http", port=int(sys.argv[2]), stream_answers=sys.argv[3] == "sse")
