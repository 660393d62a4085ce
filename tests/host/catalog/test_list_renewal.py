"""Lists fetched anew: in rounds, shared, and with pauses for a server that never has enough."""

import asyncio

import pytest

from isthmus.errors import ConnectionLost
from isthmus.host.catalog.lists import RENEWAL_RATE, ListRenewal
from isthmus.testing.faults import until
from support.host.fleet import run_virtual
from support.host.listed_servers import ClientShelf, ListedServer, make_catalog, plain_tool


class Restless(ListedServer):
    """Says that its list is another one each time that it is listed."""

    changed = staticmethod(lambda: None)

    async def list_tools(self, *, fresh=False):
        self.changed()
        return await super().list_tools(fresh=fresh)


@pytest.mark.covers("hostchat.catalog.storm")
def test_a_server_whose_list_always_changes_is_listed_every_other_second():
    """Ours: thirty times at once, and then no more than that in a minute; whoever waits is told."""

    async def main():
        listing = Restless(plain_tool("x"))
        found = make_catalog(ClientShelf(a=listing))
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

    assert (
        1 + RENEWAL_RATE.amount + 600 * RENEWAL_RATE.amount / RENEWAL_RATE.seconds
        == pytest.approx(run_virtual(main()), abs=2)
    )


@pytest.mark.covers("hostchat.catalog.one-pending")
async def test_however_often_a_server_says_so_one_round_is_pending():
    """Ours: a thousand notices make no thousand tasks, and the other servers wait for nothing."""
    listing = Restless(plain_tool("x"))
    found = make_catalog(ClientShelf(a=listing))
    await found.on_ready("a", listing)
    before = len(asyncio.all_tasks())
    told = [found.changed("a", kind) for _ in range(1_000) for kind in ("tools", "resources")]
    tasks = len(asyncio.all_tasks()) - before
    await found.settle("a", "tools", tells=True)

    assert all(told)
    assert 1 == tasks
    assert 2 == listing.asked


async def test_a_list_that_is_what_it_was_is_put_together_no_second_time():
    """Ours: what a server repeats costs the views of all servers nothing, nor a write."""
    listing = ListedServer(plain_tool("x", meta={"a": 1}), plain_tool("y"))
    found = make_catalog(ClientShelf(a=listing))
    await found.on_ready("a", listing)
    view, listed = found.view(""), found.listed("a")
    listing.tools = [plain_tool("x", meta={"a": 1}), plain_tool("y")]
    await found.on_changed("a", "tools")
    same = found.view("") is view and found.listed("a") is listed
    listing.tools = [plain_tool("x", meta={"a": True}), plain_tool("y")]
    await found.on_changed("a", "tools")

    assert same
    assert True is found.tool("a", "x").meta["a"]


@pytest.mark.covers("hostchat.catalog.asked-again")
async def test_a_list_is_settled_without_asking_unless_its_server_has_said_something():
    """Ours: one that never says so is asked where its list is older than half a minute."""
    now = [1_000.0]
    listing = ListedServer(plain_tool("x"))
    found = make_catalog(ClientShelf(a=listing), clock=lambda: now[0])
    await found.on_ready("a", listing)
    for _ in range(100):
        await found.settle("a", "tools", tells=True)
        await found.settle("a", "tools", tells=False)
    once = listing.asked
    now[0] += 3_600.0
    await found.settle("a", "tools", tells=True)
    told = listing.asked
    found.changed("a", "tools")
    await found.settle("a", "tools", tells=True)
    changed = listing.asked
    now[0] += 31.0
    await found.settle("a", "tools", tells=False)

    assert [1, 1, 2, 3] == [once, told, changed, listing.asked]


async def test_who_asks_while_a_round_is_under_way_waits_for_the_one_after_it():
    """Ours: what was listed before somebody asked may be what the server had before that."""
    gates, rounds = [asyncio.Event(), asyncio.Event()], []

    async def fetch(wanted):
        rounds.append(wanted)
        await gates[len(rounds) - 1].wait()

    renewing = ListRenewal(fetch)
    first = asyncio.ensure_future(renewing.renew("tools"))
    await until(lambda: rounds)
    second = asyncio.ensure_future(renewing.renew("tools", "prompts"))
    gates[0].set()
    await first
    await until(lambda: len(rounds) == 2)

    assert [{"tools"}, {"tools", "prompts"}] == rounds
    assert not second.done()
    gates[1].set()
    await second


async def test_what_goes_wrong_is_told_to_those_who_wait_and_ends_nothing():
    """Ours: the next round is made all the same."""
    answers = [ConnectionLost("gone"), None]

    async def fetch(_wanted):
        answer = answers.pop(0)
        if answer:
            raise answer

    renewing = ListRenewal(fetch)
    with pytest.raises(ConnectionLost, match="gone"):
        await renewing.renew("tools")
    await renewing.renew("tools")

    assert [] == answers


async def test_closing_ends_the_round_and_those_who_wait():
    """Ours: nobody waits for what nobody fetches."""

    async def fetch(_wanted):
        await asyncio.Event().wait()

    renewing = ListRenewal(fetch)
    waiting = [asyncio.ensure_future(renewing.renew("tools"))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.append(asyncio.ensure_future(renewing.renew("tools")))
    await asyncio.sleep(0)
    await renewing.close()
    await asyncio.wait(waiting)

    assert [True, True] == [one.cancelled() for one in waiting]
