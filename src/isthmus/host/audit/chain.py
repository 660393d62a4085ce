"""The chain of rows: keyed hashes, signed checkpoints, and the check that nobody changed anything."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.host.audit.columns import COLUMNS, GENESIS, chained
from isthmus.host.audit.head import ChainHead, HeadFile, HeadInvalid
from isthmus.host.audit.keys import AuditKeys

if TYPE_CHECKING:
    import sqlite3

__all__ = [
    "BROKEN",
    "UNPROVED",
    "Doubt",
    "Fault",
    "Verdict",
    "count_checkpoints",
    "fits",
    "head",
    "sign_checkpoint",
    "statement",
    "verify",
]

BROKEN = "audit.broken"
"""Action of the row that says that the log did not fit its head when a host went on with it."""

UNPROVED = "audit.unproved"
"""Action of the row that says that there was a log, and no head, when a host went on with it."""

ACTION, DETAIL = COLUMNS.index("action"), COLUMNS.index("detail")

HEAD_TRIES = 10
HEAD_PAUSE_S = 0.005

AT_ONCE = 2_000
"""Rows that are read at a time."""

MOST_FAULTS = 100
"""Faults that are told; one who rewrites a log makes no more than that many worth reading."""

What: TypeAlias = Literal[
    "changed", "missing", "order", "inserted", "truncated", "checkpoint", "head"
]


class Fault(Struct, frozen=True):
    """One thing that is not as it was written.

    Attributes:
        seq: the row it is found at.
        what: of what kind it is.
        text: what is wrong, in a sentence.
    """

    seq: int
    what: What
    text: str


class Doubt(Struct, frozen=True):
    """Rows of which nothing shows whether they are as they were written, or all of them.

    Attributes:
        first, last: the rows.
        text: why, in a sentence.
    """

    first: int
    last: int
    text: str


class Verdict(Struct, frozen=True, kw_only=True):
    """What the check of a whole log found.

    Attributes:
        rows: how many rows were checked.
        first, last: the numbers of the first and the last of them; 0 where there are none.
        head: the hash of the last one, in hex: noted elsewhere, it proves later that nothing up to
            there was changed or removed.
        checkpoints: how many signatures hold.
        dropped: rows before ``first`` that retention removed, under a signature.
        faults: what is wrong; empty for a log that is as it was written.
        unproved: rows of which nothing shows whether they are as they were written, or all of them.
    """

    rows: int
    first: int
    last: int
    head: str
    checkpoints: int
    dropped: int
    faults: tuple[Fault, ...]
    unproved: tuple[Doubt, ...] = ()

    @property
    def good(self) -> bool:
        """Whether it is proved that nothing was changed."""
        return self.state == "good"

    @property
    def state(self) -> Literal["good", "unproved", "bad"]:
        """``bad`` where something is wrong; ``unproved`` where nothing is, and not all is proved."""
        return "bad" if self.faults else "unproved" if self.unproved else "good"


def head(db: "sqlite3.Connection") -> tuple[int, bytes]:
    """The number and the hash of the last row; those of the last checkpoint where no row is left."""
    row = db.execute("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    if row is None:
        row = db.execute("SELECT seq, hash FROM checkpoint ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row[0], row[1])


def statement(seq: int, ts_us: int, hash: bytes, sealed: int) -> bytes:
    """What a checkpoint's signature is over."""
    return b"isthmus audit checkpoint %d %d %s %d" % (seq, ts_us, hash.hex().encode(), sealed)


def sign_checkpoint(
    db: "sqlite3.Connection", keys: AuditKeys, seq: int, hash: bytes, ts_us: int, *, sealed: int = 0
) -> None:
    """Write down, signed, where the chain stands; an earlier checkpoint there is replaced."""
    signature = keys.sign(statement(seq, ts_us, hash, sealed))
    db.execute(
        "INSERT OR REPLACE INTO checkpoint (seq, ts_us, hash, sealed, sig) VALUES (?, ?, ?, ?, ?)",
        (seq, ts_us, hash, sealed, signature),
    )


def count_checkpoints(db: "sqlite3.Connection", last: int) -> tuple[int, int]:
    """The sealed checkpoint at which the chain begins, and how many there are from it to a row."""
    base = db.execute("SELECT coalesce(max(seq), 0) FROM checkpoint WHERE sealed = 1").fetchone()[0]
    found = db.execute(FOUND, (base, last)).fetchone()[0]
    return base, found


FOUND = "SELECT count(*) FROM checkpoint WHERE seq BETWEEN ? AND ?"


def fits(db: "sqlite3.Connection", known: ChainHead, seq: int, hash: bytes) -> bool:
    """Whether a log whose last row is ``seq`` with this hash goes on from a head, or ends there."""
    if known.seq == seq:
        return known.hash == hash.hex()
    if known.seq > seq:
        return False
    for table in ("event", "checkpoint"):
        query = f"SELECT hash FROM {table} WHERE seq = ?"  # noqa: S608 - names of tables
        row = db.execute(query, (known.seq,)).fetchone()
        if row is not None:
            return bool(row[0].hex() == known.hash)
    return known.seq <= count_checkpoints(db, seq)[0]  # none, or retention dropped it meanwhile


def verify(db: "sqlite3.Connection", keys: AuditKeys, file: HeadFile, anchor: str = "") -> Verdict:
    """Check every row and every checkpoint of a log, and its end against its head.

    Args:
        db: an open connection, in a transaction where others write meanwhile.
        keys: of the state.
        file: the head, outside the database.
        anchor: ``SEQ:HASH`` as an earlier check told it; empty for none.

    Raises:
        ValueError: the anchor is none.
    """
    check = Check(db, keys)
    check.read_head(file)
    check.checkpoints()
    if anchor:
        check.anchor(anchor)
    check.rows()
    check.compare_head()
    return check.verdict()


class Check:
    """One check of a whole log, as far as it has come."""

    def __init__(self, db: "sqlite3.Connection", keys: AuditKeys) -> None:
        self.db = db
        self.keys = keys
        self.faults: list[Fault] = []
        self.doubts: list[Doubt] = []
        self.known: ChainHead | None = None
        self.marks: dict[int, bytes] = {}
        self.signed: list[int] = []
        self.base, self.prev = 0, GENESIS
        self.first = self.last = self.count = 0
        self.unkeyed = 0
        self.keyed = False

    def fault(self, seq: int, what: What, text: str) -> None:
        """One more, unless there are enough."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(seq, what, text))

    def anchor(self, text: str) -> None:
        """What somebody noted elsewhere is a mark, too."""
        number, _, hash = text.partition(":")
        self.marks[int(number)] = bytes.fromhex(hash)

    def read_head(self, file: HeadFile) -> None:
        """Read the head before the log: rows that are committed later are no fault.

        A head follows its rows within microseconds, so it is waited for where others write.
        """
        for _ in range(HEAD_TRIES):
            try:
                self.known, _raw = file.read()
            except HeadInvalid:
                self.fault(0, "head", "host.head was changed, or was written with another key")
                return
            last = self.db.execute("SELECT max(seq) FROM event").fetchone()[0] or 0
            if self.known is None or last <= self.known.seq or not self.db.in_transaction:
                break
            self.db.execute("ROLLBACK")
            time.sleep(HEAD_PAUSE_S)
            self.db.execute("BEGIN")
        if self.known is not None and self.known.seq:
            self.marks[self.known.seq] = bytes.fromhex(self.known.hash)

    def checkpoints(self) -> None:
        """Check the signatures, and find out where the rows begin."""
        rows = self.db.execute("SELECT seq, ts_us, hash, sealed, sig FROM checkpoint ORDER BY seq")
        for seq, ts_us, hash, sealed, sig in rows:
            if not self.keys.signed(statement(seq, ts_us, hash, sealed), sig):
                self.fault(seq, "checkpoint", f"the signature of checkpoint {seq} does not hold")
                continue
            self.signed.append(seq)
            self.marks[seq] = hash
            if sealed:
                self.base, self.prev = seq, hash
        self.last = self.base

    def rows(self) -> None:
        """Follow the chain from row to row."""
        for *values, prev, hash in stored(self.db, self.base):
            seq: int = values[0]
            self.first = self.first or seq
            self.count += 1
            if seq != self.last + 1:
                self._gap(seq)
            elif prev != self.prev:
                self.fault(
                    seq, "order", f"row {seq} does not follow the row before it: one of both is "
                    "not the one that was written"
                )  # fmt: skip
            self._row(seq, values, prev, hash)
            marked = self.marks.get(seq)
            if marked is not None and marked != hash:
                self.fault(seq, "inserted", f"row {seq} is not the one that was signed")
            self.last, self.prev = seq, hash
        signed = max(self.marks, default=0)
        if signed > self.last:
            self.fault(
                signed, "truncated", f"the log ends at row {self.last}, and was signed up to row "
                f"{signed}: the rows after {self.last} were removed"
            )  # fmt: skip

    def _row(self, seq: int, values: Sequence[Any], prev: bytes, hash: bytes) -> None:
        """Check one row by itself."""
        if chained(values, prev, self.keys.chain) == hash:
            self.keyed = True
            if values[ACTION] == BROKEN:
                self.fault(
                    seq, "truncated", f"when row {seq} was written, the log did not fit its head: "
                    f"rows before it had been removed or changed ({values[DETAIL]})"
                )  # fmt: skip
        elif not self._may_be_unkeyed(seq) or chained(values, prev) != hash:
            self.fault(seq, "changed", f"row {seq} is not as it was written")
        else:
            self.unkeyed = seq

    def _may_be_unkeyed(self, seq: int) -> bool:
        """Whether a row may be from before the chain had a key: then anybody can have made it."""
        return not self.keyed and (self.known is None or seq < self.known.since)

    def _gap(self, seq: int) -> None:
        missing = f"rows {self.last + 1} to {seq - 1} are"
        if seq == self.last + 2:
            missing = f"row {self.last + 1} is"
        self.fault(self.last + 1, "missing", f"{missing} missing")

    def compare_head(self) -> None:
        """Compare the checkpoints with what the head counted, and tell what nothing proves."""
        known = self.known
        if known is None:
            if not any(fault.what == "head" for fault in self.faults):
                self._doubt_all()
            return
        there = sum(self.base <= seq <= known.seq for seq in self.signed)
        if known.base > self.base:
            self.fault(
                known.base, "checkpoint", f"checkpoint {known.base}, from which the log begins, was "
                "removed"
            )  # fmt: skip
        elif known.base == self.base and there < known.checkpoints:
            self.fault(
                known.seq, "checkpoint", f"{known.checkpoints - there} checkpoints were removed: "
                f"there are {there}, and the head counted {known.checkpoints}"
            )  # fmt: skip
        first = self.first or known.since
        if known.since > first:
            self.doubts.append(Doubt(
                first, known.since - 1, f"rows {first} to {known.since - 1} were there before a "
                "head was kept, so nothing proves what they were then; since then they have not "
                "been changed"
            ))  # fmt: skip
        if self.last > known.seq:
            self.doubts.append(Doubt(
                known.seq + 1, self.last, f"rows {known.seq + 1} to {self.last} were written by "
                "this log's key, and no head covers them yet: a host was killed, or writes just "
                "now, and whether more rows followed is not known"
            ))  # fmt: skip

    def _doubt_all(self) -> None:
        text = "there is no host.head beside the database: rows may have been removed at its end"
        if self.unkeyed:
            text += f", and rows up to {self.unkeyed} have no key: anybody can have written them"
        self.doubts.append(Doubt(self.first, self.last, text))

    def verdict(self) -> Verdict:
        """What was found, in the order of the rows."""
        return Verdict(
            rows=self.count,
            first=self.first,
            last=self.last,
            head=self.prev.hex(),
            checkpoints=len(self.signed),
            dropped=self.base,
            faults=tuple(sorted(self.faults, key=lambda fault: fault.seq)),
            unproved=tuple(self.doubts),
        )


HASHED = ", ".join((*COLUMNS, "prev", "hash"))
STORED = f"SELECT {HASHED} FROM event WHERE seq > ? ORDER BY seq"  # noqa: S608 - names of columns


def stored(db: "sqlite3.Connection", after: int) -> Iterator[Sequence[Any]]:
    """Every row after one of them, as it is stored, a few at a time."""
    rows = db.execute(STORED, (after,))
    while some := rows.fetchmany(AT_ONCE):
        yield from some
