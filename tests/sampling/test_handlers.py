"""Models behind an API that write for servers: handlers for Client(sample=…)."""

import pytest

from isthmus import Client, Context, Server
from isthmus.errors import Refused, UsageError
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers import BadCredentials
from isthmus.sampling import AnthropicSamplingHandler, OpenAISamplingHandler
from isthmus.types import ImageContent, Tool
from support.host.fake_models import event, fake_models

KEY = "sk-canary-7d1f"
EITHER = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
BOTH = pytest.mark.parametrize("kind", [OpenAISamplingHandler, AnthropicSamplingHandler])
USE = Tool(name="price", input_schema={"type": "object"})


def make_server():
    """A server that has the client's model write."""
    server = Server("writer")

    @server.tool
    async def write(ctx: Context) -> str:
        reply = await ctx.sample("Hello", max_tokens=50, system_prompt="Be brief.")
        return f"{reply.text} {reply.stop_reason} {reply.model}"

    @server.tool
    async def use(ctx: Context) -> str:
        reply = await ctx.sample("Price?", max_tokens=50, tools=[USE])
        return f"{reply.stop_reason} {[(one.name, one.input) for one in reply.tool_uses]}"

    @server.tool
    async def look(ctx: Context) -> str:
        image = ImageContent(data="AAAA", mime_type="image/png")
        return (await ctx.sample(image, max_tokens=50)).text

    return server


def make_handler(kind, fake, **options):
    """A handler whose API is the fake."""
    address = f"{fake.url}/v1" if kind is OpenAISamplingHandler else fake.url
    return kind("m-1", api_key=KEY, base_url=address, **options)


def stream_text(kind, fake, text):
    """Have the fake answer with text."""
    if kind is OpenAISamplingHandler:
        delta = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
        fake.stream(event({"choices": [delta], "model": "m-2026"}), event("[DONE]"))
        return
    fake.stream(
        start_anthropic(),
        event_of("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event_of("content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
        end_anthropic("end_turn"),
    )


def stream_use(kind, fake):
    """Have the fake answer with the use of a tool."""
    if kind is OpenAISamplingHandler:
        used = {"index": 0, "id": "c1", "function": {"name": "price", "arguments": '{"of":"tea"}'}}
        delta = {"index": 0, "delta": {"tool_calls": [used]}, "finish_reason": "tool_calls"}
        fake.stream(event({"choices": [delta], "model": "m-2026"}), event("[DONE]"))
        return
    block = {"type": "tool_use", "id": "c1", "name": "price", "input": {}}
    part = {"type": "input_json_delta", "partial_json": '{"of":"tea"}'}
    fake.stream(
        start_anthropic(),
        event_of("content_block_start", index=0, content_block=block),
        event_of("content_block_delta", index=0, delta=part),
        event_of("content_block_stop", index=0),
        end_anthropic("tool_use"),
    )


def event_of(type, **members):
    """One event of Anthropic's."""
    return event({"type": type, **members}, type)


def start_anthropic():
    """The beginning of a message."""
    return event_of("message_start", message={"model": "m-2026", "usage": {"input_tokens": 7}})


def end_anthropic(reason):
    """The end of a message."""
    delta = event_of("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 2})
    return delta + event_of("message_stop")


@BOTH
@EITHER
async def test_a_model_writes_for_a_server(kind, revision):
    """Text, the system prompt, the limit, the model's name and the stop reason pass."""
    async with fake_models() as fake, make_handler(kind, fake) as sample:
        stream_text(kind, fake, "Hi!")
        async with Client(make_server(), sample=sample, revision=revision) as client:
            assert "Hi! endTurn m-2026" == (await client.call_tool("write")).text
        asked = fake.asked[0]

    assert ("m-1", 50) == (asked["model"], asked["max_tokens"])
    assert "Be brief." in str(asked)


@BOTH
@EITHER
async def test_a_model_uses_tools(kind, revision):
    """A use of a tool goes to the server, which calls it."""
    async with fake_models() as fake, make_handler(kind, fake) as sample:
        stream_use(kind, fake)
        client = Client(make_server(), sample=sample, sample_tools=True, revision=revision)
        async with client:
            used = await client.call_tool("use")

    assert "toolUse [('price', {'of': 'tea'})]" == used.text
    assert "price" in str(fake.asked[0]["tools"])


@BOTH
async def test_a_model_sees_images(kind):
    """An image goes to the API in its own form."""
    async with fake_models() as fake, make_handler(kind, fake) as sample:
        stream_text(kind, fake, "a cat")
        async with Client(make_server(), sample=sample) as client:
            assert "a cat" == (await client.call_tool("look")).text

    assert "AAAA" in str(fake.asked[0]["messages"])


@BOTH
async def test_max_tokens_bounds_what_servers_ask_for(kind):
    """The least of both counts."""
    async with fake_models() as fake, make_handler(kind, fake, max_tokens=9) as sample:
        stream_text(kind, fake, "Hi!")
        async with Client(make_server(), sample=sample) as client:
            await client.call_tool("write")

    assert 9 == fake.asked[0]["max_tokens"]


@BOTH
async def test_an_error_of_the_api_has_words_and_no_key(kind, caplog):
    """The program reads why; a server of up to 2025-11-25 hears that it failed, and no more."""
    body = {"error": {"type": "authentication_error", "message": f"no such key: {KEY}"}}
    async with fake_models() as fake, make_handler(kind, fake) as sample:
        fake.refuse(401, body)
        async with Client(make_server(), sample=sample) as client:
            with pytest.raises(BadCredentials) as error:
                await client.call_tool("write")
        assert KEY not in str(error.value)
        fake.refuse(401, body)
        async with Client(make_server(), sample=sample, revision="2025-11-25") as client:
            try:
                said = (await client.call_tool("write")).text
            except Refused as refused:
                said = refused.message
    assert KEY not in said
    assert KEY not in caplog.text


def test_keys_of_the_environment_go_to_their_own_address_only(monkeypatch):
    """A key for OpenAI is not sent to whoever else speaks the same protocol."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    OpenAISamplingHandler("m")
    AnthropicSamplingHandler("m")
    OpenAISamplingHandler("m", base_url="http://models.example/v1")  # without a key
    with pytest.raises(UsageError, match="api_key= is needed"):
        AnthropicSamplingHandler("m", base_url="https://models.example")
    with pytest.raises(ConfigError):
        OpenAISamplingHandler("m", api_key=KEY, base_url="http://models.example/v1")


@BOTH
def test_a_missing_key_is_told_with_the_variable(kind, monkeypatch):
    """The message says what to set."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match=r"there is no key: set .*_API_KEY, or give api_key="):
        kind("m")


@BOTH
def test_settings_are_checked(kind):
    """No model, and no tokens."""
    with pytest.raises(UsageError, match="model="):
        kind("", api_key=KEY)
    with pytest.raises(UsageError, match="max_tokens="):
        kind("m", api_key=KEY, max_tokens=0)
