"""Tokens in a file that is encrypted, for every program of a user that knows its key."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from isthmus.auth.client.locks import file_lock, held, held_by_thread
from isthmus.auth.client.tokens import Key, Record
from isthmus.auth.client.vault import (
    Sheet,
    StoreBroken,
    StoreKey,
    Vault,
    empty_sheet,
    named,
    read_sheet,
    write_sheet,
)
from isthmus.auth.numbers import check_number
from isthmus.store.files import replace

__all__ = ["FileTokenStore", "keys_of", "private_folder"]

LARGEST = 8 * 1024 * 1024
"""Bytes that a file of tokens may have."""


class FileTokenStore:
    """Keeps tokens and registrations in one file, every record encrypted with AES-256-GCM.

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
        self._vault = Vault(key)
        self._most = most
        self._patience = patience
        file_lock(self._path)  # says at once if it cannot be

    def __repr__(self) -> str:
        return f"FileTokenStore({str(self._path)!r})"

    async def get(self, key: Key) -> Record | None:
        """What is kept under a key.

        Raises:
            StoreBroken: the file, or this record, is not as it was written.
        """
        return await asyncio.to_thread(self._get, key)

    async def put(self, key: Key, record: Record) -> None:
        """Keep a record in the place of the one before.

        Raises:
            StoreBroken: the file is none of ours, or cannot be written.
            StoreBusy: another program does not let go of it.
        """

        def keep(sheet: Sheet) -> None:
            sheet.records.pop(key.text, None)
            sheet.records[key.text] = self._vault.seal(key, record)
            while len(sheet.records) > self._most:
                del sheet.records[next(iter(sheet.records))]

        await asyncio.to_thread(self._change, keep)

    async def delete(self, key: Key) -> None:
        """Keep nothing under a key any more.

        Raises:
            StoreBroken, StoreBusy: as :meth:`put`.
        """

        def forget(sheet: Sheet) -> None:
            sheet.records.pop(key.text, None)

        if self._path.exists():
            await asyncio.to_thread(self._change, forget)

    async def keys(self) -> list[Key]:
        """Every key there is, the one put last at the end.

        Raises:
            StoreBroken: the file is none of ours.
        """
        return await asyncio.to_thread(keys_of, self._path)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Keep everybody else who shares the file from renewing what is under a key.

        Raises:
            StoreBusy: somebody else holds it for longer than this store waits.
        """
        folder = self._path.with_name(f"{self._path.name}.locks")
        private_folder(self._path.parent)
        private_folder(folder)
        name = hashlib.sha256(key.text.encode()).hexdigest()[:24]
        async with held(folder / f"{name}.lock", self._patience):
            yield

    def strange(self) -> bool:
        """Whether there are records, and none of them was sealed with a key of this store."""
        records = read(self._path).records
        return bool(records) and not any(map(self._vault.knows, records.values()))

    def _get(self, key: Key) -> Record | None:
        sealed = read(self._path).records.get(key.text)
        return None if sealed is None else self._vault.open(key, sealed, str(self._path))

    def _change(self, work: Callable[[Sheet], None]) -> None:
        private_folder(self._path.parent)
        with held_by_thread(self._path.with_name(f"{self._path.name}.lock"), self._patience):
            sheet = read(self._path)
            work(sheet)
            self._vault.renew(sheet, str(self._path))
            try:
                replace(self._path.resolve(), write_sheet(sheet))
            except OSError as error:
                raise StoreBroken(f"{self._path} cannot be written: {error.strerror}") from error


def read(path: Path) -> Sheet:
    """A file of tokens, which is empty where there is none.

    Raises:
        StoreBroken: it is none of ours, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return empty_sheet()
    except OSError as error:
        raise StoreBroken(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > LARGEST:
        raise StoreBroken(f"{path} has more than {LARGEST} bytes: it is no file of tokens")
    return read_sheet(data, str(path))


def keys_of(path: Path) -> list[Key]:
    """What a file has records of, which can be read without any secret.

    Raises:
        StoreBroken: as :func:`read`.
    """
    return [named(text) for text in read(path).records]


def private_folder(folder: Path) -> None:
    """Make a folder that only its owner may look into; one that is there stays as it is.

    Raises:
        StoreBroken: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreBroken(f"{folder} cannot be made: {error.strerror}") from error
