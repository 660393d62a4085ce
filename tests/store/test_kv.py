"""Values by key in memory: its room and its clock; what holds for all engines is in contract/."""

import pytest

from isthmus.errors import UsageError
from isthmus.store.kv import SMALL_VALUE_BYTES, KVEntry, MemoryKV, StoreFull
from support.clock import ManualClock


async def test_an_entry_is_gone_when_its_time_is_over():
    """Ours: nobody sees an entry at or after its end, in whichever way they look."""
    clock = ManualClock(100.0)
    store = MemoryKV(clock=clock)
    version = await store.put("a", b"1", ttl=5.0)
    clock.now += 4.9
    there = await store.get("a")
    clock.now += 0.1

    assert KVEntry(b"1", version) == there
    assert await store.get("a") is None
    assert [] == await store.scan("", "", 10)
    assert 0 == len(store)
    assert await store.cas("a", b"2", version) is None


async def test_a_full_store_says_so_and_keeps_what_it_has():
    """Ours: memory is bounded, and what is there can still be changed and deleted."""
    clock = ManualClock(100.0)
    store = MemoryKV(most=2, clock=clock)
    await store.put("a", b"1", ttl=1.0)
    await store.put("b", b"1")

    with pytest.raises(StoreFull, match="2 entries"):
        await store.put("c", b"1")
    await store.put("b", b"2")
    clock.now += 1.0
    await store.put("c", b"1")

    assert ["b", "c"] == [key for key, _ in await store.scan("", "", 10)]


async def test_all_values_together_are_bounded():
    """Ours: entries may be few and large; what frees room, or is small, is taken all the same."""
    store = MemoryKV(size=3 * SMALL_VALUE_BYTES)
    await store.put("a", b"x" * 2 * SMALL_VALUE_BYTES)
    with pytest.raises(StoreFull, match="bytes"):
        await store.put("b", b"x" * 2 * SMALL_VALUE_BYTES)
    with pytest.raises(StoreFull, match="bytes"):
        await store.cas("a", b"x" * 4 * SMALL_VALUE_BYTES, 1)
    for key in "cdef":
        await store.put(key, b"x" * SMALL_VALUE_BYTES)
    await store.put("a", b"x" * (2 * SMALL_VALUE_BYTES - 1))
    for key in "cdef":
        await store.delete(key)
    await store.put("c", b"x" * (SMALL_VALUE_BYTES + 1))

    assert ["a", "c"] == [key for key, _ in await store.scan("", "", 9)]


async def test_entries_written_over_and_over_cost_no_memory():
    """Ours: what is remembered of ends is bounded by the entries, not by the writes."""
    store = MemoryKV(clock=ManualClock(100.0))
    for _ in range(1000):
        await store.put("a", b"1", ttl=60.0)

    assert len(store._ends) < 100


def test_a_store_for_nothing_is_refused():
    """Ours: a store holds something."""
    with pytest.raises(UsageError, match="one entry or more"):
        MemoryKV(most=0)
