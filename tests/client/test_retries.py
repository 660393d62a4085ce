"""Calls that are made again, one limit for all of a call, and progress that nobody listens to."""

import asyncio

import pytest

from isthmus import Context, Server
from isthmus.client import Client, Retries
from isthmus.client.targets import Target, memory_target
from isthmus.core.answers import Accepted
from isthmus.errors import (
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    Refuse,
    Refused,
    UsageError,
    make_unsent,
)
from support.clock import run_in_virtual_time

EITHER = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def make_retries(**options):
    """Retries that wait for nobody, and the pauses that they would have made."""
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    return Retries(**{"sleep": sleep, "random": lambda: 0.0, **options}), pauses


def make_busy_server(fails, **data):
    """A server that refuses the first calls of everything, and how often it was asked."""
    server, asked = Server("busy"), []

    async def refuse_first(inbound, call_next):
        if inbound.method in {"tools/call", "resources/read"}:
            asked.append(inbound.method)
            if len(asked) <= fails:
                raise Refuse(-31503, "later", data or None)
        return await call_next(inbound)

    server.use(refuse_first)

    @server.tool
    def write() -> str:
        return "written"

    @server.tool(read_only=True)
    def look() -> str:
        return "seen"

    @server.resource("a://b")
    def page() -> str:
        return "text"

    return server, asked


@EITHER
async def test_a_read_is_made_again_after_growing_pauses(revision):
    """What changes nothing at the server may be asked a second time."""
    server, asked = make_busy_server(2)
    retries, pauses = make_retries()
    async with Client(server, revision=revision, retries=retries) as client:
        assert "text" == (await client.read_resource("a://b")).contents[0].text

    assert [0.25, 0.5] == pauses
    assert 3 == len(asked)


async def test_retries_are_bounded():
    """The last attempt's error is the call's."""
    server, asked = make_busy_server(99)
    async with Client(server, retries=make_retries(times=2)[0]) as client:
        with pytest.raises(Refused, match="later"):
            await client.read_resource("a://b")

    assert 3 == len(asked)


async def test_nothing_is_made_again_unless_asked_for():
    """The default is one attempt."""
    server, asked = make_busy_server(1)
    async with Client(server) as client:
        with pytest.raises(Refused, match="later"):
            await client.read_resource("a://b")

    assert 1 == len(asked)


async def test_the_server_says_how_long_to_wait():
    """The pause of retryAfterMs is the shortest pause; more than the client waits ends the call at once."""
    server, asked = make_busy_server(1, retryAfterMs=3000)
    retries, pauses = make_retries()
    async with Client(server, retries=retries) as client:
        await client.read_resource("a://b")
    assert [3.0] == pauses

    server, asked = make_busy_server(1, retryAfterMs=60_000)
    async with Client(server, retries=make_retries()[0]) as client:
        with pytest.raises(Refused):
            await client.read_resource("a://b")
    assert 1 == len(asked)


@pytest.mark.parametrize(
    ("tool", "trusts", "times"),
    [("write", False, 1), ("write", True, 1), ("look", False, 1), ("look", True, 2)],
)
async def test_a_tool_is_called_again_only_where_its_hints_are_trusted(tool, trusts, times):
    """A call may have had an effect, whatever its error says."""
    server, asked = make_busy_server(1)
    async with Client(server, retries=make_retries(trust_hints=trusts)[0]) as client:
        await client.list_tools()
        try:
            await client.call_tool(tool)
        except Refused:
            assert 1 == times

    assert times == len(asked)


@EITHER
async def test_a_person_is_not_asked_twice(revision):
    """A call in which somebody was asked fails with its error."""
    server, questions = Server("asking"), []

    @server.prompt
    async def greet(ctx: Context) -> str:
        await ctx.elicit("Who?", str)
        raise Refuse(-31503, "later")

    async def answer(question):
        questions.append(question.message)
        return Accepted({"value": "Ada"})

    async with Client(
        server, revision=revision, elicit=answer, retries=make_retries()[0]
    ) as client:
        with pytest.raises(Refused, match="later"):
            await client.get_prompt("greet")

    assert ["Who?"] == questions


async def test_a_connection_is_opened_again():
    """A server that is being started anew answers a moment later."""
    dials, inner = [], memory_target(make_busy_server(0)[0])

    async def dial():
        dials.append(1)
        if len(dials) < 3:
            raise ConnectFailed("nobody listens")
        return await inner.dial()

    async with Client(Target("late", dial), retries=make_retries()[0]) as client:
        assert 2 == len(await client.list_tools())

    assert 3 == len(dials)


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (HttpRefused(503, "", {}), 1.0),
        (HttpRefused(503, "", {"Retry-After": "7"}), 7.0),
        (HttpRefused(429, "", {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), 1.0),
        (HttpRefused(503, "", {"Retry-After": "soon"}), 1.0),
        (HttpRefused(503, "", {"Retry-After": "9" * 5000}), None),
        (HttpRefused(500, "", {}), None),
        (ConnectionLost("reset"), 1.0),
        (make_unsent("no route"), 1.0),
        (Refused(-31429, "too much", {"retryAfterMs": 1500}), 1.5),
        (Refused(-31429, "too much", {"retryAfterMs": float("nan")}), 1.0),
        (Refused(-31429, "too much", {"retryAfterMs": -5}), 1.0),
        (Refused(-32603, "broken"), None),
        (CallTimedOut("late"), None),
    ],
)
def test_the_error_says_whether_there_is_another_attempt(error, pause):
    """Only what may pass by itself is tried again, and no server's word makes a pause endless."""
    assert pause == Retries(pause=1.0, random=lambda: 0.0).find_pause(error, 0)


def test_pauses_are_spread():
    """Clients that failed together do not come back together."""
    assert 0.5 == Retries(pause=1.0, random=lambda: 1.0).find_pause(ConnectionLost("gone"), 0)
    assert 0.5 <= Retries(pause=1.0).find_pause(ConnectionLost("gone"), 0) <= 1.0


@pytest.mark.parametrize("retries", [-1, "3", True, None, 1.5])
def test_retries_are_a_number_or_retries(retries):
    """Anything else is said to be wrong when the client is made."""
    with pytest.raises(UsageError, match="retries="):
        Client("http://localhost/mcp", retries=retries)


@pytest.mark.parametrize("seconds", [0, -1, "5", True])
def test_the_total_timeout_is_a_positive_number(seconds):
    """Anything else is said to be wrong when the client is made."""
    with pytest.raises(UsageError, match="total_timeout="):
        Client("http://localhost/mcp", total_timeout=seconds)


@EITHER
async def test_one_limit_holds_for_all_of_a_call(revision):
    """Rounds, retries and pages count together."""
    server = make_busy_server(10**9)[0]

    async with Client(
        server, revision=revision, total_timeout=0.05, retries=Retries(times=10**6, pause=0.001)
    ) as client:
        with pytest.raises(CallTimedOut, match=r"read_resource took more than 0.05 s in all"):
            await client.read_resource("a://b")


async def test_one_limit_holds_for_opening():
    """A server that never answers is given up."""

    async def dial():
        await asyncio.Event().wait()

    client = Client(Target("silent", dial), total_timeout=0.05)
    with pytest.raises(CallTimedOut, match=r"open took more than 0.05 s in all"):
        await client.open()
    await client.close()


@EITHER
@pytest.mark.parametrize("progress", [False, True])
@run_in_virtual_time
async def test_progress_counts_without_a_listener(revision, progress):
    """progress=True asks for it, so that each report sets the clock of timeout back."""
    server, tokens = Server("slow"), []

    @server.tool
    async def work(ctx: Context) -> str:
        tokens.append("progressToken" in ctx.meta)
        for step in range(6):
            await asyncio.sleep(30)
            await ctx.progress(step + 1, 6)
        return "done"

    async with Client(server, revision=revision, timeout=100, progress=progress) as client:
        if progress:
            assert "done" == (await client.call_tool("work")).text
        else:
            with pytest.raises(CallTimedOut):
                await client.call_tool("work")

    assert [progress] == tokens
