"""Where a host keeps what must last: a folder of its own, with one database and one key."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from isthmus.host.schema import SCHEMA
from isthmus.store.database import Database, Durability, StoreUnusable
from isthmus.store.files import make as make_file

if TYPE_CHECKING:
    import sqlite3

__all__ = ["HostState", "user_folder"]

T = TypeVar("T")

KEY_SIZE = 32


class HostState:
    """The state of a host; several processes may have the same one open.

    Args:
        folder: where it is; made, for its owner only, where there is none. None keeps everything
            in memory, until it is closed.
        durability: what a commit outlives: ``normal`` the end of the process, ``full`` the end of
            the machine's power, too.
        clock: says the seconds since the epoch.

    Attributes:
        folder: where it is.
        database: the file ``host.db``; its tables are those of :mod:`isthmus.host.schema`.
        clock: see above.

    Raises:
        StoreUnusable: the folder cannot be made.

    Example::

        state = HostState("state")
        await state.write(lambda db: db.execute("INSERT INTO …"))
        await state.close()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        *,
        durability: Durability = "normal",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = None if folder is None else Path(folder).expanduser().absolute()
        self.clock = clock
        if self.folder is not None:
            private(self.folder)
        path = ":memory:" if self.folder is None else self.folder / "host.db"
        self.database = Database(path, schema=SCHEMA, durability=durability)
        self._key: bytes | None = None

    def __repr__(self) -> str:
        return f"HostState({None if self.folder is None else str(self.folder)!r})"

    async def write(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        """Change something, in one transaction; it is committed when this returns.

        Raises:
            StoreUnavailable: it was not done; see :meth:`Database.write`.
        """
        return await self.database.write(work)

    async def read(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        """Look something up; see :meth:`Database.read`."""
        return await self.database.read(work)

    def post(
        self,
        work: "Callable[[sqlite3.Connection], object]",
        after: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        """Have something changed within milliseconds; see :meth:`Database.post`."""
        self.database.post(work, after)

    def key(self) -> bytes:
        """32 random bytes that belong to this state: in ``host.key`` beside it, for its owner only.

        Raises:
            StoreUnusable: it cannot be read or made.
        """
        if self._key is None:
            path = None if self.folder is None else self.folder / "host.key"
            self._key = os.urandom(KEY_SIZE) if path is None else key_in(path)
        return self._key

    async def close(self) -> None:
        """Write what waits, and let go of the file; safe to call twice."""
        await self.database.close()


def private(folder: Path) -> None:
    """Make a folder that only its owner may look into, and see that it is one.

    Raises:
        StoreUnusable: it cannot be made.
    """
    try:
        for one in reversed((folder, *folder.parents)):  # parents=True would obey the mask
            one.mkdir(mode=0o700, exist_ok=True)
        stranger = not_ours(folder)
        if stranger:
            raise StoreUnusable(
                f"{stranger} belongs to another user, who can read and change it: choose another "
                "folder for the host's state, or have what is in it given to you (chown)"
            )
        folder.chmod(0o700)
    except OSError as error:
        raise StoreUnusable(
            f"{folder} cannot be the folder of a host's state: {error.strerror}"
        ) from None


def not_ours(folder: Path) -> Path | None:
    """What of a folder belongs to somebody else: itself, or something in it; None where nothing."""
    if not hasattr(os, "getuid"):  # Windows says it otherwise
        return None
    me = os.getuid()
    if folder.stat().st_uid != me:
        return folder
    with os.scandir(folder) as found:
        return next((Path(one) for one in found if _owner(one, me) != me), None)


def _owner(one: "os.DirEntry[str]", me: int) -> int:
    """Whose something is, itself and what it leads to; ``me`` where it has just gone."""
    for follow in (False, True):
        with suppress(FileNotFoundError):
            owner = one.stat(follow_symlinks=follow).st_uid
            if owner != me:
                return owner
    return me


def key_in(path: Path, *, make: bool = True) -> bytes:
    """The key in a file; it is made there where there is none, unless somebody only reads.

    Raises:
        StoreUnusable: it cannot be read or made, or is no key.
    """
    try:
        if make and not path.exists():
            make_file(path, os.urandom(KEY_SIZE))
        if make and path.stat().st_mode & 0o077:
            path.chmod(0o600)
        key = path.read_bytes()
    except OSError as error:
        raise StoreUnusable(f"{path}, the key of a host's state: {error.strerror}") from None
    if len(key) != KEY_SIZE:
        raise StoreUnusable(
            f"{path} is no key of a host's state ({KEY_SIZE} bytes, not {len(key)}): put the right "
            "one back; without it, what was encrypted is lost and signatures cannot be checked"
        )
    return key


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for the user's own host, where the system wants such things.

    Args:
        environ: the environment; the process's own by default.

    Raises:
        StoreBroken: nobody says where the user's home is.
    """
    from isthmus.auth.client.keyring_store import state_folder

    return state_folder(os.environ if environ is None else environ, sys.platform) / "host"
