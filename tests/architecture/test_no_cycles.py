"""Calls leave nothing for the collector, however they end: memory is free as soon as they do.

A server's collector runs rarely, so that a cycle which holds the frames of a call keeps all that
the call brought along for thousands of calls: megabytes each, from anybody.
"""

import asyncio
import contextlib
import gc
import logging
import types
from collections import Counter

import pytest

from isthmus import Client, Context, Server
from isthmus.client.targets import Target
from isthmus.errors import IsthmusError, Refuse, ToolError
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.testing import connect
from isthmus.testing.connections import _WAYS, TRANSPORTS, skip_where_lacking
from isthmus.transports.memory import open_pair
from support.heap import own_heap

LEGACY, MODERN = ERAS = ("2025-11-25", "2026-07-28")
TIMES = 4
ERRORS = {
    "breaks": lambda: ValueError("no"),
    "fails": lambda: ToolError("no"),
    "refuses": lambda: Refuse(-32602, "no"),
    "stops": lambda: StopIteration("no"),
}
FRAMES = (types.FrameType, types.TracebackType, types.CoroutineType, types.AsyncGeneratorType)


def shelf():
    """A server whose calls end in every way there is."""
    server = Server("ending", version="1")
    server.begun = asyncio.Event()

    @server.tool
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @server.tool
    def add_in_a_thread(a: int) -> int:
        return a

    @server.tool
    async def report(ctx: Context) -> int:
        await ctx.progress(1, total=2)
        await ctx.log("info", "half")
        return 1

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Who?", str))

    @server.tool
    async def wait() -> int:
        server.begun.set()
        await asyncio.Event().wait()

    @server.tool
    async def wait_with_context(ctx: Context) -> int:
        server.begun.set()
        await asyncio.Event().wait()

    return server


def add_what_raises(server):
    """Give a server tools, resources and prompts that raise every error in every shape."""

    @server.tool
    async def once(ctx: Context) -> str:
        async def effect() -> str:
            raise ValueError("no")

        return await ctx.once(effect)

    @server.tool
    async def wrong_output() -> int:
        return object()

    @server.tool
    async def half_a_character() -> str:
        return "\ud800"

    @server.resource("end://typed/{number}")
    async def typed(number: int) -> str:
        return str(number)

    for what, error in ERRORS.items():
        for shape, body in bodies(error).items():
            name = f"{what}_{shape}"
            server.tool(name=name)(body)
            server.resource(f"end://{name}", name=name)(body)
            server.prompt(name=name)(body)
    return server


def bodies(error):
    """Functions of every shape that raise an error."""

    async def plain() -> str:
        raise error()

    def thread() -> str:
        raise error()

    async def context(ctx: Context) -> str:
        raise error()

    def thread_context(ctx: Context) -> str:
        raise error()

    return {f.__name__: f for f in (plain, thread, context, thread_context)}


def call(name, **arguments):
    """A call of a tool."""
    return lambda client, _server: client.call_tool(name, arguments)


def left(name):
    """A call that its caller gives up once it runs."""

    async def act(client, server):
        server.begun.clear()
        task = asyncio.ensure_future(client.call_tool(name))
        await server.begun.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    return act


def listened(client, _server):
    """A stream of changes that is opened and ended."""

    async def act():
        async with client.listen(tools=True):
            pass

    return act()


def kinds():
    """What a client may do, by how it ends."""
    found = {
        "good": call("add", a=1),
        "good in a thread": call("add_in_a_thread", a=1),
        "progress": lambda client, _: client.call_tool("report", on_progress=lambda *_: None),
        "asked": call("ask"),
        "once": call("once"),
        "wrong arguments": call("add", a="x"),
        "surplus arguments": call("add", a=1, c=2),
        "no arguments": call("add"),
        "unknown tool": call("nobody"),
        "wrong output": call("wrong_output"),
        "no output": call("half_a_character"),
        "list": lambda client, _: client.list_tools(),
        "ping": lambda client, _: client.ping(),
        "unknown resource": lambda client, _: client.read_resource("end://nobody"),
        "wrong blank": lambda client, _: client.read_resource("end://typed/x"),
        "unknown prompt": lambda client, _: client.get_prompt("nobody"),
        "unknown method": lambda client, _: client.request("own/nothing", {}),
        "cancelled": left("wait"),
        "cancelled with a context": left("wait_with_context"),
        "timed out": lambda client, _: client.call_tool("wait", timeout=0.01),
        "timed out with a context": lambda client, _: client.call_tool(
            "wait_with_context", timeout=0.01
        ),
        "listened": listened,
    }
    for name in [f"{what}_{shape}" for what in ERRORS for shape in bodies(None)]:
        found[f"tool {name}"] = call(name)
        found[f"resource {name}"] = lambda client, _, name=name: client.read_resource(
            f"end://{name}"
        )
        found[f"prompt {name}"] = lambda client, _, name=name: client.get_prompt(name)
    return found


async def done(act, *others):
    """Do something to its end, whichever that is."""
    with contextlib.suppress(IsthmusError, Refuse):
        await act(*others)


@contextlib.contextmanager
def garbage():
    """What the collector finds of all that became garbage in here, by its type."""
    found = Counter()
    gc.collect()
    yield found
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found.update(type(one) for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def ours(found):
    """What is ours or holds a frame: HTTP's own connections leave cycles when they are closed."""
    return {
        kind.__qualname__: count
        for kind, count in found.items()
        if kind.__module__.startswith("isthmus") or kind in FRAMES
    }


@pytest.fixture(autouse=True)
def _own_heap():
    """Nothing collects but these tests, and nobody keeps what they raise: pytest does for its log."""
    logging.disable(logging.CRITICAL)
    with own_heap():
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", TRANSPORTS)
async def test_no_call_leaves_a_cycle_however_it_ends(way, era):
    """Ours: on both sides, nothing is left that only the collector could free."""
    server, cycles = add_what_raises(shelf()), {}
    answers = {"elicit": lambda *_: "Ada", "strict": False}
    async with connect(server, revision=era, transport=way, **answers) as client:
        for kind, act in kinds().items():
            await done(act, client, server)
            await client.ping()
            with garbage() as found:
                for _ in range(TIMES):
                    await done(act, client, server)
                await client.ping()
            if way.startswith("http"):
                found = ours(found)
            if found:
                cycles[kind] = dict(found)

    assert {} == cycles


# Conversations


async def leave_in_the_middle(client, server):
    """Close a client while a call of it runs."""
    server.begun.clear()
    task = asyncio.ensure_future(done(client.call_tool, "wait_with_context"))
    await server.begun.wait()
    return task


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", TRANSPORTS)
async def test_no_conversation_leaves_frames_or_what_the_server_had_for_it(way, era):
    """Ours: a closed client is one graph of its own parts, and nothing else waits with it."""
    skip_where_lacking(era, way)
    server = shelf()

    async def converse():
        async with Client(Target("ending", dial, http=way.startswith("http")), revision=era) as one:
            await one.call_tool("add", {"a": 1})
            task = await leave_in_the_middle(one, server)
        await task

    async with contextlib.AsyncExitStack() as stack:
        dial = await _WAYS[way](server, stack, {})
        await converse()
        with garbage() as found:
            for _ in range(TIMES):
                await converse()

    assert found[Peer] <= TIMES  # the clients' own
    assert {} == {
        kind: count
        for kind, count in ours(found).items()
        if kind in {"frame", "traceback", "HttpSession", "WebSocketChannel", "SseStream", "Inbound"}
    }


async def test_a_server_leaves_no_cycle_where_a_connection_ends():
    """Ours: neither what is open nor what is asked keeps a conversation that is over."""
    server = shelf()
    opening = (
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}'
    )
    wait = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_with_context",'
        b'"arguments":{}}}'
    )

    async def converse():
        ours, theirs = open_pair()
        server.begun.clear()
        running = asyncio.ensure_future(Peer(theirs, server.router, side="server").run())
        for message in (opening, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', wait):
            await ours.send(Outgoing(message))
        await server.begun.wait()
        running.cancel()
        await asyncio.wait((running,))
        await ours.close()

    await converse()
    with garbage() as found:
        await converse()

    assert {} == found
