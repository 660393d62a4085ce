"""A whole server over HTTP: what its author writes, in both eras, on one endpoint."""

import asyncio
import contextlib
import threading

import pytest

from isthmus import Accepted, Context, Server
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    begin_legacy_call,
    begin_modern_call,
    legacy_head,
    modern_body,
    modern_head,
    open_legacy_session,
    read_tool_text,
)


def shop(**options):
    """A server with a tool of each kind."""
    server = Server("shop", version="1", secret=b"k" * 32, **options)

    @server.tool
    async def hello() -> str:
        """Say hello."""
        return "hello"

    @server.tool
    async def report(ctx: Context) -> str:
        """Report and answer."""
        await ctx.progress(1, total=2)
        return "reported"

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask and answer."""
        answer = await ctx.elicit("How many?", int)
        return f"{answer.value}" if isinstance(answer, Accepted) else "none"

    return server


@pytest.mark.covers("versions.eras.side-by-side")
async def test_one_endpoint_serves_both_eras():
    """The same tool, by a session and without one."""
    target = shop().asgi()
    session = await open_legacy_session(target)

    assert "hello" == read_tool_text((await begin_legacy_call(target, session).done()).json)
    assert "hello" == read_tool_text((await begin_modern_call(target).done()).json)
    await target.close()


async def test_progress_is_a_stream_in_both_eras():
    """What the author calls progress opens the stream."""
    target = shop().asgi()
    session = await open_legacy_session(target)

    for exchange in (
        begin_legacy_call(target, session, "report", progressToken="p"),
        begin_modern_call(target, "report", progressToken="p"),
    ):
        await exchange.done()
        first, last = exchange.events
        assert ("p", 1) == (first["params"]["progressToken"], first["params"]["progress"])
        assert "reported" == read_tool_text(last)
    await target.close()


async def test_a_question_is_a_message_in_a_session():
    """Up to 2025-11-25 it travels on the call's stream."""
    target = shop().asgi()
    session = await open_legacy_session(target)
    call = begin_legacy_call(target, session, "ask")

    question = await call.event()
    content = {"action": "accept", "content": {"value": 3}}
    await fetch(
        target,
        headers=legacy_head(session),
        body={"jsonrpc": "2.0", "id": question["id"], "result": content},
    )
    await call.done()

    assert "3" == read_tool_text(call.events[-1])
    await target.close()


async def test_a_question_is_a_result_without_a_session():
    """2026-07-28: it travels in the result, and the call is made again with the answer."""
    target = shop().asgi()
    meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    params = {"name": "ask", "arguments": {}}
    head = modern_head(name="ask")

    first = (await fetch(target, headers=head, body=modern_body(params=params, **meta))).json
    (key,) = first["result"]["inputRequests"]
    again = {
        **params,
        "requestState": first["result"]["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"value": 3}}},
    }
    second = (await fetch(target, headers=head, body=modern_body(params=again, **meta))).json

    assert "input_required" == first["result"]["resultType"]
    assert "3" == read_tool_text(second)
    await target.close()


async def test_a_client_that_leaves_is_seen_by_a_tool_in_a_thread():
    """Users' pain 17: a tool that blocks can see that nobody waits any more."""
    server = Server("threads", version="1")
    running, seen = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @server.tool
    def block(ctx: Context) -> str:
        """Block until nobody waits any more."""
        loop.call_soon_threadsafe(running.set)
        while not ctx.cancelled:
            seen.wait(0.001)
        seen.set()
        return "late"

    target = server.asgi()
    exchange = begin_modern_call(target, "block")
    await running.wait()
    exchange.leave()
    await exchange.done()
    await asyncio.to_thread(seen.wait, 5)

    assert seen.is_set()
    assert [] == exchange.messages
    await target.close()


async def test_the_lifespan_is_entered_by_the_first_request_and_left_by_the_stop():
    """Users' pain 14: mounted anywhere, with nothing to wire up."""
    log = []

    @contextlib.asynccontextmanager
    async def lifespan(_server):
        log.append("enter")
        yield {"db": 1}
        log.append("leave")

    target = shop(lifespan=lifespan).asgi()
    assert [] == log
    await begin_modern_call(target).done()
    await begin_modern_call(target).done()
    assert ["enter"] == log
    await target.close()
    assert ["enter", "leave"] == log


async def test_sessions_hear_of_changes_on_their_standing_stream():
    """A tool that is added is told to whoever listens."""
    server = shop()
    target = server.asgi()
    session = await open_legacy_session(target)
    standing = Exchange(target, "GET", headers=legacy_head(session, accept="text/event-stream"))
    await standing.started.wait()

    server.add_tool(lambda: "new", name="new", description="A new one.")

    assert "notifications/tools/list_changed" == (await standing.event())["method"]
    await target.close()


async def test_concurrent_calls_of_both_eras_do_not_disturb_each_other():
    """Many at once, each answered with its own id."""
    target = shop().asgi()
    session = await open_legacy_session(target)
    exchanges = [
        begin_legacy_call(target, session, id=i) if i % 2 else begin_modern_call(target, id=i)
        for i in range(50)
    ]
    for exchange in exchanges:
        await exchange.done()

    assert list(range(50)) == [exchange.json["id"] for exchange in exchanges]
    assert {200} == {exchange.status for exchange in exchanges}
    await target.close()
