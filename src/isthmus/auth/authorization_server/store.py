"""The authorization server's store: SQLite, one thread that writes, one transaction a request.

Whatever must survive a restart, or be known to a second process, is here: requests on their way,
codes, grants, login sessions, and the keys, which are encrypted.
"""

import asyncio
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from isthmus.auth.authorization_server.locked import PATIENCE, StoreLocked, is_locked
from isthmus.auth.authorization_server.records import Records
from isthmus.auth.authorization_server.schema import prepare
from isthmus.auth.authorization_server.vault import Vault, key_from
from isthmus.auth.secret import Secret
from isthmus.errors import UsageError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["AuthStore", "MemoryAuthStore", "SQLiteAuthStore"]

T = TypeVar("T")
Key = Secret | str | bytes


class AuthStore(Protocol):
    """Where an authorization server keeps what it has to remember."""

    async def write(self, work: Callable[[Records], T]) -> T:
        """Do something in one transaction; an exception undoes all of it.

        It runs in the store's thread, alone, and has been committed when this returns.

        Args:
            work: gets the records; neither awaits nor keeps them.

        Raises:
            StoreLocked: another process has the store, and did not let go of it for seconds.
        """
        ...

    async def read(self, work: Callable[[Records], T]) -> T:
        """As :meth:`write`, for work that changes nothing."""
        ...

    async def close(self) -> None:
        """Let go of the file; safe to call twice."""
        ...


class SQLiteAuthStore:
    """A store in a file, which several processes may share.

    The file is readable by its owner only, and what is secret in it is encrypted. Clients' secrets
    and codes are not in it at all, only their digests.

    Args:
        path: the file; it is made where there is none.
        key: 32 bytes or more, or their base64url; several to change from the last to the first, which
            is done when the file is opened. None takes ``ISTHMUS_AUTH_KEY`` from the environment.
        clock: says the seconds since the epoch.

    Raises:
        UsageError: there is no key. Its first use raises it where the file is another program's,
            of another version, or was encrypted with another key.

    Example::

        store = SQLiteAuthStore("auth.db")
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: Key | Sequence[Key] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        keys = [key] if key is None or isinstance(key, Secret | str | bytes) else list(key)
        self._outer = Vault([key_from(one) for one in keys])
        self._vault: Vault  # as soon as the file is open
        self._path = os.fspath(path)
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._db: sqlite3.Connection | None = None
        self._patience = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"

    async def write(self, work: Callable[[Records], T]) -> T:
        """Do something in one transaction; see :meth:`AuthStore.write`."""
        return await self._do(self._transact, work)

    async def read(self, work: Callable[[Records], T]) -> T:
        """Look something up; see :meth:`AuthStore.read`."""
        return await self._do(self._look, work)

    async def close(self) -> None:
        """Let go of the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(thread, self._shut)
            thread.shutdown(wait=False)

    async def _do(
        self, how: Callable[[Callable[[Records], T]], T], work: Callable[[Records], T]
    ) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="isthmus-auth-store")
        asked = time.monotonic()

        def run() -> T:
            return self._patient(how, work, asked)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    # In the store's thread

    def _patient(
        self, how: Callable[[Callable[[Records], T]], T], work: Callable[[Records], T], asked: float
    ) -> T:
        """Do something, and wait for other processes no longer than is left of one's patience.

        It counts from when somebody asked: whoever stood in the queue behind one who waited has
        waited already.

        Raises:
            StoreLocked: another process has the file.
        """
        import sqlite3

        left = math.ceil(max(0.0, asked + PATIENCE - time.monotonic()) * 10) * 100
        try:
            db = self._open()
            if left != self._patience:
                db.execute(f"PRAGMA busy_timeout = {left}")
                self._patience = left
            return how(work)
        except sqlite3.Error as error:
            if is_locked(error):
                raise StoreLocked(f"{self._path} is locked by another process") from None
            raise

    def _transact(self, work: Callable[[Records], T]) -> T:
        db = self._open()
        # Immediate: two processes that both read and then both write would fail at the second.
        db.execute("BEGIN IMMEDIATE")
        try:
            result = work(Records(db, self._vault, self._clock()))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # some errors end it themselves
                db.execute("ROLLBACK")
            raise
        return result

    def _look(self, work: Callable[[Records], T]) -> T:
        db = self._open()
        db.execute("BEGIN")
        try:
            return work(Records(db, self._vault, self._clock()))
        finally:
            db.execute("ROLLBACK")

    def _open(self) -> "sqlite3.Connection":
        if self._db is None:
            db = self._connect()
            try:
                self._check(db)
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def _connect(self) -> "sqlite3.Connection":
        import sqlite3

        try:
            # SQLite gives its own files the mode of this one.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            os.chmod(self._path, 0o600)  # noqa: PTH101 - what was made before may be open to others
            return connected(self._path)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.Error) and is_locked(error):
                raise
            raise UsageError(
                f"{self._path} cannot be used as the store of an authorization server: {error}"
            ) from None

    def _check(self, db: "sqlite3.Connection") -> None:
        """See that the file is ours and the key its own; make it where it is new."""
        import sqlite3

        try:
            db.execute("BEGIN IMMEDIATE")
            prepare(db, self._path)
            self._vault = Vault([self._master(db)])
            db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if is_locked(error):
                raise
            raise UsageError(f"{self._path} is no usable SQLite database: {error}") from None

    def _master(self, db: "sqlite3.Connection") -> bytes:
        """The key of everything in the file; it is in the file, under the operator's.

        So that to change the operator's key is to write one row anew.
        """
        row = db.execute("SELECT value FROM meta WHERE name = 'master'").fetchone()
        master = os.urandom(32) if row is None else self._outer.open(row[0], "meta/master")
        if row is None or self._outer.former:
            sealed = self._outer.seal(master, "meta/master")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('master', ?)", (sealed,))
        return master

    def _shut(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()


class MemoryAuthStore(SQLiteAuthStore):
    """A store that ends with the process: for tests, and for trying things out.

    Args:
        clock: says the seconds since the epoch.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(":memory:", key=os.urandom(32), clock=clock)

    def _connect(self) -> "sqlite3.Connection":
        return connected(":memory:")


def connected(path: str) -> "sqlite3.Connection":
    """An open database, set up for many readers and one writer at a time."""
    import sqlite3

    # Transactions begin where we say, and the store's one thread may change in the course of time.
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")
    db.execute("PRAGMA journal_mode = WAL")
    # A code that was redeemed stays redeemed, also after the power fails.
    db.execute("PRAGMA synchronous = FULL")
    return db
