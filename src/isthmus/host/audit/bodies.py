"""What was passed on, where it is kept at all: encrypted, for a while, once for equal ones."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from isthmus.host.audit.columns import Snapshot, digest
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.redaction import Redactor
from isthmus.host.audit.row import Row

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Bodies", "Keeper", "body"]

Bodies: TypeAlias = Literal["hash", "redacted", "full"]
"""What is kept of arguments and results besides their digests: nothing, what redaction leaves of
them, or all of it."""

LONGEST = 4 * 1024 * 1024
"""Bytes of a body that is kept; of longer ones there is the digest only."""

MEDIA = "application/json"


class Keeper:
    """Keeps the arguments and the results of rows, encrypted.

    Args:
        bodies: what is kept of them.
        life: seconds after which they go.
        redactor: takes out what is secret.
        keys: of the log.
    """

    def __init__(self, bodies: Bodies, life: float, redactor: Redactor, keys: AuditKeys) -> None:
        self._bodies = bodies
        self._life = life
        self._redactor = redactor
        self._keys = keys

    def keep(self, db: "sqlite3.Connection", row: Row, taken: Snapshot) -> None:
        """Keep those of one row.

        Args:
            db: in a transaction.
            row: with JSON for arguments and result.
            taken: the same row, with the secrets in it.
        """
        if self._bodies == "hash":
            return
        expires_us = int((taken.at + self._life) * 1e6)
        for raw in (bytes(row.arguments), bytes(row.result)):
            if raw and len(raw) <= LONGEST:
                name = digest(raw, self._keys.digests)
                sealed = self._keys.seal(self._content(raw, taken), name)
                db.execute(KEEP, (name, MEDIA, sealed, expires_us))

    def _content(self, raw: bytes, taken: Snapshot) -> bytes:
        if self._bodies == "full":
            return raw
        try:
            value = self._redactor.strip(msgspec.json.decode(raw))
            return msgspec.json.encode(self._redactor.without(value, taken.known))
        except (msgspec.DecodeError, RecursionError):  # there is its digest all the same
            return msgspec.json.encode({"unreadable": f"{len(raw)} bytes"})


KEEP = (
    "INSERT INTO body VALUES (?, ?, ?, ?) "
    "ON CONFLICT (hash) DO UPDATE SET expires_us = max(expires_us, excluded.expires_us)"
)


def body(db: "sqlite3.Connection", keys: AuditKeys, hash: bytes) -> Any | None:
    """What was passed on, by the digest that stands in its row; None where it is not kept.

    Raises:
        CannotOpen: it was changed, or encrypted with another key.
    """
    row = db.execute("SELECT data FROM body WHERE hash = ?", (hash,)).fetchone()
    return None if row is None else msgspec.json.decode(keys.open(row[0], hash))
