"""Timeline and conversation of a call."""

import json

import pytest

from isthmus.console.drawing.call_timeline import (
    describe_message,
    draw_conversation,
    draw_timeline,
)
from isthmus.host.model.view import CallRecord, CallStep, WireMessage

HOSTILE = '"></code><script>alert(1)</script>\u202e'


def make_record(*steps, **more):
    """A call whose steps are a kind and a time each."""
    made = tuple(CallStep(kind=kind, at=100.0 + at, text=f"{kind} {HOSTILE}") for kind, at in steps)
    return CallRecord(id="c1", at=100.0, server="files", object="read", steps=made, **more)


def test_each_step_has_its_time_and_its_span():
    """Ours: when it was since the attempt, and how long until the next one."""
    drawn = draw_timeline(
        make_record(("attempt", 0), ("rule", 0.001), ("sent", 0.002), ("outcome", 2.0), seconds=2.0)
    )

    for text in ("+0 ms", "+1 ms", "+2 ms", "+2 s", ">upstream<", ">2 s<"):
        assert text in drawn
    assert drawn.count("<li") == 4
    assert "<script>" not in drawn


def test_a_call_that_nobody_watched_says_so():
    """Ours: no empty list."""
    assert "before anybody watched" in draw_timeline(make_record())


@pytest.mark.parametrize("steps", [[("attempt", 0)], [("attempt", 0), ("outcome", -5)]])
def test_any_times_can_be_drawn(steps):
    """Ours: a call that has only begun, and a clock that was set back."""
    assert "<rect" in draw_timeline(make_record(*steps))


@pytest.mark.parametrize(
    ("message", "summary"),
    [
        ({"id": 1, "method": "tools/call", "params": {"name": "read"}}, "tools/call read #1"),
        ({"id": 1, "result": {"resultType": "input_required"}}, "result input_required #1"),
        ({"id": "a", "result": {"isError": True}}, "result isError #a"),
        ({"id": 2, "error": {"code": -32602, "message": "no"}}, "error -32602 no #2"),
        ({"method": "notifications/progress", "params": []}, "notifications/progress"),
        ([{"id": 1}, {"id": 2}], "batch of 2"),
        ({"id": 2, "error": "odd"}, "error #2"),
        (5, "int"),
    ],
)
def test_a_message_is_told_in_a_few_words(message, summary):
    """Ours: the method and what it is about, or the outcome; and its id."""
    assert describe_message(json.dumps(message))[0] == summary


@pytest.mark.parametrize("text", ["{cut off", "[" * 100_000, ""])
def test_what_is_no_json_is_shown_as_it_came(text):
    """Ours: a message that was cut at its bound, and nonsense of a server."""
    summary, body = describe_message(text)

    assert body == text
    assert len(summary) <= 160


def test_both_eras_stand_in_one_conversation():
    """Ours: lanes of client, isthmus and server with their revisions; arrows go where messages went."""
    record = make_record(client="Codex", client_revision="2025-06-18", revision="2026-07-28")
    asked = json.dumps({"id": 7, "method": "tools/call", "params": {"name": HOSTILE}})
    messages = [
        WireMessage(at=1.0, direction="received", side="client", text=asked),
        WireMessage(at=1.5, direction="sent", side="server", text=asked),
        WireMessage(at=2.0, direction="received", side="server", text='{"id":7,"result":{}}'),
    ]
    drawn = draw_conversation(record, messages)

    assert drawn.index("2025-06-18") < drawn.index("2026-07-28")
    assert [sign for sign in drawn if sign in "→←"] == ["→", "→", "←"]
    assert "+500 ms" in drawn
    assert "<script>" not in drawn
    assert "No messages" in draw_conversation(record, [])
