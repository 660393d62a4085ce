"""Server of mcp 1.x or 2.x for the tour of sessions: ``python mcp_session_server.py GENERATION TRANSPORT PORT``."""

import sys
from importlib import import_module

from pydantic import BaseModel


class Size(BaseModel):
    """A size."""

    size: int


def make_server(generation, **options):  # noqa: C901 - it declares one of each
    """The server, of the high level of a generation."""
    package = f"mcp.server.{'fastmcp' if generation == '1' else 'mcpserver'}"
    library = import_module(package)
    if generation == "1":
        server = library.FastMCP("tour", instructions="Use it.", **options)
    else:
        server = library.MCPServer("tour", instructions="Use it.", version="1.0")
    context = library.Context
    types = import_module("mcp.types")
    server_errors = import_module(f"{package}.exceptions")

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    async def report(steps: int, ctx) -> str:
        """Report progress."""
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        return "done"

    async def write(ctx) -> str:
        """Write log messages."""
        await ctx.info("first")
        await ctx.warning("second")
        return "written"

    async def ask(ctx) -> str:
        """Ask the user."""
        answer = await ctx.elicit("How big?", Size)
        return f"{answer.action} {answer.data.size if answer.action == 'accept' else ''}"

    async def sample(text: str, ctx) -> str:
        """Have the model write."""
        written = await ctx.session.create_message(
            messages=[
                types.SamplingMessage(
                    role="user", content=types.TextContent(type="text", text=text)
                )
            ],
            max_tokens=5,
        )
        return f"{written.model}: {written.content.text}"

    async def places(ctx) -> str:
        """List the roots."""
        listed = await ctx.session.list_roots()
        return ", ".join(f"{one.name} {one.uri}" for one in listed.roots)

    for tool in (report, write, ask, sample, places):
        tool.__annotations__["ctx"] = context
        server.tool()(tool)

    @server.tool()
    def fail(how: str) -> str:
        """Fail."""
        if how == "told":
            raise server_errors.ToolError("no such thing")
        raise ValueError("broken")

    @server.resource("notes://today", mime_type="text/plain")
    def today() -> str:
        """The note of today."""
        return "buy bread"

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        """A note."""
        return f"about {name}"

    @server.prompt()
    def greet(name: str, times: str = "1") -> str:
        """Greet somebody."""
        return f"Hello, {name}! " * int(times)

    @server.completion()
    async def complete(ref, argument, _context):
        return types.Completion(values=[f"{argument.value}{end}" for end in ("a", "b")])

    return server


if __name__ == "__main__":
    generation, transport, port = sys.argv[1:4]
    address = {"host": "127.0.0.1", "port": int(port)}
    if transport == "stdio":
        make_server(generation).run()
    elif generation == "1":
        make_server(generation, **address).run(transport=transport)
    else:
        make_server(generation).run(transport=transport, **address)
