"""The report: how every peer did, how isthmus stands against its floors, and where a peer is ahead."""

import datetime as dt
import platform
from importlib.metadata import version
from pathlib import Path

from contenders import peers
from floors import judge_floors
from processes import CORES, HERE
from results import ISTHMUS, MCP, Results, Table, count_compared, find_ahead
from turns import Effort

TIMES = "\N{MULTIPLICATION SIGN}"
RESULTS = HERE / "RESULTS.md"
INTRODUCTION = """# Results

Written by `make bench`. Absolute figures say as much about the machine as about the code; the
ratios in brackets are to PyPI mcp 2.3.0 in the same run, and they are what counts. CPU is user and
system time of the server's process, all its threads and children: the least of the rounds. Rates,
latencies and memory are medians. A star marks what CI holds.
"""


def format_number(value: float) -> str:
    """Three figures that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def format_table(results: Results, table: Table) -> list[str]:
    """One table, each cell with its ratio to ``mcp``."""
    rows = results.samples[table.name]
    columns = [c for c in table.columns if any(c in row for row in rows.values())]
    heads = " | ".join(table.columns[c].title for c in columns)
    lines = [f"### {table.title}", "", f"| | {heads} |", "|---|" + "---:|" * len(columns)]
    for row in sorted(rows, key=lambda row: (row != ISTHMUS, row != MCP)):
        cells = [format_cell(results, table.name, row, column) for column in columns]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def format_cell(results: Results, table: str, row: str, column: str) -> str:
    """A figure and its ratio to that of ``mcp``."""
    value = results.cell(table, row, column)
    if value is None:
        return "-"
    ratio = None if row == MCP else results.ratio(table, row, MCP, column)
    return format_number(value) + ("" if ratio is None else f" ({ratio:.2g}{TIMES})")


def format_floors(results: Results) -> list[str]:
    """How isthmus stands: a figure, its floor and its goal in each row."""
    lines = [
        "| measure | against | isthmus | floor | goal | reached |",
        "|---|---|---:|---:|---:|---|",
    ]
    for verdict in judge_floors(results):
        floor = verdict.floor
        sign = "≤ " if floor.upper else "≥ "
        unit = TIMES if floor.kind in {"speedup", "share"} else ""
        against = floor.against or (f"column {floor.base}" if floor.base else "-")
        star = " *" if floor.starred else ""
        lines.append(
            f"| {floor.measure}{star} | {against} | {format_number(verdict.value)}{unit} "
            f"| {sign}{floor.floor:g}{unit} | {sign}{floor.goal:g}{unit} | {verdict.word} |"
        )
    return [*lines, ""]


def format_ahead(results: Results) -> list[str]:
    """Each figure in which a peer is ahead, by name."""
    found = list(find_ahead(results))
    compared = count_compared(results)
    if not found:
        return [f"None, of {compared} figures that isthmus and a peer have.", ""]
    lines = [
        f"{len(found)} of {compared} figures that isthmus and a peer have:",
        "",
        "| table | column | peer | its figure | isthmus |",
        "|---|---|---|---:|---:|",
    ]
    for one in found:
        ours, theirs = format_number(one.ours), format_number(one.theirs)
        lines.append(f"| {one.table} | {one.column} | {one.peer} | {theirs} | {ours} |")
    return [*lines, ""]


def format_notes(results: Results) -> list[str]:
    """What failed, who took no part, and what each part of the run cost."""
    lines: list[str] = []
    if results.failures:
        lines += ["## What failed", "", *(f"- {failure}" for failure in results.failures), ""]
    if results.skipped:
        lines += ["## Who took no part", "", *(f"- {text}" for text in results.skipped), ""]
    if results.seconds:
        lines += ["## What the run cost", "", "| part | s |", "|---|---:|"]
        lines += [f"| {part} | {seconds:.0f} |" for part, seconds in results.seconds.items()]
        lines += [f"| all | {sum(results.seconds.values()):.0f} |", ""]
    return lines


def format_report(results: Results) -> str:
    """Everything that was measured, as the body of RESULTS.md."""
    lines = ["## Against the floors", "", *format_floors(results)]
    lines += ["## Rows in which a peer is ahead", "", *format_ahead(results), "## Everybody", ""]
    for name, table in results.tables.items():
        if name in results.samples:
            lines += format_table(results, table)
    return "\n".join([*lines, *format_notes(results)])


def describe_machine() -> str:
    """The processor's name, and how many cores the run had."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {len(CORES)} cores"
    return f"{platform.machine()}, {len(CORES)} cores"


def write_report(results: Results, effort: Effort) -> None:
    """Write RESULTS.md: what ran where and when, then the tables."""
    ours = [f"{name} {version(name)}" for name in ("isthmus", "msgspec", "uvicorn", "uvloop")]
    theirs = [*peers.PYTHON["mcp2"], *peers.NODE["sdk1"], *peers.NODE["server2"]]
    python = f"Python {platform.python_version()}"
    head = [
        INTRODUCTION,
        f"- {dt.datetime.now(dt.UTC).date()}, {describe_machine()}, {platform.system()}, {python}",
        f"- {', '.join(ours)}",
        f"- against {', '.join(theirs)}",
        f"- {effort.rounds} rounds, {effort.seconds:g} s each; servers on one core, load on another",
        "",
    ]
    RESULTS.write_text("\n".join(head) + "\n" + format_report(results), encoding="utf-8")
