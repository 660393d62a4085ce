"""The report: figures with their ratios, floors in words, and what went wrong."""

import pytest
from floors import FLOORS
from parts import TABLES
from report import TIMES, format_number, format_report
from results import ISTHMUS, MCP, SERVER, Results


@pytest.mark.parametrize(
    ("value", "text"), [(0.0394, "0.0394"), (9.126, "9.13"), (99.6, "99.6"), (17051.4, "17,051")]
)
def test_a_number_has_three_figures_that_mean_something(value, text):
    """Ours: nobody reads a seventh digit of a measurement."""
    assert text == format_number(value)


def test_a_cell_has_its_ratio_to_the_official_sdk():
    """Ours: the ratio is what counts."""
    results = Results(TABLES)
    results.add("stdio", MCP, flight_us=400.0)
    results.add("stdio", ISTHMUS, flight_us=10.0)
    report = format_report(results)

    assert f"| isthmus | 10 (0.025{TIMES}) |" in report
    assert "| mcp 2.3.0 | 400 |" in report


def test_a_floor_says_what_is_reached():
    """Ours: the figure, its bounds, and a word."""
    results = Results(TABLES)
    results.add("stdio", MCP, flight_us=400.0)
    results.add("stdio", ISTHMUS, flight_us=10.0)
    floor = next(one for one in FLOORS if one.column == "flight_us")
    row = f"| {floor.measure} * | {MCP} | 40{TIMES} | ≥ 30{TIMES} | ≥ 40{TIMES} | goal |"

    assert row in format_report(results)


def test_rows_in_which_a_peer_is_ahead_are_named():
    """Ours: by table, column and peer, with both figures."""
    results = Results(TABLES)
    results.add("tools spawn", ISTHMUS, **{"5000": 965.0})
    results.add("tools spawn", SERVER, **{"5000": 694.0})
    title = results.tables["tools spawn"].title

    report = format_report(results)

    assert "1 of 1 figures that isthmus and a peer have:" in report
    assert f"| {title} | 5000 | {SERVER} | 694 | 965 |" in report


def test_what_failed_and_who_took_no_part_is_said():
    """Ours: a missing row is explained."""
    results = Results(TABLES)
    results.fail("stdio", MCP, RuntimeError("no answer"))
    results.skip("the npm packages: node is not installed")
    results.seconds["stdio"] = 61.4
    report = format_report(results)

    assert "- stdio, mcp 2.3.0: RuntimeError: no answer" in report
    assert "- the npm packages: node is not installed" in report
    assert "| stdio | 61 |" in report
