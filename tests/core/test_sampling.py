"""Conversations with a model, and what is wrong with some of them."""

import pytest

from isthmus.core.sampling import find_request_flaw, find_result_flaw, find_unbalanced_tools
from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    CreateMessageResult,
    ImageContent,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

HELLO = TextContent(text="hello")
TOOL = Tool(name="weather", input_schema={"type": "object"})


def use(id):
    return ToolUseContent(id=id, name="weather", input={"city": id})


def result(id):
    return ToolResultContent(tool_use_id=id, content=[HELLO])


def user(*blocks):
    return SamplingMessage(role="user", content=blocks[0] if len(blocks) == 1 else list(blocks))


def model(*blocks):
    return SamplingMessage(
        role="assistant", content=blocks[0] if len(blocks) == 1 else list(blocks)
    )


@pytest.mark.covers("sampling.balance.refused")
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user(HELLO)],
        [user(HELLO), model(use("a")), user(result("a"))],
        [user(HELLO), model(HELLO, use("a"), use("b")), user(result("b"), result("a"))],
        [model(use("a")), user(result("a")), model(use("a")), user(result("a")), model(HELLO)],
    ],
)
def test_a_conversation_in_balance_is_none_of_our_business(messages):
    """Spec 2025-11-25 client/sampling: each use has its result in the next message."""
    assert find_unbalanced_tools(messages) is None


@pytest.mark.covers("sampling.balance.refused", "sampling.results.alone")
@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([model(use("a"))], "Tool result missing in request: a"),
        ([model(use("a"), use("b")), user(result("a"))], "Tool result missing in request: b"),
        ([model(use("a")), user(HELLO), user(result("a"))], "Tool result missing in request: a"),
        ([model(use("a")), user(result("a"), HELLO)], "Tool results mixed with other content"),
        ([user(HELLO, result("a"))], "Tool results mixed with other content"),
        ([user(result("a"))], "Tool result without a tool use: a"),
        ([model(use("a")), user(result("a"), result("b"))], "without a tool use: b"),
        ([model(use("a")), user(result("a"), result("a"))], "Tool result given twice"),
        ([model(use("a")), model(result("a"))], "the user's to give"),
        ([user(use("a")), user(result("a"))], "the assistant's to ask for"),
        ([model(use("a"), use("a")), user(result("a"))], "Tool use id given twice"),
    ],
)
def test_a_conversation_out_of_balance_is_explained(messages, complaint):
    """Spec 2025-11-25 client/sampling#tool-use-and-result-balance: a MUST, in these words."""
    assert complaint in (find_unbalanced_tools(messages) or "")


@pytest.mark.covers("sampling.content.validated", "sampling.preferences.normalised")
@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({}, None),
        ({"model_preferences": ModelPreferences(cost_priority=0, speed_priority=1)}, None),
        (
            {"model_preferences": ModelPreferences(speed_priority=1.5)},
            "modelPreferences.speedPriority is 1.5",
        ),
        ({"messages": [user(ImageContent(data="aGk=", mime_type="image/png"))]}, None),
        (
            {"messages": [user(ImageContent(data="a g k", mime_type="image/png"))]},
            "messages[0] holds image/png that is no base64",
        ),
        (
            {"messages": [user(AudioContent(data="ü", mime_type="audio/wav"))]},
            "audio/wav that is no base64",
        ),
    ],
)
def test_what_a_model_is_asked_is_looked_at(more, complaint):
    """Spec 2025-11-25 client/sampling#security-considerations: SHOULD validate content."""
    params = CreateMessageParams(**{"messages": [user(HELLO)], "max_tokens": 5, **more})
    found = find_request_flaw(params)

    assert found is None if complaint is None else complaint in found


@pytest.mark.covers("sampling.tools.choice-kept")
@pytest.mark.parametrize(
    ("tools", "mode", "content", "complaint"),
    [
        ([TOOL], None, HELLO, None),
        ([TOOL], None, [use("a"), use("b")], None),
        ([TOOL], "none", use("a"), "was given no tools to use"),
        (None, None, use("a"), "'weather' called, and was given no tools"),
        ([TOOL], None, [use("a"), use("a")], "given twice"),
        ([TOOL], None, result("a"), "gives no results"),
    ],
)
def test_a_model_uses_the_tools_it_was_given(tools, mode, content, complaint):
    """Spec 2025-11-25 client/sampling#tool-choice-modes: with none it MUST NOT use any."""
    more = {} if tools is None else {"tools": tools}
    if mode:
        more["tool_choice"] = ToolChoice(mode=mode)
    params = CreateMessageParams(messages=[user(HELLO)], max_tokens=5, **more)
    written = CreateMessageResult(role="assistant", content=content, model="m")
    found = find_result_flaw(params, written)

    assert found is None if complaint is None else complaint in found
