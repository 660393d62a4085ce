"""Plain SVG drawings: groups of bars, and lines over sizes on logarithmic axes.

Pure: the same figures give the same bytes. A drawing has a title and a description for those who
cannot see it, says its values in words beside the marks, and has colours for light and dark.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 760
MARGIN = 16
TITLE_HEIGHT = 44
LEGEND_HEIGHT = 26
ROW_HEIGHT = 19
BAR_HEIGHT = 13
GROUP_GAP = 12
LABEL_WIDTH = 150
VALUE_WIDTH = 84
PANEL_HEIGHT = 210
PANEL_TOP = 26
PANEL_BOTTOM = 34
PANEL_LEFT = 52
PANEL_RIGHT = 14

# The colours of Okabe and Ito, which people with any kind of sight tell apart; lighter ones for dark.
COLOURS = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f0894a"),
    ("#007a5a", "#35c297"),
    ("#a8518a", "#e09cc6"),
    ("#6b6b6b", "#a8a8a8"),
    ("#8a6d00", "#e0c14d"),
)
THEMES = (("#fff", "#1f2328", "#59636e", "#d8dee4"), ("#0d1117", "#e6edf3", "#9198a1", "#30363d"))
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "4 4")


@dataclass(frozen=True)
class Series:
    """One row of a table: a name and its figure for each size or in each group.

    Attributes:
        name: who it is.
        values: by the size or the group.
        colour: which colour and dashes it has, the same in every panel.
    """

    name: str
    values: Mapping[str, float]
    colour: int = 0


@dataclass(frozen=True)
class Panel:
    """One plot of a drawing.

    Attributes:
        title: above it, with the unit.
        ticks: the sizes or groups, in order.
        series: who is shown.
    """

    title: str
    ticks: Sequence[str]
    series: Sequence[Series]


def write_colours(theme: int) -> str:
    """The rules of one theme: paper, ink, soft ink and grid, then the colours of the series."""
    paper, ink, soft, grid = THEMES[theme]
    rules = f".p{{fill:{paper}}}text{{fill:{ink}}}.q{{fill:{soft}}}.g{{stroke:{grid}}}"
    for number, pair in enumerate(COLOURS):
        rules += f".b.s{number}{{fill:{pair[theme]}}}.l.s{number}{{stroke:{pair[theme]}}}"
    return rules


def write_style() -> str:
    """The style sheet: light, and dark where the reader has chosen that."""
    shapes = (
        "text{font:12px system-ui,sans-serif}.t{font-size:15px;font-weight:600}"
        ".h{font-weight:600}.l{stroke-width:2;fill:none}"
    )
    dark = f"@media (prefers-color-scheme:dark){{{write_colours(1)}}}"
    return f"<style>{shapes}{write_colours(0)}{dark}</style>"


def write_text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    said = f' class="{kind}"' if kind else ""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{said}{place}>{escape(text)}</text>'


def write_svg(title: str, about: str, height: float, parts: Iterable[str]) -> str:
    """The whole drawing."""
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
            f'width="{WIDTH}" height="{height:.0f}" role="img" aria-labelledby="title about">'
        ),
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="about">{escape(about)}</desc>',
        write_style(),
        f'<rect class="p" width="{WIDTH}" height="{height:.0f}"/>',
        write_text(MARGIN, 26, title, "t"),
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def format_value(value: float) -> str:
    """Three figures, as people read them."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.3g}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def describe_panels(panels: Sequence[Panel]) -> str:
    """All values in words, for those who cannot see them."""
    said = []
    for panel in panels:
        rows = []
        for series in panel.series:
            values = [
                f"{tick} {format_value(series.values[tick])}"
                for tick in panel.ticks
                if tick in series.values
            ]
            if values:
                rows.append(f"{series.name}: {', '.join(values)}")
        said.append(f"{panel.title}. {'; '.join(rows)}.")
    return " ".join(said)


def draw_bars(title: str, panels: Sequence[Panel]) -> str:
    """Horizontal bars: in each panel, a group of bars for each tick, each with its value.

    The bars of a panel have one scale; who has no figure in a group is left out of it.
    """
    y, parts = float(TITLE_HEIGHT), list[str]()
    room = WIDTH - 2 * MARGIN - LABEL_WIDTH - VALUE_WIDTH
    left = MARGIN + LABEL_WIDTH
    for panel in panels:
        parts.append(write_text(MARGIN, y + 14, panel.title, "h"))
        y += 24
        most = max((v for s in panel.series for v in s.values.values()), default=1.0) or 1.0
        for tick in panel.ticks:
            shown = [series for series in panel.series if tick in series.values]
            if len(panel.ticks) > 1 and shown:
                parts.append(write_text(MARGIN, y + 12, tick, "q"))
                y += ROW_HEIGHT
            for series in shown:
                value = series.values[tick]
                width = max(1.0, value / most * room)
                middle = y + BAR_HEIGHT - 2
                parts += [
                    write_text(left - 8, middle, series.name, "q", "end"),
                    (
                        f'<rect class="b s{series.colour % len(COLOURS)}" x="{left}" y="{y:.1f}" '
                        f'width="{width:.1f}" height="{BAR_HEIGHT}" rx="2"/>'
                    ),
                    write_text(left + width + 6, middle, format_value(value)),
                ]
                y += ROW_HEIGHT
            y += 4
        y += GROUP_GAP
    return write_svg(title, describe_panels(panels), y, parts)


def draw_lines(title: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """Lines over sizes, both axes logarithmic: a panel for each kind of work, two in a row."""
    colours = {series.name: series.colour for panel in panels for series in panel.series}
    parts = draw_legend(colours, TITLE_HEIGHT)
    width = (WIDTH - 2 * MARGIN) / columns
    top = TITLE_HEIGHT + LEGEND_HEIGHT
    for number, panel in enumerate(panels):
        x = MARGIN + number % columns * width
        y = top + number // columns * (PANEL_HEIGHT + 10)
        parts += draw_panel(panel, x, y, width)
    rows = -(-len(panels) // columns)
    return write_svg(title, describe_panels(panels), top + rows * (PANEL_HEIGHT + 10), parts)


def draw_legend(colours: Mapping[str, int], y: float) -> list[str]:
    """A mark and a name for each series, in one line."""
    parts, x = list[str](), float(MARGIN)
    for name, colour in colours.items():
        parts.append(draw_stroke([(x, y + 8), (x + 26, y + 8)], colour))
        parts.append(write_text(x + 32, y + 12, name))
        x += 32 + 7.2 * len(name) + 22
    return parts


def draw_stroke(points: Sequence[tuple[float, float]], colour: int) -> str:
    """A line through points, with the colour and the dashes of a series."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = DASHES[colour % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline class="l s{colour % len(COLOURS)}" points="{path}"{dashed}/>'


def find_decades(panel: Panel) -> tuple[int, int]:
    """The powers of ten below and above all values."""
    values = [v for s in panel.series for v in s.values.values() if v > 0] or [1.0]
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def draw_panel(panel: Panel, x: float, y: float, width: float) -> list[str]:
    """One plot: its grid, its axes and its lines."""
    left, right = x + PANEL_LEFT, x + width - PANEL_RIGHT
    top, bottom = y + PANEL_TOP, y + PANEL_HEIGHT - PANEL_BOTTOM
    low, high = find_decades(panel)
    parts = [write_text(x, y + 14, panel.title, "h")]
    for power in range(low, high + 1):
        level = bottom - (power - low) / (high - low) * (bottom - top)
        parts.append(
            f'<line class="g" x1="{left:.1f}" y1="{level:.1f}" x2="{right:.1f}" y2="{level:.1f}"/>'
        )
        parts.append(write_text(left - 6, level + 4, format_value(10.0**power), "q", "end"))
    step = (right - left) / max(1, len(panel.ticks) - 1)
    places = {tick: left + number * step for number, tick in enumerate(panel.ticks)}
    for tick, place in places.items():
        parts.append(write_text(place, bottom + 18, tick, "q", "middle"))
    for series in panel.series:
        points = [
            (
                places[tick],
                bottom - (math.log10(value) - low) / (high - low) * (bottom - top),
            )
            for tick, value in series.values.items()
            if tick in places and value > 0
        ]
        parts.append(draw_stroke(points, series.colour))
        parts += [
            f'<circle class="b s{series.colour % len(COLOURS)}" cx="{px:.1f}" cy="{py:.1f}" r="3"/>'
            for px, py in points
        ]
    return parts
