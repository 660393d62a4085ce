"""Every conversation under this folder, held against a real server and the official schemas."""

import asyncio
from pathlib import Path

import pytest

from isthmus.revisions import BY_NAME, METHODS, Era
from isthmus.runtime.peer import Peer
from isthmus.testing.transcript import Mismatch, load, play
from isthmus.transports.memory import open_pair
from support.schemas import conversations
from support.transcripts.shop import make_shop, make_visits
from support.transcripts.tasks import make_bakery, make_pantry

HERE = Path(__file__).parent
SERVERS = {
    "client-tasks": make_pantry,
    "tasks": make_bakery,
    "visits": make_visits,
}  # by the transcript's name; the others talk to the shop
CASES = [
    pytest.param(
        path.parent.name,
        conversation,
        SERVERS.get(path.stem, make_shop),
        id=f"{path.parent.name}/{conversation.name}",
    )
    for path in sorted(HERE.glob("*/*.txt"))
    for conversation in load(path)
]


# Questions of the modern era are members of a result, not messages.
SAID_IN_RESULTS = {
    Era.LEGACY: set(),
    Era.MODERN: {"elicitation/create", "sampling/createMessage", "roots/list"},
}


@pytest.mark.parametrize(("revision", "conversation", "server"), CASES)
async def test_the_server_keeps_to_its_lines(revision, conversation, server):
    """What the transcript says is what goes over the wire, and it fits the schema."""
    near, far = open_pair()
    there = server()
    serving = asyncio.create_task(Peer(far, there.router, side="server").run())
    wire = []
    try:
        async with asyncio.timeout(10):
            await play(conversation, near, lambda side, data: wire.append((side, data)))
    finally:
        await near.close()
        await serving
        await there.close()
    conversations.validate(wire, revision, sides=("server",))


def test_there_are_conversations_for_every_revision():
    """No revision is left out (our promise)."""
    assert 5 == len({case.values[0] for case in CASES})


@pytest.mark.parametrize("era", Era)
def test_there_are_lines_for_every_method_of_either_era(era):
    """Whatever a revision can say is said in a transcript of its era (our promise)."""
    revisions = [revision for revision in BY_NAME.values() if revision.era is era]
    there = {
        name
        for each in revisions
        for sent in (each.methods, each.extended_methods)
        for names in sent.values()
        for name in names
    }
    said = {
        line.message["method"]
        for revision, conversation, _ in (case.values for case in CASES)
        for line in conversation.lines
        if BY_NAME[revision].era is era and "method" in line.message
    }

    assert set() == (there & METHODS.keys()) - said - SAID_IN_RESULTS[era]


async def test_a_server_that_departs_from_its_lines_is_caught():
    """The runner itself can fail, and says where (our promise)."""
    wrong = load(HERE / "2025-11-25" / "negotiation.txt")[0]
    wrong.lines[1].message["result"]["protocolVersion"] = "2024-11-05"
    near, far = open_pair()
    serving = asyncio.create_task(Peer(far, make_shop().router, side="server").run())
    try:
        with pytest.raises(Mismatch, match=r"line 5: at \$\.result\.protocolVersion"):
            await play(wrong, near)
    finally:
        await near.close()
        await serving
