"""Contract of key-value stores: versions, times that end, order, and many writers."""

import asyncio

import pytest

from isthmus.store.kv import KVEntry

ODD_KEYS = [" ", "a/b", "ä", "☃/€", "\U0001f600", "a\0b", "*", "[a]?", "%_", "a\nb", "x" * 900]


async def test_what_is_put_is_got(store):
    """Ours: a value is there under its key, and under no other."""
    version = await store.kv.put("a", b"1")

    assert KVEntry(b"1", version) == await store.kv.get("a")
    assert await store.kv.get("b") is None


async def test_what_is_put_is_got_by_others(open_store):
    """Ours: all stores over one engine have the same values and versions."""
    one, other = await open_store(), await open_store()
    version = await one.kv.put("a", b"1")

    assert KVEntry(b"1", version) == await other.kv.get("a")
    assert await one.kv.cas("a", b"2", version) is not None
    assert await other.kv.cas("a", b"3", version) is None


async def test_every_write_has_a_version_of_its_own(store):
    """Ours: who kept a version can tell that somebody wrote since, even the same value."""
    versions = [await store.kv.put("a", b"1"), await store.kv.put("a", b"1")]

    assert 2 == len(set(versions))
    assert min(versions) > 0


async def test_a_version_is_not_used_again_after_a_delete(store):
    """Ours: a holder who was deleted meanwhile does not take another's entry for its own."""
    versions = []
    for _ in range(5):
        versions.append(await store.kv.put("a", b"1"))
        await store.kv.delete("a")
    versions.append(await store.kv.cas("a", b"1", 0))

    assert 6 == len(set(versions))


async def test_a_version_is_not_used_again_after_an_end(engine, store):
    """Ours: nor where the entry's time was over."""
    first = await store.kv.put("a", b"1", engine.span)
    await engine.pass_time(engine.span)
    second = await store.kv.cas("a", b"1", 0)

    assert second is not None
    assert first != second


async def test_the_first_of_two_writers_wins(store):
    """Ours: a write holds only against the version its writer has read."""
    first = await store.kv.cas("a", b"1", 0)
    second = await store.kv.cas("a", b"2", first)

    assert await store.kv.cas("a", b"3", 0) is None
    assert await store.kv.cas("a", b"4", first) is None
    assert KVEntry(b"2", second) == await store.kv.get("a")


async def test_what_is_not_there_has_version_nought(store):
    """Ours: nothing is made where somebody deleted meanwhile."""
    version = await store.kv.put("a", b"1")
    await store.kv.delete("a")

    assert await store.kv.cas("a", b"2", version) is None
    assert await store.kv.get("a") is None
    assert await store.kv.cas("a", b"3", 0) is not None


async def test_only_what_is_meant_is_deleted(store):
    """Ours: a delete says whether something went, and spares what was written since."""
    old = await store.kv.put("a", b"1")
    new = await store.kv.put("a", b"2")

    assert not await store.kv.delete("a", old)
    assert await store.kv.delete("a", new)
    assert not await store.kv.delete("a", new)
    assert not await store.kv.delete("a")


async def test_an_entry_is_gone_when_its_time_is_over(engine, store):
    """Ours: nobody sees an entry after its end, in whichever way they look."""
    version = await store.kv.put("a", b"1", engine.span)
    assert KVEntry(b"1", version) == await store.kv.get("a")
    await engine.pass_time(engine.span)

    assert await store.kv.get("a") is None
    assert [] == await store.kv.scan("", "", 10)
    assert not await store.kv.delete("a")
    assert await store.kv.cas("a", b"2", version) is None


async def test_an_entry_that_is_over_is_nothing_to_a_writer(engine, store):
    """Ours: whoever wants to be first is, once the entry before has ended."""
    await store.kv.put("a", b"1", engine.span)
    assert await store.kv.cas("a", b"2", 0) is None
    await engine.pass_time(engine.span)

    assert await store.kv.cas("a", b"2", 0) is not None


async def test_every_write_sets_the_time_anew(engine, store):
    """Ours: the end of an entry is that of its last write, whether later, sooner or never."""
    span = engine.span
    for key, before, after in (
        ("later", span, 1000 * span),
        ("sooner", 1000 * span, span),
        ("never", span, None),
    ):
        version = await store.kv.put(key, b"1", before)
        await store.kv.cas(key, b"2", version, after)
    await engine.pass_time(1.5 * span)

    assert ["later", "never"] == [key for key, _ in await store.kv.scan("", "", 10)]


async def test_a_scan_goes_on_where_the_last_one_ended(store):
    """Ours: entries come in the order of their keys, page by page, those of one prefix only."""
    for key in ("b/2", "a/9", "b/1", "b/3", "c/0", "b"):
        await store.kv.put(key, key.encode())
    first = await store.kv.scan("b/", "", 2)
    second = await store.kv.scan("b/", first[-1][0], 2)

    assert ["b/1", "b/2"] == [key for key, _ in first]
    assert [("b/3", b"b/3")] == [(key, entry.value) for key, entry in second]
    assert [] == await store.kv.scan("b/", "b/3", 2)
    assert [] == await store.kv.scan("d", "", 2)


async def test_a_scan_gives_versions_that_hold(store):
    """Ours: what was scanned can be written without being read again."""
    await store.kv.put("a", b"1")
    [(key, entry)] = await store.kv.scan("", "", 10)

    assert await store.kv.cas(key, b"2", entry.version) is not None


async def test_a_scan_passes_over_what_is_over(engine, store):
    """Ours: a page is full of what is there, whatever stood between."""
    for number in range(6):
        await store.kv.put(f"k{number}", b"", engine.span if number % 2 else None)
    await engine.pass_time(engine.span)

    assert ["k0", "k2"] == [key for key, _ in await store.kv.scan("k", "", 2)]


@pytest.mark.parametrize("key", ODD_KEYS)
async def test_any_text_is_a_key(store, key):
    """Ours: names that others choose, such as tenants' and users', mean nothing to the engine."""
    version = await store.kv.put(key, b"1")

    assert KVEntry(b"1", version) == await store.kv.get(key)
    assert [key] == [found for found, _ in await store.kv.scan(key, "", 10)]
    assert await store.kv.delete(key, version)


async def test_odd_keys_are_apart_and_in_order(store):
    """Ours: keys are ordered by their characters' numbers, as Python orders them."""
    for key in ODD_KEYS:
        await store.kv.put(key, key.encode())
    found = await store.kv.scan("", "", 100)

    assert sorted(ODD_KEYS) == [key for key, _ in found]
    assert sorted(key.encode() for key in ODD_KEYS) == [entry.value for _, entry in found]


@pytest.mark.parametrize("value", [b"", b"\0", bytes(range(256)), b"\r\n*1\r\n", b"x" * 3_000_000])
async def test_any_bytes_are_a_value(store, value):
    """Ours: a value comes back byte for byte, whether it is empty or large."""
    version = await store.kv.put("a", value)

    assert KVEntry(value, version) == await store.kv.get("a")
    assert [("a", KVEntry(value, version))] == await store.kv.scan("a", "", 1)


async def test_one_of_many_who_come_at_once_is_first(open_store):
    """Ours: exactly one makes the entry, over however many stores they come."""
    stores = [await open_store() for _ in range(3)]
    won = await asyncio.gather(*(stores[n % 3].kv.cas("a", b"%d" % n, 0) for n in range(60)))
    [winner] = [n for n, version in enumerate(won) if version is not None]

    assert KVEntry(b"%d" % winner, won[winner]) == await stores[0].kv.get("a")


async def test_no_increment_of_many_writers_is_lost(open_store):
    """Ours: who reads, adds and compares counts right, over however many stores."""
    stores = [await open_store() for _ in range(3)]

    async def increment(kv):
        while True:
            entry = await kv.get("n")
            number, version = (int(entry.value), entry.version) if entry else (0, 0)
            if await kv.cas("n", b"%d" % (number + 1), version) is not None:
                return

    await asyncio.gather(*(increment(stores[n % 3].kv) for n in range(30)))

    assert b"30" == (await stores[0].kv.get("n")).value


async def test_a_store_that_was_closed_can_be_opened_again(open_store):
    """Ours: closing lets go of the engine, and loses nothing."""
    store = await open_store()
    await store.kv.put("a", b"1")
    await store.close()
    await store.close()
    await store.open()
    await store.open()

    assert b"1" == (await store.kv.get("a")).value
