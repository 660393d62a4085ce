"""Queries of the audit log: lines by filters and words, past attempts, and sums.

The full-text index follows the log at some distance; a search completes it first.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

from isthmus.errors import UsageError
from isthmus.host.audit.row_columns import COLUMNS
from isthmus.host.model.attempt import Action, Attempt, Origin
from isthmus.host.model.view import AuditLine
from isthmus.store.sqlite import StoreUnusable

if TYPE_CHECKING:
    import sqlite3

READ_BATCH_ROWS = 1_000
INDEX_BATCH_ROWS = 5_000  # in one transaction

# the name of each column in a line
LINE_FIELDS = {
    **dict(zip(COLUMNS, COLUMNS, strict=True)),
    "call_id": "call", "parent_id": "parent", "run_id": "run", "rule_id": "rule",
    "grant_id": "grant", "args_hash": "arguments_hash", "args_redacted": "arguments",
    "is_error": "failed", "error_code": "code", "error_class": "error", "cost_micro": "cost",
    "ts_us": "at", "wait_ms": "wait", "dur_us": "seconds", "prev": "prev", "hash": "hash",
}  # fmt: skip

TIME_SCALES = {"ts_us": 1e6, "wait_ms": 1e3, "dur_us": 1e6}
JSON_COLUMNS = {"args_redacted", "detail", "labels"}
ALL_COLUMNS = ", ".join(f"event.{name}" for name in (*COLUMNS, "prev", "hash"))


class AuditFilters(Struct, frozen=True, kw_only=True):
    """Filters of rows; an empty one accepts all.

    Attributes:
        server, object, principal, kind, run, call, effect: equal to this; empty for any.
        since, until: from this moment on, and before that one, in seconds since the epoch.
        text: words that stand in the object, the arguments or the detail.
        failed: only those that failed.
        after: only those with a greater number, and ``before`` with a smaller one; 0 for any.
    """

    server: str = ""
    object: str = ""
    principal: str = ""
    kind: str = ""
    run: str = ""
    call: str = ""
    effect: str = ""
    since: float | None = None
    until: float | None = None
    text: str = ""
    failed: bool = False
    after: int = 0
    before: int = 0

    def where(self) -> tuple[str, list[Any]]:
        """The filters as a condition of SQL, with its values."""
        equal = {
            "server": self.server, "object": self.object, "principal": self.principal,
            "kind": self.kind, "run_id": self.run, "call_id": self.call, "effect": self.effect,
        }  # fmt: skip
        parts = [f"event.{name} = ?" for name, value in equal.items() if value]
        values: list[Any] = [value for value in equal.values() if value]
        for condition, moment in (("ts_us >= ?", self.since), ("ts_us < ?", self.until)):
            if moment is not None:
                parts.append(f"event.{condition}")
                values.append(int(moment * 1e6))
        if self.after:
            parts.append("event.seq > ?")
            values.append(self.after)
        if self.before:
            parts.append("event.seq < ?")
            values.append(self.before)
        if self.failed:
            parts.append("event.is_error = 1")
        if self.text:
            parts.append("event.seq IN (SELECT rowid FROM event_fts WHERE event_fts MATCH ?)")
            values.append(make_search_query(self.text))
        return " AND ".join(parts) or "1", values


NO_FILTERS = AuditFilters()


class RecordedAttempt(Struct):
    """An attempt of the past, which can be decided anew.

    Attributes:
        attempt: what was wanted; of its arguments, what redaction left.
        line: the row that it stands in: what was decided, by which rule, under which policy.
    """

    attempt: Attempt
    line: AuditLine


class AuditSum(Struct, kw_only=True):
    """The sum of all calls of one server, tool and effect.

    Attributes:
        server, object, action, effect: of what.
        calls: how many.
        failed: how many of them failed.
        seconds: how long they took together, and ``slowest`` the slowest of them.
        waited: how long people took to answer, together.
        tokens_in, tokens_out: what models read and wrote.
        cost: in micro-dollars.
    """

    server: str
    object: str
    action: str
    effect: str
    calls: int
    failed: int
    seconds: float
    slowest: float
    waited: float
    tokens_in: int
    tokens_out: int
    cost: int


@contextmanager
def open_log(folder: Path) -> "Iterator[sqlite3.Connection]":
    """Open the log in a folder for reading, beside processes that write.

    Raises:
        StoreUnusable: there is none, or it cannot be read.
    """
    import sqlite3

    path = folder / "host.db"
    if not path.is_file():
        raise StoreUnusable(f"there is no audit log in {folder}: nothing was done there yet")
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA busy_timeout = 5000")
        db.execute("SELECT 1 FROM event LIMIT 1").fetchall()
    except sqlite3.Error as error:
        db.close()
        raise StoreUnusable(f"{path} cannot be read: {error}") from None
    try:
        yield db
    finally:
        db.close()


def read_lines(
    db: "sqlite3.Connection", filters: AuditFilters = NO_FILTERS, *, newest: int | None = None
) -> Iterator[AuditLine]:
    """Read rows in their order, a few at a time.

    Args:
        db: an open connection.
        filters: which of them.
        newest: only the last so many of them; None for all.

    Raises:
        UsageError: what is searched for are no words.
    """
    if filters.text:
        complete_index(db)
    where, values = filters.where()
    query = f"SELECT {ALL_COLUMNS} FROM event WHERE {where} ORDER BY seq"  # noqa: S608 - values are bound
    if newest is not None:
        query = f"SELECT * FROM ({query} DESC LIMIT ?) ORDER BY seq"  # noqa: S608 - as above
        values.append(newest)
    rows = db.execute(query, values)
    while some := rows.fetchmany(READ_BATCH_ROWS):
        yield from map(make_line, some)


def read_last_lines(db: "sqlite3.Connection", count: int) -> list[AuditLine]:
    """Read the last rows, the oldest first."""
    return list(read_lines(db, newest=count))


def read_attempts(
    db: "sqlite3.Connection", filters: AuditFilters = NO_FILTERS
) -> Iterator[RecordedAttempt]:
    """Read every attempt of the past, once, in order, so that it can be decided anew.

    One that was to be done stands in its intent, one that was denied in its outcome.

    Args:
        db: an open connection.
        filters: which of them; ``kind`` says nothing here.
    """
    where, values = msgspec.structs.replace(filters, kind="").where()
    rows = db.execute(SELECT_ATTEMPTS.format(where=where), values)
    while some := rows.fetchmany(READ_BATCH_ROWS):
        for one in map(make_line, some):
            yield RecordedAttempt(make_attempt(one), one)


SELECT_ATTEMPTS = f"""
    SELECT {ALL_COLUMNS} FROM event WHERE ({{where}}) AND action != '' AND (kind = 'intent' OR (
        kind = 'outcome' AND call_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM event AS other WHERE other.call_id = event.call_id
            AND other.seq < event.seq AND other.kind IN ('intent', 'outcome')
        )
    )) ORDER BY seq
"""  # noqa: S608 - names of columns; values are bound


def make_attempt(line: AuditLine) -> Attempt:
    """Make the attempt that a row is about."""
    arguments = line.arguments if isinstance(line.arguments, dict) else {}
    return Attempt(
        id=line.call,
        action=cast("Action", line.action),
        principal=line.principal,
        server=line.server,
        object=line.object,
        arguments=arguments,
        run=line.run,
        parent=line.parent,
        origin=cast("Origin", line.origin or "local"),
    )


def read_sums(db: "sqlite3.Connection", filters: AuditFilters = NO_FILTERS) -> list[AuditSum]:
    """Read sums by server, tool and effect, those with the most calls first."""
    where, values = msgspec.structs.replace(filters, kind="outcome").where()
    rows = db.execute(SELECT_SUMS.format(where=where), values).fetchall()
    return [AuditSum(**dict(zip(SUM_FIELDS, row, strict=True))) for row in rows]


SUM_FIELDS = (
    *("server", "object", "action", "effect", "calls", "failed", "seconds", "slowest", "waited"),
    *("tokens_in", "tokens_out", "cost"),
)
SELECT_SUMS = """
    SELECT coalesce(server, ''), coalesce(object, ''), action, coalesce(effect, ''), count(*),
           coalesce(sum(is_error), 0), total(dur_us) / 1e6, coalesce(max(dur_us), 0) / 1e6,
           total((SELECT max(wait_ms) FROM event AS d
                  WHERE d.call_id = event.call_id AND d.kind = 'decision')) / 1e3,
           coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(cost_micro), 0)
    FROM event WHERE {where} GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 1, 2, 3, 4
"""


def make_line(row: "tuple[Any, ...]") -> AuditLine:
    """Make a line of a row of the table, whose values are in the order of :data:`COLUMNS`."""
    told: dict[str, Any] = {}
    for (column, name), value in zip(LINE_FIELDS.items(), row, strict=True):
        if value is None:
            continue
        if column in TIME_SCALES:
            value = value / TIME_SCALES[column]  # noqa: PLW2901 - the same in another unit
        elif column in JSON_COLUMNS:
            value = msgspec.json.decode(value)  # noqa: PLW2901 - the same, read
        elif isinstance(value, bytes):
            value = value.hex()  # noqa: PLW2901 - the same, spelt
        told[name] = value
    if "failed" in told:
        told["failed"] = bool(told["failed"])
    if "labels" in told:
        told["labels"] = tuple(told["labels"])
    return AuditLine(**told)


def make_search_query(text: str) -> str:
    """Make a query of the full-text index: every word, the last one as a beginning.

    Raises:
        UsageError: there is no word in it.
    """
    found = re.findall(r"\w+", text)
    if not found:
        raise UsageError(f"{text!r} contains no word to search for")
    return " ".join(f'"{word}"' for word in found) + "*"


def complete_index(db: "sqlite3.Connection") -> None:
    """Put missing rows into the index; where that fails, the search goes over the others."""
    import sqlite3

    more = True
    while db.in_transaction and more:
        more = index_next_rows(db, INDEX_BATCH_ROWS)
    with suppress(sqlite3.OperationalError):  # another process writes, or the file is read-only
        while more:
            db.execute("BEGIN IMMEDIATE")
            try:
                more = index_next_rows(db, INDEX_BATCH_ROWS)
            finally:
                db.execute("COMMIT")


def index_next_rows(db: "sqlite3.Connection", most: int) -> bool:
    """Put the next rows into the index.

    Returns:
        Whether there are more of them.
    """
    row = db.execute("SELECT seq FROM indexed").fetchone()
    first = db.execute("SELECT coalesce(min(seq), 1) FROM event").fetchone()[0]
    done = max(row[0] if row else 0, first - 1)
    last = db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
    upto = min(done + most, last)
    if upto > done:
        db.execute(
            "INSERT INTO event_fts (rowid, object, args_redacted, detail) "
            "SELECT seq, object, args_redacted, detail FROM event WHERE seq > ? AND seq <= ?",
            (done, upto),
        )
        db.execute("INSERT OR REPLACE INTO indexed VALUES (1, ?)", (upto,))
    return bool(upto < last)


def remove_from_index(db: "sqlite3.Connection", first: int, last: int) -> None:
    """Take rows out of the index before they are dropped."""
    row = db.execute("SELECT seq FROM indexed").fetchone()
    db.execute(
        "INSERT INTO event_fts (event_fts, rowid, object, args_redacted, detail) "
        "SELECT 'delete', seq, object, args_redacted, detail FROM event "
        "WHERE seq BETWEEN ? AND ?",
        (first, min(last, row[0] if row else 0)),
    )
