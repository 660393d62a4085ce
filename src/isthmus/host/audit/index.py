"""The index for searching: it follows the log at some distance, and catches up when somebody searches."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

__all__ = ["index_some", "unindex"]


def index_some(db: "sqlite3.Connection", most: int) -> bool:
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


def unindex(db: "sqlite3.Connection", first: int, last: int) -> None:
    """Take rows out of the index that are about to be dropped."""
    row = db.execute("SELECT seq FROM indexed").fetchone()
    db.execute(
        "INSERT INTO event_fts (event_fts, rowid, object, args_redacted, detail) "
        "SELECT 'delete', seq, object, args_redacted, detail FROM event "
        "WHERE seq BETWEEN ? AND ?",
        (first, min(last, row[0] if row else 0)),
    )
