"""Plots as SVG: calls and latency over time, and bars by server or rule.

Pure functions from figures to markup. A plot says its content three times: as a picture whose series differ by
shape and not by colour alone, as a sentence for who cannot see it, and as a table below. Pointing at a minute
tells its figures, without a script.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from isthmus.cards.markup import Markup, element

SeriesMark: TypeAlias = Literal["bar", "line"]
PlotScale: TypeAlias = Literal["linear", "log"]

PLOT_WIDTH = 420
PLOT_HEIGHT = 168
LEFT_MARGIN = 44
RIGHT_MARGIN = 10
TOP_MARGIN = 10
BOTTOM_MARGIN = 22
INNER_WIDTH = PLOT_WIDTH - LEFT_MARGIN - RIGHT_MARGIN
INNER_HEIGHT = PLOT_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN
MAX_TIME_LABELS = 5
BAR_WIDTH = 200
BAR_HEIGHT = 10
SAMPLE_WIDTH = 22
SAMPLE_HEIGHT = 10

# What is drawn over the colour of a bar, by its look: bars differ where colours cannot be told apart.
HATCHES = {
    "look-failed": "M0,6 L6,0",
    "look-deny": "M0,6 L6,0",
    "look-ask": "M3,0 L3,6",
}
HATCH_SIZE = 6


class PlotSeries(Struct, frozen=True, kw_only=True):
    """One series of a plot over time.

    Attributes:
        name: in the legend and the table.
        look: the class that gives it its colour and its dashes.
        mark: bars stand upon each other in the order of the series; lines are drawn by themselves.
        values: one for each time; None where nothing was measured.
    """

    name: str
    look: str
    mark: SeriesMark
    values: Sequence[float | None]


class TimePlot(Struct, frozen=True, kw_only=True):
    """A plot over time.

    Attributes:
        key: a word of ours for the ids in the markup; each once in a page.
        title: its headline.
        summary: what it shows, in a sentence.
        times: a label for each point of the axis, oldest first.
        series: at least one.
        unit: of the values: ``calls``, or ``s`` for seconds, which are written as people say them.
        scale: of the values.
    """

    key: str
    title: str
    summary: str
    times: Sequence[str]
    series: Sequence[PlotSeries]
    unit: str = ""
    scale: PlotScale = "linear"


class BarColumn(Struct, frozen=True):
    """One part that every bar has: its name, and the class of its looks."""

    name: str
    look: str


class BarRow(Struct, frozen=True, kw_only=True):
    """One row of bars.

    Attributes:
        label: what is counted.
        values: in the order of the plot's columns.
        link: where the label leads; empty for nowhere.
    """

    label: str
    values: tuple[float, ...]
    link: str = ""


class BarPlot(Struct, frozen=True, kw_only=True):
    """Bars, each in a row of a table that has the figures beside it.

    Attributes:
        key: a word of ours for the ids in the markup.
        title: its headline.
        label: the headline of the column of labels.
        columns: the parts of each bar, from left to right.
        rows: those that are shown.
        empty: what is said where there are no rows.
    """

    key: str
    title: str
    label: str
    columns: tuple[BarColumn, ...]
    rows: Sequence[BarRow]
    empty: str = "Nothing yet."


class PlotAxis(Struct, frozen=True):
    """The axis of values.

    Attributes:
        low: the value at the bottom.
        high: the value at the top.
        ticks: those that have a line.
        scale: how values become heights.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    scale: PlotScale

    def find_height(self, value: float) -> float:
        """The distance of a value from the top of the picture."""
        if self.scale == "log":
            low, high = math.log10(self.low), math.log10(self.high)
            part = (math.log10(max(value, self.low)) - low) / (high - low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return TOP_MARGIN + INNER_HEIGHT * (1 - min(max(part, 0.0), 1.0))


def make_axis(values: Sequence[float], scale: PlotScale) -> PlotAxis:
    """An axis on which all values have a place, with ticks at round figures."""
    good = [value for value in values if value > 0 and math.isfinite(value)]
    if scale == "log":
        low = math.floor(math.log10(min(good, default=0.001)) + 1e-9)
        high = max(math.ceil(math.log10(max(good, default=1.0)) - 1e-9), low + 1)
        ticks = tuple(10.0**power for power in range(low, high + 1))
        return PlotAxis(ticks[0], ticks[-1], ticks, "log")
    step = _find_step(max(good, default=0.0))
    count = max(math.ceil(max(good, default=0.0) / step - 1e-9), 1)
    return PlotAxis(0.0, step * count, tuple(step * n for n in range(count + 1)), "linear")


def _find_step(highest: float) -> float:
    """The least of 1, 2, 5, 10, 20 … that needs four steps at most."""
    power = 1.0
    while power * 40 < highest:
        power *= 10
    return next(power * n for n in (1, 2, 5, 10) if power * n * 4 >= highest)


# From which on a time is written in a unit, and how many of the unit a second has.
SECOND_UNITS = (
    (7200.0, 1 / 3600, "h"),
    (100.0, 1 / 60, "min"),
    (1.0, 1.0, "s"),
    (0.001, 1_000.0, "ms"),
    (0.0, 1_000_000.0, "µs"),
)


def format_seconds(seconds: float | None) -> str:
    """A time that something took, as people say it: ``3 ms``, ``1.2 s``, ``4 min``."""
    if seconds is None:
        return "-"
    if seconds <= 0:
        return "0 ms"
    scale, unit = next((scale, unit) for least, scale, unit in SECOND_UNITS if seconds >= least)
    amount = seconds * scale
    digits = 1 if amount < 10 and unit in {"s", "ms"} else 0
    return f"{amount:.{digits}f} {unit}".replace(".0 ", " ")


def format_figure(value: float | None, unit: str) -> str:
    """A value as the table and the axis write it."""
    if value is None:
        return "-"
    if unit == "s":
        return format_seconds(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def draw_time_plot(plot: TimePlot) -> Markup:
    """A plot over time, with its legend and its table."""
    return element(
        "figure",
        {"class": "plot", "id": f"plot-{plot.key}"},
        element(
            "figcaption",
            {"class": "plot-head"},
            element("span", {"class": "plot-title"}, plot.title),
            element(
                "span",
                {"class": "legend"},
                *(_draw_legend_entry(plot.key, one) for one in plot.series),
            ),
        ),
        _draw_hatches(plot.key, [one.look for one in plot.series]),
        _draw_picture(plot),
        _make_figures_table(plot),
    )


def _draw_hatches(key: str, looks: Sequence[str]) -> Markup:
    """The patterns of a plot, in a picture of their own that takes no place."""
    patterns = [
        element(
            "pattern",
            {
                "id": f"plot-{key}-{look}",
                "patternUnits": "userSpaceOnUse",
                "width": _write(HATCH_SIZE),
                "height": _write(HATCH_SIZE),
            },
            element(
                "rect",
                {"class": f"ground {look}", "width": "6", "height": "6"},
            ),
            element("path", {"class": "hatch", "d": HATCHES[look]}),
        )
        for look in dict.fromkeys(looks)
        if look in HATCHES
    ]
    frame = {"class": "hatches", "width": "0", "height": "0", "aria-hidden": "true"}
    return element("svg", frame, element("defs", {}, *patterns))


def _fill_bar(key: str, look: str) -> dict[str, str]:
    """The attributes that give a bar its colour, or its pattern."""
    if look in HATCHES:
        return {"class": "bar", "fill": f"url(#plot-{key}-{look})"}
    return {"class": f"bar {look}"}


def _draw_legend_entry(key: str, series: PlotSeries) -> Markup:
    sample = _draw_sample(key, series.mark, series.look)
    return element("span", {"class": "legend-entry"}, sample, series.name)


def _draw_sample(key: str, mark: SeriesMark, look: str) -> Markup:
    """A small piece of a series, as the legend has it."""
    middle = _write(SAMPLE_HEIGHT / 2)
    if mark == "line":
        line = {"x1": "0", "y1": middle, "x2": _write(SAMPLE_WIDTH), "y2": middle}
        drawn = element("line", {"class": f"series {look}", **line})
    else:
        size = {"width": _write(SAMPLE_WIDTH), "height": _write(SAMPLE_HEIGHT)}
        drawn = element("rect", _fill_bar(key, look) | size)
    frame = {
        "class": "sample",
        "viewBox": f"0 0 {SAMPLE_WIDTH} {SAMPLE_HEIGHT}",
        "aria-hidden": "true",
    }
    return element("svg", frame, drawn)


def _draw_picture(plot: TimePlot) -> Markup:
    title, summary = f"plot-{plot.key}-title", f"plot-{plot.key}-summary"
    axis = make_axis(_list_heights(plot), plot.scale)
    return element(
        "svg",
        {
            "class": "plot-picture",
            "viewBox": f"0 0 {PLOT_WIDTH} {PLOT_HEIGHT}",
            "role": "img",
            "aria-labelledby": f"{title} {summary}",
        },
        element("title", {"id": title}, plot.title),
        element("desc", {"id": summary}, plot.summary),
        *_draw_grid(axis, plot.unit),
        *_draw_times(plot.times),
        *_draw_bars(plot, axis),
        *_draw_lines(plot, axis),
        *_draw_pointers(plot),
    )


def _list_heights(plot: TimePlot) -> list[float]:
    """The values that the axis has to reach: sums of bars, and single points of lines."""
    bars = [one.values for one in plot.series if one.mark == "bar"]
    sums = [sum(value or 0.0 for value in column) for column in zip(*bars, strict=True)]
    lines = [value for one in plot.series if one.mark == "line" for value in one.values]
    return [*sums, *(value for value in lines if value is not None)]


def _find_place(at: float, count: int) -> float:
    """The distance from the left of a point of the axis of times; halves are between two."""
    return LEFT_MARGIN + INNER_WIDTH * at / max(count, 1)


def _write(number: float) -> str:
    """A coordinate, without digits that nobody sees."""
    return f"{number:.1f}".removesuffix(".0")


def _draw_grid(axis: PlotAxis, unit: str) -> Iterator[Markup]:
    for tick in axis.ticks:
        height = _write(axis.find_height(tick))
        yield element(
            "line",
            {
                "class": "grid",
                "x1": _write(LEFT_MARGIN),
                "x2": _write(PLOT_WIDTH - RIGHT_MARGIN),
                "y1": height,
                "y2": height,
            },
        )
        place = {
            "class": "tick",
            "x": _write(LEFT_MARGIN - 6),
            "y": height,
            "text-anchor": "end",
            "dominant-baseline": "middle",
        }
        yield element("text", place, format_figure(tick, unit))


def _draw_times(times: Sequence[str]) -> Iterator[Markup]:
    step = max(math.ceil(len(times) / MAX_TIME_LABELS), 1)
    for at in range(0, len(times), step):
        place = {
            "class": "tick",
            "x": _write(_find_place(at + 0.5, len(times))),
            "y": _write(PLOT_HEIGHT - 6),
            "text-anchor": "middle",
        }
        yield element("text", place, times[at])


def _draw_bars(plot: TimePlot, axis: PlotAxis) -> Iterator[Markup]:
    count = len(plot.times)
    width = max(INNER_WIDTH / max(count, 1) - 1, 1.0)
    below = [0.0] * count
    for series in plot.series:
        if series.mark != "bar":
            continue
        for at, value in enumerate(series.values):
            if not value:
                continue
            top, bottom = axis.find_height(below[at] + value), axis.find_height(below[at])
            below[at] += value
            yield element(
                "rect",
                _fill_bar(plot.key, series.look)
                | {
                    "x": _write(_find_place(at, count) + 0.5),
                    "y": _write(top),
                    "width": _write(width),
                    "height": _write(max(bottom - top, 1.0)),
                },
            )


def _draw_lines(plot: TimePlot, axis: PlotAxis) -> Iterator[Markup]:
    for series in plot.series:
        if series.mark != "line":
            continue
        for stretch in _split_at_gaps(series.values):
            points = [
                (_find_place(at + 0.5, len(plot.times)), axis.find_height(value))
                for at, value in stretch
            ]
            if len(points) == 1:  # a line of one point is not drawn
                (x, y) = points[0]
                dot = {
                    "class": f"dot {series.look}",
                    "cx": _write(x),
                    "cy": _write(y),
                    "r": "2",
                }
                yield element("circle", dot)
                continue
            drawn = " ".join(f"{_write(x)},{_write(y)}" for x, y in points)
            yield element("polyline", {"class": f"series {series.look}", "points": drawn})


def _split_at_gaps(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """The stretches in which every value is known."""
    stretch: list[tuple[int, float]] = []
    for at, value in enumerate(values):
        if value is not None:
            stretch.append((at, value))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _draw_pointers(plot: TimePlot) -> Iterator[Markup]:
    """An unseen strip over each time, whose title a browser shows to who points at it."""
    width = _write(INNER_WIDTH / max(len(plot.times), 1))
    for at, label in enumerate(plot.times):
        told = ", ".join(
            f"{one.name} {format_figure(one.values[at], plot.unit)}" for one in plot.series
        )
        strip = {
            "class": "pointer",
            "x": _write(_find_place(at, len(plot.times))),
            "y": _write(TOP_MARGIN),
            "width": width,
            "height": _write(INNER_HEIGHT),
        }
        yield element("rect", strip, element("title", {}, f"{label}: {told}"))


def _make_figures_table(plot: TimePlot) -> Markup:
    """The figures of the times at which there are any, newest first."""
    seen = [at for at in range(len(plot.times)) if any(one.values[at] for one in plot.series)]
    head = element(
        "tr",
        {},
        element("th", {"scope": "col"}, "time"),
        *(element("th", {"scope": "col", "class": "number"}, one.name) for one in plot.series),
    )
    rows = [
        element(
            "tr",
            {},
            element("th", {"scope": "row"}, plot.times[at]),
            *(
                element("td", {"class": "number"}, format_figure(one.values[at], plot.unit))
                for one in plot.series
            ),
        )
        for at in reversed(seen)
    ]
    table = element(
        "table",
        {"class": "figures"},
        element("caption", {}, plot.summary),
        element("thead", {}, head),
        element("tbody", {}, *rows),
    )
    return element(
        "details",
        {"class": "plot-table", "id": f"plot-{plot.key}-table"},
        element("summary", {}, "As a table"),
        table if rows else element("p", {"class": "empty"}, "Nothing was measured yet."),
    )


def draw_bar_plot(plot: BarPlot) -> Markup:
    """Bars in a table: the picture and its figures in one."""
    head = element("h2", {"class": "plot-title", "id": f"plot-{plot.key}-title"}, plot.title)
    frame = {"class": "plot", "id": f"plot-{plot.key}", "aria-labelledby": f"plot-{plot.key}-title"}
    if not plot.rows:
        return element("section", frame, head, element("p", {"class": "empty"}, plot.empty))
    longest = max(sum(row.values) for row in plot.rows) or 1.0
    names = element(
        "tr",
        {},
        element("th", {"scope": "col"}, plot.label),
        element("td", {"class": "bar-head"}),
        *(
            element(
                "th",
                {"scope": "col", "class": "number"},
                _draw_sample(plot.key, "bar", one.look),
                one.name,
            )
            for one in plot.columns
        ),
    )
    table = element(
        "table",
        {"class": "bars"},
        element("thead", {}, names),
        element("tbody", {}, *(_draw_bar_row(plot, row, longest) for row in plot.rows)),
    )
    hatches = _draw_hatches(plot.key, [one.look for one in plot.columns])
    return element("section", frame, head, hatches, table)


def _draw_bar_row(plot: BarPlot, row: BarRow, longest: float) -> Markup:
    label = element("a", {"href": row.link}, row.label) if row.link else row.label
    return element(
        "tr",
        {},
        element("th", {"scope": "row"}, label),
        element("td", {"class": "bar-cell"}, _draw_bar(plot, row, longest)),
        *(
            element("td", {"class": "number"}, format_figure(value, "") if value else "")
            for value in row.values
        ),
    )


def _draw_bar(plot: BarPlot, row: BarRow, longest: float) -> Markup:
    drawn, x = [], 0.0
    for column, value in zip(plot.columns, row.values, strict=True):
        width = BAR_WIDTH * value / longest
        if width:
            place = _fill_bar(plot.key, column.look) | {
                "x": _write(x),
                "width": _write(max(width, 1.0)),
                "height": _write(BAR_HEIGHT),
            }
            drawn.append(element("rect", place))
        x += width
    frame = {
        "class": "bar-picture",
        "viewBox": f"0 0 {BAR_WIDTH} {BAR_HEIGHT}",
        "preserveAspectRatio": "none",
        "aria-hidden": "true",
    }
    return element("svg", frame, *drawn)
