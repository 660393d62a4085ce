"""Encrypted file of tokens, for every program of a user that knows its key.

Programs that share a file take turns by locks. The operating system keeps them, so that they end
with the program that holds them, however it ends.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.auth.arguments import check_number, missing_library_error
from isthmus.auth.client.store.records import Key, Record
from isthmus.auth.client.store.vault import (
    RecordVault,
    StoreBroken,
    StoreKey,
    TokenFile,
    format_token_file,
    make_token_file,
    parse_record_key,
    parse_token_file,
)
from isthmus.errors import AuthError
from isthmus.store.files import replace_file

if TYPE_CHECKING:
    from filelock import BaseFileLock

MAX_FILE_BYTES = 8 * 1024 * 1024

LOCK_POLL_S = 0.02  # between two looks at a lock that somebody else holds


class StoreBusy(AuthError):
    """Another program holds a lock on the tokens, and does not let go of it."""


class FileTokenStore:
    """Store of tokens and registrations in one file, every record encrypted with AES-256-GCM.

    Several programs may use one file at once: changes take turns, and so do renewals of the same
    token. A file that is torn, changed, or not ours is an error and is never overwritten.

    Example::

        store = FileTokenStore("tokens.json", key=os.environ["ISTHMUS_STORE_KEY"])
        async with Client(url, auth=OAuth(store=store)) as client:
            ...

    Args:
        path: the file; it is made, readable by its owner alone, when there is something to keep.
        key: a secret of 32 characters or bytes or more. Of several the first encrypts, and the
            others still open what they encrypted, until the next change encrypts it anew.
        most: how many records; the oldest ones go.
        patience: seconds to wait for another program that is renewing the same token.

    Raises:
        UsageError: the key is too short, or filelock is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        key: StoreKey,
        *,
        most: int = 1000,
        patience: float = 30.0,
    ) -> None:
        check_number("most", most, least=1, whole=True, unit="records")
        check_number("patience", patience)
        self._path = Path(path).expanduser().absolute()
        self._vault = RecordVault(key)
        self._most = most
        self._patience = patience
        make_file_lock(self._path)  # says at once if it cannot be

    def __repr__(self) -> str:
        return f"FileTokenStore({str(self._path)!r})"

    async def get(self, key: Key) -> Record | None:
        """The record under ``key``; None where there is none.

        Args:
            key: the server and the client that the record is of.

        Raises:
            StoreBroken: the file, or this record, is not as it was written.
        """
        return await asyncio.to_thread(self._get, key)

    async def put(self, key: Key, record: Record) -> None:
        """Store a record in the place of the one before.

        Args:
            key: the key.
            record: the record.

        Raises:
            StoreBroken: the file is none of ours, or cannot be written.
            StoreBusy: another program does not let go of it.
        """

        def keep(sheet: TokenFile) -> None:
            sheet.records.pop(key.text, None)
            sheet.records[key.text] = self._vault.seal(key, record)
            while len(sheet.records) > self._most:
                del sheet.records[next(iter(sheet.records))]

        await asyncio.to_thread(self._change, keep)

    async def delete(self, key: Key) -> None:
        """Delete the record under ``key``; nothing happens where there is none.

        Args:
            key: the server and the client that the record is of.

        Raises:
            StoreBroken, StoreBusy: as :meth:`put`.
        """

        def forget(sheet: TokenFile) -> None:
            sheet.records.pop(key.text, None)

        if self._path.exists():
            await asyncio.to_thread(self._change, forget)

    async def keys(self) -> list[Key]:
        """Every key there is, the one put last at the end.

        Raises:
            StoreBroken: the file is none of ours.
        """
        return await asyncio.to_thread(read_keys, self._path)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Keep everybody else who shares the file from renewing what is under a key.

        Args:
            key: the server and the client that the record is of.

        Raises:
            StoreBusy: somebody else holds it for longer than this store waits.
        """
        folder = self._path.with_name(f"{self._path.name}.locks")
        make_private_folder(self._path.parent)
        make_private_folder(folder)
        name = hashlib.sha256(key.text.encode()).hexdigest()[:24]
        async with hold_lock(folder / f"{name}.lock", self._patience):
            yield

    def strange(self) -> bool:
        """Whether there are records, and none of them was sealed with a key of this store."""
        records = read_token_file(self._path).records
        return bool(records) and not any(map(self._vault.knows, records.values()))

    def _get(self, key: Key) -> Record | None:
        sealed = read_token_file(self._path).records.get(key.text)
        return None if sealed is None else self._vault.open(key, sealed, str(self._path))

    def _change(self, work: Callable[[TokenFile], None]) -> None:
        make_private_folder(self._path.parent)
        with hold_lock_in_thread(self._path.with_name(f"{self._path.name}.lock"), self._patience):
            sheet = read_token_file(self._path)
            work(sheet)
            self._vault.renew(sheet, str(self._path))
            try:
                replace_file(self._path.resolve(), format_token_file(sheet))
            except OSError as error:
                raise StoreBroken(f"{self._path} cannot be written: {error.strerror}") from error


def read_token_file(path: Path) -> TokenFile:
    """A file of tokens, which is empty where there is none.

    Raises:
        StoreBroken: it is none of ours, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return make_token_file()
    except OSError as error:
        raise StoreBroken(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise StoreBroken(f"{path} has more than {MAX_FILE_BYTES} bytes: it is no file of tokens")
    return parse_token_file(data, str(path))


def read_keys(path: Path) -> list[Key]:
    """The keys of the records in a file, which can be read without any secret.

    Raises:
        StoreBroken: as :func:`read_token_file`.
    """
    return [parse_record_key(text) for text in read_token_file(path).records]


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may look into; one that is there stays as it is.

    Raises:
        StoreBroken: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreBroken(f"{folder} cannot be made: {error.strerror}") from error


# Locks


def make_file_lock(path: Path) -> "BaseFileLock":
    """The lock that a file stands for, not held yet.

    Raises:
        UsageError: filelock is not installed.
    """
    try:
        from filelock import FileLock  # of the extra, and only needed where a file is shared
    except ImportError as error:
        raise missing_library_error(
            "Keeping tokens in a file that programs share", error
        ) from error
    # Whichever thread releases it: who holds it is the object, and nobody else has that.
    return FileLock(path, mode=0o600, thread_local=False)


@asynccontextmanager
async def hold_lock(path: Path, seconds: float) -> AsyncIterator[None]:
    """Hold a lock; other tasks go on while somebody else holds it.

    Args:
        path: the lock's file.
        seconds: how long to wait for it.

    Raises:
        StoreBusy: it was not to be had in that time.
    """
    lock, until = make_file_lock(path), time.monotonic() + seconds
    while not try_lock(lock, path):
        if time.monotonic() >= until:
            raise make_store_busy(path, seconds)
        await asyncio.sleep(LOCK_POLL_S)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_lock_in_thread(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock; this thread waits while somebody else holds it.

    Raises:
        StoreBusy: it was not to be had in that time.
    """
    lock, until = make_file_lock(path), time.monotonic() + seconds
    while not try_lock(lock, path):
        if time.monotonic() >= until:
            raise make_store_busy(path, seconds)
        time.sleep(LOCK_POLL_S)
    try:
        yield
    finally:
        lock.release()


def try_lock(lock: "BaseFileLock", path: Path) -> bool:
    """Whether the lock is ours now."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        raise AuthError(f"{path} cannot be locked: {error.strerror or error}") from error
    return True


def make_store_busy(path: Path, seconds: float) -> StoreBusy:
    """The exception for a lock that was waited for in vain."""
    return StoreBusy(
        f"another program has held {path} for {seconds:g} s while it renews tokens: wait for it, or "
        "end it if it hangs; the lock ends with it"
    )
