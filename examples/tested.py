"""Tests of the bookings server, with the pytest plugin of isthmus: ``pytest tested.py``.

``pytest tested.py --mcp-target=https://…/mcp`` runs what asks for no server in particular against
one that is deployed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bookings
import pytest

from isthmus import Accepted, Declined
from isthmus.errors import ToolFailed
from isthmus.testing import connect, every_transport, script


@pytest.fixture(autouse=True)
def ledger(monkeypatch):
    """A ledger of its own for each test."""
    fresh = bookings.Ledger()
    monkeypatch.setattr(bookings, "ledger", fresh)
    return fresh


@pytest.fixture
def mcp_target(mcp_target):
    """The server under test: that of ``--mcp-target``, or else the one of this folder."""
    return mcp_target or bookings.server


@pytest.mark.mcp_revisions(needs="elicitation/create")
async def test_booking_asks_for_the_seat_and_holds_it_once(mcp_client, scripted_user, ledger):
    """One question, one hold, one booking, whatever the revision."""
    scripted_user.answer_with(Accepted({"row": 12, "window": True}))
    client = await mcp_client(bookings.server)
    result = await client.call_tool("book", {"date": "2026-05-01"})

    assert bookings.Booking("B-2026-05-01-12", bookings.Seat(12, window=True)) == result.parse(
        bookings.Booking
    )
    assert 1 == ledger.holds
    assert ["Which seat on 2026-05-01?"] == [one.message for one in scripted_user.questions]


async def test_who_declines_books_nothing(mcp_client, scripted_user, ledger):
    """The model reads why."""
    scripted_user.answer_with(Declined())
    client = await mcp_client(bookings.server)
    result = await client.call_tool("book", {"date": "2026-05-01"})

    with pytest.raises(ToolFailed, match="no seat was chosen"):
        result.parse(bookings.Booking)
    assert {} == ledger.bookings


@pytest.mark.mcp_asyncio
@every_transport
async def test_a_price_is_a_number_over_every_transport(transport):
    """Memory, pipes, sockets and HTTP carry the same; without fixtures, ``connect`` does it."""
    async with connect(bookings.server, transport=transport, elicit=script()) as client:
        assert 40 == (await client.call_tool("price", {"kind": "warm"})).parse(int)


async def test_callers_find_what_they_know(assert_tools):
    """Tools, resources and prompts are those of ``__mcp__/``; changing them is said aloud."""
    await assert_tools()


async def test_the_protocol_is_kept(mcp_lint):
    """Every rule of the specification that ``isthmus check`` knows."""
    await mcp_lint(revisions=["2026-07-28"], timeout=1)
