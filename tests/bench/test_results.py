"""Cells of the tables of results, and the rows in which a peer is ahead."""

import pytest
from results import (
    ISTHMUS,
    MCP,
    SDK,
    SERVER,
    Column,
    Results,
    Table,
    count_compared,
    find_ahead,
    make_sizes,
)

CALLS = Table(
    "calls",
    "Calls",
    {
        "cpu_us": Column("CPU, µs"),
        "rate": Column("calls/s", less=False, pick="median"),
        "p99": Column("p99, ms", pick="median", compared=False),
    },
)
ALONE = Table("alone", "Alone", {"cpu_us": Column("CPU, µs")}, compared=False)


def make_results() -> Results:
    return Results([CALLS, ALONE])


def test_cpu_is_the_least_of_the_rounds_and_a_rate_their_median():
    """Ours: a busy machine only adds to CPU time; a rate goes both ways."""
    results = make_results()
    for cpu, rate in ((9.0, 1.0), (7.0, 3.0), (8.0, 10.0)):
        results.add("calls", ISTHMUS, cpu_us=cpu, rate=rate)

    assert 7.0 == results.cell("calls", ISTHMUS, "cpu_us")
    assert 3.0 == results.cell("calls", ISTHMUS, "rate")
    assert results.cell("calls", MCP, "rate") is None


def test_a_column_that_no_table_has_is_refused():
    """Ours: a figure that no table shows would be measured for nothing."""
    with pytest.raises(KeyError, match="speed"):
        make_results().add("calls", ISTHMUS, speed=1.0)


def test_a_ratio_needs_both_sides():
    """Ours: no ratio to what was not measured, nor to nothing."""
    results = make_results()
    results.add("calls", ISTHMUS, cpu_us=5.0, p99=1.0)
    results.add("calls", MCP, cpu_us=20.0, p99=0.0)

    assert 0.25 == results.ratio("calls", ISTHMUS, MCP, "cpu_us")
    assert results.ratio("calls", ISTHMUS, MCP, "p99") is None
    assert results.ratio("calls", ISTHMUS, SDK, "cpu_us") is None


def test_a_peer_that_is_better_by_more_than_noise_is_named():
    """Ours: less CPU or more calls; the best of the peers, and only where the work is the same."""
    results = make_results()
    results.add("calls", ISTHMUS, cpu_us=10.0, rate=100.0, p99=9.0)
    results.add("calls", MCP, cpu_us=9.0, rate=90.0, p99=1.0)
    results.add("calls", SDK, cpu_us=8.0, rate=104.0)
    results.add("calls", SERVER, rate=200.0)
    results.add("alone", ISTHMUS, cpu_us=10.0)
    results.add("alone", MCP, cpu_us=1.0)

    found = {one.column: (one.peer, one.ours, one.theirs) for one in find_ahead(results)}

    assert {
        "CPU, µs": (SDK, 10.0, 8.0),
        "calls/s": (SERVER, 100.0, 200.0),
    } == found


def test_a_peer_within_five_per_cent_is_not_ahead():
    """Ours: so much is noise, on any machine."""
    results = make_results()
    results.add("calls", ISTHMUS, cpu_us=10.0, rate=100.0)
    results.add("calls", MCP, cpu_us=9.6, rate=104.0)

    assert [] == list(find_ahead(results))


def test_only_figures_that_a_peer_has_count_as_compared():
    """Ours: of how many rows it is that a peer is ahead in some."""
    results = make_results()
    results.add("calls", ISTHMUS, cpu_us=10.0, rate=100.0, p99=1.0)
    results.add("calls", MCP, cpu_us=10.0, p99=1.0)
    results.add("alone", MCP, cpu_us=1.0)

    assert 1 == count_compared(results)


def test_a_failure_is_named_once():
    """Ours: five rounds of the same failure are one line of the report."""
    results = make_results()
    for _ in range(5):
        results.fail("calls", MCP, RuntimeError("no answer"))

    assert ["calls, mcp 2.3.0: RuntimeError: no answer"] == results.failures


def test_sizes_are_columns_of_which_the_first_has_the_unit():
    """Ours: the unit stands once in a row of heads."""
    assert ["10, ms", "100"] == [column.title for column in make_sizes("ms", (10, 100)).values()]
