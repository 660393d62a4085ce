"""Plots: pictures that say the same in words and in a table."""

import re
from xml.etree import ElementTree as ET

import pytest

from isthmus.console.drawing.plots import (
    BarColumn,
    BarPlot,
    BarRow,
    PlotSeries,
    TimePlot,
    draw_bar_plot,
    draw_time_plot,
    format_seconds,
    make_axis,
)

HOSTILE = '</text><script>alert(1)</script>"\u202e&'


def make_plot(**more):
    series = [
        PlotSeries(name="succeeded", look="look-ok", mark="bar", values=[3.0, 0.0, 5.0]),
        PlotSeries(name="failed", look="look-failed", mark="bar", values=[1.0, 0.0, 0.0]),
    ]
    given = {"times": ["12:00", "12:01", "12:02"], "series": series, "unit": "calls"} | more
    return TimePlot(key="calls", title="Calls", summary="Nine calls.", **given)


def parse(markup):
    """The markup as a tree; what is no XML fails here."""
    return ET.fromstring(str(markup))  # noqa: S314 - it is our own


def test_a_plot_is_named_described_and_has_a_table():
    """WCAG 1.1.1: who cannot see the picture gets its title, a sentence, and every figure."""
    tree = parse(draw_time_plot(make_plot()))
    picture = next(one for one in tree.iter("svg") if one.get("role") == "img")

    named = picture.get("aria-labelledby").split()
    assert [one.text for one in picture if one.get("id") in named] == ["Calls", "Nine calls."]
    rows = [[cell.text for cell in row] for row in tree.find(".//tbody")]
    assert rows == [["12:02", "5", "0"], ["12:00", "3", "1"]]


def test_bars_stand_upon_each_other_and_reach_the_sum():
    """Ours: the height of a minute is the number of its calls."""
    tree = parse(draw_time_plot(make_plot()))
    picture = next(one for one in tree.iter("svg") if one.get("role") == "img")
    bars = [one for one in picture.iter("rect") if one.get("class").startswith("bar")]
    first = [
        (float(one.get("y")), float(one.get("height"))) for one in bars if one.get("x") == "44.5"
    ]

    (upper, lower) = sorted(first)
    assert upper[0] + upper[1] == pytest.approx(lower[0])
    assert upper[1] * 3 == pytest.approx(lower[1], rel=0.02)


def test_series_differ_by_more_than_their_colour():
    """WCAG 1.4.1: failed calls are hatched, and the legend shows how."""
    tree = parse(draw_time_plot(make_plot()))
    (pattern,) = tree.iter("pattern")
    hatched = [one for one in tree.iter("rect") if one.get("fill") == f"url(#{pattern.get('id')})"]

    assert len(hatched) == 2  # one in the picture, one in the legend


def test_a_line_ends_where_nothing_was_measured():
    """Ours: a gap is a gap, and a single value is a dot."""
    values = [None, 0.01, 0.02, None, 0.5]
    plot = make_plot(
        times=list("abcde"),
        unit="s",
        scale="log",
        series=[PlotSeries(name="median", look="look-p50", mark="line", values=values)],
    )
    tree = parse(draw_time_plot(plot))

    assert [len(one.get("points").split()) for one in tree.iter("polyline")] == [2]
    assert len(list(tree.iter("circle"))) == 1


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 0.0], [1e9], [1e-7, 1e7]])
def test_any_figures_can_be_drawn(values):
    """Ours: no figures, nothing but zeros, and figures out of all bounds make a plot, too."""
    for scale in ("linear", "log"):
        for mark in ("bar", "line"):
            series = [PlotSeries(name="x", look="look-ok", mark=mark, values=values)]
            times = [str(n) for n in range(len(values))]
            drawn = draw_time_plot(make_plot(times=times, series=series, scale=scale))
            parse(drawn)
            assert "nan" not in re.sub(r"<(details|title).*", "", str(drawn))


@pytest.mark.parametrize(
    ("values", "top", "ticks"),
    [([3.0], 3, 4), ([40.0], 40, 5), ([41.0], 60, 4), ([999.0], 1000, 3), ([0.0], 1, 2)],
)
def test_an_axis_has_few_round_ticks(values, top, ticks):
    """Ours: two to five ticks, at figures that people read at a glance."""
    axis = make_axis(values, "linear")

    assert axis.high == top
    assert len(axis.ticks) == ticks


def test_texts_of_others_are_text_in_plots():
    """Ours: names of servers and rules become no nodes, and marks that turn text round are seen."""
    bars = BarPlot(
        key="errors",
        title="Errors",
        label="server",
        columns=(BarColumn("failed", "look-failed"),),
        rows=[BarRow(label=HOSTILE, values=(2.0,), link="/console/servers/x")],
    )
    drawn = f"{draw_bar_plot(bars)}{draw_time_plot(make_plot(times=[HOSTILE, 'b', 'c']))}"

    assert "<script>" not in drawn
    assert "\u202e" not in drawn
    assert "&lt;U+202E&gt;" in drawn


def test_bars_have_their_figures_beside_them():
    """Ours: a table with a picture in each row; zeros are left empty; no rows say so."""
    columns = (BarColumn("allow", "look-allow"), BarColumn("deny", "look-deny"))
    plot = BarPlot(
        key="rules",
        title="Rules",
        label="rule",
        columns=columns,
        rows=[BarRow(label="reads", values=(8.0, 0.0)), BarRow(label="keys", values=(0.0, 2.0))],
    )
    tree = parse(draw_bar_plot(plot))
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.find(".//tbody")]

    assert rows == [["reads", "", "8", ""], ["keys", "", "", "2"]]
    empty = BarPlot(
        key="e", title="E", label="l", columns=columns, rows=[], empty="Nothing failed."
    )
    assert "Nothing failed." in draw_bar_plot(empty)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0 ms"),
        (0.0004, "400 µs"),
        (0.003, "3 ms"),
        (0.0042, "4.2 ms"),
        (0.25, "250 ms"),
        (1.24, "1.2 s"),
        (61.0, "61 s"),
        (240.0, "4 min"),
        (8000.0, "2 h"),
    ],
)
def test_times_are_written_as_people_say_them(seconds, text):
    """Ours: one unit, two digits that matter."""
    assert format_seconds(seconds) == text
