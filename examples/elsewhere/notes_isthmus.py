"""Notes in SQLite, with isthmus."""

import sqlite3
from contextlib import asynccontextmanager

from isthmus import Context, Server, ToolError


@asynccontextmanager
async def database(server):
    """Open the database for as long as the server runs."""
    with sqlite3.connect(":memory:", check_same_thread=False) as db:
        db.execute("create table notes (id integer primary key, text text not null)")
        yield db


server = Server("notes", lifespan=database)


@server.tool(destructive=False)
def create_note(text: str, ctx: Context[sqlite3.Connection]) -> int:
    """Keep a note, and give its number."""
    return ctx.state.execute("insert into notes (text) values (?)", [text]).lastrowid


@server.tool(destructive=True)
def delete_note(id: int, ctx: Context[sqlite3.Connection]) -> str:
    """Delete a note."""
    if not ctx.state.execute("delete from notes where id = ?", [id]).rowcount:
        raise ToolError(f"there is no note {id}")
    return "deleted"


@server.tool(read_only=True)
def search_notes(words: str, ctx: Context[sqlite3.Connection]) -> list[str]:
    """Find notes by what is in them."""
    found = ctx.state.execute("select text from notes where text like ?", [f"%{words}%"])
    return [text for (text,) in found]


@server.resource("notes://{id}")
def note(id: int, ctx: Context[sqlite3.Connection]) -> str:
    """One note."""
    return ctx.state.execute("select text from notes where id = ?", [id]).fetchone()[0]


@server.prompt
def summarise(topic: str) -> str:
    """Ask for a summary of the notes about something."""
    return f"Summarise the notes about {topic}."


if __name__ == "__main__":
    server.run()
