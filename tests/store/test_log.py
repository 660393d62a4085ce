"""The log in memory: what it holds in all; what holds for all engines is in contract/."""

import pytest

from isthmus.store.log import Forgotten, MemoryLog
from support.clock import ManualClock


def values(entries):
    """The values without their ids."""
    return [value for _, value in entries]


async def filled(log, stream, count, size=1):
    """Add that many entries."""
    for _ in range(count):
        log.add(stream, b"x" * size)


async def test_what_came_after_an_entry_is_given_in_order():
    """Ours: a stream goes on where it broke."""
    log = MemoryLog(ManualClock())
    ids = [log.add("s", b"%d" % i) for i in range(5)]

    assert [1, 2, 3, 4, 5] == ids
    assert [(3, b"2"), (4, b"3"), (5, b"4")] == await log.read("s", 2, 10)
    assert [(1, b"0"), (2, b"1")] == await log.read("s", 0, 2)
    assert [] == await log.read("s", 5, 10)


async def test_an_unknown_stream_is_an_error_and_so_is_a_forgotten_one():
    """Ours: whoever asks is told."""
    log = MemoryLog(ManualClock())
    log.add("s", b"one")
    await log.forget("s")
    await log.forget("s")

    for stream in ("s", "other"):
        with pytest.raises(Forgotten, match=stream):
            await log.read(stream, 0, 10)
    assert (0, 0) == (len(log), log.size)


async def test_a_stream_is_a_ring_and_says_when_something_is_gone():
    """Ours: bounded by count, without holes."""
    log = MemoryLog(ManualClock(), entries=3)
    await filled(log, "s", 5)

    assert [3, 4, 5] == [id for id, _ in await log.read("s", 2, 10)]
    for after in (0, 1):
        with pytest.raises(Forgotten):
            await log.read("s", after, 10)


async def test_a_stream_is_bounded_by_bytes_and_keeps_its_newest_entry():
    """Ours: one large entry may be kept, many may not."""
    log = MemoryLog(ManualClock(), stream_size=10)
    await filled(log, "s", 4, size=4)
    assert [3, 4] == [id for id, _ in await log.read("s", 2, 10)]

    log.add("s", b"x" * 50)
    assert [5] == [id for id, _ in await log.read("s", 4, 10)]
    assert 50 == log.size


async def test_streams_that_nobody_adds_to_are_emptied_when_they_are_old():
    """Ours: memory is given back without being asked for."""
    clock = ManualClock()
    log = MemoryLog(clock, age=60.0)
    await filled(log, "idle", 3, size=10)
    clock.now += 61
    log.add("other", b"x")

    assert 1 == log.size
    with pytest.raises(Forgotten):
        await log.read("idle", 0, 10)
    assert 4 == log.add("idle", b"again")
    assert [(4, b"again")] == await log.read("idle", 3, 10)


async def test_all_streams_together_are_bounded_and_the_idlest_gives_way():
    """Ours: many streams cost no more than that."""
    log = MemoryLog(ManualClock(), size=30)
    for stream in "abc":
        await filled(log, stream, 1, size=10)
    await filled(log, "a", 1, size=10)

    assert 30 == log.size
    assert [1, 2] == [id for id, _ in await log.read("a", 0, 10)]
    with pytest.raises(Forgotten):
        await log.read("b", 0, 10)
    assert [] == await log.read("b", 1, 10)


async def test_one_stream_larger_than_all_may_be_is_kept_alone():
    """Ours: the newest entry is always there."""
    log = MemoryLog(ManualClock(), size=30)
    await filled(log, "a", 1, size=10)
    await filled(log, "b", 1, size=50)

    assert 50 == log.size
    assert [1] == [id for id, _ in await log.read("b", 0, 10)]
