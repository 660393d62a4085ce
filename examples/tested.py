"""Tests of the bookings server: ``pytest tested.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bookings
import pytest

from isthmus import Accepted, Declined
from isthmus.errors import ToolFailed
from isthmus.revisions import Feature
from isthmus.testing import connect, every_revision, every_transport, script


@pytest.fixture(autouse=True)
def ledger(monkeypatch):
    """A ledger of its own for each test."""
    fresh = bookings.Ledger()
    monkeypatch.setattr(bookings, "ledger", fresh)
    return fresh


@every_revision(Feature.ELICITATION_FORM)
async def test_booking_asks_for_the_seat_and_holds_it_once(ledger, revision):
    """One question, one hold, one booking, whatever the revision."""
    user = script(Accepted({"row": 12, "window": True}))
    async with connect(bookings.server, revision=revision, elicit=user) as client:
        result = await client.call_tool("book", {"date": "2026-05-01"})

    assert bookings.Booking("B-2026-05-01-12", bookings.Seat(12, window=True)) == result.parse(
        bookings.Booking
    )
    assert 1 == ledger.holds
    assert ["Which seat on 2026-05-01?"] == [question.message for question in user.questions]


async def test_who_declines_books_nothing(ledger):
    """The model reads why."""
    async with connect(bookings.server, elicit=script(Declined())) as client:
        result = await client.call_tool("book", {"date": "2026-05-01"})

    with pytest.raises(ToolFailed, match="no seat was chosen"):
        result.parse(bookings.Booking)
    assert {} == ledger.bookings


@every_transport
async def test_a_price_is_a_number_over_every_transport(transport):
    """Memory, pipes, sockets and HTTP carry the same."""
    async with connect(bookings.server, transport=transport) as client:
        assert 40 == (await client.call_tool("price", {"kind": "warm"})).parse(int)
