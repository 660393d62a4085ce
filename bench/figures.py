"""The figures of ``docs/concepts/speed.md``, drawn from RESULTS.md and nothing else.

``make bench`` draws them after it has written RESULTS.md; ``python bench/figures.py`` does so again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from drawing import Panel, Series, draw_bars, draw_lines
from results import ISTHMUS, LIMIT, MCP, SDK, SERVER, Table

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
FOLDER = HERE.parent / "docs" / "concepts" / "figures"
ROWS = (ISTHMUS, MCP, SDK, SERVER, LIMIT)

NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?")

Parsed = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Figures by the title of a table, the row and the head of a column."""


@dataclass(frozen=True)
class Plot:
    """One panel of a figure.

    Attributes:
        title: above it, with the unit.
        table: whose rows are shown.
        columns: name of a column and its short name here; all with their own names if left out.
        rows: which rows, in order.
    """

    title: str
    table: str
    columns: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[str] = ROWS


@dataclass(frozen=True)
class Figure:
    """A file: its title and its plots."""

    name: str
    title: str
    kind: Literal["bars", "lines"]
    plots: Sequence[Plot]


FIGURES = (
    Figure(
        "http",
        "HTTP: CPU time of the server for a call, µs, 64 connections (less is better)",
        "bars",
        (
            Plot("2026-07-28", "http modern", {"cpu_us": ""}),
            Plot("2025-06-18, JSON answers", "http legacy json", {"cpu_us": ""}),
            Plot("2025-06-18, every answer a stream", "http legacy sse", {"cpu_us": ""}),
        ),
    ),
    Figure(
        "stdio",
        "stdio: CPU time of the server for a call, µs (less is better)",
        "bars",
        (
            Plot("one after another", "stdio", {"sequential_us": ""}),
            Plot("64 in flight", "stdio", {"flight_us": ""}),
        ),
    ),
    Figure(
        "clients",
        "Clients: CPU time of the client for a call, µs (less is better)",
        "bars",
        (
            Plot(
                "HTTP, 2025-06-18",
                "client legacy",
                {"sequential_us": "one after another", "at_once_us": "16 at once"},
            ),
            Plot(
                "HTTP, 2026-07-28",
                "client modern",
                {"sequential_us": "one after another", "at_once_us": "16 at once"},
            ),
            Plot(
                "client and server in one process",
                "client memory",
                {"sequential_us": "one after another", "at_once_us": "16 at once"},
            ),
        ),
    ),
    Figure(
        "payload",
        "Payload over stdio: CPU time of the server for a call, ms (less is better)",
        "lines",
        (
            Plot("a string as argument", "payload take_text"),
            Plot("a string as result", "payload give_text"),
            Plot("a list of records as argument", "payload take_structs"),
            Plot("a list of records as result", "payload give_structs"),
        ),
    ),
    Figure(
        "tools",
        "The number of tools: what a server of so many costs (less is better)",
        "lines",
        (
            Plot("tools/list, CPU ms", "tools list"),
            Plot("tools/call, CPU µs", "tools call"),
            Plot("start to first answer, ms", "tools spawn"),
            Plot("memory, MB", "tools memory"),
        ),
    ),
    Figure(
        "sessions",
        "The number of open sessions (2025-06-18): CPU time of the server, µs (less is better)",
        "lines",
        (
            Plot("a call", "sessions call"),
            Plot("opening a session", "sessions open"),
        ),
    ),
    Figure(
        "kinds",
        "Kinds of tools, HTTP, 64 connections: CPU time of the server for a call, µs",
        "bars",
        (
            Plot(
                "2026-07-28",
                "kinds",
                {
                    "async": "async",
                    "context": "with Context",
                    "structured": "a record as result",
                    "middleware": "three middlewares",
                    "lifespan": "a lifespan",
                    "sync": "sync, in a thread",
                    "on_loop": "sync, blocking=False",
                },
                (ISTHMUS, MCP),
            ),
        ),
    ),
    Figure(
        "guards",
        "Authorization, HTTP, 64 connections: CPU time of the server for a call, µs",
        "bars",
        (
            Plot(
                "2026-07-28",
                "auth",
                {
                    "none": "no guard",
                    "static": "a fixed token",
                    "static_1000": "one of 1,000 fixed tokens",
                    "es256": "a signed token (ES256)",
                },
            ),
        ),
    ),
    Figure(
        "start",
        "Start-up (less is better)",
        "bars",
        (
            Plot(
                "start of a stdio server to its first answer, ms",
                "spawn",
                {"answer_ms": ""},
                (ISTHMUS, f"{ISTHMUS} run", MCP, SDK, SERVER),
            ),
            Plot(
                "import and a server with one tool, CPU ms",
                "imports",
                {"import_ms": ""},
                (ISTHMUS, MCP, "asyncio and msgspec", "python alone"),
            ),
        ),
    ),
)


def parse_results(text: str) -> Parsed:
    """The tables of a RESULTS.md, without the ratios in their cells."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    title, heads = "", list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            title, heads = line.lstrip("# "), []
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not heads:
                heads = cells
            elif not set(line) <= set("|-:"):
                row = found.setdefault(title, {}).setdefault(cells[0], {})
                row.update(read_cells(heads[1:], cells[1:]))
    return found


def read_cells(heads: Iterable[str], cells: Iterable[str]) -> Iterator[tuple[str, float]]:
    """The figures of a row: what each cell begins with."""
    for head, cell in zip(heads, cells, strict=False):
        if match := NUMBER.match(cell):
            yield head, float(match[0].replace(",", ""))


def make_panel(plot: Plot, parsed: Parsed, tables: Mapping[str, Table]) -> Panel | None:
    """A panel with the figures that were measured, or None where there are none."""
    table = tables[plot.table]
    columns = plot.columns or {name: name for name in table.columns}
    rows = parsed.get(table.title, {})
    series = [
        Series(
            row,
            {
                short: rows[row][table.columns[name].title]
                for name, short in columns.items()
                if table.columns[name].title in rows[row]
            },
            find_colour(row, plot.rows),
        )
        for row in plot.rows
        if row in rows
    ]
    shown = [one for one in series if one.values]
    return Panel(plot.title, list(columns.values()), shown) if shown else None


def find_colour(row: str, rows: Sequence[str]) -> int:
    """The colour of a row: a library has the same one in every figure."""
    if row.startswith(ISTHMUS):
        return ROWS.index(ISTHMUS)
    return ROWS.index(row) if row in ROWS else len(ROWS) - 1 + rows.index(row) % 2


def draw_figures(text: str, tables: Mapping[str, Table]) -> dict[str, str]:
    """The SVG of each figure for which something was measured, by the name of its file.

    Args:
        text: a RESULTS.md.
        tables: all tables by name, whose titles say what is what in the text.
    """
    parsed, drawn = parse_results(text), {}
    draw = {"bars": draw_bars, "lines": draw_lines}
    for figure in FIGURES:
        panels = [make_panel(plot, parsed, tables) for plot in figure.plots]
        shown = [panel for panel in panels if panel is not None]
        if shown:
            drawn[f"{figure.name}.svg"] = draw[figure.kind](figure.title, shown)
    return drawn


def write_figures(text: str, tables: Mapping[str, Table], folder: Path = FOLDER) -> list[Path]:
    """Write the figures of a RESULTS.md; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, svg in draw_figures(text, tables).items():
        paths.append(folder / name)
        paths[-1].write_text(svg, encoding="utf-8")
    return paths


if __name__ == "__main__":
    from parts import TABLES

    for path in write_figures(
        RESULTS.read_text(encoding="utf-8"), {table.name: table for table in TABLES}
    ):
        print(path)
