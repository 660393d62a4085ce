"""Contract of meters: so much in so much time, key by key, counted over all who share them."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.store.meter import MemoryMeter, Rate
from support.clock import ManualClock
from support.store.engines import ENGINE_PARAMS, ENGINES

SLOW = Rate(3, 3000)


async def test_a_quiet_key_may_take_all_at_once_and_then_waits(store):
    """Ours: an honest burst passes, and what comes after it learns how long to wait."""
    meter = store.meter("calls", SLOW)

    assert [0.0, 0.0, 0.0] == [await meter.take("a") for _ in range(3)]
    assert 990 < await meter.take("a") <= 1000


async def test_a_refusal_costs_nothing(store):
    """Ours: whoever keeps on asking does not wait the longer for it."""
    meter = store.meter("calls", Rate(1, 1000))
    await meter.take("a")

    assert all([990 < await meter.take("a") <= 1000 for _ in range(20)])


async def test_keys_do_not_know_of_each_other(store):
    """Ours: what one takes, no other lacks, and names are apart as keys are."""
    await store.meter("calls", Rate(1, 1000)).take("a")

    assert 0.0 == await store.meter("calls", Rate(1, 1000)).take("b")
    assert 0.0 == await store.meter("logins", Rate(1, 1000)).take("a")
    assert 0.0 == await store.meter("call", Rate(1, 1000)).take("sa")


async def test_meters_of_one_name_count_together(open_store):
    """Ours: a limit holds for all nodes together."""
    one, other = await open_store(), await open_store()
    taken = await asyncio.gather(
        *((one, other)[n % 2].meter("calls", SLOW).take("a") for n in range(12))
    )

    assert 3 == taken.count(0.0)


async def test_meters_of_one_name_count_together_at_other_rates(open_store):
    """Ours: while a limit is changed node by node, nobody gets both the old and the new one."""
    one, other = await open_store(), await open_store()
    old, new = one.meter("calls", Rate(2, 1000)), other.meter("calls", Rate(4, 1000))
    await old.take("a")
    await old.take("a")

    assert 0.0 < await old.take("a")
    assert 0.0 < await new.take("a")
    assert 0.0 < await old.take("a")


async def test_who_waits_as_long_as_was_said_is_let_through(engine, store):
    """Ours: a retry after that time is never refused for the same reason."""
    meter = store.meter("calls", Rate(2, 2 * engine.span))
    for _ in range(2):
        await meter.take("a")
    await engine.pass_time(await meter.take("a"))

    assert 0.0 == await meter.take("a")


async def test_more_than_there_ever_is_is_never_given(store):
    """Ours: a cost beyond the rate waits for ever, in steps that are told, and costs nothing."""
    meter = store.meter("calls", Rate(2, 1000))

    assert 490 < await meter.take("a", cost=3) <= 500
    assert 0.0 == await meter.take("a", cost=2)


takes = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 0.1, 0.7])
    ),
    max_size=25,
)


@pytest.mark.parametrize("name", ENGINE_PARAMS)
def test_a_meter_says_what_the_one_in_memory_says(name, tmp_path):
    """Ours: a server that gets a store limits as before."""
    engine = ENGINES[name](tmp_path)
    if engine.clock is None:
        pytest.skip("the clock of this engine is its own")
    numbers = iter(range(10_000))

    @given(st.sampled_from([Rate(1, 1), Rate(3, 0.5), Rate(2.5, 7)]), takes)
    @settings(max_examples=30, deadline=None)
    def compare(rate, steps):
        clock = ManualClock()
        expected = MemoryMeter(rate, clock=clock)

        async def run():
            store = engine.make_store()
            await store.open()
            meter = store.meter(f"m{next(numbers)}", rate)
            for key, cost, pause in steps:
                clock.now += pause
                engine.clock.now = clock.now
                told = await expected.take(key, cost)
                assert told == pytest.approx(await meter.take(key, cost), abs=1e-6)
            await store.close()

        asyncio.run(run())

    compare()
