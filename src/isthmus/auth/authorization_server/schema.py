"""The tables of the authorization server's store."""

from isthmus.store.database import Schema

__all__ = ["SCHEMA"]

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

LOGIN_TRY = TABLES[TABLES.index("CREATE TABLE login_try") : TABLES.index("CREATE TABLE audit")]

SCHEMA = Schema(
    application=0x15714A75,
    version=2,
    tables=tuple(TABLES.split(";")),
    upgrades={1: tuple(LOGIN_TRY.split(";"))},
    purpose="the store of an authorization server",
)
