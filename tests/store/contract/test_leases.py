"""Contract of leases: one holder at a time, until its time is over."""

import asyncio

from isthmus.store.lease import Leases


async def test_one_of_many_holds_a_name(open_store):
    """Ours: whoever comes second is told so, and who holds it."""
    all_leases = [Leases((await open_store()).kv) for _ in range(3)]
    won = await asyncio.gather(
        *(all_leases[n % 3].acquire("job", f"node {n}", 60.0) for n in range(12))
    )
    [lease] = [lease for lease in won if lease is not None]

    assert lease == await all_leases[1].find("job")


async def test_a_lease_ends_unless_it_is_renewed(engine, store):
    """Ours: a holder that stops is not waited for."""
    leases, span = Leases(store.kv), engine.span
    kept = await leases.acquire("kept", "a", span)
    lost = await leases.acquire("lost", "a", span)
    kept = await leases.renew(kept, 100 * span)
    await engine.pass_time(span)

    assert kept == await leases.find("kept")
    assert await leases.find("lost") is None
    assert await leases.renew(lost, span) is None
    assert await leases.acquire("lost", "b", span) is not None


async def test_who_was_overtaken_cannot_renew_or_release(store):
    """Ours: each change of holder is told from every other, also one that came back."""
    leases = Leases(store.kv)
    first = await leases.acquire("standing", "a", 60.0)
    second = await leases.take_over("standing", "b", 60.0)

    assert await leases.renew(first, 60.0) is None
    assert not await leases.release(first)
    third = await leases.take_over("standing", "a", 60.0)
    assert await leases.renew(first, 60.0) is None
    assert await leases.renew(second, 60.0) is None
    assert await leases.release(third)
    assert await leases.find("standing") is None


async def test_leases_are_listed_by_prefix(store):
    """Ours: nodes are found by what their leases are called."""
    leases = Leases(store.kv)
    for name in ("node/b", "node/a", "nodes", "other"):
        await leases.acquire(name, name.upper(), 60.0)
    found = await leases.list("node/", 10)

    assert [("node/a", "NODE/A"), ("node/b", "NODE/B")] == [(f.name, f.holder) for f in found]
    assert ["node/a"] == [lease.name for lease in await leases.list("node/", 1)]


async def test_a_holder_that_is_no_text_is_read_all_the_same(store):
    """Ours: a store that others write to cannot end a node."""
    leases = Leases(store.kv)
    await store.kv.put("lease/a", b"\xff\xfe")

    assert "\ufffd\ufffd" == (await leases.find("a")).holder
    assert ["\ufffd\ufffd"] == [lease.holder for lease in await leases.list("", 10)]
