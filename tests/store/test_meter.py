"""Meters: so much in so much time, key by key, in bounded memory."""

import pytest

from isthmus.errors import UsageError
from isthmus.store.meter import MemoryMeter, Rate
from support.clock import ManualClock


@pytest.fixture
def time():
    """The clock of the meters below."""
    return ManualClock(100.0)


async def test_a_quiet_key_may_take_all_at_once_and_then_waits(time):
    """Ours: an honest burst passes, and what comes after it learns how long to wait."""
    meter = MemoryMeter(Rate(3, 6), clock=time)

    assert [0.0, 0.0, 0.0, 2.0] == [await meter.take("a") for _ in range(4)]


async def test_who_waits_as_long_as_was_said_is_let_through(time):
    """Ours: a retry after that time is never refused for the same reason."""
    meter = MemoryMeter(Rate(2, 1), clock=time)
    for _ in range(2):
        await meter.take("a")
    time.now += await meter.take("a")

    assert 0.0 == await meter.take("a")
    assert 0.0 < await meter.take("a")


async def test_a_refusal_costs_nothing(time):
    """Ours: whoever keeps on asking does not wait the longer for it."""
    meter = MemoryMeter(Rate(1, 1), clock=time)
    await meter.take("a")

    assert {1.0} == {await meter.take("a") for _ in range(50)}


async def test_keys_do_not_know_of_each_other(time):
    """Ours: what one takes, no other lacks."""
    meter = MemoryMeter(Rate(1, 1), clock=time)
    await meter.take("a")

    assert 0.0 == await meter.take("b")


async def test_more_than_there_ever_is_is_never_given(time):
    """Ours: a cost beyond the rate waits for ever, in steps that are told."""
    meter = MemoryMeter(Rate(2, 1), clock=time)

    assert 0.5 == await meter.take("a", cost=3)
    assert 0.0 == await meter.take("a", cost=2)


async def test_memory_is_bounded_and_the_quiet_are_forgotten_first(time):
    """Ours: made-up keys cannot fill the memory, nor wipe out who is being held back."""
    meter = MemoryMeter(Rate(1, 10), most=3, clock=time)
    for key in ("old", "older"):
        await meter.take(key)
    time.now += 11
    for key in ("a", "b", "c"):
        await meter.take(key)

    assert 3 == len(meter)
    assert 0.0 < await meter.take("a")
    await meter.take("d")
    assert 3 == len(meter)


@pytest.mark.parametrize(("amount", "seconds"), [(0, 1), (-1, 1), (1, 0), (1, float("inf"))])
def test_a_rate_of_nothing_is_refused(amount, seconds):
    """Ours: it would refuse everything, which nobody means."""
    with pytest.raises(UsageError, match="more than nothing"):
        Rate(amount, seconds)


def test_a_rate_says_itself():
    """Ours: the message of a refusal has it."""
    assert "100 in 60 s" == str(Rate(100, 60))
