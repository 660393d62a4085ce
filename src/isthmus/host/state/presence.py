"""Presence of processes: each one that writes intents holds a locked file; those that are gone hold none."""

import hashlib
import os
import sys
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

LOCK_TRIES, LOCK_PAUSE_S = 20, 0.002
MAX_TIDIED_FILES = 1_000


class ProcessPresence:
    """A file that is locked as long as this process lives, however it ends.

    Args:
        folder: of the state; None where nobody else can see it.
        node: what this process is called in the log.
    """

    def __init__(self, folder: Path | None, node: str) -> None:
        self.node = node
        self._folder = None if folder is None else folder / "nodes"
        self._held: int | None = None

    def begin(self) -> None:
        """Announce this process: make its file and lock it.

        Raises:
            OSError: the file cannot be made.
        """
        if self._folder is None or self._held is not None:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._tidy(self._folder)
        for _ in range(LOCK_TRIES):  # whoever tidies up may have it for a moment, and take it away
            held = os.open(self._path(self.node), os.O_RDWR | os.O_CREAT, 0o600)
            if try_lock(held) and os.fstat(held).st_nlink:
                self._held = held
                return
            os.close(held)
            time.sleep(LOCK_PAUSE_S)
        raise OSError(f"another process is called {self.node} already")

    def end(self) -> None:
        """Remove the file and unlock it."""
        held, self._held = self._held, None
        if held is not None:
            with suppress(OSError):
                self._path(self.node).unlink()
            os.close(held)

    def gone(self, node: str) -> bool:
        """Whether a process is gone; its file is cleared away then."""
        if node == self.node:
            return False
        return self._folder is None or self._clear_if_free(self._path(node))

    def _tidy(self, folder: Path) -> None:
        """Clear away files of processes that were killed."""
        for path in islice(folder.iterdir(), MAX_TIDIED_FILES):
            self._clear_if_free(path)

    @staticmethod
    def _clear_if_free(path: Path) -> bool:
        """Clear a file away unless a process holds it; whether it is gone."""
        try:
            held = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            if not try_lock(held):
                return False
            with suppress(OSError):
                path.unlink()
            return True
        finally:
            os.close(held)

    def _path(self, node: str) -> Path:
        name = hashlib.blake2b(node.encode("utf-8", "replace"), digest_size=16).hexdigest()
        return (self._folder or Path()) / name


def try_lock(file: int) -> bool:
    """Lock an open file for as long as it is open; False where another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
