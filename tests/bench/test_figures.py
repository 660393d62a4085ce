"""The figures of docs/concepts/speed.md: drawn from RESULTS.md, and always the same."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from drawing import Panel, Series, draw_bars, draw_lines
from figures import FIGURES, FOLDER, RESULTS, draw_figures, parse_results
from parts import TABLES
from report import TIMES, format_report
from results import ISTHMUS, LIMIT, MCP, SDK, SERVER, Results

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "concepts" / "speed.md"
BY_NAME = {table.name: table for table in TABLES}
SPACE = "{http://www.w3.org/2000/svg}"


def make_report() -> str:
    """A report in which everybody has a figure in every column."""
    results = Results(TABLES)
    for table in TABLES:
        for number, row in enumerate((ISTHMUS, MCP, SDK, SERVER, LIMIT), 1):
            for place, column in enumerate(table.columns, 1):
                results.add(table.name, row, **{column: number * place * 1234.5})
    return format_report(results)


def test_a_report_is_read_as_it_was_written():
    """Ours: a thousand has a comma, a ratio stands in brackets, and what is missing is a dash."""
    text = f"""
## Everybody

### Calls `a`

| | CPU, µs | calls/s |
|---|---:|---:|
| isthmus | 17,051 (6.9{TIMES}) | 0.0394 (0.1{TIMES}) |
| mcp 2.3.0 | - | 1.5e+03 |
"""
    assert {
        "Calls `a`": {
            "isthmus": {"CPU, µs": 17051.0, "calls/s": 0.0394},
            "mcp 2.3.0": {"calls/s": 1500.0},
        }
    } == parse_results(text)


def test_every_figure_can_be_drawn_of_a_whole_report():
    """Ours: a renamed table or column would leave an empty figure."""
    drawn = draw_figures(make_report(), BY_NAME)

    assert [f"{figure.name}.svg" for figure in FIGURES] == list(drawn)
    for figure in FIGURES:
        svg = drawn[f"{figure.name}.svg"]
        assert [] == [plot.title for plot in figure.plots if plot.title not in svg]


def test_figures_of_the_same_report_are_the_same_bytes():
    """Ours: a figure changes when a measurement does, and not otherwise."""
    text = make_report()

    assert draw_figures(text, BY_NAME) == draw_figures(text, dict(reversed(BY_NAME.items())))


def test_what_was_not_measured_is_not_drawn():
    """Ours: without a peer there is no bar for it, and without a part no figure."""
    results = Results(TABLES)
    results.add("stdio", ISTHMUS, sequential_us=40.0, flight_us=10.0)

    drawn = draw_figures(format_report(results), BY_NAME)

    assert ["stdio.svg"] == list(drawn)
    assert "mcp" not in drawn["stdio.svg"]


def test_the_figures_of_the_documentation_are_those_of_the_results():
    """Ours: nobody draws by hand what no run has measured."""
    drawn = draw_figures(RESULTS.read_text(encoding="utf-8"), BY_NAME)
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}

    assert drawn == kept, "python bench/figures.py draws them again"


def test_the_page_shows_every_figure():
    """Ours: each with words for those who cannot see it."""
    shown = dict(re.findall(r"!\[([^\]]+)\]\(figures/([\w-]+)\.svg\)", PAGE.read_text("utf-8")))

    assert sorted(figure.name for figure in FIGURES) == sorted(shown.values())


PANEL = Panel(
    "ours & theirs, <ms>",
    ("1 KB", "1 MB"),
    (Series("isthmus", {"1 KB": 0.5, "1 MB": 20.0}), Series("a peer", {"1 KB": 5.0})),
)


@pytest.mark.parametrize("draw", [draw_bars, draw_lines])
def test_a_drawing_is_whole_without_anything_from_outside(draw):
    """Ours: well-formed, with a title and its values in words, without scripts and addresses."""
    svg = draw("A title", [PANEL])
    root = ET.fromstring(svg)  # noqa: S314 - our own

    assert "A title" == root.findtext(f"{SPACE}title")
    assert "isthmus: 1 KB 0.5, 1 MB 20; a peer: 1 KB 5" in (root.findtext(f"{SPACE}desc") or "")
    assert "prefers-color-scheme:dark" in svg
    assert {"svg", "title", "desc", "style", "rect", "text", "polyline", "circle", "line"} >= {
        element.tag.removeprefix(SPACE) for element in root.iter()
    }
    assert [] == [name for name in ("href", "url(", "@import") if name in svg]


def test_bars_of_a_panel_have_one_scale():
    """Ours: a bar twice as long stands for a figure twice as large."""
    panel = Panel("ms", ("",), (Series("a", {"": 50.0}), Series("b", {"": 100.0})))
    root = ET.fromstring(draw_bars("t", [panel]))  # noqa: S314 - our own

    short, long = (
        float(bar.get("width", ""))
        for bar in root.iter(f"{SPACE}rect")
        if "b " in bar.get("class", "")
    )
    assert pytest.approx(2 * short) == long


def test_lines_rise_with_their_values_by_decades():
    """Ours: on a logarithmic axis, ten times as much is as high a step everywhere."""
    panel = Panel("ms", ("1", "2", "3"), (Series("a", {"1": 1.0, "2": 10.0, "3": 100.0}),))
    root = ET.fromstring(draw_lines("t", [panel]))  # noqa: S314 - our own
    ys = [float(mark.get("cy", "")) for mark in root.iter(f"{SPACE}circle")]

    assert pytest.approx(ys[0] - ys[1]) == ys[1] - ys[2]
    assert ys[0] > ys[1]
