"""Tools that ask: the same body in both eras."""

import asyncio
from typing import Literal

import pytest
from msgspec import Struct

from isthmus import Accepted, Cancelled, Context, Declined, Server, ToolError
from isthmus.errors import TooManyRounds
from isthmus.revisions import BY_NAME, Feature
from isthmus.testing import every_revision, every_transport, script

pytestmark = [every_transport()]


class Seat(Struct):
    row: int
    side: Literal["window", "aisle"] = "aisle"


def bookings(effects):  # noqa: C901 - a server is a list of functions
    server = Server("bookings", version="1")

    async def hold(date):
        effects.append(date)
        return f"hold {len(effects)}"

    @server.tool
    async def book(date: str, ctx: Context) -> str:
        """Book a seat."""
        held = await ctx.once(hold, date)
        match await ctx.elicit(f"Which seat on {date}?", Seat):
            case Accepted(seat):
                return f"{held}: {seat.row} {seat.side}"
            case Declined():
                return "declined"
            case Cancelled():
                raise ToolError("cancelled")

    @server.tool
    async def two(ctx: Context) -> str:
        """Ask two things, one after the other."""
        first = await ctx.elicit("First?", Seat)
        second = await ctx.elicit("Second?", Seat)
        return f"{first.value.row} {second.value.row}"

    @server.tool
    async def both(ctx: Context) -> str:
        """Ask two things at once."""
        answers = await asyncio.gather(ctx.elicit("Left?", Seat), ctx.elicit("Right?", Seat))
        return " ".join(str(answer.value.row) for answer in answers)

    @server.tool
    async def endless(ctx: Context) -> str:
        """Never be satisfied."""
        for turn in range(1000):
            await ctx.elicit(f"Question {turn}?", Seat)
        return "at last"

    @server.tool
    async def summarise(text: str, ctx: Context) -> str:
        """Use the user's model."""
        return (await ctx.sample(f"Sum up: {text}", max_tokens=50)).text

    @server.tool
    async def where(ctx: Context) -> str:
        """List the roots."""
        return ", ".join(root.uri for root in await ctx.roots())

    return server


@every_revision(Feature.ELICITATION_FORM)
@pytest.mark.parametrize(
    ("answer", "text", "is_error"),
    [
        (Accepted(Seat(row=12, side="window")), "hold 1: 12 window", False),
        (Accepted({"row": 3}), "hold 1: 3 aisle", False),
        (Declined(), "declined", False),
        (Cancelled(), "cancelled", True),
    ],
)
async def test_the_three_answers_reach_the_tool_and_the_hold_is_made_once(
    joined, answer, text, is_error
):
    """Accept, decline and cancel are told apart; effects happen once (spec: elicitation)."""
    effects = []
    asked = script(answer)
    async with joined(bookings(effects), elicit=asked) as client:
        result = await client.call_tool("book", {"date": "1 May"})

    assert (text, is_error) == (result.text, result.is_error)
    assert ["1 May"] == effects
    assert ["Which seat on 1 May?"] == [question.message for question in asked.questions]


@every_revision(Feature.ELICITATION_FORM)
@pytest.mark.parametrize("tool", ["two", "both"])
async def test_several_questions_are_asked_once_each(joined, tool):
    """One after the other or at once, no question is repeated (architecture 4.6)."""
    rows = {"First?": 1, "Second?": 2, "Left?": 1, "Right?": 2}
    asked = script(*[lambda question: Accepted(Seat(rows[question.message]))] * 2)
    async with joined(bookings([]), elicit=asked) as client:
        assert "1 2" == (await client.call_tool(tool)).text

    assert 2 == len(asked.questions)


@pytest.mark.covers("rounds.bounded")
@every_revision(Feature.ELICITATION_FORM)
async def test_a_server_that_keeps_asking_is_left(joined, revision):
    """At most so many rounds; in the legacy era the questions are requests (decision D18)."""
    if not BY_NAME[revision].has(Feature.RESULT_TYPE):
        pytest.skip("questions are requests of their own in this revision: there are no rounds")
    async with joined(
        bookings([]), elicit=lambda question: Accepted(Seat(1)), max_rounds=3
    ) as client:
        with pytest.raises(TooManyRounds):
            await client.call_tool("endless")


@every_revision
async def test_sampling_uses_the_clients_model(joined):
    """``ctx.sample`` works in every revision (spec: sampling)."""
    thinking = script("It is short.")
    async with joined(bookings([]), sample=thinking) as client:
        assert "It is short." == (await client.call_tool("summarise", {"text": "x"})).text

    assert "Sum up: x" == thinking.questions[0].messages[0].content.text


@every_revision
async def test_roots_are_the_clients(joined):
    """``ctx.roots`` works in every revision (spec: roots)."""
    async with joined(bookings([]), roots=["file:///work", "file:///home"]) as client:
        assert "file:///work, file:///home" == (await client.call_tool("where")).text


@every_revision(Feature.ELICITATION_FORM)
async def test_what_the_client_did_not_declare_is_never_asked(joined):
    """Servers MUST NOT use capabilities the client did not declare (spec: capabilities)."""
    async with joined(bookings([])) as client:
        try:
            refused = (await client.call_tool("book", {"date": "1 May"})).is_error
        except Exception as error:  # noqa: BLE001 - -32021 since 2026-07-28
            refused = "elicitation" in str(error) or "elicitation" in str(error.data)

    assert refused
