"""Lists that did not come: they are asked for again, and nothing is thought to be there without."""

import pytest

from isthmus.errors import CallTimedOut, ConnectionLost
from isthmus.host.errors import Unknown
from listed_shelf import Listing, Shelf, catalog, tool


@pytest.mark.covers("hostchat.catalog.relisted")
async def test_a_list_that_a_broken_connection_cut_off_is_no_list():
    """Ours: what was known stays known, and the next use of the server asks again."""
    listing = Listing(tool("x"))
    found = catalog(Shelf(a=listing))
    await found.on_ready("a", listing)
    listing.tools = [ConnectionLost("the line went dead")]
    with pytest.raises(ConnectionLost):
        await found.on_changed("a", "tools")

    assert ["a__x"] == [item.name for item in found.tools()]


@pytest.mark.covers("hostchat.catalog.relisted")
async def test_a_server_whose_first_list_was_cut_off_is_asked_again_by_the_next_call():
    """Ours: on the same connection, too: over HTTP each request has one of its own."""
    listing = Listing(ConnectionLost("reset"))
    found = catalog(Shelf(a=listing))
    with pytest.raises(Unknown, match="reset"):
        await found.find("a__x")
    listing.tools = [tool("x")]

    assert ("a", "x") == await found.find("a__x")


@pytest.mark.covers("hostchat.catalog.relisted")
async def test_a_list_that_did_not_come_in_time_is_asked_for_again_after_a_while():
    """Ours: one answer that was lost does not hide the tools of a server until it is restarted."""
    now = [1_000.0]
    listing = Listing(CallTimedOut("nothing came for 30 s"))
    found = catalog(Shelf(a=listing), clock=lambda: now[0])
    await found.on_ready("a", listing)
    listing.tools = [tool("x")]
    with pytest.raises(Unknown):
        await found.find("a__x")
    assert 1 == listing.asked
    now[0] += 30.0

    assert ("a", "x") == await found.find("a__x")
    assert ("a", "x") == await found.find("a__x")
    assert 2 == listing.asked
