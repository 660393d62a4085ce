"""Tools, listed and called."""

import logging
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from isthmus import Audio, Context, Image, Refuse, Server, ToolError
from isthmus.errors import InvalidParams, Refused, ToolFailed
from isthmus.revisions import BY_NAME, Feature
from isthmus.testing import every_revision, every_transport
from isthmus.types import (
    AudioContent,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

pytestmark = [every_revision(), every_transport()]


class Point(Struct):
    x: int
    y: int = 0


def workshop():
    server = Server("workshop", version="1")

    @server.tool
    async def add(a: int, b: Annotated[int, Meta(ge=0)] = 1) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(title="Move", read_only=True)
    def move(point: Point, by: int) -> Point:
        """Move a point."""
        return Point(point.x + by, point.y + by)

    @server.tool
    def say(text: str) -> str:
        """Say it."""
        return text

    @server.tool
    def fail(how: str) -> str:
        """Fail in one way or another."""
        if how == "tool":
            raise ToolError("the model can read this")
        if how == "refuse":
            raise Refuse(1234, "not like this", {"why": "because"})
        raise ValueError("a secret path: /etc/shadow")

    @server.tool
    def show() -> list:
        """Show one of everything."""
        return [
            "text",
            Image(b"png", format="png"),
            Audio(b"wav", format="wav"),
            EmbeddedResource(resource=TextResourceContents(uri="a://b", text="inside")),
            ResourceLink(uri="a://c", name="outside"),
        ]

    return server


async def test_the_list_says_what_a_tool_takes(joined, revision):
    """Name, description and input schema travel in every revision (spec: tools)."""
    async with joined(workshop()) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}

    assert {"add", "move", "say", "fail", "show"} == tools.keys()
    assert "Add two numbers." == tools["add"].description
    assert ["a"] == tools["add"].input_schema["required"]
    assert 0 == tools["add"].input_schema["properties"]["b"]["minimum"]
    assert BY_NAME[revision].has(Feature.STRUCTURED_OUTPUT) == bool(tools["move"].output_schema)


@pytest.mark.covers("interaction.transports.everywhere")
async def test_a_tool_is_called_with_typed_arguments(joined):
    """Arguments arrive as the signature says, defaults filled in (our promise)."""
    async with joined(workshop()) as client:
        assert "3" == (await client.call_tool("add", {"a": 2})).text
        moved = await client.call_tool("move", {"point": {"x": 1}, "by": 2})

        assert Point(3, 2) == moved.parse(Point)


async def test_text_travels_once(joined):
    """A ``str`` has no structured twin (decision D23)."""
    async with joined(workshop()) as client:
        result = await client.call_tool("say", {"text": "hé ✓"})

    assert "hé ✓" == result.text
    assert None is result.structured


@pytest.mark.parametrize("arguments", [{}, {"a": "two"}, {"a": 1, "b": -1}, {"a": 1, "c": 1}])
async def test_wrong_arguments_are_a_result_that_a_model_can_mend(joined, arguments):
    """Validation errors are isError results that say where (spec: tools error handling)."""
    async with joined(workshop()) as client:
        result = await client.call_tool("add", arguments)

    assert result.is_error
    assert result.text
    with pytest.raises(ToolFailed, match="add"):
        result.parse(int)


async def test_an_unknown_tool_is_a_protocol_error(joined):
    """Unknown tools are -32602 (spec: tools error handling)."""
    async with joined(workshop()) as client:
        with pytest.raises(InvalidParams, match="nothing"):
            await client.call_tool("nothing")


async def test_a_tool_error_is_read_by_the_model(joined):
    """ToolError is an isError result with its text (architecture 9.2)."""
    async with joined(workshop()) as client:
        result = await client.call_tool("fail", {"how": "tool"})

    assert result.is_error
    assert "the model can read this" == result.text


async def test_a_refusal_is_a_protocol_error(joined):
    """Refuse keeps its code, message and data (architecture 9.2)."""
    async with joined(workshop()) as client:
        with pytest.raises(Refused, match="not like this") as refusal:
            await client.call_tool("fail", {"how": "refuse"})

    assert (1234, {"why": "because"}) == (refusal.value.code, refusal.value.data)


@pytest.mark.covers("errors.internal.withheld")
async def test_the_text_of_an_unexpected_error_stays_inside(joined, caplog):
    """The answer names the tool and the kind of error, the log has the rest (ADR 0008)."""
    with caplog.at_level(logging.CRITICAL + 1, "isthmus"):
        async with joined(workshop()) as client:
            result = await client.call_tool("fail", {"how": "crash"})

    assert result.is_error
    assert "ValueError" in result.text
    assert "shadow" not in result.text


async def test_every_kind_of_content_arrives_or_is_said_differently(joined, revision):
    """What a revision lacks is downgraded, never lost (architecture 4.2)."""
    async with joined(workshop()) as client:
        content = (await client.call_tool("show")).content

    assert 5 == len(content)
    assert isinstance(content[0], TextContent)
    if revision == "2024-11-05":
        assert isinstance(content[2], EmbeddedResource)
        assert "d2F2" == content[2].resource.blob
    else:
        assert isinstance(content[2], AudioContent)
    if revision < "2025-06-18":
        assert isinstance(content[4], TextContent)
        assert "a://c" in content[4].text
    else:
        assert isinstance(content[4], ResourceLink)


async def test_a_tool_sees_who_calls_in_the_same_way_everywhere(joined, revision):
    """The context has no era (architecture 4.5)."""
    server = Server("who", version="1")

    @server.tool
    async def who(ctx: Context) -> str:
        """Say who calls."""
        return f"{ctx.client.name} in {ctx.revision.name}"

    async with joined(server, name="me") as client:
        assert f"me in {revision}" == (await client.call_tool("who")).text


async def test_calls_run_side_by_side(joined):
    """A slow call does not hold up a quick one (architecture 4.4)."""
    import asyncio

    server = Server("pair", version="1")
    go = asyncio.Event()

    @server.tool
    async def slow() -> str:
        """Wait for the quick one."""
        await go.wait()
        return "slow"

    @server.tool
    async def quick() -> str:
        """Let the slow one go."""
        go.set()
        return "quick"

    async with joined(server) as client:
        results = await asyncio.gather(client.call_tool("slow"), client.call_tool("quick"))

    assert ["slow", "quick"] == [result.text for result in results]
