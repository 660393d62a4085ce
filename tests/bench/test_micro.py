"""Hot functions: each runs, and has the budget that the documentation says."""

import re
from pathlib import Path

import micro

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "speed.md"


def test_every_hot_function_runs_and_has_a_budget():
    """Ours: a function that was renamed must not drop out of the list unseen."""
    work = micro.make_work()

    assert list(micro.BUDGETS_US) == list(work)
    for run in work.values():
        run()


def test_the_documentation_has_the_same_budgets():
    """Ours: a budget stands in two places, and is one."""
    rows = re.findall(
        r"^\| `(\w+: [^`]+)` \|.*\| ([\d.]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )

    assert micro.BUDGETS_US == {name: float(budget) for name, budget in rows}
