"""Floors: how the figure of each kind is found, and what counts as reached."""

import pytest
from floors import FLOORS, Floor, Verdict, find_unmeasured, find_value, judge_floors
from parts import PARTS, TABLES
from results import ISTHMUS, MCP, Column, Results, Table

CALLS = Table(
    "calls",
    "Calls",
    {
        "cpu_us": Column("CPU, µs"),
        "guarded_us": Column("with a token, µs"),
        "rate": Column("calls/s", less=False),
    },
)


@pytest.fixture
def results() -> Results:
    found = Results([CALLS])
    found.add("calls", ISTHMUS, cpu_us=20.0, guarded_us=25.0, rate=50.0)
    found.add("calls", MCP, cpu_us=240.0, rate=10.0)
    return found


@pytest.mark.parametrize(
    ("floor", "value"),
    [
        (Floor("CPU", "speedup", 9, 12, "calls", "cpu_us", MCP), 12.0),
        (Floor("rate", "speedup", 3, 4, "calls", "rate", MCP), 5.0),
        (Floor("share", "share", 1, 0.5, "calls", "cpu_us", MCP), 20 / 240),
        (Floor("column", "share", 2, 1, "calls", "guarded_us", base="cpu_us"), 1.25),
        (Floor("added", "added", 8, 5, "calls", "guarded_us", base="cpu_us"), 5.0),
        (Floor("figure", "most", 30, 10, "calls", "cpu_us"), 20.0),
        (Floor("missing", "speedup", 1, 1, "calls", "guarded_us", MCP), None),
        (Floor("missing too", "most", 1, 1, "calls", "cpu_us", row="nobody"), None),
    ],
    ids=lambda given: given.measure if isinstance(given, Floor) else "",
)
def test_a_figure_is_found_as_its_kind_says(results, floor, value):
    """Ours: how many times better, a share, a difference, or the figure itself."""
    assert value == find_value(results, floor)


def test_rows_in_which_a_peer_is_ahead_are_counted():
    """Ours: one floor is about all rows."""
    floor = Floor("ahead", "ahead", 2, 0)
    results = Results([CALLS])
    assert find_value(results, floor) is None

    results.add("calls", ISTHMUS, cpu_us=20.0, rate=50.0)
    results.add("calls", MCP, cpu_us=10.0, rate=10.0)

    assert 1 == find_value(results, floor)


@pytest.mark.parametrize(
    ("kind", "value", "word"),
    [
        ("speedup", 8.9, "MISSED"),
        ("speedup", 9.0, "floor"),
        ("speedup", 12.0, "goal"),
        ("least", 8.0, "MISSED"),
    ],
)
def test_of_a_lower_bound_more_is_better(kind, value, word):
    """Ours: the floor is reached by what is as good."""
    assert word == Verdict(Floor("x", kind, 9, 12), value).word


@pytest.mark.parametrize(("value", "word"), [(1.1, "MISSED"), (1.0, "floor"), (0.7, "goal")])
def test_of_an_upper_bound_less_is_better(value, word):
    """Ours: shares, differences and figures are bounded from above."""
    assert word == Verdict(Floor("x", "share", 1.0, 0.75), value).word


def test_every_floor_is_about_a_figure_that_is_measured():
    """Ours: a floor whose column has gone would be held by nobody."""
    tables = {table.name: table for table in TABLES}
    about = [floor for floor in FLOORS if floor.kind != "ahead"]

    assert [] == [f.measure for f in about if f.column not in tables[f.table].columns]
    assert [] == [f.measure for f in about if f.base and f.base not in tables[f.table].columns]


def test_a_goal_is_at_least_as_good_as_its_floor():
    """Ours: or the word in the table would be wrong."""
    assert [] == [f.measure for f in FLOORS if not Verdict(f, f.goal).met]


def test_starred_floors_that_were_not_measured_are_named():
    """Ours: CI must not pass because something was left out."""
    results = Results(TABLES)
    starred = {floor.measure for floor in FLOORS if floor.starred}

    assert starred == {floor.measure for floor in find_unmeasured(results)}
    assert [] == list(judge_floors(results))


def test_names_and_titles_of_tables_are_unique():
    """Ours: results are kept by name, and found again in the report by title."""
    assert len(TABLES) == len({table.name for table in TABLES})
    assert len(TABLES) == len({table.title for table in TABLES})


def test_every_part_measures_something():
    """Ours: a part without a table has nothing to say."""
    assert [] == [name for name, part in PARTS.items() if not part.TABLES]
