"""Strict replay: a tool must ask the same when it runs again."""

import pytest

from isthmus import Accepted, Context, Server
from isthmus.errors import ConnectionLost
from isthmus.testing import QuestionsChanged, connect, script

YES = Accepted({"value": "yes"})


def changing(keep):
    """A server whose tool asks with a counter in its question; kept in ``once``, or not."""
    server, runs = Server("changing", version="1"), []

    def count() -> int:
        runs.append(1)
        return len(runs)

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask with a number."""
        number = await ctx.once(count) if keep else count()
        return str(await ctx.elicit(f"Is it {number}?", str))

    @server.tool
    async def fickle(ctx: Context) -> str:
        """Ask the first time only."""
        if count() == 1:
            await ctx.elicit("Is it the first?", str)
        return "never mind"

    return server, runs


async def test_a_tool_whose_question_changes_is_caught_with_both_sequences():
    """The message shows what was asked first and what then, and what to do (ours)."""
    server, _ = changing(keep=False)
    with pytest.raises(QuestionsChanged) as caught:
        async with connect(server, elicit=script(YES)) as client:
            await client.call_tool("ask")

    said = str(caught.value).splitlines()
    assert "ctx.once" in said[0]
    assert "first:" in said[1]
    assert "Is it 1?" in said[1]
    assert "second:" in said[2]
    assert "Is it 2?" in said[2]


async def test_a_tool_that_asks_nothing_the_second_time_is_caught():
    """The second answer is shown whole (ours)."""
    server, _ = changing(keep=False)
    with pytest.raises(QuestionsChanged, match="never mind"):
        async with connect(server, elicit=script(YES)) as client:
            await client.call_tool("fickle")


async def test_a_sound_tool_passes_and_its_effect_happens_once():
    """What changes is in ``ctx.once``: the second asking finds it there (ours)."""
    server, runs = changing(keep=True)
    user = script(YES)
    async with connect(server, elicit=user) as client:
        result = await client.call_tool("ask")

    assert "Accepted(value='yes')" == result.text
    assert [1] == runs
    assert ["Is it 1?"] == [question.message for question in user.questions]


async def test_without_strict_replay_nobody_notices():
    """``strict=False``: the tool runs once per round, and asks again (ours)."""
    server, runs = changing(keep=False)
    async with connect(server, strict=False, max_rounds=1, elicit=lambda _: YES) as client:
        with pytest.raises(Exception, match="asked 1 times"):
            await client.call_tool("ask")

    assert [1, 1] == runs


async def test_up_to_2025_11_25_nothing_runs_twice():
    """There is no replay where a question is a request (ours)."""
    server, runs = changing(keep=False)
    async with connect(server, revision="2025-11-25", elicit=script(YES)) as client:
        await client.call_tool("ask")

    assert [1] == runs


async def test_other_losses_of_the_connection_stay_what_they_are():
    """Only a changed question becomes an ``AssertionError`` (ours)."""
    server, _ = changing(keep=True)
    with pytest.raises(ConnectionLost, match="somebody else's"):
        async with connect(server):
            raise ConnectionLost("somebody else's")
