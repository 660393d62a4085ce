"""The smallest server with one of each: a tool, a resource, a prompt.

``isthmus run examples/hello.py`` serves it; ``isthmus call examples/hello.py add a=2 b=3`` calls it.
"""

from isthmus import Server

server = Server("hello", version="1.0")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first.
        b: the second.
    """
    return a + b


@server.resource("hello://greeting/{name}")
def greeting(name: str) -> str:
    """A greeting for somebody."""
    return f"Hello, {name}!"


@server.prompt
def haiku(topic: str) -> str:
    """Ask for a haiku."""
    return f"Write a haiku about {topic}."


if __name__ == "__main__":
    server.run()
