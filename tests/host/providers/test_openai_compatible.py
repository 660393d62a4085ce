"""Models behind chat completions: what is sent, what comes back, and what goes wrong."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers.openai_compatible import OpenAIAnswer, OpenAIChunk, OpenAICompatible
from isthmus.host.providers.provider import (
    BadCredentials,
    Completion,
    Delta,
    ProviderBroke,
    ProviderRefused,
    ProviderUnavailable,
    RateLimited,
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

KEY = "sk-canary-7d1f"


@asynccontextmanager
async def provider(**options):
    """A provider, and the fake behind it."""
    async with fake_models() as fake:
        ours = OpenAICompatible(f"{fake.url}/v1", Secret(KEY), name="fake", **options)
        try:
            yield ours, fake
        finally:
            await ours.close()


def user(*content):
    """A message of the user's."""
    return SamplingMessage(role="user", content=content[0] if len(content) == 1 else [*content])


def make_completion(*messages, **members):
    """A completion."""
    listed = list(messages) or [user(TextContent(text="hi"))]
    return Completion(**{"model": "m", "messages": listed, "max_tokens": 50, **members})


def chunk(content=None, finish=None, **more):
    """One event of an answer."""
    delta = {"content": content} if content else {}
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


async def whole(ours, completion):
    """All that comes."""
    return [piece async for piece in ours.complete(completion)]


async def test_text_comes_in_pieces_and_with_what_it_took():
    """We demand: deltas as they come, then the message with model, reason and tokens."""
    async with provider() as (ours, fake):
        usage = {"prompt_tokens": 7, "completion_tokens": 2}
        fake.stream(
            chunk("Hel", model="m-2026"), chunk("lo"), chunk(finish="stop"),
            event({"choices": [], "usage": usage}), event("[DONE]"),
        )  # fmt: skip
        first, second, done = await whole(ours, make_completion(system="be brief", temperature=0.5))
    assert (Delta("Hel"), Delta("lo")) == (first, second)
    assert ("Hello", "m-2026", "endTurn") == (
        done.result.content.text,
        done.result.model,
        done.result.stop_reason,
    )
    assert (7, 2) == (done.tokens_in, done.tokens_out)
    assert [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ] == fake.asked[0]["messages"]
    assert (0.5, 50, True) == tuple(
        fake.asked[0][name] for name in ("temperature", "max_tokens", "stream")
    )
    assert f"Bearer {KEY}" == fake.headers["Authorization"]
    assert ["/v1/chat/completions"] == fake.paths


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("stop", "endTurn"),
        ("length", "maxTokens"),
        ("tool_calls", "toolUse"),
        ("content_filter", "content_filter"),
    ],
)
@pytest.mark.covers("hostsampling.stop-reasons")
async def test_reasons_to_stop_have_the_protocols_names(theirs, ours):
    """The spec: standard stop reasons have names; others are the provider's own."""
    async with provider() as (client, fake):
        fake.stream(chunk("x"), chunk(finish=theirs), event("[DONE]"))
        done = (await whole(client, make_completion()))[-1]
    assert ours == done.result.stop_reason


async def test_tools_are_offered_and_asked_for_under_names_the_api_allows():
    """We demand: names with dots go out as others and come back as ours; parts are put together."""
    tools = [
        Tool(name="a.b", description="adds", input_schema={"type": "object"}),
        Tool(name="a_b", input_schema={"type": "object"}),
    ]

    def call(index, **members):
        calls = [{"index": index, **members}]
        return event({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": None}]})

    async with provider() as (ours, fake):
        fake.stream(
            call(0, id="c1", type="function", function={"name": "a_b_1", "arguments": '{"x'}),
            call(0, function={"arguments": '": 1}'}),
            call(1, id="c2", function={"name": "a_b", "arguments": ""}),
            chunk(finish="stop"),
        )
        (done,) = await whole(
            ours, make_completion(tools=tools, tool_choice=ToolChoice(mode="required"))
        )
    assert [
        ToolUseContent(id="c1", name="a.b", input={"x": 1}),
        ToolUseContent(id="c2", name="a_b", input={}),
    ] == done.result.content
    assert "toolUse" == done.result.stop_reason
    sent = fake.asked[0]
    assert "required" == sent["tool_choice"]
    assert ["a_b_1", "a_b"] == [tool["function"]["name"] for tool in sent["tools"]]
    assert "adds" == sent["tools"][0]["function"]["description"]


async def test_conversations_with_tools_pictures_and_sound_are_said_in_the_apis_way():
    """We demand: each kind of content has its form, and the results of tools are messages."""
    conversation = [
        user(TextContent(text="look"), ImageContent(data="aGk=", mime_type="image/png")),
        SamplingMessage(
            role="assistant",
            content=[
                TextContent(text="I look"),
                ToolUseContent(id="1", name="see", input={"a": 1}),
            ],
        ),
        user(
            ToolResultContent(tool_use_id="1", content=[TextContent(text="a cat")], is_error=True)
        ),
        user(AudioContent(data="aGk=", mime_type="audio/wav")),
    ]
    async with provider() as (ours, fake):
        fake.stream(chunk("a cat"), chunk(finish="stop"))
        await whole(ours, make_completion(*conversation, stop=["END"], schema={"type": "object"}))
    first, second, third, fourth = fake.asked[0]["messages"]
    assert [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ] == first["content"]
    assert {"name": "see", "arguments": '{"a":1}'} == second["tool_calls"][0]["function"]
    assert "I look" == second["content"]
    assert {
        "role": "tool",
        "tool_call_id": "1",
        "content": "The tool failed: a cat",
    } == third
    assert [{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}] == fourth[
        "content"
    ]
    assert ["END"] == fake.asked[0]["stop"]
    assert {"type": "object"} == fake.asked[0]["response_format"]["json_schema"]["schema"]


async def test_what_the_api_cannot_say_is_refused_before_anything_is_sent():
    """We demand: content is never left out in silence."""
    async with provider() as (ours, fake):
        with pytest.raises(ProviderRefused, match="no way to give a model audio/flac"):
            await whole(
                ours, make_completion(user(AudioContent(data="aGk=", mime_type="audio/flac")))
            )
    assert [] == fake.asked


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": f"bad key {KEY}"}}, BadCredentials),
        (429, {"error": {"message": "slow", "type": "rate_limit_error"}}, RateLimited),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, TooLong),
        (400, {"error": {"message": "the request exceeds the available context size"}}, TooLong),
        (400, {"error": {"code": 400, "message": "no such member"}}, ProviderRefused),
        (404, {"error": "model not found"}, ProviderRefused),
        (503, "<html>\x1b[2Jdown</html>", ProviderUnavailable),
    ],
)
@pytest.mark.covers("hostsampling.providers.typed-errors", "hostsampling.secrets.key")
async def test_errors_have_types_and_never_the_key(status, body, kind):
    """We demand: what went wrong can be told apart, and the key is in no message."""
    async with provider() as (ours, fake):
        fake.refuse(status, body, Retry_After="7")
        with pytest.raises(kind, match=f"provider 'fake' refused with status {status}") as error:
            await whole(ours, make_completion())
    assert 7.0 == error.value.retry_after
    assert KEY not in str(error.value)
    assert "\x1b" not in str(error.value)
    assert KEY not in repr(vars(ours))


async def test_an_error_in_the_middle_of_a_stream_is_an_error():
    """We demand: what servers say with status 200 counts as well."""
    async with provider() as (ours, fake):
        fake.stream(chunk("Hel"), event({"error": {"message": "x", "type": "unavailable_error"}}))
        with pytest.raises(ProviderUnavailable):
            await whole(ours, make_completion())


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.covers("hostsampling.providers.cut")
async def test_an_answer_that_breaks_off_is_an_error(cut):
    """We demand: half an answer is none, whether the connection breaks or ends."""
    async with provider() as (ours, fake):
        fake.stream(chunk("Hel"), cut=cut)
        with pytest.raises(ProviderBroke, match="the answer of"):
            await whole(ours, make_completion())


@pytest.mark.parametrize(
    "bad",
    [
        "data: {not json}\n\n",
        event({"choices": "many"}),
        b"data: \xff\xfe\n\n",
        event({"choices": [{"delta": {"tool_calls": [
            {"index": 0, "function": {"name": "f", "arguments": "[1]"}}]},
            "finish_reason": "stop"}]}),
    ],
)  # fmt: skip
async def test_what_makes_no_sense_is_an_error_of_its_own(bad):
    """We demand: bad input never raises through."""
    async with provider() as (ours, fake):
        fake.stream(bad)
        with pytest.raises(ProviderBroke):
            await whole(ours, make_completion())


async def test_a_provider_that_falls_silent_is_given_up():
    """We demand: nobody waits for ever for the next piece."""
    async with provider(timeout=0.05) as (ours, fake):
        fake.stream(chunk("Hel"), hang=True)
        with pytest.raises(ProviderBroke, match=r"nothing came for 0\.05 s"):
            await whole(ours, make_completion())


@pytest.mark.covers("hostsampling.providers.cancel")
async def test_closing_the_answer_closes_the_connection_at_once():
    """We demand: a model that nobody reads stops writing."""
    async with provider() as (ours, fake):
        fake.stream(chunk("Hel"), hang=True)
        answer = ours.complete(make_completion())
        assert Delta("Hel") == await anext(answer)
        await answer.aclose()
        async with asyncio.timeout(5):
            await fake.dropped.wait()


@pytest.mark.covers("hostsampling.secrets.key")
async def test_a_key_does_not_go_to_another_machine_in_the_clear():
    """We demand: a key goes over https, or stays on this machine."""
    for url in ("http://models.example/v1", "http://10.0.0.7:8000/v1", "ftp://models.example"):
        with pytest.raises(ConfigError, match="unencrypted: use https://") as error:
            OpenAICompatible(url, KEY)
        assert KEY not in str(error.value)
        await OpenAICompatible(url).close()
    for url in ("https://models.example/v1", "http://localhost:1/v1", "http://[::1]:1/v1"):
        await OpenAICompatible(url, KEY).close()


async def test_nobody_there_is_unavailable():
    """We demand: a provider that is not running is told from one that refuses."""
    async with provider() as (_ours, fake):
        pass
    gone = OpenAICompatible(fake.url, name="gone")
    with pytest.raises(ProviderUnavailable, match="'gone' cannot be reached"):
        await whole(gone, make_completion())
    await gone.close()
    await gone.close()


async def test_a_connection_that_was_about_to_be_closed_is_replaced_once():
    """We demand: servers that keep connections for a while only cost no request."""
    async with provider() as (ours, fake):
        fake.hang_up()
        fake.stream(chunk("x"), chunk(finish="stop"))
        assert "x" == (await whole(ours, make_completion()))[-1].result.content.text
        fake.hang_up()
        fake.hang_up()
        with pytest.raises(ProviderUnavailable):
            await whole(ours, make_completion())
    assert 4 == len(fake.asked)


async def test_models_that_want_another_name_for_the_limit_get_it():
    """We demand: max_tokens holds for newer models, too, which refuse that name; asked once."""
    wants = "Unsupported parameter: use 'max_completion_tokens' instead."
    async with provider() as (ours, fake):
        fake.refuse(400, {"error": {"message": wants}})
        for _ in range(2):
            fake.stream(chunk("x"), chunk(finish="stop"))
            await whole(ours, make_completion())
        fake.refuse(400, {"error": {"message": wants}})
        with pytest.raises(ProviderRefused):
            await whole(ours, make_completion())
    assert [True, False, False, False] == ["max_tokens" in body for body in fake.asked]
    assert 50 == fake.asked[-1]["max_completion_tokens"]


async def test_the_list_of_models_says_how_long_their_context_is():
    """We demand: whatever each server calls it."""
    listed = {
        "data": [
            {"id": "a", "meta": {"n_ctx": 2048}},
            {"id": "b", "context_length": 4096},
            {"id": "c", "max_model_len": 8192},
            {"id": "d"},
        ]
    }
    async with provider() as (ours, fake):
        fake.refuse(200, listed)
        fake.refuse(200, "[]")
        fake.refuse(500, "")
        offered = await ours.models()
        with pytest.raises(ProviderBroke):
            await ours.models()
        with pytest.raises(ProviderUnavailable):
            await ours.models()
    assert [("a", 2048), ("b", 4096), ("c", 8192), ("d", None)] == [
        (model.id, model.context) for model in offered
    ]


@pytest.mark.covers("hostsampling.providers.lies")
@pytest.mark.parametrize("told", [-1_000_000, 10**30])
async def test_a_usage_that_cannot_be_counts_as_not_told(told):
    """Ours: a provider that counts less than nothing fills nobody's account again."""
    async with provider() as (ours, fake):
        usage = {"prompt_tokens": told, "completion_tokens": told}
        fake.stream(chunk("Hi", "stop"), event({"choices": [], "usage": usage}), event("[DONE]"))
        done = (await whole(ours, make_completion(user(TextContent(text="?")))))[-1]

    assert (None, None) == (done.tokens_in, done.tokens_out)


async def test_arguments_in_very_many_pieces_are_put_together_once():
    """Ours: a piece costs no more for those before it; 200,000 would take an hour otherwise."""
    answer = OpenAIAnswer(make_completion(user(TextContent(text="?"))), {})
    pieces = ['{"text": "', *["x" * 100] * 200_000, '"}']
    for text in pieces:
        call = {"index": 0, "id": "1", "function": {"name": "a", "arguments": text}}
        answer.add(msgspec.convert({"choices": [{"delta": {"tool_calls": [call]}}]}, OpenAIChunk))

    assert {"text": "x" * 20_000_000} == answer.done("fake").result.content.input
