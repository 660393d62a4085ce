"""What a function may do beside returning: report, log, ask; and plain functions in threads."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Literal

import pytest
from msgspec import structs

from isthmus.core.answers import Accepted, Declined
from isthmus.errors import CapabilityMissing, Misbehaved, UsageError
from isthmus.revisions import BY_NAME
from isthmus.runtime.channel import Origin
from isthmus.server import Context, Server
from isthmus.wire import ClientCapabilities, Implementation, ModelPreferences, Tool, ToolUseContent
from support.server.both_eras import (
    ALL_CAPABILITIES,
    LEGACY,
    MODERN,
    EraClient,
    accept_form,
    tool_text,
)

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def make_server(body, **options):
    server = Server("context", debug=True, **options)
    server.add_tool(body, name="body")
    return server


def caller(client, **facts):
    client.caller = structs.replace(client.caller, **facts)
    return client


# --- facts ------------------------------------------------------------------------------------


@BOTH
async def test_a_context_says_who_asks(revision):
    """The same facts in both eras (architecture 4.5)."""
    seen = {}

    async def body(ctx: Context) -> None:
        seen.update(
            id=ctx.request_id,
            method=ctx.method,
            revision=ctx.revision,
            client=ctx.client,
            able=ctx.capabilities,
            principal=ctx.principal,
            header=ctx.headers["x-tenant"],
            transport=ctx.origin.transport,
            meta=ctx.meta,
            state=ctx.state,
        )

    client = EraClient(make_server(body), revision, principal="ann")
    caller(client, info=Implementation(name="c", version="1"))
    await client.once(
        "tools/call",
        {"name": "body", "_meta": {"acme/trace": 7}},
        origin=Origin("http", {"x-tenant": "acme"}),
    )

    assert seen == {
        "id": 1,
        "method": "tools/call",
        "revision": BY_NAME[revision],
        "client": Implementation(name="c", version="1"),
        "able": ALL_CAPABILITIES,
        "principal": "ann",
        "header": "acme",
        "transport": "http",
        "meta": {"acme/trace": 7},
        "state": None,
    }


async def test_a_call_without_meta_has_empty_meta():
    """``_meta`` is optional up to 2025-11-25 (schema)."""

    async def body(ctx: Context) -> str:
        return repr((ctx.meta, ctx.meta))

    assert "({}, {})" == tool_text(await EraClient(make_server(body), LEGACY).call("body"))


# --- progress ---------------------------------------------------------------------------------


@BOTH
async def test_progress_goes_to_whoever_gave_a_token(revision):
    """With the token as it came, before the answer (spec: progress flow)."""

    async def body(ctx: Context) -> str:
        await ctx.progress(1, total=2, message="half")
        await ctx.progress(2.5)
        return "done"

    client = EraClient(make_server(body), revision)
    await client.call("body", token="t1")

    assert [
        {"progressToken": "t1", "progress": 1, "total": 2, "message": "half"},
        {"progressToken": "t1", "progress": 2.5},
    ] == client.link.said("notifications/progress")


@pytest.mark.covers("progress.token.asked-for-only")
async def test_progress_without_a_token_goes_nowhere():
    """Only tokens of requests in progress may be named (spec: progress, behaviour)."""

    async def body(ctx: Context) -> str:
        await ctx.progress(1)
        return "done"

    client = EraClient(make_server(body))
    await client.call("body")

    assert [] == client.link.notes


@pytest.mark.covers("progress.values.increase")
async def test_progress_only_grows():
    """MUST increase with each notification (spec: progress flow)."""

    async def body(ctx: Context) -> str:
        for step in (1, 1, 0, float("nan"), 3, 2, 4):
            await ctx.progress(step)
        return "done"

    client = EraClient(make_server(body))
    await client.call("body", token="t")

    assert [1, 3, 4] == [p["progress"] for p in client.link.said("notifications/progress")]


async def test_progress_is_a_number():
    """JSON has no infinity, and the schema of progress no null (schema: ProgressNotification)."""

    async def body(ctx: Context) -> str:
        for step in (1, float("inf"), 2):
            await ctx.progress(step, total=float("inf"))
        return "done"

    client = EraClient(make_server(body))
    await client.call("body", token="t")

    assert [
        {"progressToken": "t", "progress": 1},
        {"progressToken": "t", "progress": 2},
    ] == client.link.said("notifications/progress")


@pytest.mark.covers("progress.end.never-after-the-answer")
@BOTH
async def test_nothing_is_said_after_the_answer(revision):
    """Progress MUST stop after completion; so does the log (spec: progress)."""
    kept = []

    async def body(ctx: Context) -> str:
        kept.append(ctx)
        return "done"

    client = caller(EraClient(make_server(body), revision), log_level="debug")
    await client.call("body", token="t")
    await kept[0].progress(1)
    kept[0].log.error("late")
    await asyncio.sleep(0)

    assert [] == client.link.notes


# --- the log ----------------------------------------------------------------------------------


@BOTH
async def test_the_log_arrives_before_the_answer_and_in_order(revision):
    """Fire and forget, yet ordered with progress and the answer (our promise)."""

    async def body(ctx: Context) -> str:
        ctx.log.info("one")
        await ctx.progress(1)
        ctx.log.named("db").error("two", rows=3, where=object)
        return "done"

    client = caller(EraClient(make_server(body), revision), log_level="info")
    await client.call("body", token="t")

    assert [
        ("notifications/message", {"level": "info", "data": "one"}),
        ("notifications/progress", {"progressToken": "t", "progress": 1}),
        (
            "notifications/message",
            {
                "level": "error",
                "logger": "db",
                "data": {"message": "two", "rows": 3, "where": "<class 'object'>"},
            },
        ),
    ] == client.link.notes


@BOTH
async def test_the_log_of_a_failing_tool_arrives_too(revision):
    """What was said before an exception is said (ours)."""

    async def body(ctx: Context) -> str:
        ctx.log.error("trouble")
        raise ValueError("no")

    client = caller(EraClient(make_server(body), revision), log_level="info")
    await client.call("body")

    assert ["trouble"] == [p["data"] for p in client.link.said("notifications/message")]


# --- asking -----------------------------------------------------------------------------------


@dataclass
class Seat:
    row: int
    side: Literal["aisle", "window"] = "aisle"


@BOTH
async def test_a_form_is_made_from_a_class_and_read_back_into_it(revision):
    """Blanks from the fields, defaults filled in (spec: requested schema)."""
    asked = []

    def answer(method, params):
        asked.append(params)
        return accept_form(row=3)

    async def body(ctx: Context) -> str:
        match await ctx.elicit("Which seat?", Seat):
            case Accepted(seat):
                return repr(seat)
        return "none"

    client = EraClient(make_server(body), revision, answer)

    assert "Seat(row=3, side='aisle')" == tool_text(await client.call("body"))
    assert "Which seat?" == asked[0]["message"]
    assert {
        "type": "object",
        "properties": {
            "row": {"type": "integer"},
            "side": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
        },
        "required": ["row"],
    } == asked[0]["requestedSchema"]


@BOTH
async def test_an_answer_that_does_not_fit_its_form_is_not_taken(revision):
    """Servers validate what users enter (spec: elicitation)."""

    async def body(ctx: Context) -> str:
        return repr(await ctx.elicit("Which seat?", Seat))

    refused = await EraClient(
        make_server(body), revision, lambda *_: accept_form(row="front")
    ).call("body")

    assert (-32602 if revision == MODERN else -32603) == refused.code
    assert 'row: expected an integer, got "front"' in refused.message


@BOTH
async def test_a_function_may_catch_an_answer_that_does_not_fit(revision):
    """It is the client that broke the rules, whatever the revision (errors carry blame)."""

    async def body(ctx: Context) -> str:
        try:
            await ctx.elicit("Which seat?", Seat)
        except Misbehaved as misfit:
            return f"then none: {misfit}"
        return "taken"

    result = await EraClient(make_server(body), revision, lambda *_: accept_form(row="front")).call(
        "body"
    )

    assert tool_text(result).startswith("then none")


async def test_a_ping_takes_the_time_that_the_client_takes():
    """On demand, in the middle of a call (up to 2025-11-25)."""
    asked = []

    async def body(ctx: Context) -> str:
        return str(0 <= await ctx.ping() < 60)

    def answer(method, params):
        asked.append(method)
        return {}

    assert "True" == tool_text(await EraClient(make_server(body), LEGACY, answer).call("body"))
    assert ["ping"] == asked


async def test_a_revision_without_requests_of_servers_has_no_ping():
    """It is told as every feature that a revision lacks."""

    async def body(ctx: Context) -> str:
        return str(await ctx.ping())

    result = await EraClient(make_server(body), MODERN).call("body")

    assert "revision 2026-07-28 has no pings of servers" in tool_text(result)


@BOTH
async def test_consent_alone_has_no_blanks(revision):
    """A yes carries nothing (ours)."""

    async def body(ctx: Context) -> str:
        return repr(await ctx.elicit("Go on?"))

    client = EraClient(make_server(body), revision, lambda *_: accept_form())

    assert "Accepted(value=None)" == tool_text(await client.call("body"))


@BOTH
async def test_a_page_is_only_offered_to_who_can_open_it(revision):
    """Modes MUST be declared (spec: elicitation, capabilities)."""
    asked = []

    def answer(method, params):
        asked.append(params)
        return {"action": "accept"}

    async def body(ctx: Context) -> str:
        return repr(await ctx.elicit_url("Sign in", "https://a.example/", elicitation_id="e1"))

    async def needs(ctx: Context) -> str:
        try:
            await ctx.elicit_url("Sign in", "https://a.example/")
        except CapabilityMissing as lack:
            return str(lack.required)
        return "never"

    server = make_server(body)
    server.add_tool(needs)
    able = EraClient(server, revision, answer)
    forms = EraClient(server, revision, able=form_only())

    assert "Accepted(value=None)" == tool_text(await able.call("body"))
    assert ("url", "https://a.example/") == (asked[0]["mode"], asked[0]["url"])
    assert (revision == LEGACY) is ("elicitationId" in asked[0])
    assert "{'elicitation': {'url': {}}}" == tool_text(await forms.call("needs"))


def form_only():
    from isthmus.wire import ElicitationCapability

    return ClientCapabilities(elicitation=ElicitationCapability())


def make_message(said="ok", **more):
    return {"role": "assistant", "content": {"type": "text", "text": said}, "model": "m", **more}


@BOTH
async def test_a_model_is_asked_with_everything_that_was_said(revision):
    """All parameters of sampling travel (spec: sampling)."""
    asked = []

    def answer(method, params):
        asked.append(params)
        return make_message("Paris", stopReason="endTurn")

    async def body(ctx: Context) -> str:
        reply = await ctx.sample(
            "Capital of France?",
            max_tokens=9,
            system_prompt="Be brief.",
            model=["small", "cheap"],
            temperature=0.5,
            stop_sequences=["."],
            include_context="thisServer",
            tools=[Tool(name="t", input_schema={"type": "object"})],
            tool_choice="auto",
            metadata={"a": 1},
        )
        return f"{reply.text} {reply.model} {reply.stop_reason} {reply.role}"

    client = EraClient(make_server(body), revision, answer)

    assert "Paris m endTurn assistant" == tool_text(await client.call("body"))
    assert {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
        "maxTokens": 9,
        "systemPrompt": "Be brief.",
        "modelPreferences": {"hints": [{"name": "small"}, {"name": "cheap"}]},
        "temperature": 0.5,
        "stopSequences": ["."],
        "includeContext": "thisServer",
        "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "auto"},
        "metadata": {"a": 1},
    } == asked[0]


@pytest.mark.covers("capabilities.sampling.context-left-out")
@BOTH
async def test_context_is_only_included_where_the_client_offers_it(revision):
    """SHOULD NOT without ``sampling.context``; the question is asked all the same."""
    from isthmus.wire import SamplingCapability

    asked = []

    def answer(method, params):
        asked.append(params)
        return make_message()

    async def body(ctx: Context) -> str:
        await ctx.sample("Hi", max_tokens=1, include_context="allServers")
        await ctx.sample("Ho", max_tokens=1, include_context="none")
        return "done"

    able = ClientCapabilities(sampling=SamplingCapability())
    await EraClient(make_server(body), revision, answer, able=able).call("body")

    assert [None, "none"] == [params.get("includeContext") for params in asked]


@BOTH
async def test_tools_need_a_client_whose_model_uses_tools(revision):
    """MUST NOT be sent without ``sampling.tools`` (spec: sampling, tools)."""
    from isthmus.wire import SamplingCapability

    async def body(ctx: Context) -> str:
        try:
            await ctx.sample("Hi", max_tokens=1, tools=[], model=ModelPreferences())
        except CapabilityMissing as lack:
            return str(lack.required)
        return "never"

    able = ClientCapabilities(sampling=SamplingCapability())
    client = EraClient(make_server(body), revision, able=able)

    assert "{'sampling': {'tools': {}}}" == tool_text(await client.call("body"))


@BOTH
async def test_a_model_may_go_on_with_tools(revision):
    """What it wrote is the next message of the conversation (spec: sampling with tools)."""
    turns = []

    def answer(method, params):
        turns.append(params["messages"])
        use = {"type": "tool_use", "id": "1", "name": "t", "input": {"a": 1}}
        return make_message(content=[use]) if len(turns) == 1 else make_message("done")

    async def body(ctx: Context) -> str:
        from isthmus.wire import SamplingMessage, TextContent, ToolResultContent

        tools = [Tool(name="t", input_schema={"type": "object"})]
        first = await ctx.sample("Go", max_tokens=9, tools=tools)
        (use,) = first.tool_uses
        assert isinstance(use, ToolUseContent)
        said = ToolResultContent(tool_use_id=use.id, content=[TextContent(text="42")])
        done = SamplingMessage(role="user", content=said)
        return (await ctx.sample(["Go", first, done], max_tokens=9, tools=tools)).text

    client = EraClient(make_server(body), revision, answer)

    assert "done" == tool_text(await client.call("body"))
    assert ["user", "assistant", "user"] == [message["role"] for message in turns[1]]


@BOTH
async def test_roots_are_listed(revision):
    """``roots/list`` has no parameters (spec: roots)."""

    async def body(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.roots())

    def answer(method, params):
        assert {} == params
        return {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]}

    client = EraClient(make_server(body), revision, answer)

    assert "file:///a, file:///b" == tool_text(await client.call("body"))


async def test_a_malformed_answer_in_a_session_is_the_clients_fault():
    """It names the method and what is wrong; the call itself was fine (errors carry blame)."""

    async def body(ctx: Context) -> str:
        await ctx.roots()
        return "never"

    refused = await EraClient(make_server(body), LEGACY, lambda *_: {"roots": 5}).call("body")

    assert "the client's answer to roots/list is malformed" in refused.message


# --- plain functions --------------------------------------------------------------------------


@BOTH
async def test_a_plain_function_asks_by_waiting(revision):
    """``ctx.wait`` in its thread; rounds and effects work as ever (our promise)."""
    made, threads = [], set()

    def reserve(date: str) -> str:
        made.append(date)
        return f"hold {date}"

    def body(ctx: Context) -> str:
        threads.add(threading.get_ident())
        hold = ctx.wait(ctx.once(reserve, "monday"))
        ctx.log.info("held")
        seat = ctx.wait(ctx.elicit("Which seat?", Seat))
        if isinstance(seat, Declined):
            return "none"
        ctx.wait(ctx.progress(1))
        return f"{hold} {seat.value.row}"

    client = EraClient(make_server(body), revision, lambda *_: accept_form(row=3))
    caller(client, log_level="info")

    assert "hold monday 3" == tool_text(await client.call("body", token="t"))
    assert ["monday"] == made
    assert threading.get_ident() not in threads
    assert ["held"] == [p["data"] for p in client.link.said("notifications/message")]
    assert 1 == len(client.link.said("notifications/progress"))


async def test_a_cut_round_waits_for_its_thread():
    """``finally`` of a plain function runs before the next round does (ours)."""
    left = []

    def body(ctx: Context) -> str:
        try:
            return str(ctx.wait(ctx.elicit("Which seat?", Seat)))
        except Exception:  # noqa: BLE001 - a cancellation is none of these
            return "caught"
        finally:
            left.append(len(left))

    client = EraClient(make_server(body))
    first = await client.once("tools/call", {"name": "body"})

    assert "input_required" == first["resultType"]
    assert [0] == left


async def test_waiting_on_the_event_loop_is_refused():
    """It would stop the loop that it waits for (ours)."""

    async def body(ctx: Context) -> str:
        ctx.wait(ctx.elicit("Which seat?", Seat))
        return "never"

    assert "use await" in tool_text(await EraClient(make_server(body)).call("body"))


@pytest.mark.parametrize("look", ["cancelled", "check_cancelled", "wait"])
async def test_a_plain_function_hears_that_its_call_was_given_up(look):
    """A thread cannot be stopped; it can be told (users.md, pain 17)."""
    begun, ended = threading.Event(), threading.Event()

    def body(ctx: Context) -> str:
        begun.set()
        try:
            while not ctx.cancelled:
                if look == "check_cancelled":
                    ctx.check_cancelled()
                elif look == "wait":
                    ctx.wait(asyncio.sleep(0))
        finally:
            ended.set()
        return "over"

    task = asyncio.create_task(EraClient(make_server(body)).once("tools/call", {"name": "body"}))
    await asyncio.to_thread(begun.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_function_that_does_not_block_runs_on_the_loop():
    """``blocking=False`` spares the thread (performance.md)."""
    threads = []

    def body(ctx: Context) -> str:
        threads.append(threading.get_ident())
        return "done"

    server = Server("context")
    server.add_tool(body, blocking=False)
    await EraClient(server).call("body")

    assert [threading.get_ident()] == threads


def test_a_form_with_a_form_in_it_is_refused():
    """Forms are flat (spec: requested schema)."""
    from isthmus.server.asking.forms import make_form

    @dataclass
    class Trip:
        seat: Seat

    with pytest.raises(UsageError, match="'seat' cannot be asked"):
        make_form(Trip)


async def _exits(ctx: Context) -> str:
    raise SystemExit(f"usage: {ctx.method}")


def _exits_in_a_thread(ctx: Context) -> str:
    raise SystemExit(f"usage: {ctx.method}")


@pytest.mark.parametrize("body", [_exits, _exits_in_a_thread])
async def test_a_tool_that_exits_has_failed_and_the_server_goes_on(body):
    """Ours: argument parsers call ``sys.exit``, which would take every other call along."""
    server = Server("context")
    server.add_tool(body, name="body")

    assert "Tool 'body' failed: SystemExit" == tool_text(await EraClient(server).call("body"))
