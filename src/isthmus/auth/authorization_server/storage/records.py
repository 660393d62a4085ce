"""Records of the authorization server, and what a transaction can do with them.

A :class:`PendingAuthorization` was asked for at ``/authorize`` and found right. Between that and its end by
:meth:`AuthorizationServer.approve` or :meth:`AuthorizationServer.deny` stand the pages for login and consent, or
another authorization server. What is over is deleted, a little at a time.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.auth.authorization_server.storage.clients import ClientKind, RegisteredClient
from isthmus.auth.authorization_server.storage.vault import StoreVault
from isthmus.auth.tokens.secret import sha256_digest
from isthmus.errors import UsageError

if TYPE_CHECKING:
    import sqlite3

PENDING_LIFE_S = 600.0

MAX_KEPT_ROWS = 20_000  # of requests that wait for an answer, and of tickets of all kinds
CLEANUP_BATCH_ROWS = 500
DAY_S = 86_400.0
MAX_AUDIT_ROWS = 10_000
# A table, its key, what is over, and how long ago that must have been.
EXPIRED_ROWS = (
    ("pending", "txn", "expires_at < ?", 0.0),
    ("jti", "jti", "expires_at < ?", 60.0),
    ("ticket", "digest", "expires_at < ?", 0.0),
    ("login_try", "digest", "expires_at < ?", 0.0),
    ("login_session", "digest", "expires_at < ?", 0.0),
    ("client", "client_id", "expires_at < ?", 0.0),
    # Nobody ever came for what they were granted.
    (
        "grant_",
        "id",
        "id IN (SELECT grant_id FROM code WHERE used_at IS NULL AND expires_at < ?)",
        60.0,
    ),
    # Kept for a while after their end, so that a replay is known for one.
    ("code", "digest", "expires_at < ?", DAY_S),
    ("grant_", "id", "expires_at < ?", 7 * DAY_S),
    ("grant_", "id", "revoked_at < ?", 7 * DAY_S),
)


class PendingAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """A validated authorization request; client and redirect URI are known to be right.

    It is kept in the store, and taken out of it by the one answer that it gets.

    Attributes:
        txn: names it, unguessable.
        client_id: who asks.
        client_name: what the client calls itself; nobody has verified it unless ``client_kind``
            is ``"static"``.
        client_kind: how the client is known.
        client_uri: the client's home page, as it says; may be empty.
        redirect_uri: where the browser goes in the end.
        scopes: what is asked for, in the order asked.
        resource: the MCP server that the token will be for (RFC 8707).
        state: the client's, handed back unchanged; None if there was none.
        query: all parameters as they came, for the grant to be made of once more.
        created_at: seconds since the epoch.
        expires_at: after that it is gone.
        login_only: nothing is asked for but who is at the browser, which then goes to
            ``redirect_uri``, a page of ours; it cannot be approved.
    """

    txn: str
    client_id: str
    client_name: str
    client_kind: ClientKind
    client_uri: str = ""
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    state: str | None = None
    query: tuple[tuple[str, str], ...]
    created_at: float
    expires_at: float
    login_only: bool = False


class ClientGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A grant: the access that somebody allowed a client. Every token belongs to one.

    Attributes:
        id: 128 random bits.
        gen: the generation of its refresh token.
        expires_at: when it ends unless its refresh token is used before.
        ends_at: when it ends in any case, or None.
        jkt: the key that its refresh token is bound to, for public clients with DPoP.
        upstream_id: the upstream tokens behind it, or None.
    """

    id: str
    client_id: str
    user_id: str
    scope: str
    resource: str
    gen: int
    created_at: float
    rotated_at: float | None
    expires_at: float
    ends_at: float | None
    revoked_at: float | None
    jkt: str | None
    upstream_id: str | None


class AuthorizationCode(msgspec.Struct, frozen=True, kw_only=True):
    """An authorization code as it is kept: without itself."""

    digest: bytes
    grant_id: str
    client_id: str
    redirect_uri: str
    sent_redirect: int
    challenge: str
    jkt: str | None
    expires_at: float
    used_at: float | None


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """A signing key; ``state`` is ``next``, ``current`` or ``previous``."""

    kid: str
    alg: str
    state: str
    created_at: float
    changed_at: float
    private: bytes


class AuthAuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something worth remembering, such as ``refresh_reuse``."""

    id: int
    at: float
    event: str
    client_id: str
    user_id: str
    grant_id: str
    detail: str


class Records:
    """The store inside one transaction; of no use after it.

    Args:
        db: the connection, in a transaction.
        vault: seals what is secret.
        now: seconds since the epoch.
    """

    __slots__ = ("db", "now", "vault")

    def __init__(self, db: "sqlite3.Connection", vault: StoreVault, now: float) -> None:
        self.db = db
        self.vault = vault
        self.now = now

    def _one(self, statement: str, *values: Any) -> dict[str, Any] | None:
        cursor = self.db.execute(statement, values)
        row = cursor.fetchone()
        if row is None:
            return None
        return dict(zip((c[0] for c in cursor.description), row, strict=True))

    def _all(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self.db.execute(statement, values)
        names = [c[0] for c in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def claim(self, issuer: str) -> None:
        """See that the store is of one issuer alone, which is the first that uses it.

        Users of two may have the same ids: whoever logged in at one would be somebody at the other.

        Raises:
            UsageError: it is another's.
        """
        row = self.db.execute("SELECT value FROM meta WHERE name = 'issuer'").fetchone()
        if row is None:
            self.db.execute("INSERT INTO meta VALUES ('issuer', ?)", (issuer.encode(),))
        elif row[0] != issuer.encode():
            raise UsageError(
                f"the store is that of the authorization server {row[0].decode()}, and this one is "
                f"{issuer}: give each a file of its own; one whose URL has changed begins with a "
                "new file, as its clients have to register again anyway"
            )

    # Clients

    def client(self, client_id: str) -> tuple[RegisteredClient, bytes | None] | None:
        """A client that was registered or added, and the digest of its secret."""
        row = self._one("SELECT data, secret FROM client WHERE client_id = ? AND "
                        "(expires_at IS NULL OR expires_at > ?)", client_id, self.now)  # fmt: skip
        if row is None:
            return None
        return msgspec.json.decode(row["data"], type=RegisteredClient), row["secret"]

    def save_client(
        self, client: RegisteredClient, secret: str | None = None, expires_at: float | None = None
    ) -> None:
        """Add a client, or replace it.

        Args:
            client: which; a ``secret`` in it is stored as ``secret`` is.
            secret: what it authenticates with; its digest is kept.
            expires_at: when it is forgotten if it was never used by then.
        """
        text = client.secret.reveal() if secret is None and client.secret is not None else secret
        client = msgspec.structs.replace(client, secret=None)
        self.db.execute(
            "INSERT OR REPLACE INTO client VALUES (?, ?, ?, ?, ?, NULL, ?)",
            (client.client_id, client.kind, msgspec.json.encode(client),
             None if text is None else self.vault.digest(text), self.now, expires_at),
        )  # fmt: skip

    def use_client(self, client_id: str) -> None:
        """A client was of use: it no longer expires."""
        self.db.execute("UPDATE client SET used_at = ?, expires_at = NULL WHERE client_id = ? AND "
                        "(expires_at IS NOT NULL OR used_at IS NULL OR used_at < ?)",
                        (self.now, client_id, self.now - 3600))  # fmt: skip

    def clients(self) -> list[RegisteredClient]:
        """All clients that were registered or added."""
        rows = self._all("SELECT data FROM client ORDER BY created_at, client_id")
        return [msgspec.json.decode(row["data"], type=RegisteredClient) for row in rows]

    def count_clients(self) -> int:
        """Count the clients that registered themselves."""
        count: int = self.db.execute(
            "SELECT count(*) FROM client WHERE kind = 'dynamic'"
        ).fetchone()[0]
        return count

    def forget_clients(self, most: int) -> None:
        """Forget clients that registered themselves and have no grant that holds.

        Those that were never of use go first, then those that were not for the longest time.

        Args:
            most: how many of them.
        """
        self.db.execute(
            "DELETE FROM client WHERE client_id IN (SELECT client_id FROM client c WHERE kind = "
            "'dynamic' AND NOT EXISTS (SELECT 1 FROM grant_ g WHERE g.client_id = c.client_id AND "
            "g.revoked_at IS NULL AND g.expires_at > ?) ORDER BY used_at IS NOT NULL, "
            "coalesce(used_at, created_at) LIMIT ?)", (self.now, most),
        )  # fmt: skip

    def remove_client(self, client_id: str) -> bool:
        """Forget a client and revoke what it was granted; False if there is none."""
        self.forget_consent(client_id)
        self.db.execute("UPDATE grant_ SET revoked_at = ? WHERE client_id = ? AND revoked_at IS "
                        "NULL", (self.now, client_id))  # fmt: skip
        gone = self.db.execute("DELETE FROM client WHERE client_id = ?", (client_id,))
        return gone.rowcount > 0

    # Requests on their way

    def save_pending(self, pending: PendingAuthorization) -> None:
        """Keep an authorization request until it is answered."""
        self.db.execute("INSERT INTO pending VALUES (?, ?, ?)",
                        (pending.txn, msgspec.json.encode(pending), pending.expires_at))  # fmt: skip
        self._bound("pending", "txn")

    def pending(self, txn: str) -> PendingAuthorization | None:
        """An authorization request that still waits for its answer."""
        row = self._one("SELECT data FROM pending WHERE txn = ? AND expires_at > ?", txn, self.now)
        return None if row is None else msgspec.json.decode(row["data"], type=PendingAuthorization)

    def take_pending(self, txn: str) -> PendingAuthorization | None:
        """As :meth:`pending`; it is answered now, and nobody else gets it."""
        found = self.pending(txn)
        self.db.execute("DELETE FROM pending WHERE txn = ?", (txn,))
        return found

    # Grants and codes

    def add_grant(self, grant: ClientGrant) -> None:
        """Keep a new grant."""
        fields = msgspec.structs.astuple(grant)
        self.db.execute(f"INSERT INTO grant_ VALUES ({', '.join('?' * len(fields))})", fields)  # noqa: S608 - question marks only

    def grant(self, grant_id: str) -> ClientGrant | None:
        """A grant, in whatever state."""
        row = self._one("SELECT * FROM grant_ WHERE id = ?", grant_id)
        return None if row is None else ClientGrant(**row)

    def grants(self, user_id: str | None = None, client_id: str | None = None) -> list[ClientGrant]:
        """Grants that still hold, newest first."""
        rows = self._all(
            "SELECT * FROM grant_ WHERE revoked_at IS NULL AND expires_at > ? AND (? IS NULL OR "
            "user_id = ?) AND (? IS NULL OR client_id = ?) ORDER BY created_at DESC LIMIT 1000",
            self.now, user_id, user_id, client_id, client_id,
        )  # fmt: skip
        return [ClientGrant(**row) for row in rows]

    def revoke_grant(self, grant_id: str) -> bool:
        """End a grant with all its tokens; False if it had ended."""
        done = self.db.execute("UPDATE grant_ SET revoked_at = ? WHERE id = ? AND revoked_at IS "
                               "NULL", (self.now, grant_id))  # fmt: skip
        return done.rowcount > 0

    def revoke_user(self, user_id: str) -> int:
        """End grants, logins and connected accounts of somebody; how many grants that were."""
        self.db.execute("DELETE FROM login_session WHERE user_id = ?", (user_id,))
        self.db.execute("DELETE FROM consent WHERE user_id = ?", (user_id,))
        # Accounts elsewhere are of no use from now on; the server takes them back there.
        self.db.execute("UPDATE upstream SET expires_at = ? WHERE user_id = ?", (self.now, user_id))
        done = self.db.execute("UPDATE grant_ SET revoked_at = ? WHERE user_id = ? AND revoked_at "
                               "IS NULL", (self.now, user_id))  # fmt: skip
        return done.rowcount

    def rotate(self, grant_id: str, gen: int, expires_at: float) -> bool:
        """Go to the next generation of a grant's refresh token; False if another was first."""
        done = self.db.execute(
            "UPDATE grant_ SET gen = gen + 1, rotated_at = ?, expires_at = ? WHERE id = ? AND "
            "gen = ? AND revoked_at IS NULL", (self.now, expires_at, grant_id, gen),
        )  # fmt: skip
        return done.rowcount == 1

    def bind_grant(self, grant_id: str, jkt: str) -> None:
        """Bind a grant's refresh token to a key."""
        self.db.execute("UPDATE grant_ SET jkt = ? WHERE id = ?", (jkt, grant_id))

    def add_code(self, code: AuthorizationCode) -> None:
        """Keep a new code."""
        fields = msgspec.structs.astuple(code)
        self.db.execute(f"INSERT INTO code VALUES ({', '.join('?' * len(fields))})", fields)  # noqa: S608 - question marks only

    def code(self, text: str) -> AuthorizationCode | None:
        """A code, used or not, expired or not."""
        row = self._one("SELECT * FROM code WHERE digest = ?", sha256_digest(text))
        return None if row is None else AuthorizationCode(**row)

    def use_code(self, code: AuthorizationCode) -> bool:
        """Redeem a code; False if it was before."""
        done = self.db.execute("UPDATE code SET used_at = ? WHERE digest = ? AND used_at IS NULL",
                               (self.now, code.digest))  # fmt: skip
        return done.rowcount == 1

    def first_use(self, issuer: str, jti: str, expires_at: float) -> bool:
        """Whether nobody has used this token id of an issuer before; then it is used now."""
        done = self.db.execute(
            "INSERT OR IGNORE INTO jti VALUES (?, ?, ?)", (issuer, jti, expires_at)
        )
        return done.rowcount == 1

    def used(self, issuer: str, jti: str) -> bool:
        """Whether somebody has used, or revoked, this token id of an issuer."""
        found = self.db.execute("SELECT 1 FROM jti WHERE issuer = ? AND jti = ?", (issuer, jti))
        return found.fetchone() is not None

    # Browsers

    def save_consent(
        self, user_id: str, client_id: str, redirect_uri: str, resource: str, scopes: Sequence[str]
    ) -> None:
        """Remember what somebody approved, in addition to what they had."""
        known = self.consent(user_id, client_id, redirect_uri, resource)
        scope = " ".join(sorted({*known, *scopes}))
        self.db.execute("INSERT OR REPLACE INTO consent VALUES (?, ?, ?, ?, ?, ?)",
                        (user_id, client_id, redirect_uri, resource, scope, self.now))  # fmt: skip

    def consent(
        self, user_id: str, client_id: str, redirect_uri: str, resource: str
    ) -> frozenset[str]:
        """The scopes that somebody has approved for a client before; empty for none."""
        row = self._one("SELECT scope FROM consent WHERE user_id = ? AND client_id = ? AND "
                        "redirect_uri = ? AND resource = ?",
                        user_id, client_id, redirect_uri, resource)  # fmt: skip
        return frozenset() if row is None else frozenset(row["scope"].split())

    def forget_consent(self, client_id: str, user_id: str | None = None) -> None:
        """Ask again what a client may do: one user, or all of them."""
        self.db.execute("DELETE FROM consent WHERE client_id = ? AND (? IS NULL OR user_id = ?)",
                        (client_id, user_id, user_id))  # fmt: skip

    def add_session(self, token: str, user_id: str, expires_at: float) -> None:
        """Keep the login of the browser that holds ``token``."""
        self.db.execute("INSERT OR REPLACE INTO login_session VALUES (?, ?, ?, ?)",
                        (sha256_digest(token), user_id, self.now, expires_at))  # fmt: skip

    def session(self, token: str) -> str | None:
        """The id of the user whose browser holds ``token``."""
        row = self._one("SELECT user_id FROM login_session WHERE digest = ? AND expires_at > ?",
                        sha256_digest(token), self.now)  # fmt: skip
        return None if row is None else row["user_id"]

    def prolong_session(self, token: str, idle: float, life: float) -> None:
        """Prolong a login: ``idle`` seconds from now, up to ``life`` in all."""
        self.db.execute("UPDATE login_session SET expires_at = min(created_at + ?, ?) WHERE "
                        "digest = ?", (life, self.now + idle, sha256_digest(token)))  # fmt: skip

    def end_session(self, token: str) -> None:
        """End the login of the browser that holds ``token``."""
        self.db.execute("DELETE FROM login_session WHERE digest = ?", (sha256_digest(token),))

    def put_ticket(self, kind: str, name: str, content: bytes, expires_at: float) -> None:
        """Keep something for a while under an unguessable name; encrypted, its name as a digest."""
        key = sha256_digest(name)
        sealed = self.vault.seal(content, f"ticket/{kind}/{key.hex()}")
        self.db.execute("INSERT OR REPLACE INTO ticket VALUES (?, ?, ?, ?)",
                        (kind, key, sealed, expires_at))  # fmt: skip
        self._bound("ticket", "digest")

    def _bound(self, table: str, key: str) -> None:
        """Forget what would end first where anybody could fill the disk with more."""
        self.db.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} ORDER BY expires_at "  # noqa: S608 - words of this file
            f"DESC LIMIT -1 OFFSET {MAX_KEPT_ROWS})"
        )

    def ticket(self, kind: str, name: str) -> bytes | None:
        """The content that :meth:`put_ticket` kept, as long as it is good."""
        key = sha256_digest(name)
        row = self._one("SELECT sealed FROM ticket WHERE kind = ? AND digest = ? AND "
                        "expires_at > ?", kind, key, self.now)  # fmt: skip
        if row is None:
            return None
        return self.vault.open(row["sealed"], f"ticket/{kind}/{key.hex()}")

    def take_ticket(self, kind: str, name: str) -> bytes | None:
        """As :meth:`ticket`, once."""
        found = self.ticket(kind, name)
        self.db.execute(
            "DELETE FROM ticket WHERE kind = ? AND digest = ?", (kind, sha256_digest(name))
        )
        return found

    # Audit

    def audit(
        self, event: str, *, client_id: str = "", user_id: str = "", grant_id: str = "",
        detail: str = "",
    ) -> None:  # fmt: skip
        """Remember that something happened; ``detail`` holds no secret."""
        self.db.execute(
            "INSERT INTO audit (at, event, client_id, user_id, grant_id, detail) VALUES "
            "(?, ?, ?, ?, ?, ?)", (self.now, event, client_id, user_id, grant_id, detail),
        )  # fmt: skip

    def audited(self, limit: int = 100) -> list[AuthAuditEvent]:
        """The last events, newest first."""
        rows = self._all("SELECT * FROM audit ORDER BY id DESC LIMIT ?", limit)
        return [AuthAuditEvent(**row) for row in rows]


def delete_expired(records: Records) -> int:
    """Forget some of what is over; how many rows that were."""
    gone = 0
    for table, key, over, ago in EXPIRED_ROWS:
        gone += records.db.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {over} "  # noqa: S608 - the names are in the table above
            f"LIMIT {CLEANUP_BATCH_ROWS}) AND {over}",
            (records.now - ago, records.now - ago),
        ).rowcount
    gone += records.db.execute(
        "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", (MAX_AUDIT_ROWS,)
    ).rowcount
    return gone
