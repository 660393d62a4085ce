"""Plots of the traffic: calls per minute, latency, errors by server, decisions by rule."""

import time

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.plots import (
    BarColumn,
    BarPlot,
    BarRow,
    PlotSeries,
    TimePlot,
    draw_bar_plot,
    draw_time_plot,
    format_seconds,
)
from isthmus.host.model.view import TrafficFigures

MAX_BARS = 8


def draw_figures(figures: TrafficFigures) -> Markup:
    """All plots of the last minutes."""
    return element(
        "div",
        {"class": "plots"},
        draw_time_plot(make_calls_plot(figures)),
        draw_time_plot(make_latency_plot(figures)),
        draw_bar_plot(make_errors_plot(figures)),
        draw_bar_plot(make_decisions_plot(figures)),
    )


def make_calls_plot(figures: TrafficFigures) -> TimePlot:
    """Calls per minute, those that failed upon those that did not."""
    minutes = figures.minutes
    calls, failed = sum(one.calls for one in minutes), sum(one.failed for one in minutes)
    return TimePlot(
        key="calls",
        title="Calls per minute",
        summary=f"{calls:,} calls in {len(minutes)} minutes, {failed:,} of them failed.",
        times=_list_times(figures),
        unit="calls",
        series=[
            PlotSeries(
                name="succeeded",
                look="look-ok",
                mark="bar",
                values=[float(one.calls - one.failed) for one in minutes],
            ),
            PlotSeries(
                name="failed",
                look="look-failed",
                mark="bar",
                values=[float(one.failed) for one in minutes],
            ),
        ],
    )


def make_latency_plot(figures: TrafficFigures) -> TimePlot:
    """Percentiles of what calls took, for each minute."""
    minutes = figures.minutes
    worst = max((one.p99 for one in minutes if one.p99 is not None), default=None)
    said = f"99 of 100 calls took {format_seconds(worst)} at most in the slowest minute."
    return TimePlot(
        key="latency",
        title="Latency",
        summary=said if worst is not None else "No call has ended yet.",
        times=_list_times(figures),
        unit="s",
        scale="log",
        series=[
            PlotSeries(
                name="median", look="look-p50", mark="line", values=[one.p50 for one in minutes]
            ),
            PlotSeries(
                name="95 %", look="look-p95", mark="line", values=[one.p95 for one in minutes]
            ),
            PlotSeries(
                name="99 %", look="look-p99", mark="line", values=[one.p99 for one in minutes]
            ),
        ],
    )


def make_errors_plot(figures: TrafficFigures) -> BarPlot:
    """Failed calls of each server, the most first."""
    rows = sorted(figures.errors.items(), key=lambda item: -item[1])[:MAX_BARS]
    return BarPlot(
        key="errors",
        title="Errors by server",
        label="server",
        columns=(BarColumn("failed", "look-failed"),),
        rows=[BarRow(label=name, values=(float(count),)) for name, count in rows],
        empty="No call has failed.",
    )


def make_decisions_plot(figures: TrafficFigures) -> BarPlot:
    """What each rule said, the busiest first."""
    effects = ("allow", "ask", "deny")
    rows = sorted(figures.decisions.items(), key=lambda item: -sum(item[1].values()))[:MAX_BARS]
    return BarPlot(
        key="decisions",
        title="Decisions by rule",
        label="rule",
        columns=tuple(BarColumn(effect, f"look-{effect}") for effect in effects),
        rows=[
            BarRow(
                label=name or "(no rule)",
                values=tuple(float(counts.get(effect, 0)) for effect in effects),
            )
            for name, counts in rows
        ],
        empty="Nothing was decided yet.",
    )


def _list_times(figures: TrafficFigures) -> list[str]:
    return [time.strftime("%H:%M", time.localtime(one.at)) for one in figures.minutes]
