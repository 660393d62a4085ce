"""Tests of work that many want at once."""

import asyncio

import pytest

from isthmus.auth.cache import SingleFlight


async def test_simultaneous_callers_share_one_run():
    """Ours: one key, one run; another key, another; and afterwards anew."""
    flights, runs, go = SingleFlight(), [], asyncio.Event()

    async def work():
        runs.append(1)
        mine = len(runs)
        await go.wait()
        return mine

    waiting = [asyncio.ensure_future(flights.run("a", work)) for _ in range(5)]
    other = asyncio.ensure_future(flights.run("b", work))
    await asyncio.sleep(0)
    go.set()

    assert ([1] * 5, 2) == ([await one for one in waiting], await other)
    assert 3 == await flights.run("a", work)


async def test_a_failure_is_everybodys_and_is_not_kept():
    """Ours: the next one tries again."""
    flights, fails = SingleFlight(), [True]

    async def work():
        await asyncio.sleep(0)
        if fails:
            raise ValueError("once")
        return "done"

    found = await asyncio.gather(
        *(flights.run("a", work) for _ in range(3)), return_exceptions=True
    )
    fails.clear()

    assert ["once"] * 3 == [str(error) for error in found]
    assert "done" == await flights.run("a", work)


async def test_a_cancelled_caller_does_not_stop_the_work():
    """Ours: the others, and the one that comes later, get what it gave."""
    flights, go = SingleFlight(), asyncio.Event()

    async def work():
        await go.wait()
        return "done"

    first = asyncio.ensure_future(flights.run("a", work))
    second = asyncio.ensure_future(flights.run("a", work))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.set()

    assert "done" == await second
