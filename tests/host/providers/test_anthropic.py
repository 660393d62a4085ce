"""Models behind the messages API: what is sent, what comes back, and what goes wrong."""

from contextlib import asynccontextmanager

import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.host.providers.anthropic import Anthropic
from isthmus.host.providers.provider import (
    BadCredentials,
    Completion,
    Delta,
    ProviderBroke,
    ProviderRefused,
    ProviderUnavailable,
    TooLong,
)
from isthmus.wire import (
    AudioContent,
    ImageContent,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)
from support.host.fake_models import event, fake_models

KEY = "ant-canary-4c2e"


@asynccontextmanager
async def provider():
    """A provider, and the fake behind it."""
    async with fake_models() as fake:
        ours = Anthropic(Secret(KEY), base_url=fake.url, name="fake")
        try:
            yield ours, fake
        finally:
            await ours.close()


def event_of(type, **members):
    """One event of an answer."""
    return event({"type": type, **members}, type)


START = event_of("message_start", message={"model": "m-2026", "usage": {"input_tokens": 7}})
TEXT = event_of("content_block_start", index=0, content_block={"type": "text", "text": ""})


def text(words):
    """A piece of text."""
    return event_of("content_block_delta", index=0, delta={"type": "text_delta", "text": words})


def end(reason, tokens=3):
    """The end of an answer."""
    usage = {"output_tokens": tokens}
    return event_of("message_delta", delta={"stop_reason": reason}, usage=usage) + event_of(
        "message_stop"
    )


def make_completion(*messages, **members):
    """A completion."""
    listed = list(messages) or [SamplingMessage(role="user", content=TextContent(text="hi"))]
    return Completion(**{"model": "m", "messages": listed, "max_tokens": 50, **members})


async def whole(ours, completion):
    """All that comes."""
    return [piece async for piece in ours.complete(completion)]


async def test_text_comes_in_pieces_and_with_what_it_took():
    """We demand: deltas as they come, then the message with model, reason and tokens."""
    async with provider() as (ours, fake):
        fake.stream(START, event_of("ping"), TEXT, text("Hel"), text("lo"), end("end_turn"))
        first, second, done = await whole(
            ours, make_completion(system="be brief", temperature=0.5, stop=["END"])
        )
    assert (Delta("Hel"), Delta("lo")) == (first, second)
    assert ("Hello", "m-2026", "endTurn") == (
        done.result.content.text,
        done.result.model,
        done.result.stop_reason,
    )
    assert (7, 3) == (done.tokens_in, done.tokens_out)
    sent = fake.asked[0]
    assert ("be brief", 50, 0.5, ["END"]) == tuple(
        sent[name] for name in ("system", "max_tokens", "temperature", "stop_sequences")
    )
    assert [{"role": "user", "content": [{"type": "text", "text": "hi"}]}] == sent["messages"]
    assert KEY == fake.headers["x-api-key"]
    assert ["/v1/messages"] == fake.paths


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "endTurn"),
        ("max_tokens", "maxTokens"),
        ("tool_use", "toolUse"),
        ("stop_sequence", "stopSequence"),
        ("refusal", "refusal"),
    ],
)
@pytest.mark.covers("hostsampling.stop-reasons")
async def test_reasons_to_stop_have_the_protocols_names(theirs, ours):
    """The spec: standard stop reasons have names; others are the provider's own."""
    async with provider() as (client, fake):
        fake.stream(START, TEXT, text("x"), end(theirs))
        done = (await whole(client, make_completion()))[-1]
    assert ours == done.result.stop_reason


async def test_tools_and_pictures_go_both_ways():
    """We demand: every kind of content has its form, and names the API forbids are replaced."""
    conversation = [
        SamplingMessage(role="user", content=ImageContent(data="aGk=", mime_type="image/png")),
        SamplingMessage(
            role="assistant", content=ToolUseContent(id="1", name="a.b", input={"x": 1})
        ),
        SamplingMessage(
            role="user",
            content=ToolResultContent(
                tool_use_id="1", content=[TextContent(text="2")], is_error=False
            ),
        ),
    ]
    tools = [Tool(name="a.b", description="adds", input_schema={"type": "object"})]
    block = {"type": "tool_use", "id": "2", "name": "a_b"}

    def part(words):
        delta = {"type": "input_json_delta", "partial_json": words}
        return event_of("content_block_delta", index=1, delta=delta)

    async with provider() as (ours, fake):
        fake.stream(
            START, TEXT, text("ok"), event_of("content_block_start", index=1, content_block=block),
            part('{"x"'), part(": 2}"), event_of("content_block_stop", index=1), end("tool_use"),
        )  # fmt: skip
        done = (
            await whole(
                ours,
                make_completion(
                    *conversation, tools=tools, tool_choice=ToolChoice(mode="required")
                ),
            )
        )[-1]
    assert [
        TextContent(text="ok"),
        ToolUseContent(id="2", name="a.b", input={"x": 2}),
    ] == done.result.content
    picture, use, result = (message["content"][0] for message in fake.asked[0]["messages"])
    assert {"type": "base64", "media_type": "image/png", "data": "aGk="} == picture["source"]
    assert {"type": "tool_use", "id": "1", "name": "a_b", "input": {"x": 1}} == use
    assert [{"type": "text", "text": "2"}] == result["content"]
    assert result["is_error"] is False
    assert {"type": "any"} == fake.asked[0]["tool_choice"]
    assert "a_b" == fake.asked[0]["tools"][0]["name"]


@pytest.mark.parametrize(
    ("status", "type", "message", "kind"),
    [
        (401, "authentication_error", f"invalid {KEY}", BadCredentials),
        (529, "overloaded_error", "busy", ProviderUnavailable),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", TooLong),
        (400, "invalid_request_error", "no", ProviderRefused),
    ],
)
@pytest.mark.covers("hostsampling.providers.typed-errors", "hostsampling.secrets.key")
async def test_errors_have_types_and_never_the_key(status, type, message, kind):
    """We demand: what went wrong can be told apart, and the key is in no message."""
    async with provider() as (ours, fake):
        fake.refuse(status, {"type": "error", "error": {"type": type, "message": message}})
        with pytest.raises(kind) as error:
            await whole(ours, make_completion())
    assert KEY not in str(error.value)


@pytest.mark.covers("hostsampling.providers.cut")
async def test_an_answer_that_breaks_off_is_an_error():
    """We demand: half an answer is none, however it ends."""
    overloaded = {"type": "overloaded_error", "message": "busy"}
    async with provider() as (ours, fake):
        fake.stream(START, TEXT, text("Hel"))
        with pytest.raises(ProviderBroke, match="ended before it was finished"):
            await whole(ours, make_completion())
        fake.stream(START, TEXT, text("Hel"), event_of("error", error=overloaded))
        with pytest.raises(ProviderUnavailable):
            await whole(ours, make_completion())
        fake.stream(event("{}"))
        with pytest.raises(ProviderBroke, match="makes no sense"):
            await whole(ours, make_completion())


async def test_what_the_api_cannot_say_is_refused_before_anything_is_sent():
    """We demand: content is never left out in silence."""
    sound = SamplingMessage(role="user", content=AudioContent(data="aGk=", mime_type="audio/wav"))
    async with provider() as (ours, fake):
        with pytest.raises(ProviderRefused, match="no way to give a model audio/wav"):
            await whole(ours, make_completion(sound))
        with pytest.raises(ProviderRefused, match="no JSON schema"):
            await whole(ours, make_completion(schema={}))
    assert [] == fake.asked


async def test_the_list_of_models_is_read():
    """We demand: what there is can be put into the catalog."""
    async with provider() as (ours, fake):
        fake.refuse(200, {"data": [{"id": "a", "max_input_tokens": 200}, {"id": "b"}]})
        fake.refuse(200, "nonsense")
        assert [("a", 200), ("b", None)] == [(m.id, m.context) for m in await ours.models()]
        with pytest.raises(ProviderBroke):
            await ours.models()
