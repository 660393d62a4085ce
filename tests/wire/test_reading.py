"""Unknown content survives: one strange block does not lose the message around it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from isthmus import wire
from isthmus.wire.jsonrpc import encode
from isthmus.wire.reading import forgiving_reader, reader

STRANGE = {"type": "hologram", "depth": [1, None, 12345678901234567890123], "uri": "x:y"}
TEXT = {"type": "text", "text": "a"}
CALL = {"type": "tool_use", "id": "1", "name": "n", "input": {}}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}


def both_ways(shape, plain):
    """What a reader makes of JSON; checks that it is written back the same."""
    value = reader(shape)(json.dumps(plain).encode())
    assert plain == json.loads(encode(value))
    return value


def test_known_content_is_read_as_its_struct():
    """Spec: content is told apart by its type."""
    value = both_ways(wire.CallToolResult, {"content": [TEXT, LINK]})

    expected = [wire.TextContent(text="a"), wire.ResourceLink(uri="file:///a", name="a")]
    assert expected == value.content


def test_an_unknown_block_of_a_tool_survives():
    """Ours: it is kept as it came, and its neighbours are read as ever."""
    value = both_ways(wire.CallToolResult, {"content": [TEXT, STRANGE, LINK]})

    assert isinstance(value.content[1], wire.UnknownContent)
    assert STRANGE == value.content[1]
    assert isinstance(value.content[2], wire.ResourceLink)


def test_an_unknown_block_of_a_prompt_survives():
    """Ours: a message of a prompt has one block, which may be unknown."""
    messages = [{"role": "user", "content": STRANGE}, {"role": "user", "content": TEXT}]

    value = both_ways(wire.GetPromptResult, {"messages": messages})

    assert wire.UnknownContent(STRANGE) == value.messages[0].content
    assert wire.TextContent(text="a") == value.messages[1].content


def test_unknown_blocks_for_a_model_survive():
    """Ours: alone, in a list, and inside the result of a tool."""
    result = {"type": "tool_result", "toolUseId": "1", "content": [STRANGE, LINK]}
    messages = [
        {"role": "user", "content": STRANGE},
        {"role": "user", "content": [CALL, result, STRANGE]},
    ]

    value = both_ways(wire.CreateMessageParams, {"messages": messages, "maxTokens": 1})

    assert isinstance(value.messages[0].content, wire.UnknownContent)
    called, answered, strange = value.messages[1].content
    assert isinstance(called, wire.ToolUseContent)
    assert isinstance(answered.content[0], wire.UnknownContent)
    assert isinstance(answered.content[1], wire.ResourceLink)
    assert isinstance(strange, wire.UnknownContent)


def test_unknown_blocks_of_a_model_survive():
    """Ours: what a model wrote may be of a type that came later."""
    value = both_ways(
        wire.CreateMessageResult, {"role": "assistant", "model": "m", "content": STRANGE}
    )

    assert wire.UnknownContent(STRANGE) == value.content


@pytest.mark.parametrize(
    ("shape", "plain"),
    [
        (wire.CallToolResult, {"content": [CALL]}),
        (wire.SamplingMessage, {"role": "user", "content": LINK}),
        (wire.PromptMessage, {"role": "user", "content": CALL}),
        (wire.ToolResultContent, {"type": "tool_result", "toolUseId": "1", "content": [CALL]}),
    ],
)
def test_known_content_in_the_wrong_place_survives(shape, plain):
    """Ours: a type that belongs elsewhere is as unknown here as a new one."""
    value = both_ways(shape, plain)

    block = value.content[0] if isinstance(value.content, list) else value.content
    assert isinstance(block, wire.UnknownContent)


@pytest.mark.parametrize(
    ("shape", "plain", "path"),
    [
        (wire.CallToolResult, {"content": [STRANGE, {"type": "text"}]}, r"\$\.content\[1\]"),
        (wire.CallToolResult, {"content": [{"type": "text"}]}, r"\$\.content\[0\]"),
        (wire.CallToolResult, {"content": [{"text": "a"}]}, r"\$\.content\[0\]"),
        (wire.CallToolResult, {"content": [3]}, r"\$\.content\[0\]"),
        (wire.CallToolResult, {"content": "a"}, r"\$\.content"),
        (wire.CallToolResult, {}, "content"),
        (wire.CallToolResult, [], "array"),
        (wire.GetPromptResult, {"messages": 3}, r"\$\.messages"),
        (wire.GetPromptResult, {"messages": [3]}, r"\$\.messages\[0\]"),
        (wire.Tool, {"name": 3}, r"\$\.name"),
    ],
)
def test_malformed_messages_are_refused_with_the_place(shape, plain, path):
    """Ours: tolerance of new types is no tolerance of broken ones."""
    with pytest.raises(msgspec.ValidationError, match=path):
        reader(shape)(json.dumps(plain).encode())


def test_broken_json_is_refused():
    """Ours: what is no JSON is a DecodeError, as msgspec's own decoders have it."""
    with pytest.raises(msgspec.DecodeError):
        reader(wire.CallToolResult)(b"{")


def test_raw_json_is_read_too():
    """Ours: a result that was kept raw until its type was known."""
    raw = msgspec.Raw(json.dumps({"content": [STRANGE]}).encode())

    assert [STRANGE] == reader(wire.CallToolResult)(raw).content


def test_arguments_stay_raw_beside_unknown_blocks():
    """Ours: raw members come through the slow path unread."""
    messages = [{"role": "user", "content": STRANGE}]
    tools = [{"name": "a", "inputSchema": {"type": "object"}}]

    value = both_ways(
        wire.CreateMessageParams, {"messages": messages, "maxTokens": 1, "tools": tools}
    )

    assert {"type": "object"} == value.tools[0].input_schema


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values).map(lambda block: {**block, "type": "new"}))
def test_any_unknown_block_is_written_back_the_same(block):
    """Ours: whatever is in it."""
    both_ways(wire.CallToolResult, {"content": [block]})


@pytest.mark.covers("meta.null.means-absent")
@pytest.mark.parametrize(
    ("shape", "data", "member"),
    [
        (wire.ListToolsParams, b'{"cursor":null}', "cursor"),
        (wire.ListToolsResult, b'{"tools":[],"nextCursor":null}', "next_cursor"),
        (wire.ElicitResult, b'{"action":"decline","content":null}', "content"),
        (wire.CallToolResult, b'{"content":[],"isError":null,"_meta":null}', "is_error"),
    ],
)
def test_null_where_no_schema_has_one_is_as_good_as_nothing(shape, data, member):
    """Ours: some programs write it, and mean the member's absence."""
    assert UNSET is getattr(forgiving_reader(shape)(data), member)


def test_a_blank_that_was_left_empty_may_be_null():
    """Ours: clients send null for what the user did not fill in."""
    data = b'{"action":"accept","content":{"name":"Ada","age":null}}'

    assert {"name": "Ada"} == forgiving_reader(wire.ElicitResult)(data).content


@pytest.mark.parametrize("data", [b'{"tools":null}', b'{"nextCursor":null}', b"null", b"[null]"])
def test_null_for_what_must_be_there_is_no_excuse(data):
    """Ours: what is required is required."""
    with pytest.raises(msgspec.ValidationError):
        forgiving_reader(wire.ListToolsResult)(data)
