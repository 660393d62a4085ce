"""Book a place: a server whose tools ask the user, report progress and use the user's model.

Run it with ``isthmus run examples/bookings.py``, with ``--http 127.0.0.1:8000`` for HTTP.
"""

from typing import Annotated

from msgspec import Meta, Struct

from isthmus import Accepted, Context, Server, ToolError

server = Server("bookings", version="1.0", instructions="Ask for a date, then book.")

PRICES = {"warm": 40, "quiet": 55, "window": 70}


class Seat(Struct):
    """Where to sit."""

    row: Annotated[int, Meta(ge=1, le=40, description="Row, counted from the front.")]
    window: bool = False


class Booking(Struct):
    """A place that is yours."""

    code: str
    seat: Seat


class Ledger:
    """The bookings made so far, and how many places are on hold."""

    def __init__(self) -> None:
        self.holds = 0
        self.bookings: dict[str, Booking] = {}

    async def hold(self, date: str) -> str:
        """Hold a place; an effect that must happen once, however many rounds a call takes."""
        self.holds += 1
        return f"hold-{date}"

    def confirm(self, hold: str, seat: Seat) -> Booking:
        """Turn a hold into a booking."""
        booking = Booking(f"B-{hold.removeprefix('hold-')}-{seat.row}", seat)
        self.bookings[booking.code] = booking
        return booking


ledger = Ledger()


@server.tool
async def book(date: str, ctx: Context) -> Booking:
    """Book a place on a date.

    Args:
        date: ISO date, for example 2026-05-01.
    """
    hold = await ctx.once(ledger.hold, date)
    await ctx.progress(1, total=3, message="a place is on hold")
    match await ctx.elicit(f"Which seat on {date}?", Seat):
        case Accepted(seat):
            await ctx.progress(2, total=3, message="seat chosen")
            booking = ledger.confirm(hold, seat)
            await ctx.progress(3, total=3, message="booked")
            return booking
        case _:
            raise ToolError("Not booked: no seat was chosen.")


@server.tool(read_only=True, title="Sum up")
async def summarise(text: str, ctx: Context) -> str:
    """Summarise a text with the user's own model.

    Args:
        text: what to sum up.
    """
    reply = await ctx.sample(f"Two sentences:\n\n{text}", max_tokens=200)
    ctx.log.info("summarised", chars=len(text))
    return reply.text


@server.tool(read_only=True)
def price(kind: str) -> int:
    """What a kind of place costs, in euro.

    Args:
        kind: warm, quiet or window.
    """
    if kind not in PRICES:
        raise ToolError(f"No such kind: {kind}. Try one of: {', '.join(PRICES)}.")
    return PRICES[kind]


@server.resource("booking://{code}", mime_type="application/json")
async def booking(code: str) -> Booking | None:
    """A booking by its code."""
    return ledger.bookings.get(code)


@server.resource("bookings://all", mime_type="application/json")
def all_bookings() -> list[Booking]:
    """Every booking made so far."""
    return list(ledger.bookings.values())


@server.prompt
def apology(name: str, tone: str = "warm") -> str:
    """Write an apology.

    Args:
        name: whom to apologise to.
        tone: how it should sound.
    """
    return f"Write a {tone} apology to {name}."


@apology.completes("tone")
def tones(prefix: str) -> list[str]:
    """The tones that begin with what was typed."""
    return [tone for tone in ("warm", "formal", "brief") if tone.startswith(prefix)]


if __name__ == "__main__":
    server.run()
