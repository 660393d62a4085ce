"""The demands of the specification, sentence by sentence: held by requirements, or with a reason."""

import importlib.util
from pathlib import Path

from isthmus.revisions import REVISIONS
from support.docs.requirement_rows import load_requirements

ROOT = Path(__file__).parents[2]


def tool():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "requirements.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_revision_was_gone_through():
    """Ours: none of the five is taken for known."""
    assert [revision.name for revision in reversed(REVISIONS)] == list(tool().clauses())


def test_what_holds_a_demand_is_a_requirement_of_its_revision():
    """Ours: a sentence leads to rows that are there, and that hold in the sentence's revision."""
    spans = {row["id"]: (row["since"], row["until"]) for _, row in load_requirements()}
    wrong = [
        f"{name} {clause['at']}: {id}"
        for name, clauses in tool().clauses().items()
        for clause in clauses
        for id in " ".join(tool().held([clause])).split()
        if id not in spans or not spans[id][0] <= name <= spans[id][1]
    ]

    assert [] == wrong


def test_whoever_else_is_bound_is_one_of_the_known():
    """Ours: "not ours" has a reason, and there are few of them."""
    reasons = set().union(*(tool().outside(of) for of in tool().clauses().values()))

    assert reasons <= set(tool().REASONS)
    assert set(tool().REASONS) == reasons


def test_the_page_says_what_the_files_say():
    """Ours: run ``python tools/requirements.py`` after a change."""
    assert tool().page() == tool().PAGE.read_text(encoding="utf-8")
