"""Storage of accounts: sealed records in a file of the host's state, or in the store that hosts share.

Each record is encrypted with AES-256-GCM and bound to its name, so that none can be read without the key,
changed, or put in the place of another.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hmac import digest
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from isthmus.core.sealing import NONCE_BYTES, SealBroken, decrypt, encrypt
from isthmus.runtime.failures import log_warning
from isthmus.store.sqlite import Database, DatabaseSchema
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state.database import HostState
    from isthmus.host.state.shared_state import SharedState

KEY_VARIABLE = "ISTHMUS_STORE_KEY"
SEAL_KIND = b"\x42"
KEY_PURPOSE = b"isthmus accounts"
LOCK_LIFE_S = 30.0  # of a process that does not come back
LOCK_POLL_S = 0.05
SHARED_PREFIX = "account/"
LAST_CHARACTER = "\U0010ffff"

ACCOUNTS_SCHEMA = DatabaseSchema(
    application=0x15714A77,
    version=1,
    tables=(
        """
        CREATE TABLE account (
            name TEXT PRIMARY KEY, sealed BLOB NOT NULL, expires REAL
        ) STRICT, WITHOUT ROWID
        """,
    ),
    purpose="the accounts of a host",
)


class AccountStorage(Protocol):
    """Keeps records by name."""

    def list_keys(self) -> list[bytes]:
        """The keys that this storage seals with, the first one; the others only open."""
        ...

    async def get(self, name: str) -> bytes | None:
        """A record; None where there is none."""
        ...

    async def put(self, name: str, value: bytes, life: float | None = None) -> None:
        """Keep a record, for so many seconds."""
        ...

    async def add(self, name: str, value: bytes, life: float | None = None) -> bool:
        """Keep a record where there is none of this name; False where there is."""
        ...

    async def take(self, name: str) -> bytes | None:
        """Remove a record; only one of those who try at once gets it."""
        ...

    async def scan(self, prefix: str, limit: int) -> list[tuple[str, bytes]]:
        """Records whose names begin so."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Keep others from changing a record."""
        ...


class AccountFile:
    """Accounts in a file beside the state of the host, or in memory where the state is.

    Args:
        state: where the host keeps what lasts.
        environ: may hold the keys to encrypt with; else the state's own key does it.
    """

    def __init__(self, state: "HostState", environ: Mapping[str, str] | None = None) -> None:
        path = ":memory:" if state.folder is None else state.folder / "accounts.db"
        self._state = state
        self._environ = os.environ if environ is None else environ
        self._database = Database(path, schema=ACCOUNTS_SCHEMA, durability="full")
        self._keys: list[bytes] = []
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def list_keys(self) -> list[bytes]:
        """The keys that seal and open records."""
        if not self._keys:
            given = self._environ.get(KEY_VARIABLE, "").replace(",", " ").split()
            texts = [*(one.encode() for one in given), self._state.key()]
            self._keys = [digest(one, KEY_PURPOSE, "sha256") for one in texts]
        return self._keys

    async def get(self, name: str) -> bytes | None:
        """A record."""
        now = self._state.clock()
        found = await self._database.read(
            lambda db: db.execute(
                "SELECT sealed FROM account WHERE name = ? AND (expires IS NULL OR expires > ?)",
                (name, now),
            ).fetchone()
        )
        return None if found is None else self._open(name, found[0])

    async def put(self, name: str, value: bytes, life: float | None = None) -> None:
        """Keep a record."""
        row = self._make_row(name, value, life)

        def write(db: "sqlite3.Connection") -> None:
            self._purge(db)
            db.execute("INSERT OR REPLACE INTO account VALUES (?, ?, ?)", row)

        await self._database.write(write)

    async def add(self, name: str, value: bytes, life: float | None = None) -> bool:
        """Keep a record where there is none of this name."""
        row = self._make_row(name, value, life)

        def write(db: "sqlite3.Connection") -> bool:
            self._purge(db)
            return db.execute("INSERT OR IGNORE INTO account VALUES (?, ?, ?)", row).rowcount == 1

        return await self._database.write(write)

    async def take(self, name: str) -> bytes | None:
        """Remove a record."""

        def write(db: "sqlite3.Connection") -> bytes | None:
            self._purge(db)
            found = db.execute("SELECT sealed FROM account WHERE name = ?", (name,)).fetchone()
            db.execute("DELETE FROM account WHERE name = ?", (name,))
            return None if found is None else found[0]

        sealed = await self._database.write(write)
        return None if sealed is None else self._open(name, sealed)

    async def scan(self, prefix: str, limit: int) -> list[tuple[str, bytes]]:
        """Records whose names begin so."""
        now = self._state.clock()
        rows = await self._database.read(
            lambda db: db.execute(
                "SELECT name, sealed FROM account WHERE name >= ? AND name < ? AND "
                "(expires IS NULL OR expires > ?) ORDER BY name LIMIT ?",
                (prefix, prefix + LAST_CHARACTER, now, limit),
            ).fetchall()
        )
        opened = [(name, self._open(name, sealed)) for name, sealed in rows]
        return [(name, value) for name, value in opened if value is not None]

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Take turns with others of this process."""
        lock = self._locks.setdefault(name, asyncio.Lock())  # there while somebody holds it
        async with lock:
            yield

    async def close(self) -> None:
        """Let go of the file."""
        await self._database.close()

    def _make_row(
        self, name: str, value: bytes, life: float | None
    ) -> tuple[str, bytes, float | None]:
        sealed = encrypt(SEAL_KIND, value, self.list_keys(), os.urandom(NONCE_BYTES), name.encode())
        return name, sealed, None if life is None else self._state.clock() + life

    def _open(self, name: str, sealed: bytes) -> bytes | None:
        try:
            return decrypt(SEAL_KIND, sealed, self.list_keys(), name.encode())
        except SealBroken as error:
            log_warning("the account %s cannot be read: %s", name.partition("[")[0], error.reason)
            return None

    def _purge(self, db: "sqlite3.Connection") -> None:
        db.execute("DELETE FROM account WHERE expires <= ?", (self._state.clock(),))


class AccountRecords:
    """Accounts in the store that the processes of a host share.

    Args:
        shared: seals records with the secrets of the host.
    """

    def __init__(self, shared: "SharedState") -> None:
        self._shared = shared

    def list_keys(self) -> list[bytes]:
        """The keys that seal and open links."""
        return [digest(one, KEY_PURPOSE, "sha256") for one in self._shared.node.secrets]

    async def get(self, name: str) -> bytes | None:
        """A record."""
        return (await self._shared.get(SHARED_PREFIX + name))[0]

    async def put(self, name: str, value: bytes, life: float | None = None) -> None:
        """Keep a record."""
        await self._shared.put(SHARED_PREFIX + name, value, life)

    async def add(self, name: str, value: bytes, life: float | None = None) -> bool:
        """Keep a record where there is none of this name."""
        return await self._shared.cas(SHARED_PREFIX + name, value, 0, life) is not None

    async def take(self, name: str) -> bytes | None:
        """Remove a record."""
        value, version = await self._shared.get(SHARED_PREFIX + name)
        if value is None or not await self._shared.delete(SHARED_PREFIX + name, version):
            return None
        return value

    async def scan(self, prefix: str, limit: int) -> list[tuple[str, bytes]]:
        """Records whose names begin so."""
        found = await self._shared.scan(SHARED_PREFIX + prefix, limit)
        return [(key.removeprefix(SHARED_PREFIX), value) for key, value, _ in found]

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Take turns with others of all processes."""
        mark = f"lock/{name}"
        try:
            async with asyncio.timeout(LOCK_LIFE_S):
                while not await self.add(mark, b"", LOCK_LIFE_S):  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(LOCK_POLL_S)
        except TimeoutError:
            raise StoreUnavailable(f"another process holds the account {name!r}") from None
        try:
            yield
        finally:
            await self.take(mark)

    async def close(self) -> None:
        """Nothing: the store is not ours."""
