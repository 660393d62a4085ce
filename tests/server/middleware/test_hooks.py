"""Typed hooks: which of them run, what they see, and what is said of a wrong one."""

import json
import logging

import pytest
from msgspec import structs

from isthmus import Client, Context, Extension, Refuse, Server, ToolError
from isthmus.errors import UsageError
from isthmus.server.middleware import Middleware, Timing
from isthmus.types import CallToolResult, InputRequiredResult, ListToolsResult, TextContent
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Note(Middleware):
    """Notes what each hook sees."""

    def __init__(self):
        self.seen = []

    async def on_message(self, ctx, call_next):
        self.seen.append(("message", ctx.method))
        return await call_next(ctx)

    async def on_request(self, ctx, call_next):
        self.seen.append(("request", ctx.method))
        return await call_next(ctx)

    async def on_call_tool(self, ctx, call_next):
        self.seen.append(("call", ctx.params.name, ctx.arguments))
        result = await call_next(ctx)
        self.seen.append(type(result))
        return result


def make_server(*middleware, **settings):
    server = Server("s", middleware=middleware, **settings)

    @server.tool(read_only=True)
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    server.resource("notes://all", name="all")(lambda: "note")
    return server


@BOTH
async def test_hooks_run_from_the_general_to_the_special(revision):
    """Ours: on_message, on_request, then the hook of the method, with decoded params."""
    note = Note()
    client = EraClient(make_server(note), revision)
    await client.once("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    await client.once("tools/list", {})

    assert [
        ("message", "tools/call"),
        ("request", "tools/call"),
        ("call", "add", {"a": 1, "b": 2}),
        CallToolResult,
        ("message", "tools/list"),
        ("request", "tools/list"),
    ] == note.seen


async def test_a_question_is_a_result_on_its_way():
    """Ours: since 2026-07-28 a hook sees the questions of a call as its result."""
    note = Note()
    client = EraClient(make_server(note), MODERN)
    await client.once("tools/call", {"name": "ask", "arguments": {}})

    assert InputRequiredResult is note.seen[-1]


@BOTH
async def test_a_hook_changes_params_and_results(revision):
    """Ours: what call_next is given is what is served, and what is returned is sent."""

    class Double(Middleware):
        async def on_call_tool(self, ctx, call_next):
            result = await call_next(ctx.with_arguments(a=ctx.arguments["a"] * 2))
            return structs.replace(result, content=[*result.content, TextContent(text="doubled")])

    class Rename(Middleware):
        async def on_call_tool(self, ctx, call_next):
            return await call_next(ctx.replace(structs.replace(ctx.params, name="add")))

    seen = []

    async def raw(inbound, call_next):
        seen.append(json.loads(bytes(inbound.params))["arguments"])
        return await call_next(inbound)

    client = EraClient(make_server(Rename(), Double(), raw), revision)
    result = await client.once("tools/call", {"name": "plus", "arguments": {"a": 1, "b": 2}})

    assert ["4", "doubled"] == [block["text"] for block in result["content"]]
    assert [{"a": 2, "b": 2}] == seen


@BOTH
async def test_a_hook_may_answer_itself_or_refuse(revision):
    """Ours: what does not call call_next is served by nobody else."""

    class Door(Middleware):
        async def on_call_tool(self, ctx, call_next):
            if ctx.params.name == "ask":
                raise Refuse(-32001, "Not today.")
            return CallToolResult(content=[TextContent(text="mine")])

    client = EraClient(make_server(Door()), revision)

    assert "mine" == (await client.once("tools/call", {"name": "add"}))["content"][0]["text"]
    assert -32001 == (await client.once("tools/call", {"name": "ask"})).code


@BOTH
async def test_any_object_with_hooks_will_do(revision):
    """Ours: a base class is no duty."""

    class Duck:
        async def on_list_tools(self, ctx, call_next):
            result = await call_next(ctx)
            assert type(result) is ListToolsResult
            return structs.replace(result, tools=result.tools[:1])

    client = EraClient(make_server(Duck()), revision)

    assert ["add"] == [tool["name"] for tool in (await client.once("tools/list", {}))["tools"]]


async def test_a_hook_costs_other_methods_nothing():
    """Ours: where nothing wraps a method, its handler is the feature's own, and pages stay bytes."""

    class Calls(Middleware):
        async def on_call_tool(self, ctx, call_next):
            return await call_next(ctx)

    server, bare = make_server(Calls(), Timing()), make_server(Calls())
    revision = server.revisions[-1]
    listing = bare._declared.tools.listing

    assert listing.page == bare.router.plan("tools/list", revision).handler
    assert listing.page != server.router.plan("tools/list", revision).handler
    assert frozenset({"tools/call"}) == server._settings.wrapped


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("on_tool_call", "on_call_tool"),
        ("on_list_tool", "on_list_tools"),
        ("on_reqest", "on_request"),
    ],
)
@pytest.mark.parametrize("base", [Middleware, object], ids=["middleware", "object"])
def test_a_misspelt_hook_is_told_of(name, meant, base):
    """Ours: a hook that never runs would go unnoticed."""

    async def hook(self, ctx, call_next): ...

    async def fine(self, ctx, call_next): ...

    wrong = type("Wrong", (base,), {name: hook, "on_complete": fine})()
    with pytest.raises(
        UsageError, match=rf"Wrong has an unknown hook {name}\(\): did you mean {meant}"
    ):
        Server("s").use(wrong)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (Timing, "the middleware Timing is a class: pass an instance, Timing"),
        (Middleware(), "Middleware defines no hook"),
        (42, "int is no middleware"),
    ],
    ids=["class", "empty", "number"],
)
def test_what_is_no_middleware_is_refused(thing, said):
    """Ours: said where it is put in place, not at the first request."""
    with pytest.raises(UsageError, match=said):
        Server("s", middleware=[thing])


class Forgets(Middleware):
    async def on_call_tool(self, ctx, call_next):
        await call_next(ctx)


class Waits(Middleware):
    async def on_call_tool(self, ctx, call_next):
        return call_next(ctx)


class Plain(Middleware):
    def on_call_tool(self, ctx, call_next):
        return {}


class Text(Middleware):
    async def on_call_tool(self, ctx, call_next):
        return "done"


class Bare(Middleware):
    async def on_call_tool(self, ctx, call_next):
        return await call_next(ctx.params)


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (Forgets(), "the middleware Forgets.on_call_tool returned None for tools/call"),
        (Waits(), "Waits.on_call_tool returned a coroutine for tools/call: write `return await"),
        (Plain(), "the middleware Plain.on_call_tool is no async function"),
        (Text(), "Text.on_call_tool returned a str for tools/call: it returns CallToolResult"),
        (Bare(), r"Bare.on_call_tool calls call_next\(CallToolParams\): it takes the context"),
    ],
    ids=["nothing", "no-await", "not-async", "no-result", "no-context"],
)
async def test_a_wrong_hook_is_told_by_its_name(layer, said, caplog):
    """Ours: its author reads in the log which one it is, and what to write."""
    client = EraClient(make_server(layer), MODERN)
    refused = await client.once("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})

    assert -32603 == refused.code
    assert caplog.records[-1].exc_info is not None
    with pytest.raises(UsageError, match=said):
        raise caplog.records[-1].exc_info[1]


@BOTH
async def test_arguments_that_are_no_object_are_refused(revision):
    """Ours: a hook that looks into arguments does not break on what a stranger sends."""
    client = EraClient(make_server(Note()), revision)

    assert -32602 == (await client.once("tools/call", {"name": "add", "arguments": [1]})).code
    assert -32602 == (await client.once("tools/call", {"name": "add", "arguments": []})).code


async def test_notifications_pass_their_hook_and_may_be_dropped():
    """Ours: on_notification stands around the author's own listeners; the session opens anyhow."""
    heard, seen = [], []

    class Listens(Middleware):
        async def on_notification(self, ctx, call_next):
            seen.append(ctx.method)
            return None if ctx.method == "acme/dropped" else await call_next(ctx)

    server = make_server(Listens())
    server.on_notification("acme/moved")(lambda params: heard.append("moved"))
    server.on_notification("acme/dropped")(lambda params: heard.append("dropped"))
    async with Client(server, revision=LEGACY) as client:
        await client.notify("acme/moved", {})
        await client.notify("acme/dropped", {})
        for _ in range(3):
            await client.ping()

    assert ["moved"] == heard
    assert ["notifications/initialized", "acme/moved", "acme/dropped"] == seen


async def test_hooks_of_an_extension_are_for_those_who_declared_it():
    """Ours: an extension's typed middleware is not there for others."""
    note, refunds = Note(), Extension("com.example/refunds")
    refunds.use(note)
    server = make_server()
    server.extend(refunds)
    await EraClient(server, MODERN).once("tools/list", {})
    assert [] == note.seen
    async with Client(server, extensions=[Extension("com.example/refunds")]) as client:
        await client.list_tools()
    assert ("request", "tools/list") in note.seen


async def test_the_context_says_who_asks_and_how():
    """Ours: what a hook decides by is at hand, typed."""
    seen = []

    class Sees(Middleware):
        async def on_call_tool(self, ctx, call_next):
            seen.extend([ctx.name, ctx.revision.name, ctx.transport, ctx.session, ctx.state])
            seen.extend(
                [ctx.tool.name, ctx.tool.annotations.read_only_hint, ctx.headers, ctx.request_id]
            )
            return await call_next(ctx)

    client = EraClient(make_server(Sees()), MODERN, principal="uid:7")
    await client.once("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})

    assert ["add", MODERN, "memory", None, None, "add", True, {}, 1] == seen


async def test_errors_of_tools_are_results_and_errors_of_resources_are_raised(caplog):
    """Ours: a hook of calls sees is_error; one of reads may catch what was raised."""
    caught = []

    class Catch(Middleware):
        async def on_call_tool(self, ctx, call_next):
            result = await call_next(ctx)
            caught.append(result.is_error)
            return result

        async def on_read_resource(self, ctx, call_next):
            try:
                return await call_next(ctx)
            except Exception as error:
                caught.append(type(error))
                raise

    server = make_server(Catch())

    @server.tool
    def broken() -> str:
        raise ToolError("no")

    @server.resource("notes://broken")
    def lost() -> str:
        raise OSError("gone")

    client = EraClient(server, MODERN)
    with caplog.at_level(logging.CRITICAL):
        await client.once("tools/call", {"name": "broken"})
        await client.once("resources/read", {"uri": "notes://broken"})

    assert [True, OSError] == caught
