"""Sampling budgets: counted by the day, where nothing is forgotten."""

import pytest

from isthmus.host.model.entries import SamplingLimits
from isthmus.host.model.errors import Exhausted
from isthmus.host.sampling.budgets import SamplingAllowance, SamplingBudgets
from isthmus.host.sampling.models import Model
from isthmus.host.sampling.usage import UsageRecords
from isthmus.host.state.database import HostState
from isthmus.host.state.shared_state import SharedState
from isthmus.nodes.node import Node
from isthmus.store.memory_store import MemoryStore
from support.event_loop import run_turns
from support.host.sampling_desk import LARGE, SMALL

NOON = 86_400.0 * 20_000 + 43_200
LIMITS = SamplingLimits(tokens=1000, cost=0.001)


@pytest.fixture
async def state():
    """A state in memory, at noon."""
    state = HostState(None, clock=lambda: NOON)
    yield state
    await state.close()


@pytest.mark.covers("hostsampling.limits.charged-before")
async def test_what_an_answer_may_take_is_charged_before_and_put_right_after(state):
    """We demand: two answers at once cannot overspend together."""
    budgets = SamplingBudgets(state)
    first = await budgets.charge("a", LIMITS, SMALL, 100, 300)
    assert (1, 400, 700) == await budgets.read_today("a")
    second = await budgets.charge("a", LIMITS, SMALL, 100, 300)
    assert (300, 100) == (first.max_tokens, second.max_tokens)
    assert (2, 600, 1000) == await budgets.read_today("a")
    await budgets.settle(first, 110, 120)
    assert (2, 310, 420) == await budgets.read_today("a")
    assert (0, 0, 0) == await budgets.read_today("b")


async def test_an_empty_account_says_when_it_is_filled(state):
    """We demand: an error with the limit, what was used, and when to come back."""
    budgets = SamplingBudgets(state)
    with pytest.raises(Exhausted, match=r"0 of 1000 tokens and \$0\.0000 of \$0\.001") as error:
        await budgets.charge("a", LIMITS, LARGE, 1000, 10)
    assert 43_200 == error.value.retry_after
    assert (0, 0, 0) == await budgets.read_today("a")


async def test_a_price_that_nobody_knows_costs_nothing_and_counts_in_tokens(state):
    """We demand: a local model needs no price."""
    budgets = SamplingBudgets(state)
    charge = await budgets.charge("a", LIMITS, Model(id="m", provider="p"), 100, 5000)
    assert (900, 0) == (charge.max_tokens, charge.cost)
    for half in ("cost_in", "cost_out"):
        model = Model(id="m", provider="p", **{half: 1.0})
        assert 500 == (await budgets.charge(half, LIMITS, model, 100, 500)).max_tokens
    unlimited = SamplingLimits(tokens=None, cost=None)
    assert 5000 == (await budgets.charge("a", unlimited, LARGE, 100, 5000)).max_tokens


@pytest.mark.covers("hostsampling.limits.durable")
async def test_what_was_counted_is_there_after_a_restart(tmp_path):
    """We demand: an answer cut off by the end of the process stays charged."""
    state = HostState(tmp_path, clock=lambda: NOON)
    budgets = SamplingBudgets(state)
    await budgets.charge("a", LIMITS, SMALL, 100, 300)
    await budgets.allow("run", "a", "small", SamplingAllowance(tokens=500, cost=None))
    await budgets.draw("run", "a", "small", 200, 7)
    await budgets.draw("run", "b", "small", 200, 7)
    await state.close()
    state = HostState(tmp_path, clock=lambda: NOON)
    budgets = SamplingBudgets(state)
    await budgets.load()
    assert (1, 400, 700) == await budgets.read_today("a")
    assert SamplingAllowance(tokens=300, cost=None) == budgets.allowance("run", "a", "small")
    assert None is budgets.allowance("run", "b", "small")
    await state.close()


def test_an_allowance_covers_what_is_left():
    """We demand: tokens and money each, and no unknown price where money is meant."""
    assert SamplingAllowance().covers(10**9, None)
    assert SamplingAllowance(tokens=5).covers(5, None)
    assert not SamplingAllowance(tokens=5).covers(6, 0)
    assert not SamplingAllowance(cost=5).covers(1, None)
    assert SamplingAllowance(cost=5).covers(1, 5)


@pytest.mark.covers("hostsampling.limits.charged-before")
async def test_a_budget_counts_over_all_processes_of_a_host(state):
    """Ours: two processes cannot overspend together, and what was too much is given back to both."""
    store, processes = MemoryStore(), []
    for _ in range(2):
        node = Node(store, kind="host", name="desk")
        await node.join()
        usage = UsageRecords(SharedState(node, store))
        processes.append((node, SamplingBudgets(state, usage)))
    (_, one), (_, two) = processes
    first = await one.charge("a", LIMITS, SMALL, 100, 300)
    second = await two.charge("a", LIMITS, SMALL, 100, 300)

    assert (300, 100) == (first.max_tokens, second.max_tokens)
    with pytest.raises(Exhausted):
        await one.charge("a", LIMITS, SMALL, 100, 300)
    two.settle_soon(second, 100, 100)
    await one.settle(first, 110, 120)
    await run_turns()
    assert (2, 210, 220) == await two.read_today("a")
    for node, _ in processes:
        await node.leave()
