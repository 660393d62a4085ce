"""Events of a turn on their way to a face, and errors on their way to a model: no more than is read."""

import pytest

from isthmus.errors import Refused
from isthmus.host.chat.conversation import MAX_WAITING_EVENTS, TurnQueue
from isthmus.host.chat.tool_replies import explain_error, make_refusal
from isthmus.host.turns import Text, ToolRunning
from isthmus.wire import ToolUseContent


@pytest.mark.covers("hostchat.talk.progress-flood")
def test_progress_without_end_waits_for_nobody():
    """Ours: a server that tells of each byte fills no memory, and hides nothing else."""
    events = TurnQueue()
    for number in range(MAX_WAITING_EVENTS + 500):
        events.tell(ToolRunning(id="1", progress=number))
    events.tell(Text("done"))

    assert MAX_WAITING_EVENTS + 1 == events.qsize()


@pytest.mark.covers("hostchat.talk.long-errors")
def test_of_a_long_error_a_model_reads_the_beginning():
    """Ours: what results are held to, errors are held to as well."""
    use = ToolUseContent(id="1", name="shop__buy", input={})
    (block,) = make_refusal(use, explain_error(Refused(-32001, "e" * 1_000_000))).result.content

    assert 8_100 > len(block.text)
    assert "more characters are left out" in block.text
