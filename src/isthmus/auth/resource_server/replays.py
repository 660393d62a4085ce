"""Replay stores: DPoP proofs that were taken, for other processes and the next start (RFC 9449 11.1)."""

import os
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from isthmus.auth.tokens.secret import sha256_digest
from isthmus.errors import LifespanFailed, StoreUnavailable
from isthmus.store.sqlite import Database, DatabaseSchema

if TYPE_CHECKING:
    import sqlite3

    from isthmus.store.kv import KV

TIDY_INTERVAL_S = 30.0

REPLAY_SCHEMA = DatabaseSchema(
    application=0x15714A76,
    version=1,
    tables=(
        "CREATE TABLE proof (name BLOB PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID",
        "CREATE INDEX proof_until ON proof (until)",
    ),
    purpose="the DPoP proofs that a server took",
)


class ReplayStore(Protocol):
    """Store of seen DPoP proofs, for all who share it; errors it raises are answered with 503."""

    async def first(self, jkt: str, jti: str, until: float) -> bool:
        """Remember a proof; whether it is the first of its name by this key.

        Args:
            jkt: the key's thumbprint.
            jti: the proof's name.
            until: seconds since the epoch after which it is of no use any more.
        """
        ...


class SQLiteReplays:
    """Store of seen DPoP proofs in a file, which several processes may share and which survives a restart.

    A commit outlives the process and not the machine's power, so that a request does not wait for
    the disk.

    Example::

        auth = ResourceAuth(url, [issuer], verifier, dpop="require", replays=SQLiteReplays("proofs.db"))

    Args:
        path: the file; it is made where there is none, readable by its owner only.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = Database(path, schema=REPLAY_SCHEMA, durability="normal")
        self._clock = clock
        self._tidied = float("-inf")

    def __repr__(self) -> str:
        return f"SQLiteReplays({self._database.path!r})"

    async def first(self, jkt: str, jti: str, until: float) -> bool:
        """Remember a DPoP proof; True where it is the first with this id by this key. See :meth:`ReplayStore.first`.

        Args:
            jkt: thumbprint of the key (RFC 7638).
            jti: id of the proof (RFC 9449, section 4.2).
            until: the end of its validity, in seconds since the epoch.
        """
        name = hash_proof(jkt, jti)

        def remember(db: "sqlite3.Connection") -> bool:
            self._tidy(db)
            done = db.execute("INSERT OR IGNORE INTO proof VALUES (?, ?)", (name, until))
            return done.rowcount == 1

        return await self._database.write(remember)

    async def close(self) -> None:
        """Close the file; safe to call twice."""
        await self._database.close()

    def _tidy(self, db: "sqlite3.Connection") -> None:
        now = self._clock()
        if abs(now - self._tidied) >= TIDY_INTERVAL_S:
            self._tidied = now
            db.execute("DELETE FROM proof WHERE until < ?", (now,))


class KVReplays:
    """Store of seen DPoP proofs in a :class:`~isthmus.store.kv.KV`, such as one that several machines share.

    Args:
        kv: where they are kept.
        clock: says the seconds since the epoch.
        ready: waits until the store is open; not needed where it is open already.
    """

    def __init__(
        self,
        kv: "KV",
        *,
        clock: Callable[[], float] = time.time,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._kv = kv
        self._clock = clock
        self._ready = ready

    async def first(self, jkt: str, jti: str, until: float) -> bool:
        """Remember a DPoP proof; True where it is the first with this id by this key. See :meth:`ReplayStore.first`.

        Args:
            jkt: thumbprint of the key (RFC 7638).
            jti: id of the proof (RFC 9449, section 4.2).
            until: the end of its validity, in seconds since the epoch.

        Raises:
            StoreUnavailable: the store cannot be opened, or not be asked now.
        """
        if self._ready is not None:
            try:
                await self._ready()
            except LifespanFailed as error:
                raise StoreUnavailable("the server cannot start") from error
        key = f"dpop/{hash_proof(jkt, jti).hex()}"
        ttl = max(1.0, until - self._clock())
        return await self._kv.cas(key, b"", 0, ttl) is not None


def hash_proof(jkt: str, jti: str) -> bytes:
    """The name of a proof, whatever its client called it."""
    return sha256_digest(f"{jkt} {jti}")
