"""Questions that the client answers as tasks: one tool, every transport."""

import asyncio

import pytest
from msgspec import Struct

from isthmus import Accepted, Context, Server
from isthmus.errors import Rejected, TaskCancelled
from isthmus.testing import every_transport
from isthmus.types import GetTaskParams, GetTaskPayloadParams, ListTasksParams, ListTasksResult

pytestmark = [every_transport(), pytest.mark.parametrize("revision", ["2025-11-25"])]


class Name(Struct):
    name: str


def office():
    """A server that asks, and knows what became of that."""
    server = Server("office", version="1")
    server.ended = asyncio.Event()

    @server.tool
    async def sign(ctx: Context) -> str:
        """Have two people asked at once."""
        try:
            first, second = await asyncio.gather(
                ctx.elicit("First?", Name, task=True), ctx.elicit("Second?", Name, task=True)
            )
        finally:
            server.ended.set()
        return f"{first.value.name} {second.value.name}"

    @server.tool
    async def draft(ctx: Context) -> str:
        """Have a model write."""
        return (await ctx.sample("A letter", max_tokens=9, task=True)).text

    return server


@pytest.mark.covers("tasks.answers.created", "tasks.asked.polls")
async def test_a_question_is_answered_as_a_task(joined):
    """Ours: the functions of both sides are the same as ever."""
    wire = []

    async def answer(question):
        await asyncio.sleep(0)
        return Accepted({"name": question.message})

    async with joined(
        office(), wire, elicit=answer, sample=lambda _: "dear", answer_tasks=True
    ) as c:
        signed, drafted = await c.call_tool("sign"), await c.call_tool("draft")

    assert ("First? Second?", "dear") == (signed.text, drafted.text)
    assert 3 == sum(b'"tasks/result"' in data for _, data in wire)


async def test_a_refusal_in_a_task_is_a_refusal(joined):
    """Spec: tasks/result is answered with the same error."""

    def refuse(_params):
        raise Rejected

    async with joined(office(), sample=refuse, answer_tasks=True) as client:
        result = await client.call_tool("draft")

    assert result.is_error
    assert "Tool 'draft' failed: Refused" == result.text


@pytest.mark.covers("tasks.asked.withdrawn", "tasks.answers.cancelled")
async def test_who_leaves_a_call_ends_the_tasks_of_its_questions(joined):
    """Ours: nobody is asked any longer than somebody waits for the answer."""
    asked, stopped, server = asyncio.Event(), asyncio.Event(), office()

    async def ponder(question):
        if question.message == "Second?":
            return Accepted({"name": "b"})
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with joined(server, elicit=ponder, answer_tasks=True) as client:
        call = asyncio.create_task(client.call_tool("sign"))
        await asked.wait()
        call.cancel()
        await asyncio.wait((call,))
        async with asyncio.timeout(5):
            await stopped.wait()
            await server.ended.wait()

    assert call.cancelled()


@pytest.mark.covers("tasks.answers.listed")
async def test_a_server_looks_after_its_tasks_itself(joined):
    """Spec: tasks/list, tasks/get and tasks/result are there for whoever has asked."""
    server = office()

    @server.tool
    async def look(ctx: Context) -> str:
        """Have a question answered, and look at what is kept of it."""
        await ctx.elicit("Who?", Name, task=True)
        link = ctx._inbound.link
        kept = await link.call(
            "tasks/list", ListTasksParams(), ListTasksResult, relates_to=ctx.request_id
        )
        id = kept.tasks[0].task_id
        params = GetTaskParams(task_id=id)
        state = await link.call("tasks/get", params, dict, relates_to=ctx.request_id)
        params = GetTaskPayloadParams(task_id=id)
        again = await link.call("tasks/result", params, dict, relates_to=ctx.request_id)
        return f"{len(kept.tasks)} {state['status']} {again['content']['name']}"

    async with joined(
        server, elicit=lambda _: Accepted({"name": "ann"}), answer_tasks=True
    ) as client:
        assert "1 completed ann" == (await client.call_tool("look")).text


@pytest.mark.covers("tasks.core.immediate")
async def test_what_a_model_may_be_told_meanwhile_is_handed_on(joined):
    """Spec: a string to give to the model while the task runs."""
    server = Server("kitchen", version="1")

    @server.tool(task="required", immediate_response="It is in the oven.")
    async def bake() -> str:
        """Bake."""
        return "baked"

    @server.tool(task="required")
    async def cook() -> str:
        """Cook."""
        return "cooked"

    async with joined(server) as client:
        await client.list_tools()
        baking, cooking = await client.start_tool("bake"), await client.start_tool("cook")
        assert ("It is in the oven.", None) == (
            baking.immediate_response,
            cooking.immediate_response,
        )
        assert "baked" == (await baking.result()).text


async def test_a_task_the_client_cancels_has_no_answer(joined):
    """Ours: its end is an exception that says so."""
    server, said = Server("s", version="1"), []

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask."""
        try:
            await ctx.elicit("Who?", Name, task=True)
        except TaskCancelled as error:
            said.append(str(error))
        return "done"

    async def leave(_question):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    async with joined(server, elicit=leave, answer_tasks=True) as client:
        assert "done" == (await client.call_tool("ask")).text

    assert (
        "the client cancelled its task for elicitation/create: The task was cancelled." == said[0]
    )
