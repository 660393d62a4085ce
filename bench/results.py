"""What was measured: samples by table, row and column, and the floors they are held against."""

import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from contenders import ISTHMUS, LIMIT, MCP, SDK, SERVER
from processes import say

LESS_IS_BETTER = ("_ms", "_us", "_kib")


class Results:
    """Samples of every table.

    Args:
        best: a cell is the best of its rounds, as whatever else the machine does only takes away;
            otherwise the median.
    """

    def __init__(self, *, best: bool = False) -> None:
        self.best = best
        self.samples: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        self.failures: list[str] = []

    def add(self, table: str, row: str, **columns: float) -> None:
        """One round's figures for a row."""
        for column, value in columns.items():
            self.samples[table][row][column].append(value)
        cells = "  ".join(f"{column} {value:,.4g}" for column, value in columns.items())
        say(f"  {table:22} {row:20} {cells}")

    def fail(self, table: str, row: str, error: Exception) -> None:
        """A row that could not be measured this time."""
        self.failures.append(f"{table}, {row}: {error}")
        say(f"  {table:22} {row:20} FAILED: {error}")

    def cell(self, table: str, row: str, column: str) -> float | None:
        """The median or best of a cell, or None where nothing was measured."""
        found = self.samples.get(table, {}).get(row, {}).get(column)
        if not found:
            return None
        if not self.best:
            return statistics.median(found)
        return min(found) if column.endswith(LESS_IS_BETTER) else max(found)


@dataclass(frozen=True)
class Floor:
    """What one figure must reach.

    Attributes:
        measure: in words, as performance notes call it.
        table, column: where the figure stands.
        against: the row it is divided by, or None for the figure itself.
        floor, goal: the bounds; upper ones where ``most`` is set.
        most: less is better.
        starred: CI fails below the floor.
        row: whose figure it is.
    """

    measure: str
    table: str
    column: str
    against: str | None
    floor: float
    goal: float
    most: bool = False
    starred: bool = False
    row: str = ISTHMUS


FLOORS = (
    Floor(
        "HTTP call, 64 connections, legacy JSON",
        "http legacy json",
        "rps_64",
        MCP,
        4,
        10,
        starred=True,
    ),
    Floor(
        "HTTP call, 64 connections, legacy SSE",
        "http legacy sse",
        "rps_64",
        MCP,
        4,
        8,
        starred=True,
    ),
    Floor("HTTP call, 64 connections, modern", "http modern", "rps_64", MCP, 3, 5, starred=True),
    Floor("legacy JSON against the limit", "http legacy json", "rps_64", LIMIT, 0.4, 0.6),
    Floor("modern against the limit", "http modern", "rps_64", LIMIT, 0.4, 0.6),
    Floor(
        "p99, 16 connections, legacy JSON",
        "http legacy json",
        "p99_16_ms",
        MCP,
        0.5,
        0.25,
        most=True,
    ),
    Floor("p99, 16 connections, modern", "http modern", "p99_16_ms", MCP, 0.5, 0.25, most=True),
    Floor("stdio, 64 in flight", "stdio", "flight_64", MCP, 15, 25, starred=True),
    Floor("stdio, 64 in flight, against npm", "stdio", "flight_64", SDK, 0.8, 1.2),
    Floor("stdio, one after another", "stdio", "sequential", MCP, 4, 5.5),
    Floor(
        "import and a Server with one tool, CPU ms",
        "start",
        "import_ms",
        None,
        150,
        100,
        most=True,
        starred=True,
    ),
    Floor("spawn to first answer over stdio", "start", "answer_ms", SERVER, 1, 0.6, most=True),
    Floor("client over HTTP, one after another", "client http", "sequential", MCP, 2, 4),
    Floor("client over HTTP, 16 at once", "client http", "at_once_16", MCP, 5, 10, starred=True),
    Floor("call in memory", "client memory", "sequential", MCP, 4, 8),
    Floor("idle legacy session", "sessions", "idle_kib", MCP, 0.25, 0.1, most=True, starred=True),
    Floor("legacy session with its stream", "sessions", "stream_kib", MCP, 0.25, 0.1, most=True),
    Floor("list of 500 tools in memory, ms", "client memory", "list_500_ms", None, 5, 1, most=True),
    Floor("verifying a known token, µs", "tokens", "warm_us", None, 60, 10, most=True),
    Floor("verifying a new RS256 token, µs", "tokens", "new_us", None, 60, 40, most=True),
    Floor(
        "verifying a new ES256 token, against its signature alone",
        "tokens",
        "new_us",
        "limit: an ES256 signature",
        1.5,
        1.2,
        most=True,
        row="isthmus, ES256",
    ),
    Floor(
        "a request without a token, against a served one",
        "refusals",
        "cpu_us",
        "isthmus, served",
        2,
        1,
        most=True,
    ),
    Floor(
        "a forged token, against a served new one",
        "refusals",
        "cpu_us",
        "isthmus, served with a new token",
        2,
        1,
        most=True,
        row="isthmus, forged token",
    ),
    Floor("a client's token on a request, µs", "client auth", "wrap_us", None, 5, 2, most=True),
    Floor(
        "a call with a token, against one without",
        "client auth",
        "call_us",
        "isthmus, without auth=",
        1.5,
        1.2,
        most=True,
    ),
)  # fmt: skip - one row each


@dataclass(frozen=True)
class Verdict:
    """A floor and the figure that was found for it."""

    floor: Floor
    value: float

    @property
    def met(self) -> bool:
        """Whether the floor is reached."""
        return self.reaches(self.floor.floor)

    def reaches(self, bound: float) -> bool:
        """Whether the figure is on the good side of a bound."""
        return self.value <= bound if self.floor.most else self.value >= bound

    @property
    def word(self) -> str:
        """What of floor and goal is reached."""
        if not self.met:
            return "MISSED"
        return "goal" if self.reaches(self.floor.goal) else "floor"


def verdicts(results: Results) -> Iterator[Verdict]:
    """Every floor for which both sides were measured."""
    for floor in FLOORS:
        ours = results.cell(floor.table, floor.row, floor.column)
        theirs = results.cell(floor.table, floor.against, floor.column) if floor.against else 1.0
        if ours is not None and theirs:
            yield Verdict(floor, ours / theirs)


def unmeasured(results: Results) -> list[Floor]:
    """Starred floors without a figure: as bad as a missed one."""
    found = {v.floor for v in verdicts(results)}
    return [f for f in FLOORS if f.starred and f not in found]
