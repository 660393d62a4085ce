"""Two nodes behind a balancer in round robin: a client cannot tell them from one."""

import asyncio

import pytest

from isthmus import Accepted, Client

pytestmark = [pytest.mark.balancers, pytest.mark.timeout(120)]

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
ASKING = ("2025-06-18", "2025-11-25", "2026-07-28")  # elicitation came with 2025-06-18
CALLS = 20
QUESTIONS = 10


@pytest.mark.parametrize("revision", REVISIONS)
async def test_both_nodes_answer_in_one_session(deploy, revision):
    """Ours: no sticky routing is needed; spec 2025-11-25 basic/transports#session-management."""
    async with Client(deploy, revision=revision) as client:
        results = [await client.call_tool("whoami") for _ in range(CALLS)]

    assert 2 == len({result.text for result in results})


@pytest.mark.parametrize("revision", ASKING)
async def test_each_question_gets_its_answer(deploy, revision):
    """Ours: an answer that is posted to another node reaches the one that asked."""

    async def answer(question):
        return Accepted({"value": question.message.upper()})

    async with Client(deploy, revision=revision, elicit=answer) as client:
        answers = [
            (await client.call_tool("ask", {"question": f"number {number}"})).text.split(" ", 1)[1]
            for number in range(QUESTIONS)
        ]

    assert [f"NUMBER {number}" for number in range(QUESTIONS)] == answers


@pytest.mark.parametrize("revision", REVISIONS)
async def test_progress_arrives_while_the_call_runs(deploy, revision):
    """Ours: no balancer holds events back until the answer is there."""
    heard = asyncio.Event()
    async with Client(deploy, revision=revision) as client:
        call = asyncio.create_task(
            client.call_tool(
                "count", {"steps": 20, "pause": 0.1}, on_progress=lambda *_: heard.set()
            )
        )
        await heard.wait()
        early = not call.done()
        await call

    assert early


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_update_at_any_node_is_heard(deploy, revision):
    """Ours: who subscribed at one node hears of what happened at the other."""
    pears = "stock://pears"
    async with (
        Client(deploy, revision=revision) as client,
        client.listen(uris=[pears]) as changes,
    ):
        heard = []
        for _ in range(4):
            await client.call_tool("restock", {"uri": pears})
            heard.append((await anext(aiter(changes))).uri)

    assert [pears] * 4 == heard
