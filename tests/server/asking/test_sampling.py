"""Messages to a model and from it, in the forms authors use."""

import pytest
from msgspec import UNSET

from isthmus.errors import UsageError
from isthmus.server.asking.sampling import SampledMessage, make_conversation, make_preferences
from isthmus.server.schema.results import Image
from isthmus.wire import (
    CreateMessageResult,
    ImageContent,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

PNG = b"\x89PNG\r\n\x1a\n"


def sampled(*blocks, **more):
    content = list(blocks) if len(blocks) != 1 else blocks[0]
    return SampledMessage(CreateMessageResult(role="assistant", content=content, model="m", **more))


def test_text_is_the_users_and_a_list_is_a_conversation():
    """What is not a message yet becomes one (our promise)."""
    hi = SamplingMessage(role="user", content=TextContent(text="hi"))
    ho = SamplingMessage(role="assistant", content=TextContent(text="ho"))

    assert [hi] == make_conversation("hi")
    assert [hi, ho, hi] == make_conversation(["hi", sampled(TextContent(text="ho")), hi])
    assert [hi] == make_conversation(TextContent(text="hi"))


def test_a_picture_is_said_by_the_user():
    """As base64 with its media type (spec: sampling, image content)."""
    (message,) = make_conversation(Image(PNG, format="png"))

    assert isinstance(message.content, ImageContent)
    assert "image/png" == message.content.mime_type


def test_nothing_is_no_conversation():
    """A model needs something to go on from (ours)."""
    with pytest.raises(UsageError, match="at least one message"):
        make_conversation([])


def test_a_sampled_message_has_text_and_blocks():
    """One block or several, always a list here (spec: sampling, result fields)."""
    two = sampled(TextContent(text="a"), TextContent(text="b"), stop_reason="endTurn")

    assert ("ab", 2, "endTurn") == (two.text, len(two.content), two.stop_reason)
    assert [] == two.tool_uses
    assert two.content == two.message.content
    assert "SampledMessage('ab', model='m')" == repr(two)
    assert sampled(TextContent(text="a")).stop_reason is None


def test_models_are_named_in_order():
    """Hints, the best first (spec: sampling, model preferences)."""
    hints = ModelPreferences(hints=[ModelHint(name="a"), ModelHint(name="b")])

    assert hints == make_preferences(["a", "b"])
    assert hints is make_preferences(hints)
    assert ModelPreferences(hints=[ModelHint(name="a")]) == make_preferences("a")
    assert UNSET is make_preferences(None)


@pytest.mark.covers("sampling.balance.refused")
def test_results_of_tools_side_by_side_are_one_message():
    """Spec 2025-11-25 client/sampling#tool-result-messages: all results, and nothing else."""
    use = [ToolUseContent(id=id, name="t", input={}) for id in "ab"]
    results = [ToolResultContent(tool_use_id=id, content=[]) for id in "ab"]
    said = make_conversation(["go", sampled(*use), *results, "and?"])

    assert ["user", "assistant", "user", "user"] == [message.role for message in said]
    assert [use, results] == [said[1].content, said[2].content]


@pytest.mark.covers("sampling.balance.refused")
def test_a_conversation_out_of_balance_is_not_sent():
    """Spec 2025-11-25 client/sampling#tool-use-and-result-balance: a MUST of servers."""
    use = ToolUseContent(id="a", name="t", input={})
    with pytest.raises(UsageError, match="cannot be sent: Tool result missing in request: a"):
        make_conversation(["go", sampled(use), "and?"])
