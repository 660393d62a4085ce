"""Sampling: what reaches a model, and what comes back."""

import json

import pytest
from msgspec import UNSET, Raw

from isthmus.client import Limits, Rate
from isthmus.client.client import Client
from isthmus.core.answers import Cancelled, Declined
from isthmus.core.negotiation import states_facts
from isthmus.errors import Misbehaved, Refused, Rejected, UsageError
from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    CreateMessageResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)
from isthmus.wire.jsonrpc import encode
from support.client.small_server import LEGACY_NAME, MODERN_NAME, NAMES, SmallServer, text_result

EITHER = pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
TOOL = Tool(name="weather", input_schema={"type": "object"})
HELLO = SamplingMessage(role="user", content=TextContent(text="hello"))


def params(*messages, **more):
    return CreateMessageParams(messages=list(messages) or [HELLO], max_tokens=9, **more)


def make_asking_server(question):
    """A server whose tool asks for a message, and says what it heard: that or an error."""

    async def call(call, inbound):
        if not states_facts(inbound.caller.revision):
            try:
                found = await inbound.link.call(
                    "sampling/createMessage", question, CreateMessageResult, relates_to=inbound.id
                )
            except Refused as error:
                return text_result(f"{error.code} {error.message}")
            return text_result(encode(found).decode())
        if call.input_responses is UNSET:
            asked = InputRequest(method="sampling/createMessage", params=Raw(encode(question)))
            return InputRequiredResult(input_requests={"q": asked}, request_state="s")
        return text_result(bytes(call.input_responses["q"]).decode())

    return SmallServer({"tools/call": call})


async def ask_client(question, revision, sample=lambda _: "ok", **options):
    """What the server hears; or what the call ends with, where nobody can be told."""
    async with Client(
        make_asking_server(question), revision=revision, sample=sample, **options
    ) as client:
        try:
            return (await client.call_tool("ask")).text
        except Misbehaved as error:
            return f"misbehaved {error}"


def use(id):
    return ToolUseContent(id=id, name="weather", input={})


@pytest.mark.covers("sampling.balance.refused")
@EITHER
@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([SamplingMessage(role="assistant", content=use("a")), HELLO], "Tool result missing"),
        (
            [
                SamplingMessage(role="assistant", content=use("a")),
                SamplingMessage(
                    role="user",
                    content=[ToolResultContent(tool_use_id="a", content=[]), HELLO.content],
                ),
            ],
            "Tool results mixed with other content",
        ),
    ],
)
async def test_a_conversation_out_of_balance_reaches_no_model(revision, messages, complaint):
    """Spec 2025-11-25 client/sampling#error-handling: -32602."""
    written = []

    found = await ask_client(
        params(*messages, tools=[TOOL]), revision, written.append, sample_tools=True
    )

    assert [] == written
    assert complaint in found
    assert found.startswith("-32602" if revision == LEGACY_NAME else "misbehaved")


@pytest.mark.covers("sampling.rejected.minus-one")
@pytest.mark.parametrize("no", [Declined(), Cancelled(), Rejected()])
async def test_a_user_who_says_no_is_heard_as_minus_one(no):
    """Spec 2025-11-25 client/sampling#error-handling: user rejected sampling request: -1."""
    found = await ask_client(params(), LEGACY_NAME, saying(no))

    assert "-1 User rejected sampling request" == found


@pytest.mark.covers("sampling.rejected.no-replay")
@pytest.mark.parametrize("no", [Declined(), Cancelled(), Rejected("not today")])
async def test_a_user_who_says_no_ends_the_call(no):
    """Spec 2026-07-28 client/sampling#error-handling: the call is not replayed with an error."""
    with pytest.raises(Rejected, match="not today" if isinstance(no, Rejected) else "User"):
        await ask_client(params(), MODERN_NAME, saying(no))


def saying(no):
    """A handler that says no in one of the ways there are."""

    def sample(_params):
        if isinstance(no, Exception):
            raise no
        return no

    return sample


@pytest.mark.covers("sampling.capability.tools")
@EITHER
async def test_tools_reach_a_model_that_may_have_them(revision):
    """Spec 2025-11-25 client/sampling#tools-in-sampling: declared as sampling.tools."""
    seen = []
    question = params(tools=[TOOL], tool_choice=ToolChoice(mode="required"))

    def sample(request):
        seen.append((request.tools[0].name, request.tool_choice.mode))
        return [use("a"), use("b")]

    found = json.loads(await ask_client(question, revision, sample, sample_tools=True))

    assert [("weather", "required")] == seen
    assert ["a", "b"] == [block["id"] for block in found["content"]]
    assert "toolUse" == found["stopReason"]


@pytest.mark.covers("sampling.capability.tools")
@EITHER
async def test_tools_are_refused_where_they_were_not_declared(revision):
    """Spec 2025-11-25 client/sampling#tools-in-sampling: a MUST."""
    assert "did not declare sampling.tools" in await ask_client(params(tools=[TOOL]), revision)


@pytest.mark.covers("sampling.capability.context")
@EITHER
@pytest.mark.parametrize(("declared", "expected"), [(True, "thisServer"), (False, UNSET)])
async def test_context_is_asked_of_those_who_declared_it(revision, declared, expected):
    """Spec 2025-11-25 client/sampling#capabilities: otherwise the client ignores it."""
    seen = []

    def sample(request):
        seen.append(request.include_context)
        return ""

    await ask_client(
        params(include_context="thisServer"), revision, sample, sample_context=declared
    )

    assert [expected] == seen


@pytest.mark.covers("sampling.capability.context")
async def test_context_needs_no_declaration_before_there_was_one():
    """Spec 2025-06-18 client/sampling: there is no sampling.context, and includeContext there is."""
    seen = []

    def sample(request):
        seen.append(request.include_context)
        return ""

    await ask_client(params(include_context="allServers"), "2025-06-18", sample)

    assert ["allServers"] == seen


@pytest.mark.covers("sampling.preferences.passed")
@pytest.mark.parametrize("revision", NAMES)
async def test_what_a_server_prefers_reaches_the_handler(revision):
    """Spec 2024-11-05 client/sampling#model-preferences: hints in order, and three weights."""
    seen = []
    wanted = ModelPreferences(
        hints=[ModelHint(name="small"), ModelHint(name="large")], cost_priority=0.9
    )

    def sample(request):
        seen.append(request)
        return ""

    question = params(
        model_preferences=wanted, temperature=0.5, stop_sequences=["."], metadata={"x": 1}
    )
    await ask_client(question, revision, sample)

    assert (wanted, 0.5, ["."], {"x": 1}) == (
        seen[0].model_preferences, seen[0].temperature, seen[0].stop_sequences, seen[0].metadata
    )  # fmt: skip


@pytest.mark.covers("sampling.content.every-kind")
@pytest.mark.parametrize("revision", NAMES[1:])
@pytest.mark.parametrize(
    "block",
    [
        TextContent(text="x"),
        ImageContent(data="aGk=", mime_type="image/png"),
        AudioContent(data="aGk=", mime_type="audio/wav"),
    ],
)
async def test_text_pictures_and_sound_go_both_ways(revision, block):
    """Spec 2025-03-26 client/sampling#messages: three kinds of content."""
    seen = []

    def sample(request):
        seen.append(request.messages[0].content)
        return block

    found = json.loads(
        await ask_client(params(SamplingMessage(role="user", content=block)), revision, sample)
    )

    assert [block] == seen
    assert json.loads(encode(block)) == found["content"]


@pytest.mark.covers("sampling.content.list-or-single")
@pytest.mark.parametrize("revision", NAMES)
async def test_several_blocks_are_one_where_a_message_has_one(revision):
    """Spec 2025-11-25 client/sampling: a list since then, a single block before."""
    parts = [TextContent(text="a"), TextContent(text="b")]
    found = json.loads(await ask_client(params(), revision, lambda _: parts))

    assert (isinstance(found["content"], list)) == (revision >= LEGACY_NAME)


@pytest.mark.covers("sampling.tools.choice-kept")
@EITHER
async def test_a_model_that_uses_tools_nobody_gave_it_is_our_mistake(revision, caplog):
    """Ours: it is found before it is sent."""
    if revision == MODERN_NAME:
        with pytest.raises(UsageError, match="was given no tools to use"):
            await ask_client(params(), revision, lambda _: use("a"))
    else:
        assert "-32603" in await ask_client(params(), revision, lambda _: use("a"))
        assert "was given no tools to use" in caplog.text


@pytest.mark.covers("clientlimits.questions.conversation")
@EITHER
async def test_a_conversation_may_only_be_so_long(revision):
    """Ours: a server does not decide how much a model reads."""
    found = await ask_client(params(HELLO, HELLO, HELLO), revision, limits=Limits(conversation=2))

    assert "3 messages, and this client takes at most 2" in found


@pytest.mark.covers("clientlimits.questions.rate")
@EITHER
async def test_a_server_may_only_ask_so_often(revision):
    """Spec 2025-11-25 client/sampling#security-considerations: clients SHOULD limit rates."""
    limits = Limits(samplings=Rate(2, seconds=60))
    found = []
    async with Client(
        make_asking_server(params()), revision=revision, sample=lambda _: "ok", limits=limits
    ) as client:
        for _ in range(3):
            try:
                found.append((await client.call_tool("ask")).text)
            except Misbehaved as error:
                found.append(str(error))

    assert ['"ok"' in said for said in found] == [True, True, False]
    assert "Too many requests for a model: this client allows 2 in 60 s" in found[2]


@pytest.mark.covers("clientlimits.requests.rate")
async def test_pings_of_a_server_are_counted_too():
    """Ours: whatever a server sends, there is a bound to it."""

    async def call(_params, inbound):
        for sent in range(100):
            try:
                await inbound.link.call("ping", None, dict)
            except Refused as error:
                return text_result(f"{sent} {error.code} {error.message}")
        return text_result("never")

    small = SmallServer({"tools/call": call})
    limits = Limits(requests=Rate(7, seconds=60))
    async with Client(small, revision=LEGACY_NAME, limits=limits) as client:
        found = (await client.call_tool("ask")).text

    assert "7 -31429 Too many requests: this client allows 7 in 60 s" == found
