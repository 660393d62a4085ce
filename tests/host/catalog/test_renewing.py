"""Lists fetched anew: in rounds, shared, and with pauses for a server that never has enough."""

import asyncio

import pytest

from hosted_fleet import virtual
from isthmus.errors import ConnectionLost
from isthmus.host.catalog.renewing import RENEWALS, Renewing
from isthmus.testing.faults import until
from listed_shelf import Listing, Shelf, catalog, tool


class Restless(Listing):
    """Says that its list is another one each time that it is listed."""

    changed = staticmethod(lambda: None)

    async def list_tools(self, *, fresh=False):
        self.changed()
        return await super().list_tools(fresh=fresh)


@pytest.mark.covers("hostchat.catalog.storm")
def test_a_server_whose_list_always_changes_is_listed_every_other_second():
    """Ours: thirty times at once, and then no more than that in a minute; whoever waits is told."""

    async def main():
        listing = Restless(tool("x"))
        found = catalog(Shelf(a=listing))
        await found.on_ready("a", listing)
        tasks = set()
        listing.changed = lambda: tasks.add(asyncio.ensure_future(found.on_changed("a", "tools")))
        await found.on_changed("a", "tools")
        await asyncio.sleep(600.0)
        listed = listing.asked
        async with asyncio.timeout(5.0):
            await found.on_changed("a", "tools")
        await found.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        return listed

    assert 1 + RENEWALS.amount + 600 * RENEWALS.amount / RENEWALS.seconds == pytest.approx(
        virtual(main()), abs=2
    )


async def test_who_asks_while_a_round_is_under_way_waits_for_the_one_after_it():
    """Ours: what was listed before somebody asked may be what the server had before that."""
    gates, rounds = [asyncio.Event(), asyncio.Event()], []

    async def fetch(wanted):
        rounds.append(wanted)
        await gates[len(rounds) - 1].wait()

    renewing = Renewing(fetch)
    first = asyncio.ensure_future(renewing.renew("tools"))
    await until(lambda: rounds)
    second = asyncio.ensure_future(renewing.renew("tools", "prompts"))
    gates[0].set()
    await first
    await until(lambda: len(rounds) == 2)

    assert (False, [{"tools"}, {"tools", "prompts"}]) == (second.done(), rounds)
    gates[1].set()
    await second


async def test_what_goes_wrong_is_told_to_those_who_wait_and_ends_nothing():
    """Ours: the next round is made all the same."""
    answers = [ConnectionLost("gone"), None]

    async def fetch(_wanted):
        answer = answers.pop(0)
        if answer:
            raise answer

    renewing = Renewing(fetch)
    with pytest.raises(ConnectionLost, match="gone"):
        await renewing.renew("tools")
    await renewing.renew("tools")

    assert [] == answers


async def test_closing_ends_the_round_and_those_who_wait():
    """Ours: nobody waits for what nobody fetches."""

    async def fetch(_wanted):
        await asyncio.Event().wait()

    renewing = Renewing(fetch)
    waiting = [asyncio.ensure_future(renewing.renew("tools"))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.append(asyncio.ensure_future(renewing.renew("tools")))
    await asyncio.sleep(0)
    await renewing.close()
    await asyncio.wait(waiting)

    assert [True, True] == [one.cancelled() for one in waiting]
