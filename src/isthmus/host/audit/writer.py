"""Writer of the audit log, in the store's thread: rows into the chain, bodies, and retention.

Arguments and results are kept encrypted where the settings say so, and once for equal ones. Retention
drops bodies one by one and rows in whole segments: the last checkpoint before the time is signed once
more, as the one from which the chain now begins, and only rows up to it can be removed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from isthmus.core.redaction.values import Redactor
from isthmus.host.audit.hash_chain import (
    BROKEN,
    UNPROVED,
    continues_head,
    count_checkpoints,
    format_checkpoint,
    hash_row,
    read_chain_end,
    sign_checkpoint,
)
from isthmus.host.audit.head_file import ChainHead, HeadFile, HeadInvalid, HeadUpdate, get_head_path
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.queries import index_next_rows, remove_from_index
from isthmus.host.audit.row_columns import (
    COLUMNS,
    RowSnapshot,
    digest_body,
    insert_rows,
    make_columns,
    take_snapshot,
)
from isthmus.host.audit.row_queue import RowQueue
from isthmus.host.model.row import AuditRow
from isthmus.host.state.database import HostState
from isthmus.host.state.presence import ProcessPresence
from isthmus.runtime.failures import log_error

if TYPE_CHECKING:
    import sqlite3

# kept of arguments and results besides their digests: nothing, the redacted text, or all of it
BodyMode: TypeAlias = Literal["hash", "redacted", "full"]

MAX_BODY_BYTES = 4 * 1024 * 1024  # of longer ones there is the digest only
BODY_MEDIA_TYPE = "application/json"
SEQ_COLUMN, CALL_COLUMN = COLUMNS.index("seq"), COLUMNS.index("call_id")
SEGMENT_ROWS = 1_000  # between two checkpoints, at most
SEGMENT_LIFE_S = 3600.0  # between two checkpoints, at most, where rows are written
MAX_MEMORY_ROWS = 50_000  # of a log without a file: some 30 MB; older segments go
SWEEP_INTERVAL_S = 3600.0
INDEX_STEP_ROWS = 250
SWEEP_BATCH_ROWS = 1_000  # in one transaction: intents wait for it
OPEN_CALL_FIELDS = (
    *("call", "parent", "run", "principal", "action", "server", "identity", "object"),
    *("fingerprint", "era", "transport", "origin"),
)
OUTCOME_UNKNOWN = "outcome-unknown"  # the error of a call of which nobody can tell how it ended


class BodyStore:
    """Stores the arguments and results of rows, encrypted.

    Args:
        bodies: what is kept of them.
        life: seconds after which they go.
        redactor: takes out what is secret.
        keys: of the log.
    """

    def __init__(self, bodies: BodyMode, life: float, redactor: Redactor, keys: AuditKeys) -> None:
        self._bodies = bodies
        self._life = life
        self._redactor = redactor
        self._keys = keys

    def keep(self, db: "sqlite3.Connection", row: AuditRow, snapshot: RowSnapshot) -> None:
        """Store the bodies of one row."""
        if self._bodies == "hash":
            return
        expires_us = int((snapshot.at + self._life) * 1e6)
        for raw in (bytes(row.arguments), bytes(row.result)):
            if raw and len(raw) <= MAX_BODY_BYTES:
                name = digest_body(raw, self._keys.digests)
                sealed = self._keys.seal(self._content(raw, snapshot), name)
                db.execute(INSERT_BODY, (name, BODY_MEDIA_TYPE, sealed, expires_us))

    def _content(self, raw: bytes, snapshot: RowSnapshot) -> bytes:
        if self._bodies == "full":
            return raw
        try:
            value = self._redactor.strip(msgspec.json.decode(raw))
            return msgspec.json.encode(self._redactor.without(value, snapshot.known))
        except (msgspec.DecodeError, RecursionError):  # there is its digest all the same
            return msgspec.json.encode({"unreadable": f"{len(raw)} bytes"})


INSERT_BODY = (
    "INSERT INTO body VALUES (?, ?, ?, ?) "
    "ON CONFLICT (hash) DO UPDATE SET expires_us = max(expires_us, excluded.expires_us)"
)


def read_body(db: "sqlite3.Connection", keys: AuditKeys, hash: bytes) -> Any | None:
    """Read a body by the digest that stands in its row; None where it is not kept.

    Raises:
        CannotOpen: it was changed, or encrypted with another key.
    """
    row = db.execute("SELECT data FROM body WHERE hash = ?", (hash,)).fetchone()
    return None if row is None else msgspec.json.decode(keys.open(row[0], hash))


class AuditWriter:
    """Appends rows; everything here runs in the store's thread, in a transaction.

    Args:
        state: where the log is.
        queue: says how many rows were lost on their way.
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
        queue: RowQueue,
        redactor: Redactor,
        node: str,
        clock: Callable[[], float],
        *,
        bodies: BodyMode,
        bodies_life: float,
        retain: float | None,
    ) -> None:
        self.presence = ProcessPresence(state.folder, node)
        self.begun = False
        self._state = state
        self._queue = queue
        self._redactor = redactor
        self._node = node
        self._clock = clock
        self._bodies: BodyMode = bodies
        self._bodies_life = bodies_life
        self._retain = retain
        self._keys: AuditKeys | None = None
        self._keeper: BodyStore | None = None
        self._file: HeadFile | None = None
        self._since, self._base, self._marks = 1, 0, 0
        self._known_at = -1
        self._lost_told = 0  # rows that the open transaction says are lost
        self._instead_of = b""
        self._checked = clock()
        self._swept = clock()
        self._sweeping = True

    def ready(self, db: "sqlite3.Connection") -> tuple[int, HeadUpdate | None]:
        """Announce this process, and write an outcome for each call of processes that are gone.

        Returns:
            The number of those calls, and what the head is to be after that.
        """
        if self.begun:
            return 0, None
        self._keys = AuditKeys(self._state.key())
        self._keeper = BodyStore(self._bodies, self._bodies_life, self._redactor, self._keys)
        self.presence.begin()
        rows = list(settle_orphans(db, self.presence))
        self.begun = True
        self._known_at = -1
        head = self._append(db, [take_snapshot(row, self._clock(), self._redactor) for row in rows])
        return len(rows), head

    def append(self, db: "sqlite3.Connection", rows: Sequence[RowSnapshot]) -> HeadUpdate | None:
        """Write rows at the end of the chain, and make the head for after their commit."""
        _, update = self.ready(db)
        lost = self._queue.lost - self._lost_told
        if lost:
            gone = AuditRow(kind="config", action="audit.lost", detail={"rows": lost})
            rows = [take_snapshot(gone, self._clock(), self._redactor), *rows]
        if rows:
            update = self._append(db, rows)
            self._lost_told += lost
        if self._sweeping or self._clock() - self._swept > SWEEP_INTERVAL_S:
            self._swept = self._clock()
            self._sweeping = self._sweep(db)
            update = self._update(db, *read_chain_end(db), recount=True)
        return update

    def end(self, db: "sqlite3.Connection") -> HeadUpdate | None:
        """Sign the end of the chain, and make the head for after the commit."""
        seq, hash = read_chain_end(db)
        if not seq or self._keys is None:
            return None
        sign_checkpoint(db, self._keys, seq, hash, self._now_us())
        return self._update(db, seq, hash, recount=True)

    def head_file(self, keys: AuditKeys) -> HeadFile:
        """The head file of the log."""
        if self._file is None:
            self._file = HeadFile(get_head_path(self._state.folder), keys)
        return self._file

    def settle_lost(self, *, committed: bool) -> None:
        """Settle the count of lost rows once the transaction that tells it is over."""
        if committed:
            self._queue.lost -= self._lost_told
        self._lost_told = 0

    def advance_head(self, update: HeadUpdate) -> None:
        """Write the head once its rows have been committed."""
        try:
            if self._keys is not None:
                self.head_file(self._keys).advance(update)
        except OSError as error:  # the rows are there; the next one is refused while this lasts
            log_error(
                "the head of the audit log cannot be written, its last rows are unproved: %s", error
            )

    def _append(self, db: "sqlite3.Connection", rows: Sequence[RowSnapshot]) -> HeadUpdate:
        if self._keys is None:
            raise AssertionError("append before ready")
        seq, prev = read_chain_end(db)
        alarm = self._compare_head(db, seq, prev)
        signed = False
        written: list[tuple[Any, ...]] = []
        for snapshot in [*alarm, *rows]:
            seq += 1
            values, row = make_columns(
                snapshot, seq, self._node, self._redactor, self._keys.digests
            )
            hash = hash_row(values, prev, self._keys.chain)
            written.append((*values, prev, hash))
            self._write_related(db, row, snapshot, values)
            if seq % SEGMENT_ROWS == 0 or seq % INDEX_STEP_ROWS == 0:
                insert_rows(db, written)  # what follows reads them
                written.clear()
            if seq % INDEX_STEP_ROWS == 0:
                index_next_rows(db, INDEX_STEP_ROWS)
            if seq % SEGMENT_ROWS == 0:
                self._checkpoint(db, seq, hash)
                signed = True
            prev = hash
        insert_rows(db, written)
        self._sweeping = self._sweeping or (signed and self._state.folder is None)
        if self._clock() - self._checked > SEGMENT_LIFE_S:
            self._checkpoint(db, seq, prev)
            signed = True
        return self._update(db, seq, prev, recount=signed)

    def _compare_head(self, db: "sqlite3.Connection", seq: int, hash: bytes) -> list[RowSnapshot]:
        """Compare the log with its head; a mismatch is written in a row that cannot go unseen.

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
        if continues_head(db, known, seq, hash):
            return []
        self._instead_of = raw
        was = {"seq": known.seq, "hash": known.hash}
        return [self._alarm(BROKEN, {"head": was, "found": {"seq": seq, "hash": hash.hex()}})]

    def _alarm(self, action: str, detail: dict[str, Any]) -> RowSnapshot:
        row = AuditRow(kind="config", action=action, detail=detail)
        return take_snapshot(row, self._clock(), self._redactor)

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

    def _write_related(
        self, db: "sqlite3.Connection", row: AuditRow, snapshot: RowSnapshot, values: Sequence[Any]
    ) -> None:
        """Write what belongs to a row: the list of open calls, its bodies, the index."""
        seq, call = (
            values[SEQ_COLUMN],
            values[CALL_COLUMN],
        )  # as they stand in the table: without secrets
        if self._state.folder is None:
            pass  # nobody comes after this process to settle what it left open
        elif call and row.kind == "intent":
            db.execute("INSERT OR REPLACE INTO open_call VALUES (?, ?, ?)", (call, seq, self._node))
        elif call and row.kind == "outcome":
            db.execute("DELETE FROM open_call WHERE call_id = ?", (call,))
        if self._keeper is not None:
            self._keeper.keep(db, row, snapshot)

    def _checkpoint(self, db: "sqlite3.Connection", seq: int, hash: bytes) -> None:
        self._checked = self._clock()
        if self._keys is not None:
            sign_checkpoint(db, self._keys, seq, hash, self._now_us())

    def _sweep(self, db: "sqlite3.Connection") -> bool:
        """Drop some of what has expired; whether there is more of it."""
        if self._keys is None:
            return False
        now = self._now_us()
        limits = [] if self._retain is None else [now - int(self._retain * 1e6)]
        if self._state.folder is None:
            limits += find_row_time(db, read_chain_end(db)[0] - MAX_MEMORY_ROWS)
        return sweep_expired(db, self._keys, now, max(limits, default=None))

    def _now_us(self) -> int:
        return int(self._clock() * 1e6)


def sweep_expired(
    db: "sqlite3.Connection", keys: AuditKeys, now_us: int, before_us: int | None
) -> bool:
    """Drop some expired bodies and rows.

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
        (now_us, SWEEP_BATCH_ROWS),
    ).rowcount
    return (
        before_us is not None and drop_segments(db, keys, before_us)
    ) or gone == SWEEP_BATCH_ROWS


def find_row_time(db: "sqlite3.Connection", seq: int) -> list[int]:
    """The time of a row, in microseconds since the epoch; empty where there is no such row."""
    return [row[0] for row in db.execute("SELECT ts_us FROM event WHERE seq = ?", (seq,))]


def drop_segments(db: "sqlite3.Connection", keys: AuditKeys, before_us: int) -> bool:
    """Drop some rows of the segments that ended before a time; whether there are more."""
    last = find_last_checkpoint(db, keys, before_us)
    if last is None:
        return False
    seq, ts_us, hash, sealed = last
    if not sealed:
        sign_checkpoint(db, keys, seq, hash, ts_us, sealed=1)
        db.execute("DELETE FROM checkpoint WHERE seq < ?", (seq,))
    first = db.execute("SELECT min(seq) FROM event WHERE seq <= ?", (seq,)).fetchone()[0]
    if first is None:
        return False
    upto = min(seq, first + SWEEP_BATCH_ROWS - 1)
    remove_from_index(db, first, upto)
    db.execute("DELETE FROM event WHERE seq BETWEEN ? AND ?", (first, upto))
    return bool(upto < seq)


def find_last_checkpoint(
    db: "sqlite3.Connection", keys: AuditKeys, before_us: int
) -> tuple[int, int, bytes, int] | None:
    """Find the last checkpoint before a time whose signature holds: no other may be sealed."""
    rows = db.execute(
        "SELECT seq, ts_us, hash, sealed, sig FROM checkpoint WHERE ts_us < ? ORDER BY seq DESC",
        (before_us,),
    )
    for seq, ts_us, hash, sealed, sig in rows:
        if keys.is_signature(format_checkpoint(seq, ts_us, hash, sealed), sig):
            return seq, ts_us, hash, sealed
    return None


SELECT_OPEN_CALLS = """
    SELECT event.call_id, parent_id, run_id, principal, action, server, identity, object,
           fingerprint, event.era, transport, origin, event.node
    FROM open_call JOIN event ON event.seq = open_call.seq WHERE open_call.node = ?
    ORDER BY event.seq
"""

ADOPT_TASKS = """
    UPDATE open_call SET node = ? WHERE node = ? AND call_id IN
    (SELECT json_extract(CAST(attempt AS TEXT), '$.id') FROM task_handle)
"""


def settle_orphans(db: "sqlite3.Connection", presence: ProcessPresence) -> Iterator[AuditRow]:
    """Make an outcome for each call of processes that are gone: nobody can tell how it ended.

    Writing the outcome takes the call off the list, so that it is written once. One that has become
    a task is ours from now on: its server can still be asked how it ended.
    """
    nodes = [row[0] for row in db.execute("SELECT DISTINCT node FROM open_call").fetchall()]
    for node in nodes:
        if not presence.gone(node):
            continue
        db.execute(ADOPT_TASKS, (presence.node, node))
        for *values, who in db.execute(SELECT_OPEN_CALLS, (node,)).fetchall():
            told: dict[str, Any] = {
                name: value or "" for name, value in zip(OPEN_CALL_FIELDS, values, strict=True)
            }
            yield AuditRow(kind="outcome", error=OUTCOME_UNKNOWN, detail={"node": who}, **told)
        # An intent whose row was dropped meanwhile is open no more.
        db.execute("DELETE FROM open_call WHERE node = ?", (node,))
