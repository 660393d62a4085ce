"""Several calls in one array, over every transport; refused where the revision has none."""

import json

import pytest

from isthmus import Context, Server
from isthmus.errors import InvalidParams, NotInRevision
from isthmus.testing import connect, every_revision, every_transport

BATCHING = "2025-03-26"


@pytest.fixture
def server():
    """A server that adds, and looks around."""
    made = Server("batched")

    @made.tool
    async def add(a: int, b: int, ctx: Context) -> int:
        """Add, and say so."""
        await ctx.progress(1)
        return a + b

    @made.tool
    async def places(ctx: Context) -> int:
        """Count the client's roots."""
        return len(await ctx.roots())

    return made


@pytest.mark.covers("batching.sent.one-array", "batching.received.answered-as-array")
@every_transport
async def test_calls_sent_as_one_array_each_get_their_own_answer(server, transport):
    """MAY send, MUST receive batches (spec 2025-03-26 basic#batching)."""
    wire, heard = [], []
    async with connect(server, revision=BATCHING, transport=transport, wire=wire) as client:
        before = len(wire)
        results = await client.batch(
            [
                client.call_tool("add", {"a": 1, "b": 2}, on_progress=heard.append),
                client.call_tool("nothing"),
                client.call_tool("add", {"a": 3, "b": 4}),
            ]
        )
        sent = [json.loads(data) for side, data in wire[before:] if side == "client"]

    assert ["3", "7"] == [results[0].text, results[2].text]
    assert isinstance(results[1], InvalidParams)
    assert 1 == len(heard)
    assert [3] == [len(array) for array in sent]


@every_transport
async def test_a_batched_call_may_ask_and_be_cancelled(server, transport):
    """Ours: a member is a call like any other."""
    async with connect(
        server, revision=BATCHING, transport=transport, roots=["file:///a"]
    ) as client:
        asked, late = await client.batch(
            [client.call_tool("places"), client.call_tool("places", timeout=20)]
        )

    assert ["1", "1"] == [asked.text, late.text]


@pytest.mark.covers("batching.sent.one-array")
@every_revision
async def test_no_other_revision_sends_one(server, revision):
    """Batching came with 2025-03-26 and went with 2025-06-18 (their changelogs)."""
    async with connect(server, revision=revision) as client:
        calls = [client.call_tool("add", {"a": 1, "b": 2}) for _ in range(2)]
        if revision == BATCHING:
            assert ["3", "3"] == [result.text for result in await client.batch(calls)]
        else:
            with pytest.raises(NotInRevision, match=revision):
                await client.batch(calls)
