"""Meters in memory: exact, and bounded; what holds for all engines is in contract/."""

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
    with pytest.raises(UsageError, match="an amount above 0"):
        Rate(amount, seconds)


def test_a_rate_says_itself():
    """Ours: the message of a refusal has it."""
    assert "100 in 60 s" == str(Rate(100, 60))
