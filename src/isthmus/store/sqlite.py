"""SQLite file for what must last: one thread that writes, several processes that share it.

What waits is committed together, so that a commit is paid for once by all who wait for one. Whoever
awaits :meth:`Database.write` knows that it has been committed; :meth:`Database.post` waits for
nothing. The file is readable by its owner only. Commits go to a write-ahead log, which a thread of
its own moves into the file (checkpoints), so that no commit waits for that.
"""

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from msgspec import Struct

from isthmus.errors import UsageError
from isthmus.runtime.failures import log_error
from isthmus.store.files import restrict_to_owner
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    import sqlite3

WAL_SWITCH_TIMEOUT_S = 1.0  # in which others may switch a new file

WAL_RETRY_S = 0.002


def enable_wal(db: "sqlite3.Connection", patience: float) -> None:
    """Switch to a write-ahead log; again where another process does so at the same moment.

    SQLite waits for nobody there: two that switch a new file would wait for each other.

    Args:
        db: the connection; the thread is kept meanwhile.
        patience: seconds for the others, a second at most.

    Raises:
        sqlite3.OperationalError: somebody still has the file.
    """
    import sqlite3  # slow to import

    until = time.monotonic() + min(patience, WAL_SWITCH_TIMEOUT_S)
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(WAL_RETRY_S)
        else:
            return


CHECKPOINT_COMMITS = 100  # commits until it is done again

# Pages in the log of what was committed; with more, a commit does it, and waits.
MAX_WAL_PAGES = 8_000


class WalCheckpoints:
    """Checkpoints of one SQLite file, each in a thread of its own that ends with it.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._commits = 0
        self._thread: threading.Thread | None = None

    def count_commit(self) -> None:
        """One commit more: begin with a checkpoint where it is time, and none is under way."""
        self._commits += 1
        if self._commits < CHECKPOINT_COMMITS or (
            self._thread is not None and self._thread.is_alive()
        ):
            return
        self._commits = 0
        self._thread = threading.Thread(
            target=self._checkpoint, name="isthmus-checkpoint", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """Wait for the one that is under way."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _checkpoint(self) -> None:
        import sqlite3

        # rw: a file that is gone must not be made again
        where = f"{Path(self._path).absolute().as_uri()}?mode=rw"
        with (
            suppress(sqlite3.Error, OSError),  # the next one does it, or a commit
            closing(sqlite3.connect(where, uri=True, timeout=0, isolation_level=None)) as db,
        ):
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")  # it waits for nobody


class QueuedWork:
    """Something to be done in the thread of a store.

    Args:
        work: what; None to end.
        writes: whether it changes anything.
        asked: when, by the store's clock.
        loop: where somebody waits for it in ``future``; both None where nobody does.
        after: hears how it ended, at once and in the store's thread: None, or the error.

    Attributes:
        is_done: says whether works before it, in the same transaction, have done what it is for.
        result: what the work returned.
        error: why it was not done.
    """

    __slots__ = ("after", "asked", "error", "future", "is_done", "loop", "result", "work", "writes")

    def __init__(
        self,
        work: Callable[[Any], Any] | None,
        *,
        asked: float,
        writes: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
        future: "asyncio.Future[object] | None" = None,
        after: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        self.work = work
        self.writes = writes
        self.asked = asked
        self.loop = loop
        self.future = future
        self.after = after
        self.is_done: Callable[[], bool] | None = None
        self.result: object = None
        self.error: BaseException | None = None

    def do(self, subject: Any) -> None:
        """Do it."""
        if self.work is not None:
            self.result = self.work(subject)

    def tell(self) -> None:
        """Tell whoever waits, in the thread of their loop."""
        if self.future is None or self.future.done():
            return
        error, self.error = self.error, None  # it keeps frames in which this stands
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.result)


def report_results(asks: Sequence[QueuedWork]) -> None:
    """Tell everybody how it went, each loop with one call."""
    waiting: dict[asyncio.AbstractEventLoop, list[QueuedWork]] = {}
    for ask in reversed(asks):  # what is put back goes to the front, the last first
        if ask.after is not None:
            ask.after(ask.error)
    for ask in asks:
        if ask.loop is not None:
            waiting.setdefault(ask.loop, []).append(ask)
    for loop, group in waiting.items():
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_tell_waiting, group)


def _tell_waiting(asks: Sequence[QueuedWork]) -> None:
    for ask in asks:
        ask.tell()


T = TypeVar("T")
Work: TypeAlias = Callable[["sqlite3.Connection"], T]

Durability: TypeAlias = Literal["normal", "full"]
"""What a commit outlives: the end of the process, or the end of the machine's power, too."""

LOCK_TIMEOUT_S = 2.5  # that whoever asks waits for another process, queue included

POST_DELAY_S = 0.005  # that posted work waits for more of it
MEMORY_POST_DELAY_S = 0.05  # the same in memory, where whoever reads has it done first

MAX_BATCH_WORKS = 256  # pieces of work in one transaction

MEMORY_PATH = ":memory:"


class StoreLocked(StoreUnavailable):
    """Another process holds the file, and did not let go of it for seconds: nothing was done."""


class StoreUnusable(StoreUnavailable, UsageError):
    """The file is not ours, not of this version, not a database, or cannot be made."""


class DatabaseSchema(Struct, frozen=True, kw_only=True):
    """Tables of a file, and the numbers by which the file is known again.

    Attributes:
        application: the number in the file's head that says whose it is.
        version: of the tables.
        tables: the statements that make them.
        purpose: what the file is, as errors call it, such as ``"the state of a host"``.
        upgrades: the statements that make tables of the next version out of those of an older one,
            by the older one's number; a file of a version that has none is refused.
    """

    application: int
    version: int
    tables: tuple[str, ...]
    purpose: str
    upgrades: Mapping[int, tuple[str, ...]] = {}


class Database:
    """One SQLite file, and the thread that alone touches it.

    Nothing is opened before the first work. Works are done in the order in which they were asked
    for; they get the connection, and neither await nor keep it.

    Args:
        path: the file, made where there is none; ``":memory:"`` ends with :meth:`close`, and needs
            no thread: its work is done at once by whoever asks.
        schema: its tables.
        durability: what a commit outlives; it may be changed at any time.
        patience: seconds to wait for another process.
        clock: says seconds from any beginning.
        prepared: called at each opening, in the transaction that makes or checks the tables.

    Example::

        db = Database("notes.db", schema=NOTES)
        await db.write(lambda sql: sql.execute("INSERT INTO note VALUES (?)", ("hello",)))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        schema: DatabaseSchema,
        durability: Durability = "full",
        patience: float = LOCK_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        prepared: "Callable[[sqlite3.Connection], None] | None" = None,
    ) -> None:
        self.path = os.fspath(path)
        self.durability: Durability = durability
        self.patience = patience
        self._schema = schema
        self._clock = clock
        self._prepared = prepared
        self._queue: deque[QueuedWork] = deque()
        self._urgent = 0
        self._sleeps = False  # the thread, until it is woken
        self._woken = threading.Condition()
        self._thread: threading.Thread | None = None
        self._posted_to: asyncio.AbstractEventLoop | None = None
        # The thread's own:
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._known = False
        self._set: dict[str, object] = {}
        self._checkpoints = WalCheckpoints(self.path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    async def write(
        self,
        work: Work[T],
        after: Callable[[BaseException | None], None] | None = None,
        is_done: Callable[[], bool] | None = None,
    ) -> T:
        """Do something in a transaction; an exception undoes all of it.

        It has been committed when this returns.

        Args:
            work: what is to be done.
            after: hears, in the store's thread and before anything else is done there, that it was
                committed (None), or why it was not.
            is_done: says, in the store's thread, whether works before it in the same transaction have
                done what it is for; it is left out then, and None returned.

        Raises:
            StoreLocked: another process has the file.
            StoreUnavailable: the file cannot be written.
            StoreUnusable: it is none of ours.
        """
        return cast("T", await self._ask(work, writes=True, after=after, is_done=is_done))

    async def read(self, work: Work[T]) -> T:
        """As :meth:`write`, for work that changes nothing: what it changes is undone."""
        return cast("T", await self._ask(work, writes=False))

    def post(
        self, work: Work[object], after: Callable[[BaseException | None], None] | None = None
    ) -> None:
        """Have something done within milliseconds, and go on; it is committed with others.

        Args:
            work: what is to be done, in its turn.
            after: as for :meth:`write`; by default a failure is logged.
        """
        ask = QueuedWork(work, asked=self._clock(), after=after or self._complain)
        if self.path != MEMORY_PATH:
            self._put(ask)
            return
        with self._woken:
            self._queue.append(ask)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._soon()
            return
        if self._posted_to is not loop:
            self._posted_to = loop
            loop.call_later(MEMORY_POST_DELAY_S, self._soon)

    async def close(self) -> None:
        """Do what was asked for, then let go of the file; safe to call twice.

        Work that is asked for later opens it again.
        """
        if self.path == MEMORY_PATH:
            self._soon()
            self._shut()
        elif self._thread is not None:
            await self._ask(None, writes=False)

    async def _ask(
        self,
        work: Work[Any] | None,
        *,
        writes: bool,
        after: Callable[[BaseException | None], None] | None = None,
        is_done: Callable[[], bool] | None = None,
    ) -> object:
        asked = self._clock()
        if self.path == MEMORY_PATH:
            return self._at_once(QueuedWork(work, writes=writes, asked=asked, after=after))
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        ask = QueuedWork(work, writes=writes, asked=asked, loop=loop, future=future, after=after)
        ask.is_done = is_done
        self._put(ask)
        try:
            return await future
        finally:
            del future  # which keeps what is raised, and so would this frame

    # In memory

    def _soon(self) -> None:
        """Do what was posted, together."""
        self._posted_to = None
        with self._woken:
            batch = list(self._queue)
            self._queue.clear()
            self._do(batch)

    def _at_once(self, ask: QueuedWork) -> object:
        self._soon()
        with self._woken:
            self._do([ask])
        error, ask.error = ask.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # it keeps this frame, and must not be kept by it
        return ask.result

    # In a file

    def _put(self, ask: QueuedWork) -> None:
        with self._woken:
            self._queue.append(ask)
            if ask.future is not None:
                self._urgent += 1
            waiting = len(self._queue)
            first = self._sleeps and waiting == 1
            if ask.future is not None or first or waiting == MAX_BATCH_WORKS:
                self._woken.notify()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="isthmus-store", daemon=True
                )
                self._thread.start()

    def _complain(self, error: BaseException | None) -> None:
        if error is not None:
            log_error("what was to be kept in %s is lost: %s", self.path, error)

    # In the store's thread

    def _serve(self) -> None:
        while True:
            batch = self._gather()
            last = batch[-1] if batch[-1].work is None else None
            self._do(batch[:-1] if last else batch)
            self._checkpoints.count_commit()
            if last is not None:
                self._shut()
                with self._woken:
                    ends = not self._queue
                    if ends:
                        self._thread = None
                report_results([last])
                if ends:
                    return

    def _gather(self) -> list[QueuedWork]:
        """The work to be done next: as much as goes into one transaction, up to an end."""
        with self._woken:
            # just after other work, too: whoever posts then need not wake this thread
            self._wait_for_more()
            if not self._queue:
                self._sleeps = True
                while not self._queue:
                    self._woken.wait()
                self._sleeps = False
                self._wait_for_more()
            batch: list[QueuedWork] = []
            while self._queue and len(batch) < MAX_BATCH_WORKS:
                ask = self._queue.popleft()
                batch.append(ask)
                self._urgent -= ask.future is not None
                if ask.work is None:
                    break
            return batch

    def _wait_for_more(self) -> None:
        """Let posted work wait for more of it, unless somebody waits; the lock is held."""
        if not self._urgent and len(self._queue) < MAX_BATCH_WORKS:
            self._woken.wait(POST_DELAY_S)

    def _do(self, batch: list[QueuedWork]) -> None:
        writes: list[QueuedWork] = []
        for ask in batch:
            if ask.future is not None and ask.future.cancelled():
                continue
            if ask.writes:
                writes.append(ask)
                continue
            self._together(writes, self._transact)
            writes = []
            self._together([ask], self._look)
        self._together(writes, self._transact)

    def _together(
        self, asks: list[QueuedWork], how: "Callable[[sqlite3.Connection, list[QueuedWork]], None]"
    ) -> None:
        """Do works in one transaction, and tell all who wait how it went."""
        if not asks:
            return
        try:
            how(self._ready(asks[0].asked), asks)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            if is_failure(error) and self.path != MEMORY_PATH:
                self._shut()  # it may be usable once it is opened anew
            told = self._to_store_error(error)
            for ask in asks:
                ask.error = ask.error or told
        report_results(asks)

    def _transact(self, db: "sqlite3.Connection", asks: list[QueuedWork]) -> None:
        # Immediate: two processes that both read and then both write would fail at the second.
        db.execute("BEGIN IMMEDIATE")
        try:
            if len(asks) == 1:
                asks[0].do(db)
            else:
                self._each(db, asks)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # some errors end it themselves
                db.execute("ROLLBACK")
            raise

    def _each(self, db: "sqlite3.Connection", asks: Iterable[QueuedWork]) -> None:
        """Do works one after the other: the failure of one undoes that one only."""
        for ask in asks:
            if ask.is_done is not None and ask.is_done():
                continue
            db.execute("SAVEPOINT work")
            try:
                ask.do(db)
            except BaseException as error:
                # Some errors end the transaction, and took the works before it along.
                if not db.in_transaction or is_failure(error):
                    raise
                db.execute("ROLLBACK TO work")
                ask.error = self._to_store_error(error)
            db.execute("RELEASE work")

    @staticmethod
    def _look(db: "sqlite3.Connection", asks: list[QueuedWork]) -> None:
        db.execute("BEGIN")
        try:
            asks[0].do(db)
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _ready(self, asked: float) -> "sqlite3.Connection":
        """The open file, set to wait for others no longer than is left of one's patience.

        It counts from when somebody asked: whoever stood in the queue behind one who waited has
        waited already.
        """
        left = max(0.0, asked + self.patience - self._clock())
        db = self._open_file()
        self._pragma(db, "busy_timeout", math.ceil(left * 10) * 100)
        self._pragma(db, "synchronous", self.durability.upper())
        return db

    def _pragma(self, db: "sqlite3.Connection", name: str, value: object) -> None:
        if self._set.get(name) != value:
            db.execute(f"PRAGMA {name} = {value}")
            self._set[name] = value

    def _open_file(self) -> "sqlite3.Connection":
        if self._db is not None and self._file is not None and self._file != self._there():
            self._shut()  # somebody moved it, or put another one in its place
        if self._db is None:
            self._set = {}
            db = self._connected()
            try:
                self._check(db)
            except BaseException:
                db.close()
                raise
            self._db, self._known = db, True
            self._file = None if self.path == MEMORY_PATH else self._there()
        return self._db

    def _there(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - once per transaction
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connected(self) -> "sqlite3.Connection":
        import sqlite3

        try:
            if self.path != MEMORY_PATH:
                self._own()
            return self.connect()
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.Error) and is_locked(error):
                raise
            raise StoreUnusable(
                f"{self.path} cannot be used as {self._schema.purpose}: {error}"
            ) from None

    def _own(self) -> None:
        """Make the file for its owner only; SQLite gives its own files the mode of this one.

        A file that was there and is gone is not made again: what stood in it would be missed by
        nobody.
        """
        restrict_to_owner(self.path, create=not self._known)

    def connect(self) -> "sqlite3.Connection":
        """An open connection, set up for many readers and one writer at a time."""
        import sqlite3

        # Transactions begin where we say, and the thread may change in the course of time.
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        db.execute(f"PRAGMA busy_timeout = {int(self.patience * 1000)}")
        enable_wal(db, self.patience)
        db.execute(f"PRAGMA wal_autocheckpoint = {MAX_WAL_PAGES}")
        db.execute(f"PRAGMA synchronous = {self.durability}")
        return db

    def _check(self, db: "sqlite3.Connection") -> None:
        """See that the file is ours; make its tables where it is new."""
        import sqlite3

        try:
            db.execute("BEGIN IMMEDIATE")
            self._prepare(db)
            if self._prepared is not None:
                self._prepared(db)
            db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if is_locked(error):
                raise
            raise StoreUnusable(f"{self.path} is no usable SQLite database: {error}") from None

    def _prepare(self, db: "sqlite3.Connection") -> None:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        application: int = db.execute("PRAGMA application_id").fetchone()[0]
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        schema = self._schema
        if empty and version == 0:
            for statement in schema.tables:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {schema.application}")
            db.execute(f"PRAGMA user_version = {schema.version}")
        elif application != schema.application:
            raise StoreUnusable(f"{self.path} is a database of something else: name another file")
        elif version in schema.upgrades:
            for number in range(version, schema.version):
                for statement in schema.upgrades[number]:
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {schema.version}")
        elif version != schema.version:
            newer = "newer" if version > schema.version else "older"
            mend = "upgrade isthmus" if version > schema.version else "begin with a new file"
            raise StoreUnusable(
                f"{self.path} was written by a {newer} isthmus (its tables are of version "
                f"{version}, this one knows {schema.version}): {mend}, or name another file"
            )

    def _to_store_error(self, error: BaseException) -> BaseException:
        """The error that whoever asked is told."""
        if is_locked(error):
            return StoreLocked(f"{self.path} is locked by another process")
        if is_failure(error):
            return StoreUnavailable(f"{self.path} cannot be used: {error}")
        return error

    def _shut(self) -> None:
        db, self._db = self._db, None
        self._checkpoints.end()
        if db is not None:
            import sqlite3

            with suppress(sqlite3.Error):
                db.close()


def primary_error_code(error: BaseException) -> int:
    """The code that SQLite gives an error, without what makes it more exact; 0 for another's error."""
    return cast("int", getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_locked(error: BaseException) -> bool:
    """Whether an error of SQLite's says that somebody else has the file."""
    import sqlite3  # slow to import

    return primary_error_code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def is_failure(error: BaseException) -> bool:
    """Whether an error speaks of the file, or of the disk, and not of a statement."""
    import sqlite3

    return primary_error_code(error) in {
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
        *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS),
    }
