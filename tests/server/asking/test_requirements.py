"""Needs: nothing is asked that the client did not declare, or that its revision has not."""

from enum import Enum
from typing import Literal

import msgspec
import pytest
from msgspec import Raw

from isthmus.core.answers import Accepted
from isthmus.errors import CapabilityMissing, NotInRevision, UrlRequired
from isthmus.server import Context, Limits, Server
from isthmus.wire import ClientCapabilities, InputRequest, InputRequiredResult
from support.server.both_eras import LEGACY, MODERN, EraClient, FakeLink, tool_text

OLDER = "2025-06-18"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


class Colour(Enum):
    """Colours."""

    RED = "red"
    BLUE = "blue"


class Order(msgspec.Struct):
    """A form with a choice of several."""

    colours: list[Literal["red", "blue"]]
    note: str = ""


def make_asking_server(question, **options):
    """A server with a tool that asks, and says what came of it."""
    server = Server("asking", **options)

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await question(ctx))

    return server


async def call_asking_tool(question, revision, *, able=None, answer=None, **options):
    """What a tool that asks answers, and what the client was asked."""
    given = {} if able is None else {"able": msgspec.convert(able, ClientCapabilities)}
    client = EraClient(make_asking_server(question, **options), revision, answer, **given)
    return await client.call("ask"), client


@pytest.mark.covers("capabilities.forms.of-the-revision")
async def test_a_choice_of_several_is_refused_before_it_is_sent_where_forms_have_none():
    """The spec: 2025-06-18 has no such blank; ours: the message says which, and what to do."""
    result, client = await call_asking_tool(lambda ctx: ctx.elicit("Which?", Order), OLDER)

    assert result["isError"]
    assert "'colours' cannot be asked for: a form of revision 2025-06-18" in tool_text(result)
    assert not client.asked


@pytest.mark.covers("capabilities.forms.of-the-revision")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_choice_of_several_is_asked_where_forms_have_it(revision):
    """The spec: since 2025-11-25."""
    filled = {"action": "accept", "content": {"colours": ["red"]}}

    result, _ = await call_asking_tool(
        lambda ctx: ctx.elicit("Which?", Order), revision, answer=lambda *_: filled
    )

    assert str(Accepted(Order(["red"]))) == tool_text(result)


async def test_one_of_several_is_asked_in_every_revision_that_has_forms():
    """The spec: named choices are an enum with names beside it in 2025-06-18."""
    filled = {"action": "accept", "content": {"value": "red"}}
    for revision in (OLDER, LEGACY, MODERN):
        result, _ = await call_asking_tool(
            lambda ctx: ctx.elicit("Which?", Colour), revision, answer=lambda *_: filled
        )
        assert str(Accepted(Colour.RED)) == tool_text(result)


@pytest.mark.covers("capabilities.never-undeclared")
@pytest.mark.parametrize("revision", [OLDER, LEGACY, MODERN])
@pytest.mark.parametrize(
    ("able", "question", "lacking"),
    [
        ({}, lambda ctx: ctx.elicit("?"), "elicitation"),
        ({"elicitation": {}}, lambda ctx: ctx.elicit_url("?", "https://a.example"), "url"),
        ({"elicitation": {"url": {}}}, lambda ctx: ctx.elicit("?", str), "elicitation"),
        ({}, lambda ctx: ctx.sample("?", max_tokens=1), "sampling"),
        (
            {"sampling": {}},
            lambda ctx: ctx.sample("?", max_tokens=1, tool_choice="auto"),
            "sampling.tools",
        ),
        ({}, lambda ctx: ctx.roots(), "roots"),
    ],
)
async def test_nothing_is_asked_that_was_not_declared(able, question, lacking, revision):
    """The spec: MUST NOT rely on capabilities the client has not declared."""
    result, client = await call_asking_tool(question, revision, able=able)

    said = result.message if revision == MODERN else tool_text(result)
    assert lacking in said
    assert not client.asked
    if revision == MODERN:
        assert -32021 == result.code


@pytest.mark.covers("capabilities.never-undeclared")
async def test_context_of_servers_is_only_asked_for_where_it_is_declared():
    """The spec: includeContext SHOULD NOT be used without sampling.context."""
    sent = []

    def answer(_method, params):
        sent.append(params.get("includeContext"))
        return {"role": "assistant", "content": {"type": "text", "text": ""}, "model": "m"}

    for able in ({"sampling": {}}, {"sampling": {"context": {}}}):
        await call_asking_tool(
            lambda ctx: ctx.sample("?", max_tokens=1, include_context="allServers"),
            LEGACY,
            able=able,
            answer=answer,
        )

    assert [None, "allServers"] == sent


@pytest.mark.covers("capabilities.forms.flat")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize(
    "blank",
    [{"type": "object"}, {"type": "array", "items": {"type": "object"}}, {"$ref": "#/$defs/x"}],
)
async def test_a_form_is_flat_whoever_wrote_it(blank, revision):
    """The spec: flat objects with primitive properties only."""
    schema = {"type": "object", "properties": {"it": blank}}
    params = Raw(msgspec.json.encode({"message": "?", "requestedSchema": schema}))
    raw = InputRequiredResult(
        input_requests={"q": InputRequest(method="elicitation/create", params=params)}
    )
    server = Server("x", debug=True)
    server.add_tool(lambda: raw, name="raw")
    client = EraClient(server, revision)

    by_hand, own = await call_asking_tool(lambda ctx: ctx.elicit("?", schema), revision, debug=True)
    result = await client.call("raw")

    assert not client.asked
    assert not own.asked
    assert "it" in tool_text(by_hand)
    assert "form" in tool_text(by_hand)
    assert "it" in tool_text(result)


@pytest.mark.covers("capabilities.answers.validated")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize(
    ("content", "member"),
    [({"age": "old"}, "age"), ({}, "age"), ({"age": 200}, "age"), ({"age": None}, "age")],
)
async def test_an_answer_is_held_against_the_form_and_the_member_is_named(
    content, member, revision
):
    """The spec: servers SHOULD validate what they receive; ours: it says which member is wrong."""
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "maximum": 150}},
        "required": ["age"],
    }

    result, _ = await call_asking_tool(
        lambda ctx: ctx.elicit("?", schema),
        revision,
        answer=lambda *_: {"action": "accept", "content": content},
        debug=True,
    )

    assert (-32602 if revision == MODERN else -32603) == result.code
    assert member in result.message


@pytest.mark.parametrize("revision", [OLDER, LEGACY, MODERN])
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refusal_may_bring_null_for_its_content(action, revision):
    """Ours: several clients send it."""
    result, _ = await call_asking_tool(
        lambda ctx: ctx.elicit("?", str),
        revision,
        answer=lambda *_: {"action": action, "content": None},
    )

    assert {"decline": "Declined()", "cancel": "Cancelled()"}[action] == tool_text(result)


@pytest.mark.covers("meta.trace.passed-on")
async def test_a_question_carries_the_trace_of_the_request_it_serves():
    """The spec: trace context travels in _meta; ours: in what servers ask, too."""
    metas = []

    def answer(_method, params):
        metas.append(params.get("_meta"))
        return {"action": "decline"}

    async def question(ctx):
        assert ctx.trace is not None
        assert "0af7651916cd43dd8448eb211c80319c" == ctx.trace.trace_id
        return await ctx.elicit("?")

    client = EraClient(make_asking_server(question), LEGACY, answer)
    meta = {"traceparent": PARENT, "tracestate": "a=1", "com.example/other": 5}
    await client.once("tools/call", {"name": "ask", "_meta": meta})

    assert [{"traceparent": PARENT, "tracestate": "a=1"}] == metas


@pytest.mark.covers("meta.keys.pass-through")
async def test_keys_of_meta_that_nobody_knows_reach_the_tool_and_come_back():
    """The spec: implementations MUST NOT make assumptions about values at reserved keys."""
    server = Server("meta")
    server.add_tool(lambda: "x", name="listed", meta={"com.example/kept": [1]})

    @server.tool
    async def tell(ctx: Context) -> str:
        return msgspec.json.encode(ctx.meta).decode()

    meta = {"com.example/a": {"b": [1]}, "io.modelcontextprotocol/unknown": None, "plain": 1}
    for revision in (LEGACY, MODERN):
        client = EraClient(server, revision)
        result = await client.once("tools/call", {"name": "tell", "_meta": meta})
        assert meta == msgspec.json.decode(tool_text(result))
        tools = (await client.once("tools/list"))["tools"]
        assert {"com.example/kept": [1]} == tools[0]["_meta"]


async def test_an_answer_is_waited_for_so_long_and_no_longer():
    """The spec: requests SHOULD have timeouts, with a maximum."""
    waited = []

    class Patient(FakeLink):
        async def call(self, method, params, result, *, relates_to=None, timeout=None):
            waited.append(timeout)
            return await super().call(method, params, result)

    for limits in (Limits(), Limits(answer_timeout=5)):
        client = EraClient(make_asking_server(lambda ctx: ctx.elicit("?"), limits=limits), LEGACY)
        client.link = Patient(lambda *_: {"action": "decline"}, LEGACY)
        await client.call("ask")

    assert [3600.0, 5] == waited


def test_lacks_are_told_apart():
    """Ours: a program can tell what a client lacks from what its revision lacks."""
    assert not issubclass(CapabilityMissing, NotInRevision)


@pytest.mark.covers("elicitation.url.sent-valid")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "nowhere",
        "ftp://a.example/",
        "https://a b/",
        "https://u:p@a.example/",
    ],
)
async def test_nobody_is_sent_to_what_is_no_page(revision, url):
    """The spec: url MUST contain a valid URL; ours: of the web, and the author reads what is wrong."""
    result, client = await call_asking_tool(
        lambda ctx: ctx.elicit_url("Sign in", url), revision, debug=True
    )

    assert result["isError"]
    assert "the user cannot be sent to" in tool_text(result)
    assert not client.asked

    def demands(_ctx):
        raise UrlRequired(url)

    refused, other = await call_asking_tool(demands, revision, debug=True)
    assert "the user cannot be sent to" in tool_text(refused)
    assert not other.asked
