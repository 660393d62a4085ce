"""Defaults of dataclasses: what was decoded without them is written with them."""

from dataclasses import dataclass
from typing import Any

import attrs
import pytest
from msgspec import Struct

from isthmus import Accepted, Context, Server
from isthmus.server.schema.defaults import complete_defaults
from isthmus.testing import connect, script


@dataclass
class Plain:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Frozen:
    x: int
    y: int = 0


@dataclass(slots=True)
class Slotted:
    x: int
    y: int = 0


@attrs.define
class Attrs:
    x: int
    y: int = 0


class Holder(Struct):
    plain: Plain
    more: dict[str, tuple[Plain, ...]] = {}


@pytest.mark.parametrize("kind", [Plain, Frozen, Slotted, Attrs])
async def test_a_default_that_was_absent_on_input_is_written_on_output(kind):
    """A result has what its output schema says it has (spec 2026-07-28 server/tools: MUST)."""
    server = Server("echo", version="1")

    def echo(value: kind) -> kind:
        return value

    def echoes(value: kind) -> list[kind]:
        return [value]

    server.add_tool(echo)
    server.add_tool(echoes)
    async with connect(server) as client:
        await client.list_tools()
        one = await client.call_tool("echo", {"value": {"x": 1}})
        many = await client.call_tool("echoes", {"value": {"x": 1}})

    assert {"x": 1, "y": 0} == one.structured
    assert {"result": [{"x": 1, "y": 0}]} == many.structured


async def test_it_is_found_inside_other_values():
    """A struct that holds what was decoded, in a dict and a tuple, too (spec: the same MUST)."""
    server = Server("echo", version="1")

    @server.tool
    def hold(plain: Plain) -> Holder:
        """Hold it."""
        return Holder(plain, {"more": (plain,)})

    async with connect(server) as client:
        await client.list_tools()
        held = await client.call_tool("hold", {"plain": {"x": 1}})

    whole = {"x": 1, "y": 0}
    assert {"plain": whole, "more": {"more": [whole]}} == held.structured


async def test_the_answer_to_a_form_is_complete_as_well():
    """A form leaves out what the user did not touch (spec: the same MUST)."""
    server = Server("asking", version="1")

    @server.tool
    async def ask(ctx: Context) -> Plain:
        """Ask."""
        answer = await ctx.elicit("What?", Plain)
        assert isinstance(answer, Accepted)
        return answer.value

    async with connect(server, elicit=script(Accepted({"x": 1}))) as client:
        await client.list_tools()
        assert Plain(1, 0) == (await client.call_tool("ask")).parse(Plain)


@pytest.mark.parametrize("annotation", [int, list[str], Slotted, Attrs, Any])
def test_types_that_keep_their_defaults_cost_nothing(annotation):
    """The writer stays what it was (ours)."""

    def write(value):
        return b""

    assert write is complete_defaults(annotation, write)
