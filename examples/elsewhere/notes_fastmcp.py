"""Notes in SQLite, with fastmcp."""

import sqlite3
from contextlib import asynccontextmanager

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError


@asynccontextmanager
async def database(server):
    """Open the database for as long as the server runs."""
    with sqlite3.connect(":memory:", check_same_thread=False) as db:
        db.execute("create table notes (id integer primary key, text text not null)")
        yield {"db": db}


mcp = FastMCP("notes", lifespan=database)


@mcp.tool(annotations={"destructiveHint": False})
def create_note(text: str, ctx: Context) -> int:
    """Keep a note, and give its number."""
    db = ctx.lifespan_context["db"]
    return db.execute("insert into notes (text) values (?)", [text]).lastrowid


@mcp.tool(annotations={"destructiveHint": True})
def delete_note(id: int, ctx: Context) -> str:
    """Delete a note."""
    db = ctx.lifespan_context["db"]
    if not db.execute("delete from notes where id = ?", [id]).rowcount:
        raise ToolError(f"there is no note {id}")
    return "deleted"


@mcp.tool(annotations={"readOnlyHint": True})
def search_notes(words: str, ctx: Context) -> list[str]:
    """Find notes by what is in them."""
    db = ctx.lifespan_context["db"]
    found = db.execute("select text from notes where text like ?", [f"%{words}%"])
    return [text for (text,) in found]


@mcp.resource("notes://{id}")
def note(id: int, ctx: Context) -> str:
    """One note."""
    db = ctx.lifespan_context["db"]
    return db.execute("select text from notes where id = ?", [id]).fetchone()[0]


@mcp.prompt
def summarise(topic: str) -> str:
    """Ask for a summary of the notes about something."""
    return f"Summarise the notes about {topic}."


if __name__ == "__main__":
    mcp.run()
