"""The server that the transcripts talk to: a little of everything.

A server whose tool needs a page to be visited, for transcripts.
"""

import asyncio

from msgspec import Struct

from isthmus import Accepted, Context, Server, ToolError
from isthmus.errors import UrlRequired


class Row(Struct):
    row: int


def make_shop():
    """A server that computes, asks, tells how far it is, and has things to read."""
    server = Server("shop", version="1", secret=b"only for transcripts")
    tools(server)
    questions(server)
    readings(server)
    return server


def tools(server):
    """Tools that compute and report."""

    @server.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool
    async def pack(ctx: Context) -> str:
        """Pack, and tell how far it is."""
        for step in (1, 2):
            await ctx.progress(step, 2, f"box {step}")
        ctx.log.warning("the tape is running out", left=3)
        ctx.log.debug("the boxes are brown")
        return "packed"

    @server.tool
    async def wait() -> str:
        """Wait until somebody has enough of it."""
        await asyncio.Event().wait()
        return "never"

    @server.tool
    def restock() -> str:
        """Change what there is."""
        server.notify_resource_updated("note://1")
        return "restocked"

    @server.tool
    def open_till() -> str:
        """Offer one tool more."""
        server.add_tool(add, name="till", description="Add up.")
        return "open"

    @server.tool
    def open_shelf() -> str:
        """Offer one resource more."""
        server.add_resource(lambda: "books", "shelf://1", name="shelf")
        return "open"

    @server.tool
    def open_book() -> str:
        """Offer one prompt more."""
        server.add_prompt(lambda: "Thank them.", name="thank")
        return "open"


def questions(server):
    """Tools that ask the client."""

    @server.tool
    async def book(date: str, ctx: Context) -> str:
        """Book."""
        match await ctx.elicit(f"Which row on {date}?", Row, key="seat"):
            case Accepted(Row(row)):
                return f"row {row} on {date}"
            case _:
                raise ToolError("not booked")

    @server.tool
    async def pay(ctx: Context) -> str:
        """Have the user pay on a page."""
        answer = await ctx.elicit_url("Pay here", "https://shop.example/pay", elicitation_id="p1")
        if isinstance(answer, Accepted):
            server.notify_elicitation_complete("p1")
        return "paid"

    @server.tool
    async def rhyme(word: str, ctx: Context) -> str:
        """Have the client's model write."""
        return (await ctx.sample(f"Rhyme on {word}", max_tokens=20)).text

    @server.tool
    async def where(ctx: Context) -> str:
        """Say where it may work."""
        return ", ".join(root.uri for root in await ctx.roots())


def readings(server):
    """Resources and prompts."""

    @server.resource("note://{id}", mime_type="text/plain", title="A note")
    def note(id: str) -> str | None:
        """One note."""
        return f"note {id}" if id.isdigit() else None

    @server.resource("note://all", mime_type="text/plain")
    def notes() -> str:
        """All notes."""
        return "note 1, note 2"

    @note.completes("id")
    def ids() -> list[str]:
        return ["1", "12", "2"]

    @server.prompt
    def greet(name: str, tone: str = "warm") -> str:
        """Greet somebody."""
        return f"Greet {name}, {tone}."

    @greet.completes("tone")
    def tones(typed: str, others: dict[str, str]) -> list[str]:
        known = ["warm", "formal"] if others.get("name") != "the Queen" else ["formal"]
        return [tone for tone in known if tone.startswith(typed)]


def make_visits():
    """A server with one tool, which works at its second call."""
    server = Server("visits", version="1")
    called = []

    @server.tool
    def files() -> str:
        """List the user's files."""
        called.append(1)
        if len(called) == 1:
            raise UrlRequired(("https://files.example/connect", "Connect your files."))
        return "three files"

    return server
