"""Events of a conversation as lines."""

import pytest

from isthmus.host.turns import Ended, ToolAsked, ToolDone, ToolRunning
from isthmus.terminal.chat.lines import (
    describe_inserted,
    describe_result,
    describe_tool_call,
    describe_tool_outcome,
    describe_turn_end,
    format_progress,
)
from isthmus.wire import (
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolResultContent,
)


def texts(lines):
    """What they say."""
    return [line.text for line in lines]


def result(*content):
    """What a tool gave."""
    return ToolResultContent(tool_use_id="1", content=list(content))


def test_a_call_is_shown_with_everything_and_nothing_that_a_terminal_obeys():
    """Ours: names and arguments are a model's and a server's words."""
    event = ToolAsked(
        id="1", name="a__x", server="a", tool="x\x1b[2J", arguments={"path": "\u202egpj.exe"}
    )

    whole = "\n".join(texts(describe_tool_call(event)))

    assert "* the model wants to call x<U+001B>[2J of a" in whole
    assert '"path": "<U+202E>gpj.exe"' in whole
    other = ToolAsked(id="1", name="b__y", server="", tool="", arguments={})
    assert (
        "* the model wants to call b__y, which does not exist"
        == texts(describe_tool_call(other))[0]
    )


@pytest.mark.parametrize(
    ("progress", "total", "message", "line"),
    [
        (1, 4, "socks", "  [######..................]  25% socks"),
        (5, 4, "", "  [########################] 100%"),
        (-1, 4, "", "  [........................]   0%"),
        (3, None, "files\x1b", "  … 3 files<U+001B>"),
        (3, 0, "", "  … 3"),
    ],
)
def test_progress_is_a_bar_whatever_a_server_says(progress, total, message, line):
    """Ours: figures that cannot be break nothing."""
    event = ToolRunning(id="1", progress=progress, total=total, message=message)

    assert line == format_progress(event)


def test_a_long_result_is_cut_and_says_how_to_see_the_rest():
    """Ours: what a tool gave does not push everything else off the screen."""
    event = ToolDone(
        id="1", name="a__x", result=result(TextContent(text="\n".join("abcdefghijklmnopqrst")))
    )

    lines = texts(describe_tool_outcome(event))

    assert ("* a__x is done", 14) == (lines[0], len(lines))
    assert "  … 8 more lines: /show" == lines[-1]
    failed = ToolDone(id="1", name="a__x", result=result(), failed=True, error="Denied")
    assert ["* a__x failed (Denied)"] == texts(describe_tool_outcome(failed))


def test_every_kind_of_content_has_its_line():
    """Ours: text behind a bar, the rest by what it is."""
    embedded = EmbeddedResource(resource=TextResourceContents(uri="a:1", text="inside"))
    given = result(
        TextContent(text="one\ntwo"),
        ImageContent(data="AAAA", mime_type="image/png"),
        ResourceLink(uri="a:2", name="x"),
        embedded,
        {"type": "odd"},
    )

    assert [
        "  | one",
        "  | two",
        "  | [image/png, 3 bytes]",
        "  | [resource a:2]",
        "  | inside",
        '  | {"type": "odd"}',
    ] == texts(describe_result(given))


def test_messages_of_a_prompt_say_who_speaks():
    """Ours: a prompt may speak for both sides."""
    messages = [
        SamplingMessage(role="user", content=TextContent(text="hi")),
        SamplingMessage(role="assistant", content=[ImageContent(data="", mime_type="image/png")]),
    ]

    assert [
        "* the prompt, as user",
        "  | hi",
        "* the prompt, as assistant",
        "  | [ImageContent]",
    ] == texts(describe_inserted(messages))


@pytest.mark.parametrize(
    ("why", "line"),
    [
        ("done", []),
        ("failed", ["  ! No answer: gone"]),
        ("length", ["  The answer was cut off at its length limit."]),
        ("budget", ["  The token budget is used up."]),
    ],
)
def test_an_end_that_is_none_says_why(why, line):
    """Ours: silence means that the model is done."""
    assert line == texts(describe_turn_end(Ended(why=why, reason="gone")))
