"""A server of 2026-07-28: it books a seat, and asks which one. The gateway's example launches it."""

from isthmus import Accepted, Context, Server

server = Server("cinema", revisions=["2026-07-28"])


@server.tool
async def book(film: str, ctx: Context) -> str:
    """Book a seat for a film."""
    match await ctx.elicit(f"Which row for {film}?", int):
        case Accepted(row):
            return f"row {row} for {film}"
    return "nothing is booked"


@server.resource("cinema://programme")
async def programme() -> str:
    """The programme of the week."""
    return "Metropolis, Playtime"


if __name__ == "__main__":
    server.run()
