"""Housekeeping: what is over is forgotten, a little at a time."""

from isthmus.auth.authorization_server.records import Records

__all__ = ["AT_A_TIME", "tidy"]

AT_A_TIME = 500
"""Rows of a table that one round deletes at most."""

DAY = 86_400.0
AUDITED = 10_000
"""Audit rows that are kept."""

# A table, its key, what is over, and how long ago that must have been.
OVER = (
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
    ("code", "digest", "expires_at < ?", DAY),
    ("grant_", "id", "expires_at < ?", 7 * DAY),
    ("grant_", "id", "revoked_at < ?", 7 * DAY),
)


def tidy(records: Records) -> int:
    """Forget some of what is over; how many rows that were."""
    gone = 0
    for table, key, over, ago in OVER:
        gone += records.db.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {over} "  # noqa: S608 - the names are in the table above
            f"LIMIT {AT_A_TIME}) AND {over}",
            (records.now - ago, records.now - ago),
        ).rowcount
    gone += records.db.execute(
        "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", (AUDITED,)
    ).rowcount
    return gone
