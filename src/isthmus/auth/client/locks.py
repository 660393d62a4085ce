"""Locks that programs share: whoever holds one is alone with what it is about.

The operating system keeps them, so that they end with the program that holds them, however it ends.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.auth.extra import missing
from isthmus.errors import AuthError

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["StoreBusy", "file_lock", "held", "held_by_thread"]

POLL = 0.02
"""Seconds between two looks at a lock that somebody else holds."""


class StoreBusy(AuthError):
    """Another program holds a lock on the tokens, and does not let go of it."""


def file_lock(path: Path) -> "BaseFileLock":
    """The lock that a file stands for, not held yet.

    Raises:
        UsageError: filelock is not installed.
    """
    try:
        from filelock import FileLock  # of the extra, and only needed where a file is shared
    except ImportError as error:
        raise missing("Keeping tokens in a file that programs share", error) from error
    # Whichever thread releases it: who holds it is the object, and nobody else has that.
    return FileLock(path, mode=0o600, thread_local=False)


@asynccontextmanager
async def held(path: Path, seconds: float) -> AsyncIterator[None]:
    """Hold a lock; other tasks go on while somebody else holds it.

    Args:
        path: the lock's file.
        seconds: how long to wait for it.

    Raises:
        StoreBusy: it was not to be had in that time.
    """
    lock, until = file_lock(path), time.monotonic() + seconds
    while not taken(lock, path):
        if time.monotonic() >= until:
            raise busy(path, seconds)
        await asyncio.sleep(POLL)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def held_by_thread(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock; this thread waits while somebody else holds it.

    Raises:
        StoreBusy: it was not to be had in that time.
    """
    lock, until = file_lock(path), time.monotonic() + seconds
    while not taken(lock, path):
        if time.monotonic() >= until:
            raise busy(path, seconds)
        time.sleep(POLL)
    try:
        yield
    finally:
        lock.release()


def taken(lock: "BaseFileLock", path: Path) -> bool:
    """Whether the lock is ours now."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        raise AuthError(f"{path} cannot be locked: {error.strerror or error}") from error
    return True


def busy(path: Path, seconds: float) -> StoreBusy:
    """What is raised when a lock was waited for in vain."""
    return StoreBusy(
        f"another program has held {path} for {seconds:g} s while it renews tokens: wait for it, or "
        "end it if it hangs; the lock ends with it"
    )
