"""Values by key: versions, times that end, order, and room."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from isthmus.errors import UsageError
from isthmus.store.kv import SMALL_VALUE_BYTES, KVEntry, MemoryKV, StoreFull
from support.clock import ManualClock


async def test_what_is_put_is_got():
    """Ours: a value is there under its key, and under no other."""
    store = MemoryKV()
    version = await store.put("a", b"1")

    assert KVEntry(b"1", version) == await store.get("a")
    assert await store.get("b") is None


async def test_every_write_has_a_version_of_its_own():
    """Ours: who kept a version can tell that somebody wrote since, even the same value."""
    store = MemoryKV()
    versions = [await store.put("a", b"1"), await store.put("a", b"1")]

    assert 2 == len(set(versions))
    assert 0 not in versions


async def test_the_first_of_two_writers_wins():
    """Ours: a write holds only against the version its writer has read."""
    store = MemoryKV()
    first = await store.cas("a", b"1", 0)
    second = await store.cas("a", b"2", first)

    assert await store.cas("a", b"3", 0) is None
    assert await store.cas("a", b"4", first) is None
    assert KVEntry(b"2", second) == await store.get("a")


async def test_what_is_not_there_has_version_nought():
    """Ours: nothing is made where somebody deleted meanwhile."""
    store = MemoryKV()
    version = await store.put("a", b"1")
    await store.delete("a")

    assert await store.cas("a", b"2", version) is None
    assert await store.cas("a", b"3", 0) is not None


async def test_only_what_is_meant_is_deleted():
    """Ours: a delete says whether something went, and spares what was written since."""
    store = MemoryKV()
    old = await store.put("a", b"1")
    await store.put("a", b"2")

    assert not await store.delete("a", old)
    assert await store.delete("a")
    assert not await store.delete("a")


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


async def test_every_write_sets_the_time_anew():
    """Ours: the end of an entry is that of its last write, whether later, sooner or never."""
    clock = ManualClock(100.0)
    store = MemoryKV(clock=clock)
    for key, ttl in (("later", 10.0), ("sooner", 1.0), ("never", None)):
        await store.put(key, b"1", ttl=5.0)
        await store.put(key, b"2", ttl=ttl)
    clock.now += 6.0

    assert ["later", "never"] == [key for key, _ in await store.scan("", "", 10)]


async def test_a_scan_goes_on_where_the_last_one_ended():
    """Ours: entries come in the order of their keys, page by page, those of one prefix only."""
    store = MemoryKV()
    for key in ("b/2", "a/9", "b/1", "b/3", "c/0"):
        await store.put(key, key.encode())
    first = await store.scan("b/", "", 2)
    second = await store.scan("b/", first[-1][0], 2)

    assert ["b/1", "b/2"] == [key for key, _ in first]
    assert [("b/3", b"b/3")] == [(key, entry.value) for key, entry in second]


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


keys = st.sampled_from(["a", "a/1", "a/2", "b"])


class Stored(RuleBasedStateMachine):
    """A store against a dictionary that does the same slowly."""

    def __init__(self):
        super().__init__()
        self.clock = ManualClock(100.0)
        self.store = MemoryKV(clock=self.clock)
        self.known = {}

    def live(self):
        return {k: v for k, v in self.known.items() if v[2] > self.clock.now}

    @rule(key=keys, value=st.binary(max_size=3), ttl=st.sampled_from([None, 1.0, 3.0]))
    def put(self, key, value, ttl):
        version = run(self.store.put(key, value, ttl))
        end = float("inf") if ttl is None else self.clock.now + ttl
        self.known[key] = (value, version, end)

    @rule(key=keys, value=st.binary(max_size=3), right=st.booleans())
    def cas(self, key, value, right):
        known = self.live().get(key)
        version = (known[1] if known else 0) + (not right)
        done = run(self.store.cas(key, value, version))
        assert right is (done is not None)
        if right:
            self.known[key] = (value, done, float("inf"))

    @rule(key=keys)
    def delete(self, key):
        assert (key in self.live()) is run(self.store.delete(key))
        self.known.pop(key, None)

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0]))
    def wait(self, seconds):
        self.clock.now += seconds

    @invariant()
    def holds_what_was_put(self):
        expected = [(k, v[0], v[1]) for k, v in sorted(self.live().items())]
        found = run(self.store.scan("", "", 100))

        assert expected == [(key, entry.value, entry.version) for key, entry in found]


def run(work):
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def test_a_store_does_what_a_dictionary_does():
    """Ours: whatever is written, read and deleted in whichever order, nothing else is there."""
    run_state_machine_as_test(
        Stored, settings=settings(max_examples=40, stateful_step_count=30, deadline=None)
    )
