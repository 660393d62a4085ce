"""The tables: how every peer did, and how isthmus stands against its floors."""

import datetime as dt
import platform
from importlib.metadata import version
from pathlib import Path

from contenders import MCP, peers
from measures import Span
from processes import CORES, HERE
from results import Results, verdicts

TITLES = {
    "http legacy json": "HTTP `tools/call`, a 2025-06-18 session, JSON answers",
    "http legacy sse": "HTTP `tools/call`, a 2025-06-18 session, each answer an event stream",
    "http modern": "HTTP `tools/call`, 2026-07-28",
    "stdio": "stdio `tools/call`, 2025-06-18",
    "client http": "Clients, over HTTP against one fixed fast server",
    "client memory": "Client and server in one process",
    "start": "Start-up: the least of some runs",
    "tokens": "Verifying an access token (a JWT), the issuer's keys at hand",
    "client auth": "A client of a guarded server, CPU of both in one process",
    "refusals": "A `tools/call` of 2026-07-28 in process, by who may and who may not",
    "sessions": "KiB of server memory for each legacy session",
}
COLUMNS = {
    "rps_64": "calls/s at 64 connections",
    "p99_16_ms": "p99 at 16, ms",
    "cpu_us": "server CPU, µs/call",
    "sequential": "calls/s, one after another",
    "flight_64": "calls/s, 64 in flight",
    "at_once_16": "calls/s, 16 at once",
    "list_500_ms": "list of 500 tools, ms",
    "import_ms": "import and a tool, CPU ms",
    "answer_ms": "spawn to `initialize` answered, ms",
    "warm_us": "a token that came before, µs",
    "new_us": "a new token, µs",
    "wrap_us": "added to a request, µs",
    "call_us": "a whole call, µs",
    "idle_kib": "idle",
    "stream_kib": "with its stream open",
}


TIMES = "\N{MULTIPLICATION SIGN}"


def number(value: float) -> str:
    """Three figures that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(results: Results, name: str) -> list[str]:
    """One table, each cell with its ratio to ``mcp``."""
    rows = results.samples[name]
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [f"### {TITLES[name]}", "", "| | " + " | ".join(COLUMNS[c] for c in columns) + " |"]
    lines.append("|---|" + "---:|" * len(columns))
    for row in rows:
        cells = [cell(results, name, row, column) for column in columns]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def cell(results: Results, name: str, row: str, column: str) -> str:
    value = results.cell(name, row, column)
    if value is None:
        return "-"
    theirs = results.cell(name, MCP, column)
    return (
        f"{number(value)} ({value / theirs:.2g}{TIMES})" if theirs and row != MCP else number(value)
    )


def floors(results: Results) -> list[str]:
    """How isthmus stands: a figure, its floor and its goal in each row."""
    lines = [
        "| measure | against | isthmus | floor | goal | reached |",
        "|---|---|---:|---:|---:|---|",
    ]
    for verdict in verdicts(results):
        floor = verdict.floor
        sign, unit = "≤ " if floor.most else "≥ ", TIMES if floor.against else ""
        star = " *" if floor.starred else ""
        lines.append(
            f"| {floor.measure}{star} | {floor.against or '-'} | {verdict.value:.3g}{unit} "
            f"| {sign}{floor.floor:g}{unit} | {sign}{floor.goal:g}{unit} | {verdict.word} |"
        )
    return [*lines, ""]


def markdown(results: Results) -> str:
    """Everything that was measured, as the body of RESULTS.md."""
    lines = ["## Against the floors", "", *floors(results), "## Everybody", ""]
    for name in TITLES:
        if name in results.samples:
            lines += table(results, name)
    if results.failures:
        lines += ["## What failed", "", *(f"- {failure}" for failure in results.failures), ""]
    return "\n".join(lines)


def machine() -> str:
    """The processor's name, and how many cores the run had."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {len(CORES)} cores"
    return f"{platform.machine()}, {len(CORES)} cores"


def write(results: Results, span: Span) -> None:
    """RESULTS.md: what ran where and when, then the tables."""
    ours = [f"{name} {version(name)}" for name in ("isthmus", "msgspec", "uvicorn", "uvloop")]
    theirs = [*peers.PYTHON["mcp2"], *peers.NODE["sdk1"], *peers.NODE["server2"]]
    today = dt.datetime.now(dt.UTC).date()
    head = [
        "# Results",
        "",
        "Written by `make bench`. Absolute figures say as much about the machine as about the code;",
        "the ratios in brackets are to PyPI mcp 2.3.0 in the same run, and they are what counts.",
        "A star marks what CI holds.",
        "",
        f"- {today}, {machine()}, {platform.system()}, Python {platform.python_version()}",
        f"- {', '.join(ours)}",
        f"- against {', '.join(theirs)}",
        f"- medians of {span.rounds} rounds, {span.seconds:g} s each; servers on one core, load on another",
        "",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(head) + "\n" + markdown(results), encoding="utf-8")
