"""Hash chain of the audit log: each row is hashed with a key over the row before it, signed and verified.

Checkpoints are signatures over the end of the chain; :func:`verify_chain` checks every row, every
checkpoint, and the end against the head file.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from isthmus.core.text import format_count
from isthmus.host.audit.head_file import ChainHead, HeadFile, HeadInvalid
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.row_columns import COLUMNS, HASH_COLUMNS

if TYPE_CHECKING:
    import sqlite3

# action of the row that says that the log did not fit its head when a host went on with it
BROKEN = "audit.broken"

# action of the row that says that a log had no head when a host went on with it
UNPROVED = "audit.unproved"
ACTION_COLUMN, DETAIL_COLUMN = COLUMNS.index("action"), COLUMNS.index("detail")
HEAD_TRIES = 10
HEAD_PAUSE_S = 0.005
VERIFY_BATCH_ROWS = 2_000
MAX_FAULTS = 100  # whoever rewrites a log makes no more than that many worth reading

FaultKind: TypeAlias = Literal[
    "changed", "missing", "order", "inserted", "truncated", "checkpoint", "head"
]


GENESIS = bytes(32)  # stands in the first row in place of the hash of the row before it


class ChainFault(Struct, frozen=True):
    """One fault of the chain: a row, a checkpoint or the head is not as it was written.

    Attributes:
        seq: the row it is found at.
        what: of what kind it is.
        text: what is wrong, in a sentence.
    """

    seq: int
    what: FaultKind
    text: str


class UnprovedRows(Struct, frozen=True):
    """Rows that may be as they were written, which nothing proves.

    Attributes:
        first, last: the rows.
        text: why, in a sentence.
    """

    first: int
    last: int
    text: str


class ChainVerdict(Struct, frozen=True, kw_only=True):
    """The result of a verification of the whole log.

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
    faults: tuple[ChainFault, ...]
    unproved: tuple[UnprovedRows, ...] = ()

    @property
    def good(self) -> bool:
        """Whether it is proved that nothing was changed."""
        return self.state == "good"

    @property
    def state(self) -> Literal["good", "unproved", "bad"]:
        """``bad`` where something is wrong; ``unproved`` where nothing is, and not all is proved."""
        return "bad" if self.faults else "unproved" if self.unproved else "good"


def describe_verdict(found: ChainVerdict) -> Iterable[str]:
    """The verdict of a verification, as lines."""
    counts = format_count(found.rows, "row"), format_count(found.checkpoints, "checkpoint")
    yield f"{counts[0]} ({found.first} to {found.last}), {counts[1]}"
    if found.dropped:
        yield f"rows up to {found.dropped} were dropped by retention, under a signature"
    yield from (f"row {fault.seq}: {fault.what}: {fault.text}" for fault in found.faults)
    yield from (f"unproved: {doubt.text}" for doubt in found.unproved)
    if found.state == "unproved":
        yield "no fault was found, and not everything is proved"
    if found.good:
        yield "nothing was changed, removed, inserted or put in another order"
    if not found.faults:
        yield f"anchor {found.last}:{found.head}"


def hash_row(values: Sequence[Any], prev: bytes, key: bytes = b"") -> bytes:
    """Hash an audit row: keyed BLAKE2b-256 over the hash before it and the row as a JSON array.

    Without a key it is the hash of rows that older versions wrote; anybody can compute that one.

    The array has the values in the order of :data:`COLUMNS`, bytes in hex, nothing in between, and
    no character escaped that JSON lets stand.
    """
    plain = [*values]
    for at in HASH_COLUMNS:
        if isinstance(plain[at], bytes):
            plain[at] = plain[at].hex()
    return hashlib.blake2b(prev + msgspec.json.encode(plain), key=key, digest_size=32).digest()


def read_chain_end(db: "sqlite3.Connection") -> tuple[int, bytes]:
    """The number and the hash of the last row, or of the last checkpoint where no row is left."""
    row = db.execute("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    if row is None:
        row = db.execute("SELECT seq, hash FROM checkpoint ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, GENESIS) if row is None else (row[0], row[1])


def format_checkpoint(seq: int, ts_us: int, hash: bytes, sealed: int) -> bytes:
    """The message that the signature of a checkpoint is over."""
    return b"isthmus audit checkpoint %d %d %s %d" % (seq, ts_us, hash.hex().encode(), sealed)


def sign_checkpoint(
    db: "sqlite3.Connection", keys: AuditKeys, seq: int, hash: bytes, ts_us: int, *, sealed: int = 0
) -> None:
    """Sign the end of the chain and store it; an earlier checkpoint at that row is replaced."""
    signature = keys.sign(format_checkpoint(seq, ts_us, hash, sealed))
    db.execute(
        "INSERT OR REPLACE INTO checkpoint (seq, ts_us, hash, sealed, sig) VALUES (?, ?, ?, ?, ?)",
        (seq, ts_us, hash, sealed, signature),
    )


def count_checkpoints(db: "sqlite3.Connection", last: int) -> tuple[int, int]:
    """Find the sealed checkpoint at which the chain begins, and count those from it to a row."""
    base = db.execute("SELECT coalesce(max(seq), 0) FROM checkpoint WHERE sealed = 1").fetchone()[0]
    found = db.execute(COUNT_CHECKPOINTS, (base, last)).fetchone()[0]
    return base, found


COUNT_CHECKPOINTS = "SELECT count(*) FROM checkpoint WHERE seq BETWEEN ? AND ?"


def continues_head(db: "sqlite3.Connection", head: ChainHead, seq: int, hash: bytes) -> bool:
    """Whether a log that ends at ``seq`` with this hash continues a head, or ends there."""
    if head.seq == seq:
        return head.hash == hash.hex()
    if head.seq > seq:
        return False
    for table in ("event", "checkpoint"):
        query = f"SELECT hash FROM {table} WHERE seq = ?"  # noqa: S608 - names of tables
        row = db.execute(query, (head.seq,)).fetchone()
        if row is not None:
            return bool(row[0].hex() == head.hash)
    return head.seq <= count_checkpoints(db, seq)[0]  # none, or retention dropped it meanwhile


def verify_chain(
    db: "sqlite3.Connection", keys: AuditKeys, file: HeadFile, anchor: str = ""
) -> ChainVerdict:
    """Verify every row and every checkpoint of a log, and its end against the head file.

    Args:
        db: an open connection, in a transaction where others write meanwhile.
        keys: of the state.
        file: the head, outside the database.
        anchor: ``SEQ:HASH`` as an earlier check told it; empty for none.

    Raises:
        ValueError: the anchor is none.
    """
    verifier = ChainVerifier(db, keys)
    verifier.read_head(file)
    verifier.check_checkpoints()
    if anchor:
        verifier.add_anchor(anchor)
    verifier.check_rows()
    verifier.compare_head()
    return verifier.make_verdict()


class ChainVerifier:
    """One verification of a log, as far as it has come."""

    def __init__(self, db: "sqlite3.Connection", keys: AuditKeys) -> None:
        self.db = db
        self.keys = keys
        self.faults: list[ChainFault] = []
        self.doubts: list[UnprovedRows] = []
        self.known: ChainHead | None = None
        self.marks: dict[int, bytes] = {}
        self.signed: list[int] = []
        self.base, self.prev = 0, GENESIS
        self.first = self.last = self.count = 0
        self.unkeyed = 0
        self.keyed = False

    def add_fault(self, seq: int, what: FaultKind, text: str) -> None:
        """Add a fault, unless there are :data:`MAX_FAULTS` already."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(ChainFault(seq, what, text))

    def add_anchor(self, text: str) -> None:
        """Add a mark that somebody noted elsewhere: ``SEQ:HASH``."""
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
                self.add_fault(0, "head", "host.head was changed, or was written with another key")
                return
            last = self.db.execute("SELECT max(seq) FROM event").fetchone()[0] or 0
            if self.known is None or last <= self.known.seq or not self.db.in_transaction:
                break
            self.db.execute("ROLLBACK")
            time.sleep(HEAD_PAUSE_S)
            self.db.execute("BEGIN")
        if self.known is not None and self.known.seq:
            self.marks[self.known.seq] = bytes.fromhex(self.known.hash)

    def check_checkpoints(self) -> None:
        """Check the signatures, and find where the rows begin."""
        rows = self.db.execute("SELECT seq, ts_us, hash, sealed, sig FROM checkpoint ORDER BY seq")
        for seq, ts_us, hash, sealed, sig in rows:
            if not self.keys.is_signature(format_checkpoint(seq, ts_us, hash, sealed), sig):
                self.add_fault(
                    seq, "checkpoint", f"the signature of checkpoint {seq} does not hold"
                )
                continue
            self.signed.append(seq)
            self.marks[seq] = hash
            if sealed:
                self.base, self.prev = seq, hash
        self.last = self.base

    def check_rows(self) -> None:
        """Follow the chain from row to row."""
        for *values, prev, hash in read_rows(self.db, self.base):
            seq: int = values[0]
            self.first = self.first or seq
            self.count += 1
            if seq != self.last + 1:
                self._report_gap(seq)
            elif prev != self.prev:
                self.add_fault(
                    seq, "order", f"row {seq} does not follow the row before it: one of both is "
                    "not the one that was written"
                )  # fmt: skip
            self._check_row(seq, values, prev, hash)
            marked = self.marks.get(seq)
            if marked is not None and marked != hash:
                self.add_fault(seq, "inserted", f"row {seq} is not the one that was signed")
            self.last, self.prev = seq, hash
        signed = max(self.marks, default=0)
        if signed > self.last:
            self.add_fault(
                signed, "truncated", f"the log ends at row {self.last}, and was signed up to row "
                f"{signed}: the rows after {self.last} were removed"
            )  # fmt: skip

    def _check_row(self, seq: int, values: Sequence[Any], prev: bytes, hash: bytes) -> None:
        if hash_row(values, prev, self.keys.chain) == hash:
            self.keyed = True
            if values[ACTION_COLUMN] == BROKEN:
                self.add_fault(
                    seq, "truncated", f"when row {seq} was written, the log did not fit its head: "
                    f"rows before it had been removed or changed ({values[DETAIL_COLUMN]})"
                )  # fmt: skip
        elif not self._may_be_unkeyed(seq) or hash_row(values, prev) != hash:
            self.add_fault(seq, "changed", f"row {seq} is not as it was written")
        else:
            self.unkeyed = seq

    def _may_be_unkeyed(self, seq: int) -> bool:
        """Whether a row may be older than the chain's key: anybody can have made such a row."""
        return not self.keyed and (self.known is None or seq < self.known.since)

    def _report_gap(self, seq: int) -> None:
        missing = f"rows {self.last + 1} to {seq - 1} are"
        if seq == self.last + 2:
            missing = f"row {self.last + 1} is"
        self.add_fault(self.last + 1, "missing", f"{missing} missing")

    def compare_head(self) -> None:
        """Compare the checkpoints with the head's count, and collect rows that nothing proves."""
        known = self.known
        if known is None:
            if not any(fault.what == "head" for fault in self.faults):
                self._doubt_all()
            return
        there = sum(self.base <= seq <= known.seq for seq in self.signed)
        if known.base > self.base:
            self.add_fault(
                known.base, "checkpoint", f"checkpoint {known.base}, from which the log begins, was "
                "removed"
            )  # fmt: skip
        elif known.base == self.base and there < known.checkpoints:
            self.add_fault(
                known.seq, "checkpoint", f"{known.checkpoints - there} checkpoints were removed: "
                f"there are {there}, and the head counted {known.checkpoints}"
            )  # fmt: skip
        first = self.first or known.since
        if known.since > first:
            self.doubts.append(UnprovedRows(
                first, known.since - 1, f"rows {first} to {known.since - 1} were there before a "
                "head was kept, so nothing proves what they were then; since then they have not "
                "been changed"
            ))  # fmt: skip
        if self.last > known.seq:
            self.doubts.append(UnprovedRows(
                known.seq + 1, self.last, f"rows {known.seq + 1} to {self.last} were written by "
                "this log's key, and no head covers them yet: a host was killed, or writes just "
                "now, and whether more rows followed is not known"
            ))  # fmt: skip

    def _doubt_all(self) -> None:
        text = "there is no host.head beside the database: rows may have been removed at its end"
        if self.unkeyed:
            text += f", and rows up to {self.unkeyed} have no key: anybody can have written them"
        self.doubts.append(UnprovedRows(self.first, self.last, text))

    def make_verdict(self) -> ChainVerdict:
        """The result, its faults in the order of the rows."""
        return ChainVerdict(
            rows=self.count,
            first=self.first,
            last=self.last,
            head=self.prev.hex(),
            checkpoints=len(self.signed),
            dropped=self.base,
            faults=tuple(sorted(self.faults, key=lambda fault: fault.seq)),
            unproved=tuple(self.doubts),
        )


HASHED_COLUMNS = ", ".join((*COLUMNS, "prev", "hash"))
SELECT_ROWS = f"SELECT {HASHED_COLUMNS} FROM event WHERE seq > ? ORDER BY seq"  # noqa: S608 - names of columns


def read_rows(db: "sqlite3.Connection", after: int) -> Iterator[Sequence[Any]]:
    """Read every row after one of them, as it is stored, a few at a time."""
    rows = db.execute(SELECT_ROWS, (after,))
    while some := rows.fetchmany(VERIFY_BATCH_ROWS):
        yield from some
