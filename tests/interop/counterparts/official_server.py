"""The bookings server on PyPI ``mcp`` 2.3: ``official_server.py [PORT]``, stdio without a port."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("official")


class Seat(BaseModel):
    row: int
    window: bool = False


@server.tool()
def price(kind: str) -> int:
    """What a kind of place costs."""
    return {"quiet": 55}[kind]


@server.tool()
async def steps(ctx: Context) -> str:
    """Report progress three times."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
    return "done"


def which_seat() -> Elicit[Seat]:
    """The question, in the form that this library carries through both eras."""
    return Elicit("Which seat?", Seat)


@server.tool()
async def ask(seat: Annotated[Seat, Resolve(which_seat)]) -> str:
    """Ask the user for a seat."""
    return f"row {seat.row}"


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "Remember the milk."


@server.prompt()
def hello(name: str) -> str:
    """Say hello."""
    return f"Say hello to {name}."


if len(sys.argv) > 1:
    import uvicorn

    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="warning")
else:
    server.run("stdio")
