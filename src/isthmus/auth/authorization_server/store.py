"""The authorization server's store: SQLite, one thread that writes, one transaction a request.

Whatever must survive a restart, or be known to a second process, is here: requests on their way,
codes, grants, login sessions, and the keys, which are encrypted.
"""

import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from isthmus.auth.authorization_server.locked import PATIENCE, StoreLocked
from isthmus.auth.authorization_server.records import Records
from isthmus.auth.authorization_server.schema import SCHEMA
from isthmus.auth.authorization_server.vault import Vault, key_from
from isthmus.auth.secret import Secret
from isthmus.store.database import Database
from isthmus.store.database import StoreLocked as Locked

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
        self._clock = clock
        # A code that was redeemed stays redeemed, also after the power fails: durability is full.
        self.database = Database(path, schema=SCHEMA, patience=PATIENCE, prepared=self._unlock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database.path!r})"

    async def write(self, work: Callable[[Records], T]) -> T:
        """Do something in one transaction; see :meth:`AuthStore.write`."""
        return await self._told(self.database.write(partial(self._on, work)))

    async def read(self, work: Callable[[Records], T]) -> T:
        """Look something up; see :meth:`AuthStore.read`."""
        return await self._told(self.database.read(partial(self._on, work)))

    async def close(self) -> None:
        """Let go of the file."""
        await self.database.close()

    @staticmethod
    async def _told(done: Coroutine[None, None, T]) -> T:
        try:
            return await done
        except Locked as error:
            raise StoreLocked(str(error)) from None

    # In the store's thread

    def _on(self, work: Callable[[Records], T], db: "sqlite3.Connection") -> T:
        return work(Records(db, self._vault, self._clock()))

    def _unlock(self, db: "sqlite3.Connection") -> None:
        """Read the key of everything in the file; it is in the file, under the operator's.

        So that to change the operator's key is to write one row anew.
        """
        row = db.execute("SELECT value FROM meta WHERE name = 'master'").fetchone()
        master = os.urandom(32) if row is None else self._outer.open(row[0], "meta/master")
        if row is None or self._outer.former:
            sealed = self._outer.seal(master, "meta/master")
            db.execute("INSERT OR REPLACE INTO meta VALUES ('master', ?)", (sealed,))
        self._vault = Vault([master])


class MemoryAuthStore(SQLiteAuthStore):
    """A store that ends with the process: for tests, and for trying things out.

    Args:
        clock: says the seconds since the epoch.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(":memory:", key=os.urandom(32), clock=clock)
