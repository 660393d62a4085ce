"""A channel over lines gives out messages in the turn of the event loop in which they were read."""

import asyncio
import json
import os
import selectors
from contextlib import asynccontextmanager
from contextvars import ContextVar

from isthmus import Server
from isthmus.runtime.peer import Peer
from isthmus.transports.line_channel import LineChannel
from isthmus.transports.pipes import STDIO_ORIGIN

PLACE = ContextVar("place", default="nowhere")


class CountingSelector(selectors.DefaultSelector):
    """Counts the turns of an event loop: it waits once in each."""

    turns = 0

    def select(self, timeout=None):
        """As ever, and counted."""
        self.turns += 1
        return super().select(timeout)


def write_call(fd, id, tool):
    """Send a call of a tool, as a client of 2026-07-28 does."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": {}, "_meta": meta}
    frame = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    os.write(fd, json.dumps(frame).encode() + b"\n")


async def read_some(fd):
    """What can be read of a descriptor, once something can."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
    await readable
    loop.remove_reader(fd)
    return os.read(fd, 65536)


@asynccontextmanager
async def serve_lines(wrap=lambda channel: channel):
    """A server of two tools over pipes: the descriptors to write calls to and read answers from."""
    server = Server("lines", version="1")

    @server.tool
    async def greet() -> str:
        return "hello"

    @server.tool
    async def where() -> str:
        return PLACE.get()

    reads, into = os.pipe()
    out, writes = os.pipe()
    channel = LineChannel(reads, writes, STDIO_ORIGIN)
    running = asyncio.ensure_future(Peer(wrap(channel), server.router, side="server").run())
    await asyncio.sleep(0)  # it begins to receive
    try:
        yield into, out
    finally:
        os.close(into)
        await running
        await channel.close()
        os.close(out)


def test_a_call_alone_takes_two_turns_of_the_event_loop():
    """Ours: it is taken in where it is read, and answered in its task; no other task is woken."""
    selector = CountingSelector()

    async def count():
        async with serve_lines() as (into, out):
            for id in range(2):
                write_call(into, id, "greet")
                before = selector.turns
                assert b"hello" in await read_some(out)
                turns = selector.turns - before
            return turns

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        turns = runner.run(count())

    assert turns == 2 + 2  # in two more the answer is found and this test goes on


async def test_a_call_runs_in_the_context_that_its_peer_runs_in():
    """Ours: what a program set before it served is seen by its tools."""
    tokens = []

    def note_place(channel):  # called when the channel is there, and its peer not yet
        tokens.append(PLACE.set("here"))
        return channel

    async with serve_lines(note_place) as (into, out):
        PLACE.reset(tokens[0])
        write_call(into, 1, "where")

        assert b'"here"' in await read_some(out)


async def test_what_wraps_a_channel_sees_each_message():
    """Ours: a recorder that hands on what it does not have itself is not passed by."""

    class Recorder:
        def __init__(self, channel):
            self.channel, self.seen = channel, []

        async def receive(self):
            delivery = await self.channel.receive()
            self.seen.append(delivery)
            return delivery

        def __getattr__(self, name):
            return getattr(self.channel, name)

    recorders = []

    def wrap(channel):
        recorders.append(Recorder(channel))
        return recorders[0]

    async with serve_lines(wrap) as (into, out):
        for id in range(3):
            write_call(into, id, "greet")
            await read_some(out)

    assert 4 == len(recorders[0].seen)  # and the end
    assert recorders[0].seen[3] is None
