"""Surfaces: what a server offers, as a snapshot, and what a change of it breaks."""

import json

import pytest
from msgspec import UNSET

from isthmus import Server
from isthmus.testing import compare_surfaces, connect, read_surface, serving
from isthmus.testing.surface import compare_schemas, describe_changes, encode_surface


def make_shop():
    """A server with one of everything."""
    server = Server("shop", version="1")

    @server.tool
    def add(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b

    @server.resource("shop://hours")
    def hours() -> str:
        """When it is open."""
        return "8 to 18"

    @server.resource("shop://shelf/{number}")
    def shelf(number: int) -> str:
        """What stands on a shelf."""
        return f"shelf {number}"

    @server.prompt
    def offer(name: str) -> str:
        """Write an offer."""
        return name

    return server


async def test_all_lists_are_read_by_name():
    """Tools, resources, templates and prompts, as they are on the wire (ours)."""
    async with connect(make_shop()) as client:
        surface = await read_surface(client)

    assert ["tools", "resources", "resourceTemplates", "prompts"] == list(surface)
    assert "integer" == surface["tools"]["add"]["inputSchema"]["properties"]["a"]["type"]
    assert {"shop://hours"} == surface["resources"].keys()
    assert {"shop://shelf/{number}"} == surface["resourceTemplates"].keys()
    assert [{"name": "name", "required": True}] == surface["prompts"]["offer"]["arguments"]
    assert surface == json.loads(encode_surface(surface))


async def test_a_server_is_read_over_http_as_in_memory():
    """The transport is no part of what is offered (ours)."""
    async with connect(make_shop()) as client:
        near = await read_surface(client)
    async with serving(make_shop()) as url, connect(url) as client:
        assert near == await read_surface(client)


def make_surface(**schema):
    """A surface of one tool with this schema of its arguments."""
    return {"tools": {"add": {"inputSchema": {"type": "object", **schema}}}}


def test_names_come_before_fields():
    """What is gone is read first (ours)."""
    before = make_surface(properties={"a": {"type": "integer"}}) | {"prompts": {"old": {}}}
    after = make_surface(properties={"a": {"type": "number"}}) | {"prompts": {"new": {}}}

    told = describe_changes(compare_surfaces(before, after))

    assert told.splitlines() == [
        "  - prompts.old  (breaking: it is gone)",
        "  + prompts.new  (compatible: it is new)",
        "  tools.add.inputSchema.properties.a.type: integer → number  (compatible)",
        "1 change breaks callers.",
    ]


INCOMING = [
    ({"type": "integer"}, {"type": "number"}, "compatible"),
    ({"type": "number"}, {"type": "integer"}, "breaking"),
    ({"type": "string"}, {"type": ["string", "null"]}, "compatible"),
    ({"type": "string"}, {"type": "integer"}, "breaking"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "breaking"),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, "compatible"),
    ({"enum": ["a"]}, {"enum": ["b"]}, "breaking"),
    ({}, {"enum": ["a"]}, "breaking"),
    ({"enum": ["a"]}, {}, "compatible"),
    ({"required": ["a"]}, {"required": ["a", "b"]}, "breaking"),
    ({"required": ["a"]}, {}, "compatible"),
    ({"minimum": 1}, {"minimum": 2}, "breaking"),
    ({"minimum": 1}, {"minimum": 0}, "compatible"),
    ({"maxLength": 9}, {"maxLength": 8}, "breaking"),
    ({}, {"maxLength": 8}, "breaking"),
    ({"maxLength": 8}, {}, "compatible"),
    ({"minimum": True}, {"minimum": "x"}, "may break"),
    ({}, {"pattern": "a"}, "breaking"),
    ({"pattern": "a"}, {"pattern": "b"}, "breaking"),
    ({}, {"additionalProperties": False}, "breaking"),
    ({"additionalProperties": False}, {"additionalProperties": True}, "compatible"),
    ({"description": "a"}, {"description": "b"}, "compatible"),
    ({"default": 1}, {"default": 2}, "may break"),
    ({"x-own": 1}, {"x-own": 2}, "may break"),
]


@pytest.mark.parametrize(("was", "now", "effect"), INCOMING)
def test_callers_break_where_less_of_what_they_send_is_taken(was, now, effect):
    """What a tool takes may grow, and must not shrink (ours)."""
    (change,) = compare_schemas("at", was, now, incoming=True)

    assert effect == change.effect


OUTGOING = [
    ({"type": "integer"}, {"type": "number"}, "breaking"),
    ({"type": "number"}, {"type": "integer"}, "compatible"),
    ({"type": "string"}, {"type": "integer"}, "breaking"),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, "breaking"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, "compatible"),
    ({"required": ["a", "b"]}, {"required": ["a"]}, "breaking"),
    ({"required": ["a"]}, {"required": ["a", "b"]}, "compatible"),
    ({"maximum": 9}, {"maximum": 10}, "breaking"),
    ({"minimum": 1}, {"minimum": 2}, "compatible"),
    ({"additionalProperties": False}, {}, "breaking"),
    ({"title": "a"}, {"title": "b"}, "compatible"),
]


@pytest.mark.parametrize(("was", "now", "effect"), OUTGOING)
def test_callers_break_where_more_may_come_back_than_did(was, now, effect):
    """What a tool gives may shrink, and must not grow (ours)."""
    (change,) = compare_schemas("at", was, now, incoming=False)

    assert effect == change.effect


@pytest.mark.parametrize("incoming", [True, False])
def test_a_property_that_is_gone_breaks_and_a_new_one_does_not(incoming):
    """Whoever sends or reads it notices; whoever does not know it cannot (ours)."""
    one, two = {"properties": {"a": {}}}, {"properties": {"a": {}, "b": {}}}

    (gone,) = compare_schemas("at", two, one, incoming=incoming)
    (new,) = compare_schemas("at", one, two, incoming=incoming)

    assert ("at.properties.b", "breaking", UNSET) == (gone.where, gone.effect, gone.now)
    assert "compatible" == new.effect


def test_changes_deep_in_a_schema_have_their_path():
    """Through definitions, items and names that are no plain words (ours)."""
    was = {"$defs": {"A b": {"items": {"properties": {"x": {"type": "string"}}}}}}
    now = {"$defs": {"A b": {"items": {"properties": {"x": {"type": "null"}}}}}}

    (change,) = compare_schemas("at", was, now, incoming=True)

    assert 'at.$defs."A b".items.properties.x.type' == change.where


def test_arguments_of_a_prompt_are_told_by_name():
    """Their order means nothing (ours)."""
    was = {"prompts": {"p": {"arguments": [{"name": "a", "required": True}, {"name": "b"}]}}}
    now = {"prompts": {"p": {"arguments": [{"name": "b"}, {"name": "a", "required": True}]}}}
    more = {"prompts": {"p": {"arguments": [{"name": "a", "required": True}]}}}

    assert [] == compare_surfaces(was, now)
    (gone,) = compare_surfaces(was, more)
    assert ("prompts.p.arguments.b", "breaking") == (gone.where, gone.effect)


def test_an_output_schema_may_come_and_must_not_go():
    """Structured content comes and goes with it (ours)."""
    with_it = {"tools": {"t": {"outputSchema": {"type": "object"}}}}
    without = {"tools": {"t": {}}}

    assert ["breaking"] == [one.effect for one in compare_surfaces(with_it, without)]
    assert ["compatible"] == [one.effect for one in compare_surfaces(without, with_it)]


def test_long_texts_are_shown_where_they_begin_to_differ():
    """And nothing of them can paint a terminal (ours)."""
    was = {"tools": {"t": {"description": "a" * 200 + "\x1b[31m old " + "b" * 200}}}
    now = {"tools": {"t": {"description": "a" * 200 + "\x1b[31m new " + "b" * 200}}}

    told = describe_changes(compare_surfaces(was, now))

    assert "old" in told
    assert "new" in told
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) < 240
