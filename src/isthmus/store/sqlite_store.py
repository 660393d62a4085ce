"""Store in an SQLite file: for all processes of one machine, without a service.

What is acknowledged outlives the process (kill -9). What the end of the machine's power takes is
the last moments; the file itself stays whole. Time is the machine's wall clock, which all of them
have in common, and which goes on while none of them runs.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from isthmus.errors import UsageError
from isthmus.store.kv import KVEntry
from isthmus.store.log import Forgotten, LogLimits, Overtaken
from isthmus.store.meter import ROUNDING_SLACK_S, Rate
from isthmus.store.sqlite import Database, DatabaseSchema
from isthmus.store.sqlite_bus import BUS_TABLES, SqliteBus
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    import sqlite3

STORE_SCHEMA = DatabaseSchema(
    application=0x15714A77,
    version=1,
    tables=(
        # A version is the number of a row, and AUTOINCREMENT never gives one twice.
        (
            "CREATE TABLE kv (version INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, "
            "until REAL, value BLOB NOT NULL) STRICT"
        ),
        "CREATE INDEX kv_until ON kv (until) WHERE until IS NOT NULL",
        # Entries are those after `gone`, up to `last`; `oldest` and `newest` are times.
        (
            "CREATE TABLE stream (id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, "
            "last INTEGER NOT NULL, gone INTEGER NOT NULL, size INTEGER NOT NULL, "
            "oldest REAL NOT NULL, newest REAL NOT NULL) STRICT"
        ),
        "CREATE INDEX stream_full ON stream (newest) WHERE gone < last",
        "CREATE INDEX stream_empty ON stream (newest) WHERE gone = last",
        (
            "CREATE TABLE entry (stream INTEGER NOT NULL, place INTEGER NOT NULL, added REAL NOT NULL, "
            "value BLOB NOT NULL, PRIMARY KEY (stream, place)) STRICT"
        ),
        "CREATE TABLE log_size (bytes INTEGER NOT NULL) STRICT",
        "INSERT INTO log_size VALUES (0)",
        (
            "CREATE TABLE meter (name BLOB NOT NULL, key BLOB NOT NULL, full REAL NOT NULL, "
            "PRIMARY KEY (name, key)) STRICT, WITHOUT ROWID"
        ),
        "CREATE INDEX meter_full ON meter (full)",
        *BUS_TABLES,
    ),
    purpose="the store of a server",
)

WRITES_PER_SWEEP = 64

MAX_SWEPT_ROWS = 4 * WRITES_PER_SWEEP  # so that what is over goes faster than it comes

MAX_SWEPT_STREAMS = 16

STREAM_RECORD_AGE_S = 24 * 3600.0  # that an empty stream still refuses who was overtaken

SQLITE_URL_PREFIX = "sqlite:///"


class SqliteStore:
    """A store in an SQLite file.

    Args:
        url: where it is: ``"sqlite:///relative/path.db"``, ``"sqlite:////absolute/path.db"``.
        clock: says the time in seconds, the same in all processes.
        log_limits: bounds of the log.

    Attributes:
        name: the URL.
        kv: values by key.
        log: what was said on streams.
        bus: messages to all who listen.

    Raises:
        UsageError: the URL names no file.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        log_limits: LogLimits | None = None,
    ) -> None:
        path = url.removeprefix(SQLITE_URL_PREFIX)
        if path == url or not path or path.startswith(":") or "?" in path:
            raise UsageError(
                f"store={url!r} names no file that processes can share: write "
                "'sqlite:///relative/path.db' or 'sqlite:////absolute/path.db'"
            )
        self.name = url
        self._clock = clock
        # Not "full": a commit that waits for the disk would cost each event of a stream that.
        self._database = Database(path, schema=STORE_SCHEMA, durability="normal")
        self.kv = SqliteKV(self._database, clock)
        self.log = SqliteLog(self._database, clock, log_limits or LogLimits())
        self.bus = SqliteBus(self._database, clock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def meter(self, name: str, rate: Rate) -> "SqliteMeter":
        """A meter that all processes share; see :meth:`~isthmus.store.store.Store.meter`.

        Args:
            name: the limit; meters of one name count together.
            rate: the rate that each key is allowed.
        """
        return SqliteMeter(self._database, name, rate, self._clock)

    async def open(self, *, durable: bool = False) -> None:  # noqa: ARG002
        """Open the file; ``durable`` changes nothing, as a file outlives the process that writes it.

        Args:
            durable: whether what is stored must outlive the engine: a file does, in either case.
        """
        await self._database.read(_touch)

    async def close(self) -> None:
        """Close the file; it may be opened again."""
        await self.bus.close()
        with suppress(StoreUnavailable):
            await self._database.close()
        self.bus.close_sender()


def _touch(db: "sqlite3.Connection") -> None:
    """Nothing: to open the file, and make it where there is none, is all."""


class SweepTimer:
    """Says when it is time to look for what is over: once in so many writes of this process."""

    __slots__ = ("_writes",)

    def __init__(self) -> None:
        self._writes = 0

    def is_due(self) -> bool:
        """Count a write; the first one is due, since nobody may have swept for long."""
        due = self._writes % WRITES_PER_SWEEP == 0
        self._writes += 1
        return due


class SqliteKV:
    """Values by key in an SQLite file.

    Args:
        database: the file.
        clock: says the time in seconds, the same in all processes.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._sweep = SweepTimer()

    async def get(self, key: str) -> KVEntry | None:
        """As :meth:`~isthmus.store.kv.KV.get`."""
        name = key.encode()
        return await self._database.read(lambda db: self._find(db, name))

    async def put(self, key: str, value: bytes, ttl: float | None = None) -> int:
        """As :meth:`~isthmus.store.kv.KV.put`."""
        name = key.encode()
        return await self._database.write(lambda db: self._put(db, name, value, ttl))

    async def cas(
        self, key: str, value: bytes, version: int, ttl: float | None = None
    ) -> int | None:
        """As :meth:`~isthmus.store.kv.KV.cas`."""
        name = key.encode()

        def work(db: "sqlite3.Connection") -> int | None:
            if self._find_version(db, name) != version:
                return None
            return self._put(db, name, value, ttl)

        return await self._database.write(work)

    async def delete(self, key: str, version: int | None = None) -> bool:
        """As :meth:`~isthmus.store.kv.KV.delete`."""
        name = key.encode()

        def work(db: "sqlite3.Connection") -> bool:
            known = self._find_version(db, name)
            if not known or (version is not None and known != version):
                return False
            db.execute("DELETE FROM kv WHERE key = ?", (name,))
            return True

        return await self._database.write(work)

    async def scan(self, prefix: str, after: str, limit: int) -> list[tuple[str, KVEntry]]:
        """As :meth:`~isthmus.store.kv.KV.scan`."""
        start = prefix.encode()

        def work(db: "sqlite3.Connection") -> list[tuple[str, KVEntry]]:
            # UTF-8 is ordered as the characters are, and has no byte FF: all keys with the prefix
            # are below that.
            found = db.execute(
                "SELECT key, value, version FROM kv WHERE key >= ? AND key > ? AND key < ? "
                "AND (until IS NULL OR until > ?) ORDER BY key LIMIT ?",
                (start, after.encode(), start + b"\xff", self._clock(), limit),
            )
            return [(key.decode(), KVEntry(value, version)) for key, value, version in found]

        return await self._database.read(work)

    # In the store's thread

    def _find(self, db: "sqlite3.Connection", name: bytes) -> KVEntry | None:
        row = db.execute(
            "SELECT value, version FROM kv WHERE key = ? AND (until IS NULL OR until > ?)",
            (name, self._clock()),
        ).fetchone()
        return None if row is None else KVEntry(*row)

    def _find_version(self, db: "sqlite3.Connection", name: bytes) -> int:
        """The version of what is there, or 0."""
        row = db.execute(
            "SELECT version FROM kv WHERE key = ? AND (until IS NULL OR until > ?)",
            (name, self._clock()),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _put(self, db: "sqlite3.Connection", name: bytes, value: bytes, ttl: float | None) -> int:
        now = self._clock()
        if self._sweep.is_due():
            db.execute(
                "DELETE FROM kv WHERE version IN "
                "(SELECT version FROM kv WHERE until IS NOT NULL AND until <= ? LIMIT ?)",
                (now, MAX_SWEPT_ROWS),
            )
        until = None if ttl is None else now + ttl
        done = db.execute(
            "REPLACE INTO kv (key, until, value) VALUES (?, ?, ?)", (name, until, value)
        )
        return done.lastrowid or 0


class StreamRow:
    """A stream, as its row says.

    Attributes:
        id: the row's number.
        last: the place of its newest entry.
        gone: the place of the last entry that is not kept.
        size: bytes of the entries that are kept.
        oldest: when the first of them was added.
    """

    __slots__ = ("gone", "id", "last", "oldest", "size")

    def __init__(self, id: int, last: int, gone: int, size: int, oldest: float) -> None:
        self.id = id
        self.last = last
        self.gone = gone
        self.size = size
        self.oldest = oldest


class SqliteLog:
    """Entries of streams in an SQLite file.

    Args:
        database: the file.
        clock: says the time in seconds, the same in all processes.
        limits: its bounds.
    """

    def __init__(self, database: Database, clock: Callable[[], float], limits: LogLimits) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits
        self._sweep = SweepTimer()

    async def write(self, stream: str, place: int, values: Sequence[bytes]) -> None:
        """As :meth:`~isthmus.store.log.Log.write`."""
        kept = list(values)
        await self._database.write(lambda db: self._write(db, stream, place, kept))

    async def read(self, stream: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        """As :meth:`~isthmus.store.log.Log.read`."""

        def work(db: "sqlite3.Connection") -> list[tuple[int, bytes]]:
            row = self._find(db, stream)
            if row is None:
                raise Forgotten(f"there is no stream {stream!r}, or no more")
            found = db.execute(
                "SELECT place, value, added FROM entry WHERE stream = ? AND place > ? "
                "ORDER BY place LIMIT ?",
                (row.id, after, limit),
            ).fetchall()
            is_old = bool(found) and found[0][2] + self._limits.age <= self._clock()
            if not row.gone <= after <= row.last or is_old:
                raise Forgotten(f"stream {stream!r} does not have what came after {after}")
            return [(place, value) for place, value, _ in found]

        return await self._database.read(work)

    async def forget(self, stream: str) -> None:
        """As :meth:`~isthmus.store.log.Log.forget`."""

        def work(db: "sqlite3.Connection") -> None:
            row = self._find(db, stream)
            if row is not None:
                self._clear(db, row.id, row.size)
                db.execute("DELETE FROM stream WHERE id = ?", (row.id,))

        await self._database.write(work)

    # In the store's thread

    @staticmethod
    def _find(db: "sqlite3.Connection", stream: str) -> StreamRow | None:
        row = db.execute(
            "SELECT id, last, gone, size, oldest FROM stream WHERE name = ?", (stream.encode(),)
        ).fetchone()
        return None if row is None else StreamRow(*row)

    def _write(
        self, db: "sqlite3.Connection", stream: str, place: int, values: list[bytes]
    ) -> None:
        row, now = self._find(db, stream), self._clock()
        last = 0 if row is None else row.last
        if place <= last:
            raise Overtaken(
                f"stream {stream!r} has {last} entries already, and {place} is no new one"
            )
        if not values:
            return
        if row is None:
            made = db.execute(
                "INSERT INTO stream (name, last, gone, size, oldest, newest) "
                "VALUES (?, 0, 0, 0, ?, ?)",
                (stream.encode(), now, now),
            )
            row = StreamRow(made.lastrowid or 0, 0, 0, 0, now)
        before = row.size
        if place > last + 1:  # ids have no holes: what is missing counts as gone
            db.execute("DELETE FROM entry WHERE stream = ?", (row.id,))
            row.gone, row.size = place - 1, 0
        if row.gone == place - 1:
            row.oldest = now
        db.executemany(
            "INSERT INTO entry (stream, place, added, value) VALUES (?, ?, ?, ?)",
            [(row.id, number, now, value) for number, value in enumerate(values, place)],
        )
        row.last = place + len(values) - 1
        row.size += sum(map(len, values))
        self._bound(db, row, now)
        db.execute(
            "UPDATE stream SET last = ?, gone = ?, size = ?, oldest = ?, newest = ? WHERE id = ?",
            (row.last, row.gone, row.size, row.oldest, now, row.id),
        )
        self._bound_all(db, row.id, row.size - before, now)

    def _bound(self, db: "sqlite3.Connection", row: StreamRow, now: float) -> None:
        """Drop the oldest entries of a stream where they are too many, too large or too old."""
        limits, gone = self._limits, row.gone
        if (
            row.last - gone <= limits.entries
            and row.size <= limits.stream_size
            and row.oldest + limits.age > now
        ):
            return
        entries = db.execute(
            "SELECT place, added, length(value) FROM entry WHERE stream = ? ORDER BY place",
            (row.id,),
        )
        for place, added, size in entries:
            row.oldest = added
            if not (
                row.last - row.gone > limits.entries
                or (row.size > limits.stream_size and place < row.last)
                or added + limits.age <= now
            ):
                break
            row.gone = place
            row.size -= size
        entries.close()
        db.execute("DELETE FROM entry WHERE stream = ? AND place <= ?", (row.id, row.gone))

    def _bound_all(self, db: "sqlite3.Connection", id: int, more: int, now: float) -> None:
        """Empty the idlest streams where all are too large, and those that are too old."""
        [total] = db.execute(
            "UPDATE log_size SET bytes = bytes + ? RETURNING bytes", (more,)
        ).fetchone()
        while total > self._limits.size:
            idlest = db.execute(
                "SELECT id, size FROM stream WHERE gone < last AND id != ? "
                "ORDER BY newest, id LIMIT 1",
                (id,),
            ).fetchone()
            if idlest is None:
                break
            self._clear(db, *idlest)
            total -= idlest[1]
        if not self._sweep.is_due():
            return
        old = db.execute(
            "SELECT id, size FROM stream WHERE gone < last AND newest <= ? LIMIT ?",
            (now - self._limits.age, MAX_SWEPT_STREAMS),
        )
        for found in old.fetchall():
            self._clear(db, *found)
        db.execute(
            "DELETE FROM stream WHERE id IN "
            "(SELECT id FROM stream WHERE gone = last AND newest <= ? LIMIT ?)",
            (now - max(STREAM_RECORD_AGE_S, self._limits.age), MAX_SWEPT_ROWS),
        )

    @staticmethod
    def _clear(db: "sqlite3.Connection", id: int, size: int) -> None:
        """Drop all entries of a stream."""
        db.execute("DELETE FROM entry WHERE stream = ?", (id,))
        db.execute("UPDATE stream SET gone = last, size = 0 WHERE id = ?", (id,))
        db.execute("UPDATE log_size SET bytes = bytes - ?", (size,))


class SqliteMeter:
    """A meter in an SQLite file.

    Args:
        database: the file.
        name: what is limited.
        rate: what each key may do.
        clock: says the time in seconds, the same in all processes.
    """

    def __init__(
        self, database: Database, name: str, rate: Rate, clock: Callable[[], float]
    ) -> None:
        self.rate = rate
        self._database = database
        self._name = name.encode()
        self._per_unit = rate.seconds / rate.amount
        self._clock = clock
        self._sweep = SweepTimer()

    async def take(self, key: str, cost: float = 1.0) -> float:
        """As :meth:`~isthmus.store.meter.Meter.take`."""
        return await self._database.write(lambda db: self._take(db, key.encode(), cost))

    def _take(self, db: "sqlite3.Connection", key: bytes, cost: float) -> float:
        now = self._clock()
        row = db.execute(
            "SELECT full FROM meter WHERE name = ? AND key = ?", (self._name, key)
        ).fetchone()
        full = (now if row is None else max(row[0], now)) + cost * self._per_unit
        wait: float = full - now - self.rate.seconds
        if wait > CLOCK_SLACK_S:
            return wait
        db.execute("REPLACE INTO meter (name, key, full) VALUES (?, ?, ?)", (self._name, key, full))
        if self._sweep.is_due():
            db.execute(
                "DELETE FROM meter WHERE (name, key) IN "
                "(SELECT name, key FROM meter WHERE full <= ? LIMIT ?)",
                (now, MAX_SWEPT_ROWS),
            )
        return 0.0


# Seconds since 1970 have that much room for rounding: a float has 53 bits, and they take 31.
CLOCK_SLACK_S = max(ROUNDING_SLACK_S, 1e-6)
