"""``timeout=`` of a tool: its calls end in time, in good order, and do not count their user's time."""

import asyncio
import threading

import pytest

from isthmus import Accepted, Context, Server
from isthmus.errors import UsageError
from isthmus.testing import connect, every_revision
from support.clock import run_in_virtual_time


def make_server(log):
    server = Server("slow")

    @server.tool(timeout=5.5)
    async def slow(ctx: Context) -> str:
        try:
            for n in range(1000):
                await ctx.progress(n)
                await asyncio.sleep(1)
        finally:
            log.append("ended")
        return "never"

    @server.tool(timeout=5.5)
    async def alone() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool(timeout=5)
    async def quick() -> str:
        return "quick"

    @server.tool(timeout=5.5)
    async def own() -> str:
        raise TimeoutError("mine")

    return server


@every_revision
@run_in_virtual_time
async def test_a_call_that_takes_too_long_says_so_and_progress_does_not_extend_it(revision):
    """The body is cancelled in order; the result is an error that a model can read."""
    log = []
    async with connect(make_server(log), revision=revision) as client:
        slow = await client.call_tool("slow", on_progress=lambda _: None)
        alone = await client.call_tool("alone")
        quick = await client.call_tool("quick")
        own = await client.call_tool("own")

    assert slow.is_error
    assert "Tool 'slow' took longer than 5.5 s and was stopped" == slow.text
    assert "Tool 'alone' took longer than 5.5 s and was stopped" == alone.text
    assert "quick" == quick.text
    assert "Tool 'own' failed: TimeoutError" == own.text
    assert ["ended"] == log


async def test_a_plain_function_is_told_that_its_time_is_over():
    """A thread cannot be stopped: its call ends, and it hears of it."""
    server, heard = Server("slow"), threading.Event()

    @server.tool(timeout=0.05)
    def slow(ctx: Context) -> str:
        while not ctx.cancelled:
            pass
        heard.set()
        return "never"

    async with connect(server) as client:
        answer = await client.call_tool("slow")

    assert "took longer" in answer.text
    assert heard.wait(5)


@run_in_virtual_time
async def test_a_task_ends_in_time_too():
    """Ours: a task with a time of its own."""
    server = Server("slow")

    @server.tool(timeout=5, task="optional")
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    async with connect(server, revision="2025-11-25") as client:
        task = await client.start_tool("slow")
        answer = await task.result()

    assert "took longer" in answer.text


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@run_in_virtual_time
async def test_the_time_of_a_user_does_not_count(revision):
    """The clock stands still while questions are open, several at once, too."""
    server = Server("slow")

    @server.tool(timeout=10)
    async def asks(ctx: Context) -> str:
        both = await asyncio.gather(ctx.elicit("One?", bool), ctx.elicit("Two?", bool))
        await asyncio.Event().wait() if both[0] == Accepted(False) else None
        return "answered"

    async def think(asked):
        await asyncio.sleep(600)
        return Accepted({"value": True})

    async def refuse(asked):
        return Accepted({"value": False})

    async with connect(server, revision=revision, elicit=think) as client:
        assert "answered" == (await client.call_tool("asks")).text
    async with connect(server, revision=revision, elicit=refuse) as client:
        assert "took longer" in (await client.call_tool("asks")).text


@pytest.mark.parametrize("seconds", [0, -1, "5", True, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(seconds):
    """Ours: at declaration."""
    with pytest.raises(UsageError, match="timeout= is a number of seconds above 0"):
        Server("slow").add_tool(len, name="x", timeout=seconds)
