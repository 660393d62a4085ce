"""Middleware that is ready to use: Timing, Logging, Retry, Deadline and Concurrency."""

import asyncio
import json
import logging

import pytest

from isthmus import Context, Server, ToolError
from isthmus.errors import UsageError
from isthmus.server.middleware import Concurrency, Deadline, Logging, Retry, Timing
from isthmus.wire.jsonrpc import ErrorBody
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def make_server(*middleware):
    """A server whose tools fail as often as they are told to."""
    server = Server("s", middleware=middleware)
    server.left, server.calls = [], []

    def fail(name):
        server.calls.append(name)
        if server.left:
            raise server.left.pop()

    @server.tool(idempotent=True)
    async def put(key: str = "") -> str:
        fail("put")
        return "put"

    @server.tool
    async def post() -> str:
        fail("post")
        return "posted"

    @server.tool(read_only=True)
    async def confirm(ctx: Context) -> str:
        sure = await ctx.elicit("Sure?", bool)
        fail("confirm")
        return str(sure)

    @server.tool
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    @server.resource("notes://all")
    async def notes() -> str:
        fail("notes")
        return "note"

    return server


def answer_yes(_method, _params):
    return {"action": "accept", "content": {"value": True}}


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


# Timing and Logging


@BOTH
async def test_a_timing_says_what_was_timed_and_how_it_ended(revision):
    """Ours: a failed tool and a question are told from a result."""
    timings, ticks = [], iter(range(100))
    server = make_server(Timing(timings.append, clock=lambda: next(ticks)))
    client = EraClient(server, revision, answer_yes)
    await client.send("tools/call", call("put"))
    server.left = [ToolError("no")]
    await client.send("tools/call", call("post"))
    await client.send("resources/read", {"uri": "notes://none"})

    assert [
        ("tools/call", "put", 1, "ok"),
        ("tools/call", "post", 1, "tool_error"),
        ("resources/read", "notes://none", 1, "error"),
    ] == [(one.method, one.name, one.seconds, one.outcome) for one in timings]


async def test_a_record_that_breaks_fails_no_request(caplog):
    """Ours: a figure is no reason to fail a request."""
    client = EraClient(make_server(Timing(lambda timing: 1 / 0)))

    assert "put" == (await client.send("tools/call", call("put")))["content"][0]["text"]
    assert "the record of a timing failed" in caplog.text


async def test_timings_go_to_the_log_on_one_line(caplog):
    """Ours: a name with a line break in it writes no second line."""
    with caplog.at_level(logging.INFO, "isthmus.timing"):
        await EraClient(make_server(Timing())).send("resources/read", {"uri": "a:\nINFO forged"})

    assert 1 == len(caplog.messages)
    assert "\n" not in caplog.messages[0]


@BOTH
async def test_a_line_of_the_log_has_no_arguments_unless_asked_for(revision, caplog):
    """Ours: arguments are people's data."""
    client = EraClient(make_server(Logging()), revision)
    with caplog.at_level(logging.INFO, "isthmus.requests"):
        await client.send("tools/call", call("put", key="my data"))
    line = json.loads(caplog.messages[0])

    assert ("tools/call", "put", "ok", revision) == tuple(
        line[key] for key in ("method", "name", "outcome", "revision")
    )
    assert "my data" not in caplog.text


async def test_arguments_are_redacted_and_cut():
    """Ours: what is called a password, or looks like a key, stays out; so does the thousandth page."""
    lines = []
    client = EraClient(make_server(Logging(arguments=True, write=lines.append)))
    await client.once("tools/call", call("put", password="hunter2", key="x" * 10_000))
    await client.once("tools/call", {"name": "put", "arguments": [1]})

    assert "hunter2" not in str(lines)
    assert 2_000 == len(lines[0]["arguments"])
    assert "[not an object]" == lines[1]["arguments"]
    assert "refused" == lines[1]["outcome"], lines[1]


# Retry


def make_retry(**settings):
    """Retries that do not wait, and what they would have waited."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    return Retry(sleep=sleep, **settings), waits


@BOTH
async def test_a_passing_failure_is_tried_again(revision):
    """Ours: of an idempotent tool and of a read, with longer and longer waits."""
    retry, waits = make_retry(times=4, backoff=1.0)
    server = make_server(retry)
    client = EraClient(server, revision)
    server.left = [ConnectionError(), TimeoutError(), ConnectionResetError()]
    result = await client.send("tools/call", call("put"))
    server.left = [ConnectionError()]
    await client.send("resources/read", {"uri": "notes://all"})

    assert "put" == result["content"][0]["text"]
    assert ["put"] * 4 + ["notes"] * 2 == server.calls
    assert all(low <= wait <= 2 * low for low, wait in zip([0.5, 1, 2, 0.5], waits, strict=True))


@BOTH
@pytest.mark.parametrize(
    ("name", "error"),
    [("post", ConnectionError()), ("put", ValueError()), ("put", ToolError("no"))],
    ids=["not-idempotent", "another-error", "tool-error"],
)
async def test_what_is_not_safe_or_does_not_pass_is_tried_once(revision, name, error, caplog):
    """Ours: a second order is worse than an error."""
    retry, _ = make_retry()
    server = make_server(retry)
    server.left = [error]
    result = await EraClient(server, revision).send("tools/call", call(name))

    assert result["isError"]
    assert [name] == server.calls


async def test_the_last_attempt_says_what_went_wrong(caplog):
    """Ours: as often as it may, and no more."""
    retry, waits = make_retry(times=2)
    server = make_server(retry)
    server.left = [ConnectionError(), ConnectionError()]
    result = await EraClient(server).send("tools/call", call("put"))

    assert result["isError"]
    assert (2, 1) == (len(server.calls), len(waits))


@BOTH
async def test_a_call_that_asked_its_user_is_not_made_again(revision, caplog):
    """Ours: nobody is asked twice for one call, in either era."""
    retry, _ = make_retry()
    server = make_server(retry)
    server.left = [ConnectionError()]
    client = EraClient(server, revision, answer_yes)
    result = await client.send("tools/call", call("confirm"))

    assert result["isError"]
    assert [1] == list(client.link.asked.values()) or revision == MODERN
    assert ["confirm"] == server.calls


async def test_tools_are_named_where_annotations_do_not_say_it(caplog):
    """Ours: an author who knows better names them."""
    retry, _ = make_retry(tools=["post"])
    server = make_server(retry)
    server.left = [ConnectionError()]
    await EraClient(server).send("tools/call", call("post"))

    assert ["post", "post"] == server.calls


# Deadline


@BOTH
async def test_a_tool_that_takes_too_long_is_a_result_that_says_so(revision):
    """Ours: the model reads it."""
    result = await EraClient(make_server(Deadline(0.01)), revision).send("tools/call", call("hang"))

    assert result["isError"]
    assert "Tool 'hang' took longer than 0.01 s and was stopped" == result["content"][0]["text"]


@BOTH
async def test_a_read_that_takes_too_long_is_refused(revision):
    """Ours: what has no is_error is an error."""
    server = make_server(Deadline(0.01))

    @server.resource("notes://slow")
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    refused = await EraClient(server, revision).send("resources/read", {"uri": "notes://slow"})

    assert "resources/read took longer than 0.01 s and was stopped" == refused.message


async def test_time_of_the_user_does_not_count():
    """Ours: up to 2025-11-25 a call waits for its answer, and the clock stands still."""
    server = make_server(Deadline(0.02))

    @server.tool
    async def slow_user(ctx: Context) -> str:
        await ctx.elicit("Sure?", bool)
        await ctx.elicit("Really?", bool)
        return "yes"

    class SlowLink:
        def __init__(self, link):
            self._link = link

        def __getattr__(self, name):
            return getattr(self._link, name)

        async def call(self, *args, **options):
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            loop.call_later(0.03, done.set_result, None)
            await done
            return await self._link.call(*args, **options)

    client = EraClient(server, LEGACY, answer_yes)
    client.link = SlowLink(client.link)
    result = await client.once("tools/call", call("slow_user"))

    assert "yes" == result["content"][0]["text"]


async def test_a_time_out_of_the_tools_own_is_its_own():
    """Ours: a TimeoutError that a read raised is not taken for the deadline."""
    server = make_server(Deadline(60))
    server.left = [TimeoutError()]
    refused = await EraClient(server).send("resources/read", {"uri": "notes://all"})

    assert "Internal error in resources/read" == refused.message


# Concurrency


def make_gated(concurrency):
    """A server with a tool that waits until it is let go."""
    server = Server("s", middleware=[concurrency])
    server.inside, server.most, server.go = 0, 0, asyncio.Event()

    @server.tool
    async def work(key: str = "") -> str:
        server.inside += 1
        server.most = max(server.most, server.inside)
        await server.go.wait()
        server.inside -= 1
        return key

    return server


async def run_turns():
    for _ in range(10):
        await asyncio.sleep(0)


@BOTH
async def test_so_many_are_served_and_so_many_wait(revision):
    """Ours: the rest is refused, and told when to come back."""
    server = make_gated(Concurrency(2, queue=1))
    client = EraClient(server, revision)
    calls = [
        asyncio.create_task(client.once("tools/call", call("work", key=str(n)))) for n in range(4)
    ]
    await run_turns()
    assert 2 == server.inside
    refused = [task for task in calls if task.done()]
    assert [-31429] == [task.result().code for task in refused]
    assert refused[0].result().data["retryAfterMs"] >= 100
    assert "2 are served and 1 wait" in refused[0].result().message
    server.go.set()
    results = await asyncio.gather(*calls)

    assert 2 == server.most
    assert 3 == sum(not isinstance(one, ErrorBody) for one in results)


async def test_who_gives_up_takes_no_place():
    """Ours: a cancelled call in the queue, and one whose time is over, hold up nobody."""
    gate = Concurrency(1, queue=5, wait=0.01)
    server = make_gated(gate)
    client = EraClient(server)
    first = asyncio.create_task(client.once("tools/call", call("work")))
    await run_turns()
    second = asyncio.create_task(client.once("tools/call", call("work")))
    await run_turns()
    second.cancel()
    late = await client.once("tools/call", call("work"))
    server.go.set()
    await first
    again = await client.once("tools/call", call("work"))

    assert -31429 == late.code
    assert "content" in again
    assert {} == gate._gates


@pytest.mark.parametrize(
    ("per", "others"),
    [("tool", True), ("caller", True), (lambda ctx: ctx.arguments["key"], True), ("server", False)],
    ids=["tool", "caller", "function", "server"],
)
async def test_groups_do_not_hold_up_one_another(per, others):
    """Ours: whom the places are counted for."""
    server = make_gated(Concurrency(1, per=per, queue=0))
    server.add_tool(lambda key="": "", name="other", description="")
    first = asyncio.create_task(
        EraClient(server, principal="uid:1").once("tools/call", call("work", key="a"))
    )
    await run_turns()
    name = "other" if per == "tool" else "work"
    second = asyncio.create_task(
        EraClient(server, principal="uid:2").once("tools/call", call(name, key="b"))
    )
    await run_turns()
    server.go.set()
    await first

    assert others is not isinstance(await second, ErrorBody)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Timing("x"),
        lambda: Retry(0),
        lambda: Retry(on=("x",)),
        lambda: Retry(tools="put"),
        lambda: Deadline(0),
        lambda: Concurrency(0),
        lambda: Concurrency(1, per="planet"),
    ],
)
def test_a_setting_that_is_none_is_refused(make):
    """Ours: said at once, with what it takes."""
    with pytest.raises(UsageError, match=r"Timing|Retry|Deadline|Concurrency"):
        make()
