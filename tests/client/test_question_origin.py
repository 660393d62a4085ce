"""Question origin: whoever answers a question may know the way by which it came."""

from msgspec import Struct

from isthmus import Accepted, Context, Server
from isthmus.client.model.questions import QUESTION_ORIGIN
from isthmus.testing import connect


class Seat(Struct):
    """Which seat."""

    row: int


def make_asking_server() -> Server:
    """A server with a tool that asks."""
    server = Server("asking")

    @server.tool
    async def book(ctx: Context) -> str:
        """Ask for a seat."""
        return repr(await ctx.elicit("Which seat?", Seat))

    return server


async def ways(revision):
    """By which ways the question of one call came, with its key."""
    found = []

    async def elicit(_question):
        asked = QUESTION_ORIGIN.get()
        found.append((asked.route, asked.revision.name, bool(asked.key)))
        return Accepted({"row": 1})

    async with connect(
        make_asking_server(), revision=revision, elicit=elicit, strict=False
    ) as client:
        await client.call_tool("book", {})
    return found


async def test_a_question_says_by_which_way_it_came():
    """Ours: a host asks policy by route, and the answering function sees it in either era."""
    assert [("request", "2025-11-25", False)] == await ways("2025-11-25")
    assert [("result", "2026-07-28", True)] == await ways("2026-07-28")


async def test_outside_of_answering_there_is_no_question():
    """Ours: what is set for one question is not left behind for what comes next."""
    await ways("2026-07-28")

    assert QUESTION_ORIGIN.get() is None
