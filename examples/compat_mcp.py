"""A server written for the official SDK, run on isthmus: ``isthmus run --compat examples/compat_mcp.py``."""

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("library", version="1.0", instructions="Lends books.")

BOOKS = {"1": "Emma", "2": "Ulysses"}


class Lending(BaseModel):
    """A book that is lent, and for how long."""

    title: str
    days: int


@server.tool()
async def lend(book: str, ctx: Context, days: int = 14) -> Lending:
    """Lend a book."""
    if book not in BOOKS:
        raise ToolError(f"there is no book {book}")
    await ctx.report_progress(1, 1)
    return Lending(title=BOOKS[book], days=days)


@server.resource("books://{book}")
def read(book: str) -> str:
    """The title of a book."""
    return BOOKS[book]


if __name__ == "__main__":
    server.run()
