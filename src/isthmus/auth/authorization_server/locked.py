"""What it means that another process holds the store: who asks is told to come back soon."""

from typing import TYPE_CHECKING

from isthmus.errors import AuthError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["PATIENCE", "RETRY", "StoreLocked", "is_locked"]

PATIENCE = 2.5
"""Seconds that whoever asks waits for another process, queue included."""

RETRY = 5
"""Seconds until another try has a chance."""


class StoreLocked(AuthError):
    """Another process holds a file of the authorization server: nothing was done, try again."""


def is_locked(error: "sqlite3.Error") -> bool:
    """Whether an error of SQLite's says that somebody else has the file."""
    import sqlite3  # slow to import

    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what makes it more exact
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
