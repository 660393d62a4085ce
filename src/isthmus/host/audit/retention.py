"""What has been kept for long enough is dropped: bodies one by one, rows in whole segments.

The last checkpoint before the time is signed once more, as the one from which the chain now begins;
only rows up to it can be removed from the table.
"""

from typing import TYPE_CHECKING

from isthmus.host.audit.chain import sign_checkpoint, statement
from isthmus.host.audit.index import unindex
from isthmus.host.audit.keys import AuditKeys

if TYPE_CHECKING:
    import sqlite3

__all__ = ["sweep"]

AT_ONCE = 1_000
"""Rows and bodies that are dropped in one transaction: intents wait for it."""


def sweep(db: "sqlite3.Connection", keys: AuditKeys, now_us: int, before_us: int | None) -> bool:
    """Drop some of what has been kept for long enough.

    Args:
        db: in a transaction.
        keys: of the log.
        now_us: microseconds since the epoch.
        before_us: rows of segments that ended before this go; None drops none.

    Returns:
        Whether there is more to drop.
    """
    gone = db.execute(
        "DELETE FROM body WHERE hash IN (SELECT hash FROM body WHERE expires_us <= ? LIMIT ?)",
        (now_us, AT_ONCE),
    ).rowcount
    return (before_us is not None and drop(db, keys, before_us)) or gone == AT_ONCE


def drop(db: "sqlite3.Connection", keys: AuditKeys, before_us: int) -> bool:
    """Drop some rows of the segments that ended before a time; whether there are more."""
    last = last_checkpoint(db, keys, before_us)
    if last is None:
        return False
    seq, ts_us, hash, sealed = last
    if not sealed:
        sign_checkpoint(db, keys, seq, hash, ts_us, sealed=1)
        db.execute("DELETE FROM checkpoint WHERE seq < ?", (seq,))
    first = db.execute("SELECT min(seq) FROM event WHERE seq <= ?", (seq,)).fetchone()[0]
    if first is None:
        return False
    upto = min(seq, first + AT_ONCE - 1)
    unindex(db, first, upto)
    db.execute("DELETE FROM event WHERE seq BETWEEN ? AND ?", (first, upto))
    return bool(upto < seq)


def last_checkpoint(
    db: "sqlite3.Connection", keys: AuditKeys, before_us: int
) -> tuple[int, int, bytes, int] | None:
    """The last checkpoint before a time whose signature holds: no other may be sealed."""
    rows = db.execute(
        "SELECT seq, ts_us, hash, sealed, sig FROM checkpoint WHERE ts_us < ? ORDER BY seq DESC",
        (before_us,),
    )
    for seq, ts_us, hash, sealed, sig in rows:
        if keys.signed(statement(seq, ts_us, hash, sealed), sig):
            return seq, ts_us, hash, sealed
    return None
