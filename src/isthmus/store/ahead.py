"""Switching a file of SQLite's to a write-ahead log, while others may do the same."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

__all__ = ["log_ahead"]

LONGEST = 1.0
"""Seconds in which others may switch a new file."""

PAUSE = 0.002


def log_ahead(db: "sqlite3.Connection", patience: float) -> None:
    """Switch to a write-ahead log; again where another process does so at the same moment.

    SQLite waits for nobody there: two that switch a new file would wait for each other.

    Args:
        db: the connection; the thread is kept meanwhile.
        patience: seconds for the others, a second at most.

    Raises:
        sqlite3.OperationalError: somebody still has the file.
    """
    import sqlite3  # slow to import

    until = time.monotonic() + min(patience, LONGEST)
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(PAUSE)
        else:
            return
