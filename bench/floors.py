"""Floors and goals: what a figure must reach, as a table, and which are reached."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from results import ISTHMUS, LIMIT, MCP, SERVER, Results, count_compared, find_ahead

Kind = Literal["speedup", "share", "most", "least", "added", "ahead"]


@dataclass(frozen=True)
class Floor:
    """What one figure must reach.

    Attributes:
        measure: in words.
        kind: how the figure is found. ``speedup``: how many times better than ``against``, more is
            better. ``share``: the figure divided by that of ``against``, less is better. ``added``:
            the figure less that of the column ``base``. ``most`` and ``least``: the figure itself,
            as an upper and a lower bound. ``ahead``: the rows in which a peer is ahead.
        floor, goal: the bounds.
        table, column: where the figure stands.
        against: the row it is compared with.
        base: the column it is compared with, if it is another one.
        starred: CI fails below the floor.
        row: whose figure it is.
    """

    measure: str
    kind: Kind
    floor: float
    goal: float
    table: str = ""
    column: str = ""
    against: str = ""
    base: str = ""
    starred: bool = False
    row: str = ISTHMUS

    @property
    def upper(self) -> bool:
        """Whether less is better."""
        return self.kind not in {"speedup", "least"}


HTTP_64 = "HTTP, 64 connections"
ALONE = "limit: an ES256 signature"

# fmt: off
FLOORS = (
    Floor(f"{HTTP_64}, modern", "speedup", 9, 12, "http modern", "cpu_us", MCP, starred=True),
    Floor(f"{HTTP_64}, legacy JSON", "speedup", 11, 15, "http legacy json", "cpu_us", MCP, starred=True),
    Floor(f"{HTTP_64}, every answer a stream", "speedup", 25, 32, "http legacy sse", "cpu_us", MCP, starred=True),
    Floor(f"{HTTP_64}, modern, of the limit's CPU", "share", 1.0, 0.75, "http modern", "cpu_us", LIMIT ),
    Floor(f"{HTTP_64}, legacy JSON, of the limit's CPU", "share", 1.0, 0.75, "http legacy json", "cpu_us", LIMIT),
    Floor("HTTP, one connection, modern", "speedup", 5, 6, "http modern", "cpu_us_1", MCP, starred=True),
    Floor("HTTP, one connection, legacy JSON", "speedup", 5, 6, "http legacy json", "cpu_us_1", MCP ),
    Floor("HTTP, p99 at 16 connections, legacy JSON", "share", 0.5, 0.25, "http legacy json", "p99_16_ms", MCP),
    Floor("HTTP, p99 at 16 connections, modern", "share", 0.5, 0.25, "http modern", "p99_16_ms", MCP ),
    Floor("client over HTTP, one after another", "speedup", 8, 10, "client legacy", "sequential_us", MCP),
    Floor("client over HTTP, 16 at once", "speedup", 15, 20, "client legacy", "at_once_us", MCP),
    # a client costs the kernel more than us, so its ratio depends on the machine: CI holds less
    Floor("client over HTTP, modern, one after another", "speedup", 5, 10, "client modern", "sequential_us", MCP, starred=True),
    Floor("client over HTTP, modern, 16 at once", "speedup", 9, 20, "client modern", "at_once_us", MCP, starred=True),
    Floor("call in memory", "speedup", 4, 8, "client memory", "sequential_us", MCP, starred=True),
    Floor("list of 500 tools in memory, ms", "most", 5, 1, "client memory", "list_500_ms"),
    Floor("stdio, 64 in flight, calls/s", "speedup", 30, 40, "stdio", "flight_64", MCP),
    Floor("stdio, 64 in flight, CPU", "speedup", 30, 40, "stdio", "flight_us", MCP, starred=True),
    Floor("stdio, one after another, calls/s", "speedup", 5, 6.5, "stdio", "sequential", MCP),
    Floor("stdio, one after another, CPU", "speedup", 5, 6.5, "stdio", "sequential_us", MCP, starred=True),
    Floor("stdio at full speed, errors", "most", 0, 0, "stdio endurance", "errors", starred=True),
    Floor("spawn to first answer", "share", 0.5, 0.45, "spawn", "answer_ms", SERVER),
    Floor("`isthmus run` to first answer, ms", "most", 120, 92, "spawn", "answer_ms", row=f"{ISTHMUS} run"),
    Floor("`isthmus call URL`, ms", "most", 250, 200, "commands", "wall_ms", row="isthmus call URL" ),
    Floor("`isthmus --help`, ms", "most", 120, 90, "commands", "wall_ms", row="isthmus --help"),
    Floor("import and a Server with one tool, CPU ms", "most", 150, 100, "imports", "import_ms", starred=True),
    Floor("idle legacy session", "share", 0.25, 0.1, "sessions", "idle_kib", MCP, starred=True),
    Floor("idle legacy session, KiB", "most", 4, 4, "sessions", "idle_kib"),
    Floor("legacy session with its stream", "share", 0.25, 0.1, "sessions", "stream_kib", MCP),
    Floor("legacy session with its stream, KiB", "most", 16, 13, "sessions", "stream_kib"),
    Floor("list of records of 1 MB as argument", "speedup", 6, 12, "payload take_structs", "1 MB", MCP, starred=True),
    Floor("list of records of 100 KB as argument", "share", 1.0, 0.6, "payload take_structs", "100 KB", SERVER),
    Floor("list of records of 10 MB as argument", "share", 1.0, 0.6, "payload take_structs", "10 MB", SERVER),
    Floor("string of 10 MB as argument", "share", 1.0, 0.8, "payload take_text", "10 MB", MCP),
    Floor("string of 10 MB as result", "share", 1.0, 0.8, "payload give_text", "10 MB", MCP),
    Floor("100 sync tools that block for 200 ms, ms", "most", 700, 600, "blocking", "all_ms"),
    Floor("a quick sync tool beside 150 that wait, ms", "most", 500, 100, "waiting for answers", "quick_ms"),
    Floor("5,000 resource templates, µs", "most", 200, 100, "templates", "5000"),
    Floor("a page of 20,000 tools, ms", "most", 0.5, 0.3, "pages", "20000"),
    Floor("an update among 10,000 sessions, of one among 100", "share", 3, 1.5, "updates", "10000", base="100"),
    Floor("a fixed token adds, µs", "added", 8, 5, "auth", "static", base="none"),
    Floor("one of 1,000 fixed tokens adds, µs", "added", 10, 5, "auth", "static_1000", base="none"),
    Floor("a signed token adds, µs", "added", 8, 5, "auth", "es256", base="none"),
    Floor("a question of 100, of a single one", "share", 3, 1.5, "asking modern", "100", base="1"),
    Floor("300 refused calls of 3.9 MB, MB", "most", 60, 30, "refused", "grown_mb", starred=True),
    Floor("100 clients that left with 3.9 MB, MB", "most", 60, 30, "left", "grown_mb"),
    Floor("10,000 sessions that expired, MB", "most", 30, 10, "expired", "grown_mb"),
    Floor("calls of 50 whose last report of progress arrives", "least", 50, 50, "progress stdio", "last_sent"),
    Floor("start with 5,000 tools", "share", 1.0, 0.8, "tools spawn", "5000", SERVER),
    Floor("verifying a known token, µs", "most", 60, 10, "tokens", "warm_us"),
    Floor("verifying a new RS256 token, µs", "most", 60, 40, "tokens", "new_us"),
    Floor("verifying a new ES256 token, of its signature alone", "share", 1.5, 1.2, "tokens", "new_us", ALONE, row="isthmus, ES256"),
    Floor("a request without a token, of a served one", "share", 2, 1, "refusals", "refusal_us", "isthmus, served"),
    Floor("a forged token, of a served new one", "share", 2, 1, "refusals", "refusal_us", "isthmus, served with a new token", row="isthmus, forged token"),
    Floor("a client's token on a request, µs", "most", 5, 2, "client auth", "wrap_us"),
    Floor("a call with a token, of one without", "share", 1.5, 1.2, "client auth", "call_us", "isthmus, without auth="),
    Floor("rows in which a peer is ahead", "ahead", 2, 0),
)
# fmt: on


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
        return self.value <= bound if self.floor.upper else self.value >= bound

    @property
    def word(self) -> str:
        """What of floor and goal is reached."""
        if not self.met:
            return "MISSED"
        return "goal" if self.reaches(self.floor.goal) else "floor"


def find_value(results: Results, floor: Floor) -> float | None:
    """The figure that a floor is about, or None where a side of it was not measured."""
    if floor.kind == "ahead":
        return len(list(find_ahead(results))) if count_compared(results) else None
    ours = results.cell(floor.table, floor.row, floor.column)
    if ours is None or floor.kind in {"most", "least"}:
        return ours
    base = results.cell(floor.table, floor.against or floor.row, floor.base or floor.column)
    if base is None:
        return None
    if floor.kind == "added":
        return ours - base
    less = results.tables[floor.table].columns[floor.column].less
    over, under = (base, ours) if floor.kind == "speedup" and less else (ours, base)
    return over / under if under else None


def judge_floors(results: Results) -> Iterator[Verdict]:
    """Every floor whose figure was measured."""
    for floor in FLOORS:
        value = find_value(results, floor)
        if value is not None:
            yield Verdict(floor, value)


def find_unmeasured(results: Results) -> list[Floor]:
    """Starred floors without a figure: as bad as a missed one."""
    found = {verdict.floor for verdict in judge_floors(results)}
    return [floor for floor in FLOORS if floor.starred and floor not in found]
