"""Dependencies: a user, a transaction and a permission, made for each call and closed after it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from isthmus import Context, Inject, Server, ToolError


class Database:
    """A table in memory, with transactions."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[dict[str, str]]:
        """A copy of the rows, which takes their place if all goes well."""
        rows = dict(self.rows)
        yield rows
        self.rows = rows


@asynccontextmanager
async def open_database(_server: Server) -> AsyncIterator[Database]:
    """The database of the server, open as long as it serves."""
    yield Database()


server = Server("notes", version="1.0", lifespan=open_database)


async def current_user(ctx: Context) -> str:
    """Who calls: by the token, or by the name that the client gives itself."""
    if ctx.principal is not None:
        return ctx.principal.subject
    return "nobody" if ctx.client is None else ctx.client.name


async def transaction(ctx: Context) -> AsyncIterator[dict[str, str]]:
    """Rows to read and write; kept if the tool returns, dropped if it raises."""
    async with ctx.state.transaction() as rows:
        yield rows


Rows = Annotated[dict[str, str], Inject(transaction)]


async def own_note(title: str, rows: Rows, user: Annotated[str, Inject(current_user)]) -> str:
    """The key of a note; ``title`` is the argument of the tool."""
    key = f"{user}/{title}"
    if key not in rows:
        raise ToolError(f"You have no note {title!r}.")
    return key


@server.tool
async def write(
    title: str, text: str, rows: Rows, user: Annotated[str, Inject(current_user)]
) -> str:
    """Write a note."""
    rows[f"{user}/{title}"] = text
    if not text:
        raise ToolError("A note has a text.")  # and nothing was written
    return "written"


@server.tool(read_only=True)
async def read(title: str, rows: Rows, key: Annotated[str, Inject(own_note)]) -> str:
    """Read a note."""
    return f"{title}: {rows[key]}"


if __name__ == "__main__":
    server.run()
