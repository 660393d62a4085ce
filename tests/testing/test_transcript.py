"""Transcripts: how they are read, played, and how they fail."""

import asyncio
import contextlib

import pytest

from isthmus import Server
from isthmus.runtime.peer import Peer
from isthmus.testing import load, play
from isthmus.testing.transcript import Mismatch
from isthmus.transports.memory import open_pair

LIST = 'C {"id": 1, "method": "tools/list", "params": {"_meta": "<modern>"}}\n'


@pytest.fixture
def written(tmp_path):
    """The conversations of a transcript with these lines."""

    def read(text):
        path = tmp_path / "talk.txt"
        path.write_text(text, encoding="utf-8")
        return load(path)

    return read


@contextlib.asynccontextmanager
async def open_server():
    """The client's end of a channel to a server with one tool."""
    server = Server("transcribed", version="1")

    @server.tool
    def flag() -> bool:
        """Say yes."""
        return True

    near, far = open_pair()
    serving = asyncio.create_task(Peer(far, server.router, side="server").run())
    try:
        async with asyncio.timeout(10):
            yield near
    finally:
        await near.close()
        await serving


def test_conversations_have_names_and_numbered_lines(written):
    """Comments and empty lines are skipped (ours)."""
    first, second = written('# why\n\n## One\nC {"a": 1}\n# so\nS {"b": 2}\n## Two\nC {}\n')

    assert ("One", [(4, "C", {"a": 1}), (6, "S", {"b": 2})]) == (
        first.name,
        [(line.number, line.side, line.message) for line in first.lines],
    )
    assert ("Two", 1) == (second.name, len(second.lines))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("## One\nC {oops}\n", r"talk\.txt:2: Expecting property name"),
        ("## One\nX {}\n", r"talk\.txt:2: neither '##', '#', 'C \{' nor 'S \{': 'X \{\}'"),
        ('C {"id": 1}\n', r"talk\.txt:1: neither"),
    ],
    ids=["no json", "no side", "before any name"],
)
def test_a_line_that_is_nothing_says_where_it_is(written, text, says):
    """The file and the line (ours)."""
    with pytest.raises(ValueError, match=says):
        written(text)


async def test_a_conversation_that_goes_as_written_passes(written):
    """Placeholders take what is there, keep it, and stand for it later (ours)."""
    (talk,) = written(
        "## Names come back\n"
        + LIST
        + 'S {"id": 1, "result": {"tools": [{"name": "<tool>", "...": ""}], "...": ""}}\n'
        'C {"id": 2, "method": "tools/call", "params": {"name": "<tool>", "_meta": "<modern>"}}\n'
        'S {"id": 2, "result": {"content": "<any>", "structuredContent": {"result": true},\n'.rstrip(
            "\n"
        )
        + ' "resultType": "complete", "_meta": "<any>"}}\n'
    )
    said = []
    async with open_server() as channel:
        await play(talk, channel, lambda side, data: said.append((side, data)))

    assert ["C", "S", "C", "S"] == [side for side, _ in said]
    assert b'"name":"flag"' in said[2][1]


ANSWER = '"tools": "<any>", "ttlMs": 0, "cacheScope": "private", "resultType": "complete"'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            '{"id": 1, "result": {"tools": [], "...": ""}}',
            r"at \$\.result\.tools: expected 0 items",
        ),
        ('{"id": 1, "result": {"nope": 1, "...": ""}}', r"at \$\.result: no member 'nope'"),
        (f'{{"id": 1, "result": {{{ANSWER}}}}}', r"at \$\.result: unexpected members \['_meta'\]"),
        ('{"id": true, "result": "<any>"}', r"at \$\.id: expected true, got 1"),
        (
            '{"id": 1, "result": {"ttlMs": "<x>", "cacheScope": "<x>", "...": ""}}',
            r'at \$\.result\.cacheScope: expected 0, got "private"',
        ),
    ],
    ids=["items", "missing", "unexpected", "bool", "kept"],
)
async def test_a_server_that_says_something_else_is_caught_at_the_place(written, line, says):
    """The name, the line and the JSON path; and what the server said (ours)."""
    (talk,) = written(f"## Lists\n{LIST}S {line}\n")
    async with open_server() as channel:
        with pytest.raises(Mismatch, match=f"^Lists, line 3: {says}(.|\n)*the server said"):
            await play(talk, channel)


async def test_a_server_that_hangs_up_is_caught(written):
    """Silence at the end is no answer (ours)."""
    (talk,) = written('## Gone\nS {"id": 1, "result": {}}\n')
    near, far = open_pair()
    await far.close()

    with pytest.raises(Mismatch, match="line 2: the server hung up"):
        await play(talk, near)
