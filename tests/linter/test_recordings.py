"""Recordings of others, in the forms they come in."""

import json
from pathlib import Path

import pytest

from isthmus.errors import UsageError
from isthmus.linter.doctor.recordings import read_recordings
from isthmus.linter.rules.catalog import RULES, judge
from isthmus.revisions import BY_NAME

FACTS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "a", "_meta": FACTS},
}
WRONG = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": "text"}}
EXPECTED = [("messages.shape", "the answer to tools/call $.result.content", "server", "2026-07-28")]

TRANSCRIPT = """## A call
# a comment
C {"id": 1, "method": "tools/call", "params": {"name": "a", "_meta": "<modern>"}}
S {"id": 1, "result": {"resultType": "complete", "content": "text"}}
"""


def found(text, **how):
    return [
        (f.rule, f.where, f.side, f.revision)
        for conversation in read_recordings(text, **how)
        for f in judge(conversation, RULES)
    ]


@pytest.mark.covers("linter.recordings.lines-and-sides")
@pytest.mark.parametrize(
    "text",
    [
        TRANSCRIPT,
        f"{json.dumps(ASKED)}\n\n{json.dumps(WRONG)}\n",
        json.dumps([ASKED, WRONG]),
        json.dumps([ASKED, WRONG], indent=2),
        "\n".join(
            json.dumps(line)
            for line in (
                {"direction": "client-to-server", "message": ASKED},
                {"direction": "server-to-client", "message": WRONG},
            )
        ),
        "\n".join(
            json.dumps(line)
            for line in (
                {"dir": "sent", "time": 1, "raw": json.dumps(ASKED)},
                {"dir": "received", "time": 2, "raw": json.dumps(WRONG)},
            )
        ),
    ],
    ids=["transcript", "lines", "array", "indented", "wrapped", "raw"],
)
def test_every_form_says_the_same(text):
    """Ours: the side follows from the form, or from what is asked and answered."""
    assert EXPECTED == found(text)


def test_a_finding_has_its_line():
    """Ours: lines of the file, also behind comments and headings."""
    (conversation,) = read_recordings(TRANSCRIPT)

    assert [4] == [f.number for f in judge(conversation, RULES)]


def test_one_message_stands_alone():
    """Ours: a message by itself is held to the revision that it states, or that is given."""
    assert [] == found(json.dumps(ASKED))
    assert ["messages.shape"] == [
        rule
        for rule, *_ in found('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
                              revision=BY_NAME["2025-11-25"])
    ]  # fmt: skip


def test_the_revision_is_that_of_the_handshake():
    """Ours: what a session is held to is what it agreed on."""
    (conversation,) = read_recordings(
        'C {"id": 0, "method": "initialize", "params": {"protocolVersion": "2026-07-28", '
        '"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}\n'
        'S {"id": 0, "result": {"protocolVersion": "2025-03-26", "capabilities": {}, '
        '"serverInfo": {"name": "b", "version": "1"}}}\n'
        'C {"id": 1, "method": "ping"}\n'
        'S {"id": 1, "result": {}}'
    )

    assert "2025-03-26" == conversation.said[-1].revision.name
    assert [] == list(judge(conversation, RULES))


def test_only_one_side_is_judged_where_that_is_wanted():
    """Ours: a client's nonsense may be on purpose."""
    text = 'C {"id": null, "method": "ping"}\nS {"id": 7, "result": {}}'

    assert {"client", "server"} == {side for _, _, side, _ in found(text)}
    assert {"server"} == {side for _, _, side, _ in found(text, judged=("server",))}


def test_placeholders_of_a_transcript_fit_anywhere():
    """Ours: they stand for any value, and '...' for members that are not listed."""
    text = (
        'C {"id": 1, "method": "tools/call", "params": {"name": "a", "_meta": "<modern>"}}\n'
        'S {"id": 1, "result": {"resultType": "<any>", "content": "<content>", "...": ""}}'
    )

    assert [] == found(text)


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]"])
def test_what_holds_no_messages_is_refused(text):
    """Ours: exit code 2, and what is taken."""
    with pytest.raises(UsageError, match="no messages"):
        read_recordings(text)


TRANSCRIPTS = sorted((Path(__file__).parents[1] / "transcripts").glob("*/*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_our_own_server_says_in_transcripts_breaks_no_must(path):
    """Ours: the transcripts are held to by tests of their own, and so is the linter."""
    conversations = read_recordings(path.read_text(encoding="utf-8"), judged=("server",))
    errors = [f for c in conversations for f in judge(c, RULES) if f.severity == "error"]

    assert [] == errors
