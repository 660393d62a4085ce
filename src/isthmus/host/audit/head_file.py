"""Head file of the audit log: an authenticated file beside the database that says how far the chain goes.

The database alone cannot show that its end was cut off, or that checkpoints were removed. The head
counts both. A transaction reads it before it appends, and it is written anew once that transaction
has been committed, before anybody is told so.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from isthmus.host.audit.keys import AuditKeys
from isthmus.store.files import create_file

HEAD_BYTES = 512  # one sector, so that a write in place is whole or not at all

# a lock on Windows keeps others from reading what it covers: it lies beyond the file's end
WINDOWS_LOCK_OFFSET = 4096


class HeadInvalid(Exception):
    """The head file exists, and its content was not written with the key of this state."""


class ChainHead(Struct, frozen=True, kw_only=True):
    """The end of the chain, as the head file has it.

    Attributes:
        seq: number of the last row; 0 for none.
        hash: its hash, in hex.
        since: the first row that a head has covered from the moment it was written; rows before it
            were there already when this head was begun, and nothing proves what they were then.
        base: number of the sealed checkpoint at which the chain begins; 0 for none.
        checkpoints: how many checkpoints there are from ``base`` to ``seq``.
        ts_us: when, in microseconds since the epoch.
    """

    seq: int
    hash: str
    since: int = 1
    base: int = 0
    checkpoints: int = 0
    ts_us: int = 0

    @property
    def position(self) -> tuple[int, int, int]:
        """A position that only grows: of two heads of a log, the greater one is the later."""
        return self.seq, self.base, self.checkpoints


class HeadUpdate(Struct, frozen=True):
    """A new head, which is written once its rows have been committed.

    Attributes:
        head: the new one.
        instead_of: the bytes of a head that does not fit the log, which it replaces even though
            that one says it is later; empty where it only moves on.
    """

    head: ChainHead
    instead_of: bytes = b""


def get_head_path(folder: Path | None) -> Path | None:
    """The path of the head file in the folder of a state; None for a state in memory."""
    return None if folder is None else folder / "host.head"


class HeadFile:
    """The head file of one log, which several processes read and write.

    Args:
        path: the file; None keeps it in memory.
        keys: of the state.
    """

    def __init__(self, path: Path | None, keys: AuditKeys) -> None:
        self._path = path
        self._keys = keys
        self._memory = b""
        self._last: tuple[bytes, ChainHead] | None = None  # whose bytes are known to be good

    def read(self) -> tuple[ChainHead | None, bytes]:
        """Read the head, None where there is none; and the bytes of the file.

        Raises:
            HeadInvalid: what is there was not written with this key; its bytes are the argument.
            OSError: the file cannot be read.
        """
        raw = self._bytes()
        return (self._parse(raw) if raw else None), raw

    def begin(self, head: ChainHead) -> None:
        """Write the first head; an existing one stays.

        Raises:
            OSError: the file cannot be made.
        """
        if self._path is None:
            self._memory = self._memory or self._format(head)
        else:
            create_file(self._path, self._format(head))

    def advance(self, update: HeadUpdate) -> None:
        """Write a later head; a still later one of another process stays.

        Raises:
            OSError: the file cannot be written.
        """
        text = self._format(update.head)
        if self._path is None:
            self._memory = text if self._moves_on(self._memory, update) else self._memory
            return
        file = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            with lock_exclusively(file):
                os.lseek(file, 0, os.SEEK_SET)
                if self._moves_on(os.read(file, HEAD_BYTES), update):
                    os.lseek(file, 0, os.SEEK_SET)
                    os.write(file, text)
        finally:
            os.close(file)

    def _moves_on(self, raw: bytes, update: HeadUpdate) -> bool:
        if raw == update.instead_of:
            return True
        try:
            return not raw or self._parse(raw).position < update.head.position
        except HeadInvalid:
            return False  # the next transaction notices it, and writes a row about it

    def _bytes(self) -> bytes:
        if self._path is None:
            return self._memory
        try:
            # for writing, too: a head that cannot be written must stop a call before it is made
            file = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            return b""
        try:
            return os.read(file, HEAD_BYTES) or b"\n"  # an empty file is no missing one
        finally:
            os.close(file)

    def _parse(self, raw: bytes) -> ChainHead:
        last = self._last
        if last is not None and last[0] == raw:  # to the byte
            return last[1]
        body, _, mac = raw.rstrip().rpartition(b" ")
        if not self._keys.is_head(body, mac):
            raise HeadInvalid(raw)
        head = msgspec.json.decode(body, type=ChainHead)
        self._last = raw, head
        return head

    def _format(self, head: ChainHead) -> bytes:
        body = msgspec.json.encode(head)
        raw = (body + b" " + self._keys.mac_head(body)).ljust(HEAD_BYTES - 1) + b"\n"
        self._last = raw, head
        return raw


@contextmanager
def lock_exclusively(file: int) -> Iterator[None]:
    """Lock a file against other processes, which wait for microseconds."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, WINDOWS_LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(file, WINDOWS_LOCK_OFFSET, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)  # closing it lets go
        yield
