"""Tasks from a client's point of view: one tool, both shapes, every transport."""

import asyncio

import pytest
from msgspec import Struct

from isthmus import Accepted, Context, Refuse, Server, ToolError
from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    InvalidParams,
    NotInRevision,
    Refused,
    TaskCancelled,
)
from isthmus.testing import every_transport, script

pytestmark = [
    every_transport(),
    pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"]),
]


class Name(Struct):
    name: str


def workshop():
    """A server whose tools are tasks, and what became of them."""
    server = Server("workshop", version="1")
    server.stopped = asyncio.Event()
    server.go = asyncio.Event()

    @server.tool(task="required")
    async def paint(colour: str, ctx: Context) -> str:
        """Paint, and say how far it is."""
        await ctx.progress(1, 2, "first coat")
        await asyncio.sleep(0)
        await ctx.progress(2, 2, "second coat")
        return f"{colour} all over"

    @server.tool(task="optional")
    async def engrave(ctx: Context) -> str:
        """Ask two things at once, and one after them."""
        first, second = await asyncio.gather(
            ctx.elicit("First?", Name, key="first"), ctx.elicit("Second?", Name, key="second")
        )
        third = await ctx.elicit("Third?", Name)
        return f"{first.value.name} {second.value.name} {third.value.name}"

    @server.tool(task="required")
    async def wait() -> str:
        """Wait for the word."""
        try:
            await server.go.wait()
        except asyncio.CancelledError:
            server.stopped.set()
            raise
        return "went"

    @server.tool(task="required")
    async def ponder(ctx: Context) -> str:
        """Ask, and wait for the word."""
        await ctx.elicit("Now?", Name)
        return await wait()

    @server.tool(task="required")
    async def fail(how: str) -> str:
        """Fail in one way or the other."""
        raise ToolError("it broke") if how == "tool" else Refuse(-32000, "not now", {"a": 1})

    @server.tool(task="required", task_starts="in_body")
    async def varnish(ctx: Context) -> str:
        """Ask in the call, and again in the task."""
        before = await ctx.elicit("Matt?", Name, key="before")
        await ctx.start_task("drying")
        after = await ctx.elicit("Again?", Name, key="after")
        return f"{before.value.name} {after.value.name}"

    return server


def answer_by_name(*names):
    """Answers in any order: whoever is asked by a name answers with it."""

    async def answer(question):
        return Accepted({"name": question.message})

    return answer


@pytest.mark.covers("tasks.client.awaits", "tasks.core.client.required")
async def test_a_task_is_awaited_as_any_call(joined):
    """Ours: call_tool gives the result; listed or not, in either shape."""
    async with joined(workshop()) as client:
        unlisted = await client.call_tool("paint", {"colour": "red"})
        await client.list_tools()
        listed = await client.call_tool("paint", {"colour": "blue"})

    assert ("red all over", "blue all over") == (unlisted.text, listed.text)


@pytest.mark.covers("tasks.client.awaits", "tasks.core.related.answers")
async def test_the_questions_of_a_task_are_answered_on_the_way(joined):
    """Ours: by the same handler as every question, two at a time."""
    async with joined(workshop(), elicit=answer_by_name()) as client:
        await client.list_tools()
        task = await client.start_tool("engrave")
        result = await task.result()
        again = await client.call_tool("engrave")

    assert task.id
    assert ("First? Second? Third?",) * 2 == (result.text, again.text)


@pytest.mark.covers("tasks.extension.created.rounds")
async def test_questions_before_and_after_the_task_begins(joined):
    """Spec: before it they are part of the call; ours: the client sees no difference."""
    answers = script(Accepted(Name("a")), Accepted(Name("b")))
    async with joined(workshop(), elicit=answers) as client:
        result = await client.call_tool("varnish")

    assert "a b" == result.text


@pytest.mark.covers("tasks.core.progress.token")
async def test_progress_is_heard_as_long_as_the_task_works(joined, revision):
    """Spec: the core's token stays valid; the extension has no progress."""
    heard = []
    async with joined(workshop()) as client:
        await client.list_tools()
        await client.call_tool("paint", {"colour": "red"}, on_progress=heard.append)

    expected = {"2025-11-25": ["first coat", "second coat"], "2026-07-28": []}[revision]
    assert expected == [progress.message for progress in heard]


async def test_failures_of_tasks_are_those_of_calls(joined):
    """Ours: a tool that failed is a result, an error of the protocol is raised."""
    async with joined(workshop()) as client:
        result = await client.call_tool("fail", {"how": "tool"})
        with pytest.raises(Refused) as caught:
            await client.call_tool("fail", {"how": "refuse"})

    assert result.is_error
    assert "it broke" == result.text
    assert (-32000, "not now", {"a": 1}) == (
        caught.value.code,
        caught.value.message,
        caught.value.data,
    )


@pytest.mark.covers("tasks.client.leaves")
async def test_a_caller_who_leaves_takes_the_task_along(joined):
    """Ours: a task that nobody waits for any more is cancelled on the server."""
    server, asked = workshop(), asyncio.Event()

    async def elicit(_question):
        asked.set()
        return Accepted(Name("a"))

    async with joined(server, elicit=elicit) as client:
        call = asyncio.create_task(client.call_tool("ponder"))
        await asked.wait()
        call.cancel()
        await asyncio.wait((call,))
        async with asyncio.timeout(5):
            await server.stopped.wait()

    assert call.cancelled()


@pytest.mark.covers("tasks.client.handle")
async def test_a_handle_shows_and_cancels(joined):
    """Ours: a task is looked at and cancelled by whoever started it."""
    server = workshop()
    async with joined(server) as client:
        task = await client.start_tool("wait")
        working = await task.status()
        await task.cancel()
        cancelled = await task.status()
        with pytest.raises(TaskCancelled, match="was cancelled"):
            await task.result()

    assert task.id == working.id
    assert "working" == working.status
    assert not working.over
    assert (3600.0, 1.0) == (working.ttl, working.poll_interval)
    assert "cancelled" == cancelled.status
    assert cancelled.over
    assert server.stopped.is_set()


@pytest.mark.covers("tasks.client.handle")
async def test_a_task_is_found_again_over_another_connection(joined):
    """Spec: clients SHOULD keep ids so that they can go on after a restart."""
    server = workshop()
    async with joined(server) as client:
        id = (await client.start_tool("wait")).id
        async with joined(server) as other:
            found = other.task(id, tool="wait")
            waiting = asyncio.create_task(found.result())
            await found.status()
            server.go.set()
            result = await waiting
        with pytest.raises(InvalidParams, match="Task not found"):
            await client.task("nobody").status()

    assert "went" == result.text


@pytest.mark.covers("tasks.client.handle")
async def test_who_stops_waiting_for_a_handle_leaves_the_task_alone(joined):
    """Ours: the task goes on, and its result can be waited for again."""
    server = workshop()
    async with joined(server) as client:
        task = await client.start_tool("wait")
        with pytest.raises(CallTimedOut):
            await task.result(timeout=0.05)
        server.go.set()
        result = await task.result()
        again = await task.result()

    assert ("went", "went") == (result.text, again.text)
    assert not server.stopped.is_set()


async def test_a_call_that_is_no_task_has_a_handle_all_the_same(joined):
    """Ours: the same program serves tools that are tasks and tools that are not."""
    server = workshop()
    server.add_tool(lambda: "at once", name="plain")
    async with joined(server) as client:
        task = await client.start_tool("plain")
        state = await task.status()
        await task.cancel()
        result = await task.result()

    assert (None, "completed", "at once") == (task.id, state.status, result.text)


async def test_tasks_are_listed_where_the_revision_lists_them(joined, revision, transport):
    """Spec: by the core, to those whom the server can tell apart."""
    async with joined(workshop()) as client:
        task = await client.start_tool("paint", {"colour": "red"})
        await task.result()
        if revision != "2025-11-25":
            with pytest.raises(NotInRevision, match="lists no tasks"):
                await client.list_tasks()
        elif transport not in {"memory", "stdio", "unix"}:
            with pytest.raises(CapabilityMissing, match="does not list tasks"):
                await client.list_tasks()
        else:
            (listed,) = await client.list_tasks()
            assert (task.id, "completed") == (listed.id, listed.status)


async def test_many_tasks_at_a_time_do_not_get_into_each_others_way(joined):
    """Ours: each has its own result, whatever order they end in."""
    async with joined(workshop(), elicit=answer_by_name()) as client:
        await client.list_tools()
        calls = [client.call_tool("paint", {"colour": f"c{n}"}) for n in range(10)]
        others = [client.call_tool("engrave") for _ in range(5)]
        results = await asyncio.gather(*calls, *others)

    expected = [f"c{n} all over" for n in range(10)] + ["First? Second? Third?"] * 5
    assert expected == [result.text for result in results]
