"""What the store's thread does for the audit log: rows into the chain, and what goes along with it."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.host.audit.bodies import Bodies, Keeper
from isthmus.host.audit.chain import (
    BROKEN,
    UNPROVED,
    count_checkpoints,
    fits,
    head,
    sign_checkpoint,
)
from isthmus.host.audit.columns import COLUMNS, INSERT, Snapshot, chained, columns, snapshot
from isthmus.host.audit.head import ChainHead, HeadFile, HeadInvalid, HeadUpdate, head_path
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
        self._file: HeadFile | None = None
        self._since, self._base, self._marks = 1, 0, 0
        self._known_at = -1
        self._lost_told = 0  # rows that the open transaction says are lost
        self._instead_of = b""
        self._checked = clock()
        self._swept = clock()
        self._sweeping = True

    def ready(self, db: "sqlite3.Connection") -> tuple[int, HeadUpdate | None]:
        """Be there, and write an outcome for each call of those who are gone.

        Returns:
            The number of those calls, and what the head is to be after that.
        """
        if self.begun:
            return 0, None
        self._keys = AuditKeys(self._state.key())
        self._keeper = Keeper(self._bodies, self._bodies_life, self._redactor, self._keys)
        self.presence.begin()
        rows = list(orphans(db, self.presence))
        self.begun = True
        self._known_at = -1
        head = self._append(db, [snapshot(row, self._clock(), self._redactor) for row in rows])
        return len(rows), head

    def append(self, db: "sqlite3.Connection", rows: Sequence[Snapshot]) -> HeadUpdate | None:
        """Write rows at the end of the chain; what the head is to be once they are committed."""
        _, update = self.ready(db)
        lost = self._waiting.lost - self._lost_told
        if lost:
            gone = Row(kind="config", action="audit.lost", detail={"rows": lost})
            rows = [snapshot(gone, self._clock(), self._redactor), *rows]
        if rows:
            update = self._append(db, rows)
            self._lost_told += lost
        if self._sweeping or self._clock() - self._swept > SWEPT_EVERY:
            self._swept = self._clock()
            self._sweeping = self._sweep(db)
            update = self._update(db, *head(db), recount=True)
        return update

    def end(self, db: "sqlite3.Connection") -> HeadUpdate | None:
        """Sign where the log stands; what the head is to be once that is committed."""
        seq, hash = head(db)
        if not seq or self._keys is None:
            return None
        sign_checkpoint(db, self._keys, seq, hash, self._now_us())
        return self._update(db, seq, hash, recount=True)

    def head_file(self, keys: AuditKeys) -> HeadFile:
        """The file outside the database that says where the chain stands."""
        if self._file is None:
            self._file = HeadFile(head_path(self._state.folder), keys)
        return self._file

    def settle_lost(self, *, committed: bool) -> None:
        """A transaction is over: what it said is lost has been told, or is to be told again."""
        if committed:
            self._waiting.lost -= self._lost_told
        self._lost_told = 0

    def advance_head(self, update: HeadUpdate) -> None:
        """Write the head, now that its rows have been committed."""
        try:
            if self._keys is not None:
                self.head_file(self._keys).advance(update)
        except OSError as error:  # the rows are there; the next one is refused while this lasts
            logging.getLogger("isthmus").error(  # noqa: TRY400 - the error says it all
                "the head of the audit log cannot be written, its last rows are unproved: %s", error
            )

    def _append(self, db: "sqlite3.Connection", rows: Sequence[Snapshot]) -> HeadUpdate:
        if self._keys is None:
            raise AssertionError("append before ready")
        seq, prev = head(db)
        alarm = self._compare_head(db, seq, prev)
        signed = False
        for taken in [*alarm, *rows]:
            seq += 1
            values, row = columns(taken, seq, self._node, self._redactor, self._keys.digests)
            hash = chained(values, prev, self._keys.chain)
            db.execute(INSERT, (*values, prev, hash))
            self._along(db, row, taken, values)
            if seq % SEGMENT == 0:
                self._checkpoint(db, seq, hash)
                signed = True
            prev = hash
        if self._clock() - self._checked > SEGMENT_LIFE:
            self._checkpoint(db, seq, prev)
            signed = True
        return self._update(db, seq, prev, recount=signed)

    def _compare_head(self, db: "sqlite3.Connection", seq: int, hash: bytes) -> list[Snapshot]:
        """Compare the log with its head; what does not fit is told in a row that cannot go unseen.

        A later head would hide it otherwise.
        """
        file = self.head_file(self._keys or AuditKeys(self._state.key()))
        self._instead_of = b""
        try:
            known, raw = file.read()
        except HeadInvalid as invalid:
            self._instead_of, self._since, self._known_at = invalid.args[0], seq + 1, -1
            return [self._alarm(BROKEN, {"why": "the head was not written with this key"})]
        if known is None:
            self._since, self._known_at = seq + 1, -1
            file.begin(ChainHead(seq=seq, hash=hash.hex(), since=self._since, ts_us=self._now_us()))
            return [self._alarm(UNPROVED, {"upto": seq})] if seq else []
        self._since = known.since
        if known.seq != seq:
            self._known_at = -1  # another process wrote: count anew
        if fits(db, known, seq, hash):
            return []
        self._instead_of = raw
        was = {"seq": known.seq, "hash": known.hash}
        return [self._alarm(BROKEN, {"head": was, "found": {"seq": seq, "hash": hash.hex()}})]

    def _alarm(self, action: str, detail: dict[str, Any]) -> Snapshot:
        row = Row(kind="config", action=action, detail=detail)
        return snapshot(row, self._clock(), self._redactor)

    def _update(
        self, db: "sqlite3.Connection", seq: int, hash: bytes, *, recount: bool
    ) -> HeadUpdate:
        if recount or self._known_at < 0:
            self._base, self._marks = count_checkpoints(db, seq)
        self._known_at = seq
        told = ChainHead(
            seq=seq,
            hash=hash.hex(),
            since=self._since,
            base=self._base,
            checkpoints=self._marks,
            ts_us=self._now_us(),
        )
        return HeadUpdate(told, self._instead_of)

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
