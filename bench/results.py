"""Tables of a run, the samples in them, and the figure that each cell shows."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

ISTHMUS, MCP, LIMIT = "isthmus", "mcp 2.3.0", "limit: bare uvicorn"
SDK, SERVER = "npm sdk 1.32", "npm server 2.4"
PEERS = (MCP, SDK, SERVER)

AHEAD_RATIO = 0.95  # a peer is ahead when it has less than this of ours: less is noise

Pick = Literal["least", "median"]


@dataclass(frozen=True)
class Column:
    """A figure that each row may have.

    Attributes:
        title: its head in the report, with the unit.
        less: less is better.
        pick: what of several rounds is told: the least for CPU time, to which a busy machine only
            adds; the median for what a clock on the wall says.
        compared: whether a peer can be ahead here; not where chance decides.
    """

    title: str
    less: bool = True
    pick: Pick = "least"
    compared: bool = True


@dataclass(frozen=True)
class Table:
    """A table of the report.

    Attributes:
        name: what results are added under.
        title: its heading.
        columns: by the names that measurements use.
        compared: whether its rows do the same work, so that a peer can be ahead.
    """

    name: str
    title: str
    columns: Mapping[str, Column]
    compared: bool = True


def make_sizes(
    unit: str,
    sizes: Iterable[object],
    *,
    pick: Pick = "least",
    less: bool = True,
    compared: bool = True,
) -> dict[str, Column]:
    """One column for each size, all in the same unit.

    Args:
        unit: stands once, in the first of them.
        sizes: each is the name of its column.
        pick: as for a column.
        less: as for a column.
        compared: as for a column.
    """
    return {
        str(size): Column(f"{size}, {unit}" if number == 0 else str(size), less, pick, compared)
        for number, size in enumerate(sizes)
    }


class Results:
    """Samples of every table.

    Args:
        tables: all that may be measured.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        self.tables = {table.name: table for table in tables}
        self.samples: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        self.failures: list[str] = []
        self.skipped: list[str] = []
        self.seconds: dict[str, float] = {}

    def add(self, table: str, row: str, **columns: float) -> None:
        """Keep one round's figures for a row."""
        known = self.tables[table].columns
        for column, value in columns.items():
            if column not in known:
                raise KeyError(f"table {table!r} has no column {column!r}")
            self.samples[table][row][column].append(value)

    def fail(self, table: str, row: str, error: BaseException) -> None:
        """Keep why a row could not be measured this time."""
        text = f"{table}, {row}: {type(error).__name__}: {error}"
        if text not in self.failures:
            self.failures.append(text)

    def skip(self, text: str) -> None:
        """Keep who takes no part, and why."""
        if text not in self.skipped:
            self.skipped.append(text)

    def cell(self, table: str, row: str, column: str) -> float | None:
        """The figure of a cell, or None where nothing was measured."""
        found = self.samples.get(table, {}).get(row, {}).get(column)
        if not found:
            return None
        if self.tables[table].columns[column].pick == "least":
            return min(found)
        return statistics.median(found)

    def ratio(self, table: str, row: str, against: str, column: str) -> float | None:
        """A row's figure divided by another row's, or None where one is missing or zero."""
        ours, theirs = self.cell(table, row, column), self.cell(table, against, column)
        if ours is None or not theirs:
            return None
        return ours / theirs


@dataclass(frozen=True)
class Ahead:
    """A figure in which a peer is better.

    Attributes:
        table: the title of the table.
        column: the title of the column.
        peer: who is ahead.
        ours, theirs: the figures.
    """

    table: str
    column: str
    peer: str
    ours: float
    theirs: float


def find_ahead(results: Results) -> Iterator[Ahead]:
    """Each figure in which a peer is ahead of isthmus by more than noise, with the best peer."""
    for table in results.tables.values():
        for name, column in table.columns.items():
            if not (table.compared and column.compared):
                continue
            ours = results.cell(table.name, ISTHMUS, name)
            found = {peer: results.cell(table.name, peer, name) for peer in PEERS}
            theirs = {peer: value for peer, value in found.items() if value is not None}
            if ours is None or not theirs:
                continue
            best = (min if column.less else max)(theirs, key=theirs.__getitem__)
            small, large = (theirs[best], ours) if column.less else (ours, theirs[best])
            if small < large * AHEAD_RATIO:
                yield Ahead(table.title, column.title, best, ours, theirs[best])


def count_compared(results: Results) -> int:
    """How many figures isthmus and at least one peer have."""
    return sum(
        any(results.cell(table.name, peer, column) is not None for peer in PEERS)
        for table in results.tables.values()
        for column, head in table.columns.items()
        if table.compared
        and head.compared
        and results.cell(table.name, ISTHMUS, column) is not None
    )
