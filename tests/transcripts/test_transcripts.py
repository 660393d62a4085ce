"""Every conversation under this folder, held against a real server and the official schemas."""

import asyncio
from pathlib import Path

import pytest
from msgspec import Struct

import conversations
from isthmus import Accepted, Context, Server, ToolError
from isthmus.runtime.peer import Peer
from isthmus.testing.transcript import Mismatch, load, play
from isthmus.transports.memory import pair

HERE = Path(__file__).parent
CASES = [
    pytest.param(path.parent.name, conversation, id=f"{path.parent.name}/{conversation.name}")
    for path in sorted(HERE.glob("*/*.txt"))
    for conversation in load(path)
]


class Row(Struct):
    row: int


def shop():
    """A server with a tool that computes and one that asks."""
    server = Server("shop", version="1")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @server.tool
    async def book(date: str, ctx: Context) -> str:
        """Book."""
        match await ctx.elicit(f"Which row on {date}?", Row, key="seat"):
            case Accepted(Row(row)):
                return f"row {row} on {date}"
            case _:
                raise ToolError("not booked")

    return server


@pytest.mark.parametrize(("revision", "conversation"), CASES)
async def test_the_server_keeps_to_its_lines(revision, conversation):
    """What the transcript says is what goes over the wire, and it fits the schema."""
    near, far = pair()
    serving = asyncio.create_task(Peer(far, shop().router, side="server").run())
    wire = []
    try:
        async with asyncio.timeout(10):
            await play(conversation, near, lambda side, data: wire.append((side, data)))
    finally:
        await near.close()
        await serving
    conversations.validate(wire, revision, sides=("server",))


def test_there_are_conversations_for_every_revision():
    """No revision is left out (our promise)."""
    assert 5 == len({case.values[0] for case in CASES})


async def test_a_server_that_departs_from_its_lines_is_caught():
    """The runner itself can fail, and says where (our promise)."""
    wrong = load(HERE / "2025-11-25" / "negotiation.txt")[0]
    wrong.lines[1].message["result"]["protocolVersion"] = "2024-11-05"
    near, far = pair()
    serving = asyncio.create_task(Peer(far, shop().router, side="server").run())
    try:
        with pytest.raises(Mismatch, match=r"line 5: at \$\.result\.protocolVersion"):
            await play(wrong, near)
    finally:
        await near.close()
        await serving
