"""Text that JSON cannot carry is replaced wherever a tool's author may pass it."""

from dataclasses import dataclass
from typing import Annotated

import pytest
from msgspec import Meta

from isthmus import Context, Server
from isthmus.errors import ToolError
from isthmus.wire import TextContent
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])
BAD, GOOD = "a\ud800b", "a�b"


@dataclass
class Form:
    name: Annotated[str, Meta(title=BAD, description=BAD)] = "x"


def accept(**content):
    return {"action": "accept", "content": content}


def make_server(body):
    server = Server("s")
    server.add_tool(body, name="t")
    return server


@BOTH
async def test_the_words_of_a_form_are_replaced(revision):
    """A message, and what the blanks say."""
    asked = []

    async def body(ctx: Context) -> str:
        return str(await ctx.elicit(BAD, Form))

    def answer(_method, params):
        asked.append(params)
        return accept(name="y")

    result = await EraClient(make_server(body), revision, answer).call("t")
    assert not result.get("isError")
    assert GOOD == asked[0]["message"]
    blank = asked[0]["requestedSchema"]["properties"]["name"]
    assert [GOOD, GOOD] == [blank["title"], blank["description"]]


@BOTH
async def test_the_words_of_a_form_written_by_hand_are_replaced(revision):
    """As those that a class gives."""
    asked = []
    schema = {"type": "object", "properties": {"a": {"type": "string", "title": BAD}}}

    async def body(ctx: Context) -> str:
        return str(await ctx.elicit("?", schema))

    def answer(_method, params):
        asked.append(params)
        return accept(a="y")

    result = await EraClient(make_server(body), revision, answer).call("t")
    assert not result.get("isError")
    assert GOOD == asked[0]["requestedSchema"]["properties"]["a"]["title"]


@BOTH
async def test_surrogates_in_a_sampling_request_are_replaced(revision):
    """Messages and the system prompt of sampling."""
    asked = []

    async def body(ctx: Context) -> str:
        await ctx.sample(BAD, system_prompt=BAD, max_tokens=9)
        return "done"

    def answer(_method, params):
        asked.append(params)
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}

    assert "done" == tool_text(await EraClient(make_server(body), revision, answer).call("t"))
    assert GOOD == asked[0]["systemPrompt"]
    said = asked[0]["messages"][0]["content"]
    assert GOOD == (said[0] if isinstance(said, list) else said)["text"]


@BOTH
async def test_surrogates_in_notifications_are_replaced(revision):
    """Log data and logger, progress, and notifications of one's own."""

    async def body(ctx: Context) -> str:
        ctx.log.warning(BAD, key=BAD)
        await ctx.progress(1, 2, BAD)
        await ctx.notify("acme/told", {"text": BAD})
        return BAD

    client = EraClient(make_server(body), revision)
    result = await client.call("t", token="t1")
    assert GOOD == tool_text(result)
    assert [{"text": GOOD}] == client.link.said("acme/told")
    assert [GOOD] == [said["message"] for said in client.link.said("notifications/progress")]


@BOTH
async def test_surrogates_in_a_result_are_replaced(revision):
    """Results, errors, prompts and resources; and what lists say."""
    server = Server("s", instructions=BAD, title=BAD)

    def fail() -> str:
        raise ToolError(BAD)

    server.add_tool(fail, description=BAD, title=BAD)
    server.add_tool(lambda: TextContent(text=BAD), name="block")
    server.prompt(name="p", description=BAD)(lambda: BAD)
    server.resource("a://b", name="r", title=BAD)(lambda: BAD)
    client = EraClient(server, revision)
    assert GOOD == tool_text(await client.call("fail"))
    assert GOOD == tool_text(await client.call("block"))
    prompt = await client.send("prompts/get", {"name": "p"})
    assert GOOD == prompt["messages"][0]["content"]["text"]
    assert GOOD == (await client.send("resources/read", {"uri": "a://b"}))["contents"][0]["text"]
    assert GOOD == (await client.send("tools/list", {}))["tools"][0]["description"]
    assert GOOD == (await client.send("prompts/list", {}))["prompts"][0]["description"]
    assert GOOD == (await client.send("resources/list", {}))["resources"][0]["title"]
