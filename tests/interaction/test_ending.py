"""How calls end that do not end well: cancelled, cut off, closed over."""

import asyncio
import json
import threading

import pytest

from isthmus import Context, Server
from isthmus.errors import CallTimedOut, ConnectionLost, OutOfPhase
from isthmus.testing import every_revision, every_transport
from isthmus.testing.faults import Faulty, break_after

pytestmark = [every_revision(), every_transport()]


LISTENING_STILL = {"memory", "tcp"}
"""Where the end of what a side says is all that is known of it: work gets a second to finish."""


class Busy:
    """A server whose tools wait, and what became of them."""

    def __init__(self):
        self.server = Server("busy", version="1")
        self.begun = asyncio.Semaphore(0)
        self.stopped = asyncio.Semaphore(0)
        self.gate = asyncio.Event()
        self.server.add_tool(self.wait, name="wait", description="Wait for ever.")
        self.server.add_tool(self.work, name="work", description="Work until it is called off.")
        self.server.add_tool(self.say, name="say", description="Say it.")

    async def wait(self, ctx: Context) -> str:
        try:
            self.begun.release()
            await self.gate.wait()
        finally:
            # Nobody wants to hear of it any more.
            await ctx.progress(1)
            self.stopped.release()

    def work(self, ctx: Context) -> str:
        loop_turn = threading.Event()
        ctx.wait(self.has_begun())
        while not ctx.cancelled:
            loop_turn.wait(0.001)
        return "the answer that nobody waits for"

    async def has_begun(self):
        self.begun.release()

    async def say(self, text: str) -> str:
        return text


def about(wire, name):
    """What the server said about the calls of a tool: answers, and progress."""
    told = [(side, json.loads(data)) for side, data in wire]
    ids = [
        m["id"]
        for side, m in told
        if side == "client" and m.get("params", {}).get("name") == name and "id" in m
    ]
    return [
        m
        for side, m in told
        if side == "server"
        and (m.get("id") in ids or m.get("params", {}).get("progressToken") in ids)
    ]


async def cancelled(client, busy, tool):
    """Call a tool, and cancel the call once it works."""
    call = asyncio.create_task(client.call_tool(tool, on_progress=lambda _: None))
    await busy.begun.acquire()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.covers("interaction.cancellation.stops-work", "interaction.cancellation.silence")
async def test_a_cancelled_call_stops_the_work_and_is_never_spoken_of_again(joined):
    """The receiver SHOULD stop processing and not send a response (spec: cancellation)."""
    busy, wire = Busy(), []
    async with joined(busy.server, wire=wire) as client:
        await cancelled(client, busy, "wait")
        await busy.stopped.acquire()
        assert "after" == (await client.call_tool("say", {"text": "after"})).text

    assert [] == about(wire, "wait")


@pytest.mark.covers("interaction.cancellation.plain-function")
async def test_a_plain_function_sees_that_its_call_was_cancelled(joined):
    """Ours: what runs in a thread can look, and what it returns then goes nowhere."""
    busy, wire = Busy(), []
    async with joined(busy.server, wire=wire) as client:
        await cancelled(client, busy, "work")
        assert "after" == (await client.call_tool("say", {"text": "after"})).text

    assert [] == about(wire, "work")


@pytest.mark.covers("interaction.timeout.cancels")
async def test_a_call_that_timed_out_is_cancelled(joined):
    """The sender SHOULD issue a cancellation and stop waiting (spec: lifecycle, timeouts)."""
    busy, wire = Busy(), []
    async with joined(busy.server, wire=wire) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("wait", timeout=0.02)
        await busy.stopped.acquire()
        assert "after" == (await client.call_tool("say", {"text": "after"})).text

    assert [] == about(wire, "wait")


@pytest.mark.covers("interaction.close.ends-calls")
async def test_closing_a_client_ends_its_calls_and_the_work_for_them(joined, transport):
    """Ours (D20): one typed error each, in bounded time, and nothing goes on behind it."""
    busy = Busy()
    async with joined(busy.server) as client:
        calls = [asyncio.create_task(client.call_tool("wait")) for _ in range(5)]
        for _ in calls:
            await busy.begun.acquire()
        await client.close()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        with pytest.raises(OutOfPhase):
            await client.call_tool("say", {"text": "after"})
        if transport in LISTENING_STILL:
            busy.gate.set()
    for _ in calls:
        await busy.stopped.acquire()

    assert [ConnectionLost] * 5 == [type(end) for end in ends]


@pytest.mark.covers("interaction.loss.ends-calls")
async def test_a_connection_that_breaks_ends_each_call_once(joined):
    """Ours (D20): whatever the transport, every call in flight gets an error of its own."""
    busy = Busy()
    broken = asyncio.Event()

    def fate(delivery, number):
        return break_after(0)(delivery, number) if broken.is_set() else [delivery]

    async with joined(busy.server, wrap=lambda channel: Faulty(channel, fate)) as client:
        calls = [asyncio.create_task(client.call_tool("wait")) for _ in range(5)]
        for _ in calls:
            await busy.begun.acquire()
        broken.set()
        calls.append(asyncio.create_task(client.call_tool("say", {"text": "the last straw"})))
        ends = await asyncio.gather(*calls, return_exceptions=True)
        busy.gate.set()

    assert [ConnectionLost] * 6 == [type(end) for end in ends]
    assert all("the line went dead" in str(end) for end in ends)
