"""Default token store: an encrypted file whose key is in the system's keyring.

The keyring holds one key of 32 bytes and nothing else, since some cannot hold a token (Windows ends
at 2,560 bytes). Where there is no keyring, as on a server, ``ISTHMUS_STORE_KEY`` has the key; where
that is missing, too, tokens last as long as the program. They are never written in clear.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.auth.client.store.file_store import (
    FileTokenStore,
    hold_lock_in_thread,
    make_private_folder,
    read_keys,
)
from isthmus.auth.client.store.records import Key, MemoryTokenStore, Record
from isthmus.auth.client.store.vault import StoreBroken
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import IsthmusError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

KEY_VARIABLE = "ISTHMUS_STORE_KEY"
KEYRING_SERVICE, KEYRING_ENTRY = "isthmus", "token store"  # what the keyring calls our one entry

KEYRING_TIMEOUT_S = 15.0  # seconds for the keyring to answer; the user may have to unlock it

# The priority from which on keyring recommends a backend; below it some write in clear.
MIN_KEYRING_PRIORITY = 1

T = TypeVar("T")


class KeyringUnusable(IsthmusError):
    """There is no keyring here that keeps a secret; never leaves this module."""


class NoHomeFolder(StoreBroken):
    """Nobody says where files of this user go."""


class DefaultTokenStore:
    """Finds out on first use where tokens can be kept, and keeps them there.

    Args:
        environ: the environment; the process's own by default.
        folder: where files go; the system's place for state by default.
        patience: seconds for the keyring to answer.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        patience: float = KEYRING_TIMEOUT_S,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._folder = folder
        self._patience = patience
        self._store: FileTokenStore | MemoryTokenStore | None = None
        self._choosing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"DefaultTokenStore({self._store or 'not asked yet'})"

    async def chosen(self) -> FileTokenStore | MemoryTokenStore:
        """The store that was chosen; one in memory where there is no place for a file.

        Raises:
            StoreBroken: there is a file, and the keyring has its key no more.
            UsageError: ``ISTHMUS_STORE_KEY`` is no key.
        """
        while self._store is None:
            task = self._choosing
            if task is None or task.get_loop() is not asyncio.get_running_loop():
                task = self._choosing = asyncio.create_task(self._choose_store())
            try:
                await asyncio.shield(task)  # whoever gives up does not give up for the others
            finally:
                if task.done() and self._choosing is task:
                    self._choosing = None
        return self._store

    async def get(self, key: Key) -> Record | None:
        """The record that is kept under a key; no keyring is asked where there is none."""
        if self._store is None and key not in await self.keys():
            return None
        return await (await self.chosen()).get(key)

    async def put(self, key: Key, record: Record) -> None:
        """Keep a record in the place of the one before."""
        await (await self.chosen()).put(key, record)

    async def delete(self, key: Key) -> None:
        """Keep nothing under a key any more."""
        if self._store is not None or key in await self.keys():
            await (await self.chosen()).delete(key)

    async def keys(self) -> list[Key]:
        """Every key there is, the one put last at the end; no keyring is asked."""
        if self._store is not None:
            return await self._store.keys()
        try:
            return await asyncio.to_thread(read_keys, self._find_path())
        except NoHomeFolder:
            return []

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Keep everybody else who shares the store from renewing what is under a key."""
        async with (await self.chosen()).lock(key):
            yield

    async def _choose_store(self) -> None:
        given = self._read_keys()
        if given:  # what somebody said comes before what is found
            self._store = FileTokenStore(self._find_path(), [Secret(key) for key in given])
            return
        try:
            self._store = await run_in_thread(self._patience, self._open_by_keyring)
        except KeyringUnusable as error:
            reason = str(error)
        except TimeoutError:
            reason = f"the system's keyring did not answer within {self._patience:g} s"
        else:
            return
        logging.getLogger("isthmus").warning(
            "tokens are kept in memory, until this program ends: %s; set %s to keep them in a file",
            reason,
            KEY_VARIABLE,
        )
        self._store = MemoryTokenStore()

    def _read_keys(self) -> list[str]:
        """The keys that the environment names."""
        return self._environ.get(KEY_VARIABLE, "").replace(",", " ").split()

    def _find_path(self) -> Path:
        """The path of the file: another for each place that its key comes from."""
        folder = self._folder or find_state_folder(self._environ, sys.platform)
        return folder / ("tokens-by-variable.json" if self._read_keys() else "tokens.json")

    def _open_by_keyring(self) -> FileTokenStore:
        try:
            path = self._find_path()
        except NoHomeFolder as error:
            raise KeyringUnusable(str(error)) from None
        backend = find_keyring()
        try:
            key = backend.get_password(KEYRING_SERVICE, KEYRING_ENTRY)
            if key:
                return FileTokenStore(path, Secret(key))
            make_private_folder(path.parent)
            with hold_lock_in_thread(
                path.parent / "keyring.lock", self._patience
            ):  # two programs, one key
                key = backend.get_password(KEYRING_SERVICE, KEYRING_ENTRY) or create_file_key(
                    backend, path
                )
            return FileTokenStore(path, Secret(key))
        except IsthmusError:
            raise
        except Exception as error:  # what backends raise is up to them
            raise KeyringUnusable(
                f"the system's keyring failed ({type(error).__name__})"
            ) from error


def create_file_key(backend: "KeyringBackend", path: Path) -> str:
    """Give the keyring a key for a file that is not there yet.

    Raises:
        StoreBroken: the file is there.
        KeyringUnusable: the keyring does not keep it.
    """
    fresh = Secret.random()
    if FileTokenStore(path, fresh).strange():
        raise StoreBroken(
            f"the keyring has no key for {path} any more, so that it cannot be read: bring the "
            "keyring's entry back, or move the file away and log in again"
        )
    backend.set_password(KEYRING_SERVICE, KEYRING_ENTRY, fresh.reveal())
    if fresh != (backend.get_password(KEYRING_SERVICE, KEYRING_ENTRY) or ""):
        raise KeyringUnusable("the system's keyring does not keep what it is given")
    return fresh.reveal()


def default_store() -> DefaultTokenStore:
    """The default token store.

    That is, in this order: a file whose key is in ``ISTHMUS_STORE_KEY`` (several keys with spaces
    between them: the first encrypts); a file whose key is in the system's keyring; memory. Nothing
    is looked at before the first token is asked for, and importing this imports no keyring.
    """
    return DefaultTokenStore()


def find_state_folder(environ: Mapping[str, str], platform: str) -> Path:
    """The folder in which a system wants programs to keep what is to last.

    Args:
        environ: the environment.
        platform: as :data:`sys.platform` names it.

    Raises:
        NoHomeFolder: nobody says where the user's home is.
    """
    try:
        home = Path.home()
    except RuntimeError:
        raise NoHomeFolder("there is no home folder to keep tokens in: set HOME") from None
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "isthmus"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "isthmus"
    said = Path(environ.get("XDG_STATE_HOME", ""))
    return (said if said.is_absolute() else home / ".local" / "state") / "isthmus"


def find_keyring() -> "KeyringBackend":
    """The system's keyring.

    Raises:
        KeyringUnusable: there is none, or it does not keep what it holds from others.
    """
    try:
        import keyring
    except ImportError:
        raise KeyringUnusable("keyring is not installed (pip install 'isthmus[auth]')") from None
    try:
        backend = keyring.get_keyring()
        behind: list[Any] = list(getattr(backend, "backends", ())) or [backend]
        priority = float(behind[0].priority)  # of a chain, the one that would be written to
    except Exception as error:  # what backends raise is up to them
        raise KeyringUnusable(f"the system's keyring failed ({type(error).__name__})") from error
    if priority < MIN_KEYRING_PRIORITY:
        raise KeyringUnusable("there is no keyring on this system")
    return backend


async def run_in_thread(seconds: float, work: Callable[[], T]) -> T:
    """Do in a thread what may never end; a thread that does not end keeps no program alive.

    Raises:
        TimeoutError: it took longer; what it still does is of no consequence.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(done: asyncio.Future[T], result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # of two one is there

    def run(done: asyncio.Future[T]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            try:
                loop.call_soon_threadsafe(settle, done, work(), None)
            except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
                loop.call_soon_threadsafe(settle, done, None, error)

    # Not the loop's own threads: a program waits for those before it ends.
    Thread(target=run, args=(done,), name="isthmus-keyring", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await done
    finally:
        del done  # which keeps what is raised, and so would this frame
