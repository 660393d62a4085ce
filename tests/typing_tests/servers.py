"""A server as its author writes it, with the types that a checker must see in it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, assert_type

from msgspec import Meta, Struct

from isthmus import (
    Accepted,
    Audio,
    Cancelled,
    Context,
    Declined,
    Extension,
    Image,
    Inject,
    Server,
    ToolError,
)
from isthmus.server.asking.sampling import SampledMessage
from isthmus.transports.http.app import HttpApp
from isthmus.types import PromptMessage, Root, TextContent


class Seat(Struct):
    """Where to sit."""

    row: int
    window: bool = False


class Booking(Struct):
    """A place that is yours."""

    code: str
    seat: Seat


@dataclass
class Traveller:
    """Who travels."""

    name: str


class Kind(Enum):
    """What kind of place."""

    warm = "warm"
    quiet = "quiet"


@asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[dict[str, int]]:
    """What is open while the server serves."""
    yield {"open": 1}


server = Server("bookings", version="1.0", instructions="Ask first.", lifespan=lifespan)


# Tools keep their exact type, with and without parentheses, sync and async.


@server.tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


@server.tool(read_only=True, title="Sum up", destructive=False)
async def kinds(
    text: str,
    number: Annotated[float, Meta(ge=0)],
    who: Traveller,
    kind: Kind,
    *,
    mode: Literal["fast", "slow"] = "fast",
    tags: list[str] | None = None,
    extra: dict[str, Any] | None = None,
    ctx: Context,
) -> Booking | None:
    """One parameter of every kind."""
    return None


assert_type(add(1), int)
assert_type(add(a=1, b=3), int)
plain: Callable[[int, int], int] = add


async def called(ctx: Context) -> None:
    """Call them as the functions they are."""
    found = await kinds("a", 1.5, Traveller("B"), Kind.warm, mode="slow", ctx=ctx)
    assert_type(found, Booking | None)


class Shop:
    """A class whose methods are tools."""

    def __init__(self, server: Server) -> None:
        server.add_tool(self.stock, read_only=True)
        server.tool(self.close)

    def stock(self, item: str) -> int:
        """How many there are."""
        return len(item)

    async def close(self) -> None:
        """Close it."""


@server.tool
def picture() -> Image:
    """A picture."""
    return Image(b"", format="png")


@server.tool
def sounds() -> list[TextContent | Audio]:
    """Text and sound."""
    return [TextContent(text="listen"), Audio(b"", format="wav")]


# The context: answers are of the type that was asked for.


async def reserve(date: str) -> str:
    """An effect."""
    return date


def count(date: str) -> int:
    """A plain effect."""
    return len(date)


@server.tool
async def book(date: str, ctx: Context) -> Booking:
    """Book a place on a date."""
    hold = await ctx.once(reserve, date)
    assert_type(hold, str)
    assert_type(await ctx.once(count, date, key="count"), int)
    match await ctx.elicit(f"Which seat on {date}?", Seat):
        case Accepted(seat):
            assert_type(seat, Seat)
            await ctx.progress(1, total=2, message="seat chosen")
            return Booking(code=hold, seat=seat)
        case Declined() | Cancelled():
            raise ToolError("Not booked: no seat was chosen.")


@server.tool
async def ask(ctx: Context) -> str:
    """Ask in every other way."""
    assert_type(await ctx.elicit("Sure?"), Accepted[None] | Declined | Cancelled)
    assert_type(await ctx.elicit("Sure?", bool, task=True), Accepted[bool] | Declined | Cancelled)
    assert_type(await ctx.elicit("Which?", Kind), Accepted[Kind] | Declined | Cancelled)
    answer = await ctx.elicit("How many?", int)
    if isinstance(answer, Accepted):
        assert_type(answer.value, int)
    reply = await ctx.sample("Say something.", max_tokens=10, task=True)
    assert_type(reply, SampledMessage)
    assert_type(await ctx.roots(), list[Root])
    ctx.log.info("asked", answer=reply.text)
    return reply.text


@server.tool
def waits(ctx: Context) -> str:
    """Ask from a plain function."""
    answer = ctx.wait(ctx.elicit("Which seat?", Seat))
    if ctx.cancelled or not isinstance(answer, Accepted):
        return "none"
    assert_type(answer.value, Seat)
    return str(answer.value.row)


# Resources and prompts stay functions, and can have their arguments completed.


@server.resource("booking://{code}", mime_type="application/json")
async def booking(code: str) -> Booking | None:
    """A booking."""
    return None


@server.resource("bookings://all")
def bookings() -> list[Booking]:
    """All of them."""
    return []


@server.prompt
def apology(name: str, tone: str = "warm") -> str:
    """Write an apology."""
    return f"Write a {tone} apology to {name}."


@server.prompt(title="Talk")
async def talk(topic: str) -> list[PromptMessage]:
    """Talk about something."""
    return [PromptMessage(role="user", content=TextContent(text=topic))]


@apology.completes("tone")
def tones(prefix: str) -> list[str]:
    """The tones there are."""
    return [tone for tone in ("warm", "brief") if tone.startswith(prefix)]


@booking.completes("code")
async def codes(prefix: str) -> list[str]:
    """The codes there are."""
    return [prefix]


assert_type(apology("Bo"), str)
assert_type(apology(name="Bo", tone="brief"), str)
assert_type(tones("w"), list[str])
assert_type(bookings(), list[Booking])


async def awaited() -> None:
    """Await what is async."""
    assert_type(await booking("A1"), Booking | None)
    assert_type(await talk("rain"), list[PromptMessage])
    assert_type(await codes("A"), list[str])


# Methods of one's own, and serving.


class Refund(Struct):
    """What to pay back."""

    code: str


class Receipt(Struct):
    """What was paid back."""

    amount: int


@server.method("acme/refund", params=Refund, result=Receipt)
async def refund(params: Refund, ctx: Context) -> Receipt:
    """Pay back."""
    return Receipt(amount=len(params.code))


# Extensions.

refunds = Extension("com.example/refunds", {"currencies": ["EUR"]})


@refunds.method("refunds/create", params=Refund, result=Receipt)
async def create(params: Refund, ctx: Context) -> Receipt:
    """Pay back, to those who can."""
    assert_type(ctx.extension("com.example/refunds"), Mapping[str, Any] | None)
    assert_type(ctx.require_extension("com.example/refunds"), Mapping[str, Any])
    await ctx.notify("refunds/started", params)
    assert_type(await ctx.request("acme/where", {"x": 1}, Receipt), Receipt)
    return Receipt(amount=1)


@refunds.on_notification("refunds/seen", params=Refund)
def seen(params: Refund) -> None:
    """Hear of it."""


assert_type(server.extend(refunds), Extension)
seen(Refund(code="A1"))
assert_type(server.asgi(path="/mcp"), HttpApp)


def mistakes() -> None:
    """What a checker must find: an ignore that finds nothing to ignore is an error, too."""
    add("1")  # type: ignore[arg-type]  # a tool keeps its parameters
    apology("Bo", mood="warm")  # type: ignore[call-arg]  # so does a prompt
    booking(7)  # type: ignore[arg-type, unused-coroutine]  # and a resource
    server.tool(readonly=True)  # type: ignore[call-overload]  # options are spelled read_only
    server.asgi(prefix="/mcp")  # type: ignore[call-arg]  # the endpoint is path=


# The state of the lifespan, and values that are kept from call to call.

assert_type(server, Server[dict[str, int]])
untyped: Server = Server("any")
stated: Server[Traveller] = Server("stated")


@server.tool
async def count_open(
    user: Annotated[Traveller, Inject(Traveller)], ctx: Context[dict[str, int]]
) -> int:
    """Count what is open."""
    assert_type(ctx.state, dict[str, int])
    assert_type(user, Traveller)
    assert_type(await ctx.session.get("cart", type=Seat), Seat | None)
    assert_type(await ctx.session.get("cart", [], type=list[str]), list[str])
    assert_type((await ctx.read_resource("a://b")).contents[0].uri, str)
    return ctx.state["open"]


async def anything(ctx: Context) -> None:
    """A context whose state nobody has said anything about."""
    assert_type(ctx.state, Any)
    await server.run_async("http", port=0)
