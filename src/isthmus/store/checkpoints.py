"""What was committed is moved into the file itself beside the work: no commit waits for the disk."""

import threading
from contextlib import closing, suppress
from pathlib import Path

__all__ = ["LARGEST", "Checkpoints"]

EVERY = 100
"""Commits until it is done again."""

LARGEST = 8_000
"""Pages in the log of what was committed; with more, a commit does it, and waits."""


class Checkpoints:
    """Checkpoints of one SQLite file, each in a thread of its own that ends with it.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._commits = 0
        self._thread: threading.Thread | None = None

    def committed(self) -> None:
        """One commit more: begin with a checkpoint where it is time, and none is under way."""
        self._commits += 1
        if self._commits < EVERY or (self._thread is not None and self._thread.is_alive()):
            return
        self._commits = 0
        self._thread = threading.Thread(
            target=self._checkpoint, name="isthmus-checkpoint", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """Wait for the one that is under way."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _checkpoint(self) -> None:
        import sqlite3

        # rw: a file that is gone must not be made again
        where = f"{Path(self._path).absolute().as_uri()}?mode=rw"
        with (
            suppress(sqlite3.Error, OSError),  # the next one does it, or a commit
            closing(sqlite3.connect(where, uri=True, timeout=0, isolation_level=None)) as db,
        ):
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")  # it waits for nobody
