"""Runs: budgets, and how many of them are known."""

import pytest

from isthmus.host.model.errors import Exhausted, Unknown
from isthmus.host.pipeline import runs as runs_module
from isthmus.host.pipeline.acts.act import ActOutcome
from isthmus.host.pipeline.runs import Budget, Runs


@pytest.mark.covers("hostkernel.runs.budget")
@pytest.mark.parametrize(
    ("budget", "word"),
    [
        (Budget(calls=1), "calls"),
        (Budget(tokens=10), "tokens"),
        (Budget(cost=5), "micro-dollars"),
        (Budget(seconds=3.0), "seconds"),
    ],
)
def test_a_run_ends_where_its_budget_does(budget, word):
    """Ours: what is used up is named."""
    now = [0.0]
    run = Runs(lambda: now[0]).begin(budget=budget)
    run.begin()
    run.spend(ActOutcome(tokens_in=4, tokens_out=6, cost=5))
    now[0] = 3.0

    with pytest.raises(Exhausted, match=word):
        run.begin()


def test_nothing_is_done_in_a_run_that_has_ended():
    """Ours: leaving the block ends it."""
    with Runs(lambda: 0.0).begin() as run:
        run.begin()

    with pytest.raises(Exhausted, match="has ended"):
        run.begin()


def test_a_run_is_found_by_its_name(monkeypatch):
    """Ours: also while others come and go; the one used longest ago makes room."""
    monkeypatch.setattr(runs_module, "MAX_RUNS", 2)
    runs = Runs(lambda: 0.0)
    first, second = runs.begin(id="1"), runs.begin(id="2")
    assert first is runs.begin(id="1")
    assert first is runs.find("1")
    runs.begin(id="3")

    assert None is runs.find("2")
    assert "1" == runs.find_id(first)
    with pytest.raises(Unknown):
        runs.find_id(second)
