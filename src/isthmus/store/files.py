"""Files written atomically: whole or not at all, by whoever else writes them meanwhile."""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isthmus.runtime.failures import log_warning


def replace_file(
    path: Path, data: bytes, *, as_open: bool = False, check: Callable[[], object] = bool
) -> None:
    """Put a file in the place of another, whole or not at all, readable by its owner alone.

    Args:
        path: which one.
        data: what it is to be.
        as_open: whether who may read the other one may read this one as well.
        check: called right before; what it raises leaves the other one as it is.

    Raises:
        OSError: it cannot be written; nothing has changed then.
    """
    with _temporary_file(path, data) as written:
        if as_open and path.exists():
            found = path.stat()
            with suppress(OSError, AttributeError):  # Windows has no groups, and not all are ours
                os.chown(written, -1, found.st_gid)
            written.chmod(found.st_mode & 0o777)
        check()
        written.replace(path)
    _sync_folder(path.parent)


def restrict_to_owner(path: str | os.PathLike[str], *, create: bool = True) -> None:
    """Have a file readable and writable by its owner only; SQLite gives its own files this one's mode.

    A folder in which others may replace the file is told in the log: what is in it then is theirs.

    Args:
        path: which one.
        create: make it where there is none.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    made = os.O_CREAT if create else 0
    os.close(os.open(path, os.O_RDWR | made, 0o600))
    os.chmod(path, 0o600)  # noqa: PTH101 - what was made before may be open to others
    folder = Path(path).absolute().parent
    if is_open_to_others(folder):
        log_warning(
            "%s can be changed by other users of this machine, who could put another file in the "
            "place of %s: chmod 700 it, or choose another folder",
            folder,
            Path(path).name,
        )


def is_open_to_others(folder: Path) -> bool:
    """Whether another user than root could put a file in the place of ours in a folder."""
    if not hasattr(os, "getuid"):  # Windows says it otherwise
        return False
    found = folder.stat()
    if found.st_uid not in {0, os.getuid()}:
        return True
    return bool(found.st_mode & stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX


def create_file(path: Path, data: bytes) -> None:
    """Write a file that is not there, whole and for its owner alone; one that is there stays.

    Raises:
        OSError: it cannot be written.
    """
    with (
        _temporary_file(path, data) as written,
        suppress(FileExistsError),
    ):  # somebody else was first
        os.link(written, path)
    _sync_folder(path.parent)


@contextmanager
def _temporary_file(path: Path, data: bytes) -> Iterator[Path]:
    """A file in the same folder, on its disk, which is gone afterwards if it is still there."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600 from the start
    written = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield written
    finally:
        with suppress(OSError):
            written.unlink()


def _sync_folder(folder: Path) -> None:
    """Have the disk remember which files a folder has, where the system can."""
    if os.name == "nt":
        return
    with suppress(OSError):  # some file systems cannot, and the file is there in any case
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
