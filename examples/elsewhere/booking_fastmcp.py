"""A booking that asks its user, with fastmcp."""

from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.server.elicitation import AcceptedElicitation

mcp = FastMCP("booking")


@dataclass
class Seat:
    """A seat in the train."""

    row: int
    window: bool = True


@mcp.tool
async def book(day: str, ctx: Context) -> str:
    """Book a seat."""
    await ctx.info(f"booking for {day}")
    answer = await ctx.elicit(f"Which seat on {day}?", response_type=Seat)
    if not isinstance(answer, AcceptedElicitation):
        return "nothing was booked"
    await ctx.report_progress(1, 1)
    return f"row {answer.data.row} on {day}"


if __name__ == "__main__":
    mcp.run()
