"""A booking that asks its user, with isthmus."""

from dataclasses import dataclass

from isthmus import Accepted, Context, Server

server = Server("booking")


@dataclass
class Seat:
    """A seat in the train."""

    row: int
    window: bool = True


@server.tool
async def book(day: str, ctx: Context) -> str:
    """Book a seat."""
    ctx.log.info(f"booking for {day}")
    answer = await ctx.elicit(f"Which seat on {day}?", Seat)
    if not isinstance(answer, Accepted):
        return "nothing was booked"
    await ctx.progress(1, 1)
    return f"row {answer.value.row} on {day}"


if __name__ == "__main__":
    server.run()
