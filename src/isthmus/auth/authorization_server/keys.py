"""The keys that access tokens are signed with, which change without anybody noticing.

The current one signs, the next one is published already so that nobody meets a token whose key
they have not seen, and tokens of the previous ones are still believed until the last of them has
ended. They are kept in the store, encrypted, with the key behind refresh tokens.
"""

import os
import secrets
from typing import Any

from isthmus.auth.authorization_server.records import Records, StoredKey
from isthmus.auth.jose import PrivateKey

__all__ = ["Keyring"]

MAC = "refresh"


class Keyring:
    """Signing keys, as the store has them.

    It remembers those that it has decrypted, and asks the store each time which of them it is.

    Args:
        alg: what new keys sign with.
        life: seconds after which the current key gives way to the next.
        overlap: seconds that a previous one is published for; longer than any token lives.
    """

    def __init__(self, alg: str, *, life: float, overlap: float) -> None:
        self._alg = alg
        self._life = life
        self._overlap = overlap
        self._opened: dict[str, PrivateKey] = {}
        self._mac: bytes | None = None

    def signing(self, records: Records) -> PrivateKey:
        """The current key; the first call in the life of a store makes it."""
        current = self._state(records, "current")
        if current is None or current.changed_at + self._life < records.now:
            self.rotate(records)
            current = self._state(records, "current")
            assert current is not None  # noqa: S101 - rotate has just made it
        return self._open(records, current)

    def public(self, records: Records) -> list[dict[str, Any]]:
        """All public keys, as ``/jwks`` shows them."""
        return [dict(self._open(records, key).jwk) for key in stored(records)]

    def complete(self, records: Records) -> bool:
        """Whether there are keys to sign with, and none has to change now."""
        current = self._state(records, "current")
        return (
            current is not None
            and current.changed_at + self._life >= records.now
            and self._state(records, "next") is not None
        )

    def rotate(self, records: Records) -> None:
        """Go on to the next key, and make another next one; tokens stay good."""
        held = {key.state: key for key in stored(records)}
        if "current" in held:
            move(records, held["current"].kid, "previous")
        if "next" in held:
            move(records, held["next"].kid, "current")
        else:
            self._make(records, "current")
        self._make(records, "next")
        records.audit("keys_rotated")

    def retire(self, records: Records) -> None:
        """Forget previous keys once no token of them can be good any more."""
        records.db.execute("DELETE FROM key WHERE state = 'previous' AND changed_at < ?",
                           (records.now - self._overlap,))  # fmt: skip

    def mac(self, records: Records) -> bytes:
        """The key behind refresh tokens; the first call in the life of a store makes it."""
        if self._mac is None:
            row = records.db.execute("SELECT value FROM meta WHERE name = ?", (MAC,)).fetchone()
            if row is None:
                made = os.urandom(32)
                sealed = records.vault.seal(made, f"meta/{MAC}")
                records.db.execute("INSERT INTO meta VALUES (?, ?)", (MAC, sealed))
                return made  # not kept yet: the transaction may be undone
            self._mac = records.vault.open(row[0], f"meta/{MAC}")
        return self._mac

    def _state(self, records: Records, state: str) -> StoredKey | None:
        return next((key for key in stored(records) if key.state == state), None)

    def _open(self, records: Records, key: StoredKey) -> PrivateKey:
        if key.kid not in self._opened:
            if len(self._opened) > 8:
                self._opened.clear()
            jwk = records.vault.open(key.private, f"key/{key.kid}")
            self._opened[key.kid] = PrivateKey(jwk.decode(), alg=key.alg, kid=key.kid)
        return self._opened[key.kid]

    def _make(self, records: Records, state: str) -> None:
        kid = secrets.token_urlsafe(12)
        jwk = PrivateKey.generate(self._alg, kid).secret_jwk()
        sealed = records.vault.seal(jwk.reveal().encode(), f"key/{kid}")
        records.db.execute("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?)",
                           (kid, self._alg, state, records.now, records.now, sealed))  # fmt: skip


def stored(records: Records) -> list[StoredKey]:
    """The keys in the store: current, next, previous."""
    rows = records.db.execute("SELECT kid, alg, state, created_at, changed_at, sealed FROM key "
                              "ORDER BY state").fetchall()  # fmt: skip
    names = ("kid", "alg", "state", "created_at", "changed_at", "private")
    return [StoredKey(**dict(zip(names, row, strict=True))) for row in rows]


def move(records: Records, kid: str, state: str) -> None:
    """Give a key another part to play."""
    records.db.execute("UPDATE key SET state = ?, changed_at = ? WHERE kid = ?",
                       (state, records.now, kid))  # fmt: skip
