"""What the store's thread does for the audit log: rows into the chain, and what goes along with it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.host.audit.bodies import Bodies, Keeper
from isthmus.host.audit.chain import head, sign_checkpoint
from isthmus.host.audit.columns import COLUMNS, INSERT, Snapshot, chained, columns, snapshot
from isthmus.host.audit.index import index_some
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.presence import Presence, orphans
from isthmus.host.audit.redaction import Redactor
from isthmus.host.audit.retention import sweep
from isthmus.host.audit.row import Row
from isthmus.host.audit.waiting import Waiting
from isthmus.host.state import HostState

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Writer"]

SEQ, CALL = COLUMNS.index("seq"), COLUMNS.index("call_id")

SEGMENT = 1_000
"""Rows between two checkpoints, at most."""

SEGMENT_LIFE = 3600.0
"""Seconds between two checkpoints, at most, where rows are written."""

SWEPT_EVERY = 3600.0
"""Seconds until it is looked again for what has been kept for long enough."""

INDEXED_AT_ONCE = 250
"""Rows that are put into the index for searching at a time."""


class Writer:
    """Appends rows; everything here runs in the store's thread, in a transaction.

    Args:
        state: where the log is.
        waiting: says how many rows were lost on their way.
        redactor: takes out what is secret.
        node: what this process is called in the log.
        clock: says the seconds since the epoch.
        bodies, bodies_life, retain: as for :class:`~isthmus.host.audit.log.AuditLog`.

    Attributes:
        presence: tells other processes that this one is there.
        begun: whether the calls of those who are gone were looked after.
    """

    def __init__(
        self,
        state: HostState,
        waiting: Waiting,
        redactor: Redactor,
        node: str,
        clock: Callable[[], float],
        *,
        bodies: Bodies,
        bodies_life: float,
        retain: float | None,
    ) -> None:
        self.presence = Presence(state.folder, node)
        self.begun = False
        self._state = state
        self._waiting = waiting
        self._redactor = redactor
        self._node = node
        self._clock = clock
        self._bodies: Bodies = bodies
        self._bodies_life = bodies_life
        self._retain = retain
        self._keys: AuditKeys | None = None
        self._keeper: Keeper | None = None
        self._checked = clock()
        self._swept = clock()
        self._sweeping = True

    def ready(self, db: "sqlite3.Connection") -> int:
        """Be there, and write an outcome for each call of those who are gone; the number of them."""
        if self.begun:
            return 0
        self._keys = AuditKeys(self._state.key())
        self._keeper = Keeper(self._bodies, self._bodies_life, self._redactor, self._keys)
        self.presence.begin()
        rows = list(orphans(db, self.presence))
        self.begun = True
        self.append(db, [snapshot(row, self._clock(), self._redactor) for row in rows])
        return len(rows)

    def append(self, db: "sqlite3.Connection", rows: Sequence[Snapshot]) -> None:
        """Write rows at the end of the chain."""
        self.ready(db)
        lost = self._waiting.lost
        if lost:
            gone = Row(kind="config", action="audit.lost", detail={"rows": lost})
            rows = [snapshot(gone, self._clock(), self._redactor), *rows]
        if rows:
            self._append(db, rows)
            self._waiting.lost -= lost
        if self._sweeping or self._clock() - self._swept > SWEPT_EVERY:
            self._swept = self._clock()
            self._sweeping = self._sweep(db)

    def end(self, db: "sqlite3.Connection") -> None:
        """Sign where the log stands."""
        seq, hash = head(db)
        if seq and self._keys is not None:
            sign_checkpoint(db, self._keys, seq, hash, self._now_us())

    def _append(self, db: "sqlite3.Connection", rows: Sequence[Snapshot]) -> None:
        if self._keys is None:
            raise AssertionError("append before ready")
        seq, prev = head(db)
        for taken in rows:
            seq += 1
            values, row = columns(taken, seq, self._node, self._redactor, self._keys.digests)
            hash = chained(values, prev)
            db.execute(INSERT, (*values, prev, hash))
            self._along(db, row, taken, values)
            if seq % SEGMENT == 0:
                self._checkpoint(db, seq, hash)
            prev = hash
        if self._clock() - self._checked > SEGMENT_LIFE:
            self._checkpoint(db, seq, prev)

    def _along(
        self, db: "sqlite3.Connection", row: Row, taken: Snapshot, values: Sequence[Any]
    ) -> None:
        """What goes along with a row: calls that are open, bodies, the index."""
        seq, call = values[SEQ], values[CALL]  # as they stand in the table: without secrets
        if call and row.kind == "intent":
            db.execute("INSERT OR REPLACE INTO open_call VALUES (?, ?, ?)", (call, seq, self._node))
        elif call and row.kind == "outcome":
            db.execute("DELETE FROM open_call WHERE call_id = ?", (call,))
        if self._keeper is not None:
            self._keeper.keep(db, row, taken)
        if seq % INDEXED_AT_ONCE == 0:
            index_some(db, INDEXED_AT_ONCE)

    def _checkpoint(self, db: "sqlite3.Connection", seq: int, hash: bytes) -> None:
        self._checked = self._clock()
        if self._keys is not None:
            sign_checkpoint(db, self._keys, seq, hash, self._now_us())

    def _sweep(self, db: "sqlite3.Connection") -> bool:
        """Drop some of what has been kept for long enough; whether there is more of it."""
        if self._keys is None:
            return False
        now = self._now_us()
        before = None if self._retain is None else now - int(self._retain * 1e6)
        return sweep(db, self._keys, now, before)

    def _now_us(self) -> int:
        return int(self._clock() * 1e6)
