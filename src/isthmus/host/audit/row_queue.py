"""Rows on their way to the store: none is lost where it fails, none is written twice."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import copy_error
from isthmus.host.audit.head_file import HeadUpdate
from isthmus.host.audit.row_columns import RowSnapshot

if TYPE_CHECKING:
    import sqlite3

__all__ = ["QueueDrain", "QueuedRow", "RowQueue"]

MAX_QUEUED_ROWS = 10_000
"""Rows that are held while the store is not there; the oldest go, and their number is written."""

MAX_BATCH_ROWS = 500
"""Rows in one transaction that nobody waits for."""

AppendRows: TypeAlias = Callable[["sqlite3.Connection", Sequence[RowSnapshot]], HeadUpdate | None]


class QueuedRow:
    """One row on its way.

    Args:
        taken: the row.
        awaited: whether somebody waits for it, and does without where it cannot be written.

    Attributes:
        dropped: nobody wants it any more.
        error: why it was not written.
    """

    __slots__ = ("awaited", "dropped", "error", "taken")

    def __init__(self, taken: RowSnapshot, *, awaited: bool = False) -> None:
        self.taken = taken
        self.awaited = awaited
        self.dropped = False
        self.error: BaseException | None = None


class RowQueue:
    """The rows that wait, in order. One thread puts, another takes.

    Attributes:
        lost: how many went because there were too many.
    """

    def __init__(self) -> None:
        self._entries: deque[QueuedRow] = deque()
        self.lost = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: QueuedRow) -> None:
        """One more, at the end."""
        self._entries.append(entry)
        if len(self._entries) > MAX_QUEUED_ROWS:
            with suppress(IndexError):  # the store's thread took them meanwhile
                self._entries.popleft()
                self.lost += 1

    def take(self, most: int) -> list[QueuedRow]:
        """Those that are first, without those that are not wanted any more."""
        taken: list[QueuedRow] = []
        while self._entries and len(taken) < most:
            entry = self._entries.popleft()
            if not entry.dropped:
                taken.append(entry)
        return taken

    def back(self, entries: Sequence[QueuedRow], error: BaseException) -> None:
        """They were not written: those that nobody waits for go to the front again."""
        for entry in reversed(entries):
            if entry.awaited:
                entry.error = error
            else:
                self._entries.appendleft(entry)


class QueueDrain:
    """One piece of work for the store's thread: writes what waits.

    Args:
        waiting: what waits.
        append: writes rows at the end of the log, and says what the head is to be after that.
        ended: hears how it went, and what the head is to be.
        entry: the row that somebody waits for; None where nobody does.
    """

    def __init__(
        self,
        waiting: RowQueue,
        append: AppendRows,
        ended: Callable[[BaseException | None, HeadUpdate | None], None],
        entry: QueuedRow | None = None,
    ) -> None:
        self._waiting = waiting
        self._append = append
        self._ended = ended
        self._entry = entry
        self._taken: list[QueuedRow] = []
        self._head: HeadUpdate | None = None

    def some(self, db: "sqlite3.Connection") -> None:
        """Write those that are first."""
        taken = self._waiting.take(MAX_BATCH_ROWS)
        self._taken += taken
        self._head = self._append(db, [entry.taken for entry in taken]) or self._head

    def all(self, db: "sqlite3.Connection") -> None:
        """Write everything; among it the row that somebody waits for."""
        while True:
            self.some(db)
            if not self._waiting:
                break
        if self._entry is not None and self._entry.error is not None:
            raise copy_error(self._entry.error)

    def ended(self, error: BaseException | None) -> None:
        """It has been committed, or it was not."""
        taken, self._taken = self._taken, []
        head, self._head = self._head, None
        if error is not None:
            self._waiting.back(taken, error)
            if self._entry is not None:
                self._entry.dropped = True  # whoever waited does without, whatever comes
        self._ended(error, head)
