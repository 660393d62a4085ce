"""The chain: rows after the last one, signed checkpoints, and whether anybody changed anything."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.host.audit.columns import COLUMNS, GENESIS, chained
from isthmus.host.audit.keys import AuditKeys

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Fault", "Verdict", "head", "sign_checkpoint", "statement", "verify"]

AT_ONCE = 2_000
"""Rows that are read at a time."""

MOST_FAULTS = 100
"""Faults that are told; one who rewrites a log makes no more than that many worth reading."""

What: TypeAlias = Literal["changed", "missing", "order", "inserted", "truncated", "checkpoint"]


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
    """

    rows: int
    first: int
    last: int
    head: str
    checkpoints: int
    dropped: int
    faults: tuple[Fault, ...]

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


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


def verify(db: "sqlite3.Connection", keys: AuditKeys, anchor: str = "") -> Verdict:
    """Check every row and every checkpoint of a log.

    Args:
        db: an open connection; what is written meanwhile does no harm inside a transaction.
        keys: of the state.
        anchor: ``SEQ:HASH`` as an earlier check told it; empty for none.

    Raises:
        ValueError: the anchor is none.
    """
    check = Check(db, keys)
    check.checkpoints()
    if anchor:
        check.anchor(anchor)
    check.rows()
    return check.verdict()


class Check:
    """One check of a whole log, as far as it has come."""

    def __init__(self, db: "sqlite3.Connection", keys: AuditKeys) -> None:
        self.db = db
        self.keys = keys
        self.faults: list[Fault] = []
        self.marks: dict[int, bytes] = {}
        self.held = 0
        self.base, self.prev = 0, GENESIS
        self.first = self.last = self.count = 0

    def fault(self, seq: int, what: What, text: str) -> None:
        """One more, unless there are enough."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(seq, what, text))

    def anchor(self, text: str) -> None:
        """What somebody noted elsewhere is a mark, too."""
        number, _, hash = text.partition(":")
        self.marks[int(number)] = bytes.fromhex(hash)

    def checkpoints(self) -> None:
        """Check the signatures, and find out where the rows begin."""
        rows = self.db.execute("SELECT seq, ts_us, hash, sealed, sig FROM checkpoint ORDER BY seq")
        for seq, ts_us, hash, sealed, sig in rows:
            if not self.keys.signed(statement(seq, ts_us, hash, sealed), sig):
                self.fault(seq, "checkpoint", f"the signature of checkpoint {seq} does not hold")
                continue
            self.held += 1
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
            if chained(values, prev) != hash:
                self.fault(seq, "changed", f"row {seq} is not as it was written")
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

    def _gap(self, seq: int) -> None:
        missing = f"rows {self.last + 1} to {seq - 1} are"
        if seq == self.last + 2:
            missing = f"row {self.last + 1} is"
        self.fault(self.last + 1, "missing", f"{missing} missing")

    def verdict(self) -> Verdict:
        """What was found, in the order of the rows."""
        return Verdict(
            rows=self.count,
            first=self.first,
            last=self.last,
            head=self.prev.hex(),
            checkpoints=self.held,
            dropped=self.base,
            faults=tuple(sorted(self.faults, key=lambda fault: fault.seq)),
        )


HASHED = ", ".join((*COLUMNS, "prev", "hash"))
STORED = f"SELECT {HASHED} FROM event WHERE seq > ? ORDER BY seq"  # noqa: S608 - names of columns


def stored(db: "sqlite3.Connection", after: int) -> Iterator[Sequence[Any]]:
    """Every row after one of them, as it is stored, a few at a time."""
    rows = db.execute(STORED, (after,))
    while some := rows.fetchmany(AT_ONCE):
        yield from some
