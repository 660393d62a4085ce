"""Requests that no schema has, over every transport and in every revision."""

import pytest
from msgspec import Raw

from isthmus import Context, Server
from isthmus.errors import InvalidParams
from isthmus.testing import connect, every_revision, every_transport
from isthmus.wire import CallToolParams
from isthmus.wire.jsonrpc import encode

pytestmark = [every_revision(), every_transport()]
NO_OBJECTS = [[], [1], ["text"], "text", '{"text": "hi"}', 5, 1.5, True]


def shop():
    """A server with a tool of each kind: typed, with a context, with a schema of its author's."""
    server = Server("shop", version="1")

    @server.tool
    async def typed(text: str = "none") -> str:
        return text

    @server.tool
    async def asking(ctx: Context, text: str = "none") -> str:
        return text

    @server.tool(input_schema={"type": "object"})
    async def open(given: dict) -> str:
        return str(given)

    @server.prompt
    def advert(text: str = "none") -> str:
        return text

    return server


def call(tool, arguments):
    """The parameters of a call, with arguments that are anything."""
    return CallToolParams(name=tool, arguments=Raw(encode(arguments)))


@pytest.mark.parametrize("tool", ["typed", "asking", "open"])
async def test_arguments_that_are_no_object_are_invalid_params(revision, transport, tool):
    """Spec 2026-07-28 server/tools#error-handling: a malformed request is a protocol error."""
    async with connect(shop(), revision=revision, transport=transport) as client:
        for arguments in NO_OBJECTS:
            with pytest.raises(InvalidParams, match=r"object.*arguments"):
                await client.request("tools/call", call(tool, arguments))
        assert (await client.call_tool(tool)).content


async def test_parameters_that_are_no_object_are_invalid_params(revision, transport):
    """Ours: as for members of parameters, and for every method that takes an object there."""
    async with connect(shop(), revision=revision, transport=transport) as client:
        for arguments in NO_OBJECTS:
            with pytest.raises(InvalidParams):
                await client.request("prompts/list", {"cursor": [arguments]})


async def test_arguments_that_are_null_are_none(revision, transport):
    """Ours (ADR 0017): what several clients send in place of leaving a member out."""
    async with connect(shop(), revision=revision, transport=transport) as client:
        for tool in ("typed", "asking", "open"):
            result = await client.request("tools/call", call(tool, None))
            assert not result.get("isError"), result
