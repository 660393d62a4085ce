"""Access tokens, refresh tokens, and the signing keys behind them.

A refresh token is ``rt.<grant>.<generation>.<HMAC>``. The current generation gets the next one. The
one before gets, for a short while, the same next one again, so that several processes of a client,
or one whose answer was lost, all end up with the same token. Anything older has been stolen from
somebody, and ends the grant.

Of the signing keys the current one signs, the next one is published already so that nobody meets a
token whose key they have not seen, and tokens of the previous ones are still believed until the last
of them has ended. They are kept in the store, encrypted, with the key behind refresh tokens.
"""

import hmac
import os
import secrets
from typing import Any

import msgspec

from isthmus.auth.authorization_server.storage.records import Records, StoredKey
from isthmus.auth.authorization_server.storage.store import AuthStore
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret
from isthmus.core.encoding import encode_base64url

ACCESS_JWT_TYPE = "at+jwt"
REVOKED_ISSUER = "revoked"  # the ids of revoked access tokens are kept under it
MAX_REFRESH_CHARS = 512
MAC_NAME = "refresh"


def make_id() -> str:
    """128 random bits, as text."""
    return secrets.token_urlsafe(16)


class TokenAnswer(dict[str, Any]):
    """An answer of the token endpoint that shows nothing where it is logged as a whole."""

    def __repr__(self) -> str:
        return f"TokenAnswer({', '.join(self)})"

    __str__ = __repr__


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of an access token (RFC 9068).

    Attributes:
        issuer: us.
        subject: the user, or the client itself.
        client_id: the client.
        resource: the MCP server that it is for.
        scope: what it allows.
        grant_id: the grant that it belongs to, or None.
        jkt: the key that it is bound to, or None.
        begins: seconds since the epoch.
        life: seconds.
    """

    issuer: str
    subject: str
    client_id: str
    resource: str
    scope: str
    grant_id: str | None
    jkt: str | None
    begins: float
    life: int

    def signed(self, key: PrivateKey) -> Secret:
        """The token."""
        begins = int(self.begins)
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": self.subject,
            # spec 2026-07-28
            # basic/authorization/security-considerations#token-audience-binding-and-validation
            "aud": self.resource,
            "client_id": self.client_id,
            "iat": begins,
            "exp": begins + self.life,
            "jti": make_id(),
            "scope": self.scope,
        }
        if self.grant_id is not None:
            claims["gid"] = self.grant_id
        if self.jkt is not None:
            claims["cnf"] = {"jkt": self.jkt}
        return Secret(sign_jwt(claims, key, typ=ACCESS_JWT_TYPE))


class RefreshParts(msgspec.Struct, frozen=True):
    """A refresh token that was taken apart; nothing of it is believed yet."""

    grant_id: str
    gen: int
    mac: str


def make_refresh_token(mac_key: bytes, grant_id: str, gen: int, client_id: str) -> Secret:
    """The refresh token of a generation: the same text whenever it is asked for."""
    return Secret(f"rt.{grant_id}.{gen}.{sign_refresh(mac_key, grant_id, gen, client_id)}")


def sign_refresh(mac_key: bytes, grant_id: str, gen: int, client_id: str) -> str:
    """Make the HMAC that proves that a refresh token is ours."""
    signed = msgspec.json.encode([grant_id, gen, client_id])
    return encode_base64url(hmac.digest(mac_key, signed, "sha256"))


def parse_refresh_token(text: str) -> RefreshParts | None:
    """Take a refresh token apart; None for what is none."""
    parts = text.split(".")
    if len(text) > MAX_REFRESH_CHARS or len(parts) != 4 or parts[0] != "rt":
        return None
    digits = parts[2]
    if not (digits.isascii() and digits.isdigit() and len(digits) < 12):
        return None
    return RefreshParts(parts[1], int(digits), parts[3])


def is_genuine(mac_key: bytes, presented: RefreshParts, client_id: str) -> bool:
    """Whether we made a refresh token, for this client; takes the same time either way."""
    mine = sign_refresh(mac_key, presented.grant_id, presented.gen, client_id)
    given = presented.mac.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(mine.encode(), given)


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
        current = self._find_key(records, "current")
        if current is None or current.changed_at + self._life < records.now:
            self.rotate(records)
            current = self._find_key(records, "current")
            assert current is not None  # noqa: S101 - rotate has just made it
        return self._open_key(records, current)

    def public(self, records: Records) -> list[dict[str, Any]]:
        """All public keys, as ``/jwks`` shows them."""
        return [dict(self._open_key(records, key).jwk) for key in load_keys(records)]

    async def published(self, store: AuthStore) -> list[dict[str, Any]]:
        """The keys that tokens are verified with, as ``/jwks`` shows them; made where there are none."""

        def made(records: Records) -> list[dict[str, Any]]:
            self.signing(records)
            return self.public(records)

        whole = await store.read(self.complete)
        return await (store.read(self.public) if whole else store.write(made))

    def complete(self, records: Records) -> bool:
        """Whether there are keys to sign with, and none has to change now."""
        current = self._find_key(records, "current")
        return (
            current is not None
            and current.changed_at + self._life >= records.now
            and self._find_key(records, "next") is not None
        )

    def rotate(self, records: Records) -> None:
        """Go on to the next key, and make another next one; tokens stay good."""
        held = {key.state: key for key in load_keys(records)}
        if "current" in held:
            change_key_state(records, held["current"].kid, "previous")
        if "next" in held:
            change_key_state(records, held["next"].kid, "current")
        else:
            self._make_key(records, "current")
        self._make_key(records, "next")
        records.audit("keys_rotated")

    def retire(self, records: Records) -> None:
        """Forget previous keys once no token of them can be good any more."""
        records.db.execute("DELETE FROM key WHERE state = 'previous' AND changed_at < ?",
                           (records.now - self._overlap,))  # fmt: skip

    def mac(self, records: Records) -> bytes:
        """The key behind refresh tokens; the first call in the life of a store makes it."""
        if self._mac is None:
            row = records.db.execute(
                "SELECT value FROM meta WHERE name = ?", (MAC_NAME,)
            ).fetchone()
            if row is None:
                made = os.urandom(32)
                sealed = records.vault.seal(made, f"meta/{MAC_NAME}")
                records.db.execute("INSERT INTO meta VALUES (?, ?)", (MAC_NAME, sealed))
                return made  # not kept yet: the transaction may be undone
            self._mac = records.vault.open(row[0], f"meta/{MAC_NAME}")
        return self._mac

    def _find_key(self, records: Records, state: str) -> StoredKey | None:
        return next((key for key in load_keys(records) if key.state == state), None)

    def _open_key(self, records: Records, key: StoredKey) -> PrivateKey:
        if key.kid not in self._opened:
            if len(self._opened) > 8:
                self._opened.clear()
            jwk = records.vault.open(key.private, f"key/{key.kid}")
            self._opened[key.kid] = PrivateKey(jwk.decode(), alg=key.alg, kid=key.kid)
        return self._opened[key.kid]

    def _make_key(self, records: Records, state: str) -> None:
        kid = secrets.token_urlsafe(12)
        jwk = PrivateKey.generate(self._alg, kid).secret_jwk()
        sealed = records.vault.seal(jwk.reveal().encode(), f"key/{kid}")
        records.db.execute("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?)",
                           (kid, self._alg, state, records.now, records.now, sealed))  # fmt: skip


def load_keys(records: Records) -> list[StoredKey]:
    """The keys in the store: current, next, previous."""
    rows = records.db.execute("SELECT kid, alg, state, created_at, changed_at, sealed FROM key "
                              "ORDER BY state").fetchall()  # fmt: skip
    names = ("kid", "alg", "state", "created_at", "changed_at", "private")
    return [StoredKey(**dict(zip(names, row, strict=True))) for row in rows]


def change_key_state(records: Records, kid: str, state: str) -> None:
    """Give a key another part to play."""
    records.db.execute("UPDATE key SET state = ?, changed_at = ? WHERE kid = ?",
                       (state, records.now, kid))  # fmt: skip
