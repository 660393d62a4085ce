"""Cutting values to a revision: what goes, what stays, and what is not even looked at."""

import msgspec
from msgspec import UNSET, Raw

from isthmus import wire
from isthmus.revisions import BY_NAME, REVISIONS, accept, project

FIRST, MARCH, JUNE, NOVEMBER, MODERN = BY_NAME.values()


class Shelf(msgspec.Struct):
    """Somebody else's struct, which holds its own kind."""

    tool: wire.Tool
    below: list["Shelf"]


def test_newer_members_are_cut():
    """Spec: a revision's message has its own members only."""
    tool = wire.Tool(name="a", title="A", input_schema={"type": "object"}, meta={"b": 1})

    assert wire.Tool(name="a", input_schema={"type": "object"}) == project(tool, MARCH)


def test_older_members_are_cut():
    """Spec: what a revision took away is gone for those after it."""
    execution = wire.ToolExecution(task_support="optional")
    tool = wire.Tool(name="a", input_schema={"type": "object"}, execution=execution)

    assert project(tool, NOVEMBER) is tool
    assert project(tool, MODERN).execution is UNSET


def test_nested_members_are_cut():
    """Ours: cutting reaches structs in lists in structs."""
    icon = wire.Icon(src="https://example.com/a.png")
    tools = [
        wire.Tool(name="a", input_schema={"type": "object"}),
        wire.Tool(name="b", input_schema={"type": "object"}, icons=[icon]),
    ]
    listed = wire.ListToolsResult(tools=tools, next_cursor="c", ttl_ms=0, cache_scope="public")

    shown = project(listed, JUNE)

    assert shown.tools[0] is tools[0]
    assert [UNSET, UNSET] == [tool.icons for tool in shown.tools]
    assert (UNSET, UNSET, "c") == (shown.ttl_ms, shown.cache_scope, shown.next_cursor)
    assert [icon] == listed.tools[1].icons, "the original is not touched"


def test_nothing_to_cut_is_the_same_object():
    """Ours: a value that fits is not copied, nor are its parts."""
    result = wire.CallToolResult(content=[wire.TextContent(text="a")])

    assert [result] * 5 == [r for r in (project(result, v) for v in REVISIONS) if r is result]


def test_plain_data_is_left_alone():
    """Ours: raw JSON, plain data and strangers' structs pass as they are."""

    class Stranger(msgspec.Struct):
        a: int = 1

    for value in (Raw(b"{}"), {"a": [1]}, "text", None, Stranger()):
        assert project(value, FIRST) is value
        assert accept(value, FIRST) is value


def test_structs_inside_strangers_are_cut():
    """Ours: the result of a custom method may hold tools."""
    tool = wire.Tool(name="a", title="A", input_schema={"type": "object"})
    shelf = Shelf(tool=tool, below=[Shelf(tool=tool, below=[])])

    shown = project(shelf, FIRST)

    assert shown.tool.title is UNSET
    assert shown.below[0].tool.title is UNSET


def test_what_comes_in_is_cut_but_not_reworded():
    """Ours: an old caller cannot use new members; what it said is not said differently."""
    params = wire.CallToolParams(name="a", request_state="forged", input_responses={})
    heard = wire.CreateMessageResult(
        role="assistant", model="m", content=[wire.TextContent(text="a", meta={"b": 1})]
    )

    assert wire.CallToolParams(name="a") == accept(params, NOVEMBER)
    assert accept(params, MODERN) is params
    assert [wire.TextContent(text="a")] == accept(heard, FIRST).content


def test_raw_results_of_tools_are_not_looked_into():
    """Ours: JSON that somebody else wrote is theirs."""
    params = wire.CallToolParams(name="a", arguments=Raw(b'{"requestState":"mine"}'))

    assert accept(params, FIRST) is params
