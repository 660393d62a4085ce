"""The authorization server's store: SQLite, one thread that writes, one transaction a request.

Whatever must survive a restart, or be known to a second process, is here: requests on their way,
codes, grants, login sessions, and the keys, which are encrypted. Who asks while another process holds
the file is told to come back soon.
"""

import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.storage.vault import StoreVault, read_store_key
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError
from isthmus.store.sqlite import LOCK_TIMEOUT_S, Database, DatabaseSchema, is_locked
from isthmus.store.sqlite import StoreLocked as Locked

if TYPE_CHECKING:
    import sqlite3

__all__ = [
    "AUTH_SCHEMA",
    "LOCKED_RETRY_S",
    "LOCK_TIMEOUT_S",
    "AuthStore",
    "MemoryAuthStore",
    "SQLiteAuthStore",
    "StoreLocked",
    "is_locked",
]

T = TypeVar("T")
StoreKey = Secret | str | bytes

LOCKED_RETRY_S = 5


class AuthStore(Protocol):
    """The store of an authorization server: grants, codes, clients, logins and keys."""

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
        """Run ``work``, which changes nothing, with the records; as :meth:`write` otherwise.

        Args:
            work: gets the records to read; neither awaits nor keeps them.
        """
        ...

    async def close(self) -> None:
        """Close the file; safe to call twice."""
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
        key: StoreKey | Sequence[StoreKey] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        keys = [key] if key is None or isinstance(key, Secret | str | bytes) else list(key)
        self._outer = StoreVault([read_store_key(one) for one in keys])
        self._vault: StoreVault  # as soon as the file is open
        self._clock = clock
        # A code that was redeemed stays redeemed, also after the power fails: durability is full.
        self.database = Database(
            path, schema=AUTH_SCHEMA, patience=LOCK_TIMEOUT_S, prepared=self._unlock
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database.path!r})"

    async def write(self, work: Callable[[Records], T]) -> T:
        """Run ``work`` with the records in one transaction; see :meth:`AuthStore.write`.

        Args:
            work: gets the records; neither awaits nor keeps them.
        """
        return await self._translate_lock(self.database.write(partial(self._run_work, work)))

    async def read(self, work: Callable[[Records], T]) -> T:
        """Run ``work`` with the records to read them; see :meth:`AuthStore.read`.

        Args:
            work: gets the records to read; neither awaits nor keeps them.
        """
        return await self._translate_lock(self.database.read(partial(self._run_work, work)))

    async def close(self) -> None:
        """Let go of the file."""
        await self.database.close()

    @staticmethod
    async def _translate_lock(done: Coroutine[None, None, T]) -> T:
        try:
            return await done
        except Locked as error:
            raise StoreLocked(str(error)) from None

    # In the store's thread

    def _run_work(self, work: Callable[[Records], T], db: "sqlite3.Connection") -> T:
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
        self._vault = StoreVault([master])


class MemoryAuthStore(SQLiteAuthStore):
    """A store that ends with the process: for tests, and for trying things out.

    Args:
        clock: says the seconds since the epoch.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(":memory:", key=os.urandom(32), clock=clock)


TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE client (
    client_id TEXT PRIMARY KEY, kind TEXT NOT NULL, data BLOB NOT NULL, secret BLOB,
    created_at REAL NOT NULL, used_at REAL, expires_at REAL
) WITHOUT ROWID;
CREATE TABLE grant_ (
    id TEXT PRIMARY KEY, client_id TEXT NOT NULL, user_id TEXT NOT NULL, scope TEXT NOT NULL,
    resource TEXT NOT NULL, gen INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL,
    rotated_at REAL, expires_at REAL NOT NULL, ends_at REAL, revoked_at REAL, jkt TEXT,
    upstream_id TEXT
) WITHOUT ROWID;
CREATE INDEX grant_user ON grant_ (user_id);
CREATE INDEX grant_expires ON grant_ (expires_at);
CREATE INDEX grant_client ON grant_ (client_id);
CREATE INDEX grant_upstream ON grant_ (upstream_id) WHERE upstream_id IS NOT NULL;
CREATE TABLE code (
    digest BLOB PRIMARY KEY, grant_id TEXT NOT NULL, client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL, sent_redirect INTEGER NOT NULL, challenge TEXT NOT NULL,
    jkt TEXT, expires_at REAL NOT NULL, used_at REAL
) WITHOUT ROWID;
CREATE INDEX code_expires ON code (expires_at);
CREATE TABLE pending (
    txn TEXT PRIMARY KEY, data BLOB NOT NULL, expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_expires ON pending (expires_at);
CREATE TABLE jti (
    issuer TEXT NOT NULL, jti TEXT NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (issuer, jti)
) WITHOUT ROWID;
CREATE INDEX jti_expires ON jti (expires_at);
CREATE TABLE consent (
    user_id TEXT NOT NULL, client_id TEXT NOT NULL, redirect_uri TEXT NOT NULL,
    resource TEXT NOT NULL, scope TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (user_id, client_id, redirect_uri, resource)
) WITHOUT ROWID;
CREATE TABLE login_session (
    digest BLOB PRIMARY KEY, user_id TEXT NOT NULL, created_at REAL NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX login_session_expires ON login_session (expires_at);
CREATE TABLE key (
    kid TEXT PRIMARY KEY, alg TEXT NOT NULL, state TEXT NOT NULL, created_at REAL NOT NULL,
    changed_at REAL NOT NULL, sealed BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE upstream (
    id TEXT PRIMARY KEY, provider TEXT NOT NULL, user_id TEXT NOT NULL, sealed BLOB NOT NULL,
    version INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, expires_at REAL
) WITHOUT ROWID;
CREATE INDEX upstream_user ON upstream (user_id, provider);
CREATE TABLE ticket (
    kind TEXT NOT NULL, digest BLOB NOT NULL, sealed BLOB NOT NULL, expires_at REAL NOT NULL,
    PRIMARY KEY (kind, digest)
) WITHOUT ROWID;
CREATE INDEX ticket_expires ON ticket (expires_at);
CREATE TABLE login_try (
    kind TEXT NOT NULL, digest BLOB NOT NULL, count INTEGER NOT NULL, began REAL NOT NULL,
    expires_at REAL NOT NULL, PRIMARY KEY (kind, digest)
) WITHOUT ROWID;
CREATE INDEX login_try_expires ON login_try (expires_at);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, event TEXT NOT NULL,
    client_id TEXT NOT NULL, user_id TEXT NOT NULL, grant_id TEXT NOT NULL, detail TEXT NOT NULL
);
"""

LOGIN_TRY_TABLE = TABLES[
    TABLES.index("CREATE TABLE login_try") : TABLES.index("CREATE TABLE audit")
]

AUTH_SCHEMA = DatabaseSchema(
    application=0x15714A75,
    version=2,
    tables=tuple(TABLES.split(";")),
    upgrades={1: tuple(LOGIN_TRY_TABLE.split(";"))},
    purpose="the store of an authorization server",
)


class StoreLocked(AuthError):
    """Another process holds a file of the authorization server: nothing was done, try again."""
