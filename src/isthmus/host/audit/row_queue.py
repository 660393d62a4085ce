"""Queue of audit rows on their way to the store: none is lost where the store fails, none is written twice."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import copy_error
from isthmus.host.audit.head_file import HeadUpdate
from isthmus.host.audit.row_columns import RowSnapshot

if TYPE_CHECKING:
    import sqlite3

MAX_QUEUED_ROWS = 10_000  # the oldest go, and their number is written
MAX_BATCH_ROWS = 500

AppendRows: TypeAlias = Callable[["sqlite3.Connection", Sequence[RowSnapshot]], HeadUpdate | None]


class QueuedRow:
    """One row in the queue.

    Args:
        snapshot: the row.
        awaited: whether somebody waits for it, and does without where it cannot be written.

    Attributes:
        dropped: nobody wants it any more.
        error: why it was not written.
    """

    __slots__ = ("awaited", "dropped", "error", "snapshot")

    def __init__(self, snapshot: RowSnapshot, *, awaited: bool = False) -> None:
        self.snapshot = snapshot
        self.awaited = awaited
        self.dropped = False
        self.error: BaseException | None = None


class RowQueue:
    """A queue of rows, in order. One thread puts, another takes.

    Attributes:
        lost: how many went because there were too many.
    """

    def __init__(self) -> None:
        self._entries: deque[QueuedRow] = deque()
        self.lost = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: QueuedRow) -> None:
        """Put a row at the end."""
        self._entries.append(entry)
        if len(self._entries) > MAX_QUEUED_ROWS:
            with suppress(IndexError):  # the store's thread took them meanwhile
                self._entries.popleft()
                self.lost += 1

    def take(self, most: int) -> list[QueuedRow]:
        """Take the first rows, without those that nobody wants any more."""
        taken: list[QueuedRow] = []
        while self._entries and len(taken) < most:
            entry = self._entries.popleft()
            if not entry.dropped:
                taken.append(entry)
        return taken

    def put_back(self, entries: Sequence[QueuedRow], error: BaseException) -> None:
        """Put rows that were not written back to the front; those awaited fail instead."""
        for entry in reversed(entries):
            if entry.awaited:
                entry.error = error
            else:
                self._entries.appendleft(entry)


class QueueDrain:
    """One piece of work for the store's thread: it writes the rows that are queued.

    Args:
        queue: what waits.
        append: writes rows at the end of the log, and says what the head is to be after that.
        on_end: hears how it went, and what the head is to be.
        entry: the row that somebody waits for; None where nobody does.
    """

    def __init__(
        self,
        queue: RowQueue,
        append: AppendRows,
        on_end: Callable[[BaseException | None, HeadUpdate | None], None],
        entry: QueuedRow | None = None,
    ) -> None:
        self._queue = queue
        self._append = append
        self._on_end = on_end
        self._entry = entry
        self._taken: list[QueuedRow] = []
        self._head: HeadUpdate | None = None

    def write_some(self, db: "sqlite3.Connection") -> None:
        """Write one batch of the first rows."""
        taken = self._queue.take(MAX_BATCH_ROWS)
        self._taken += taken
        self._head = self._append(db, [entry.snapshot for entry in taken]) or self._head

    def write_all(self, db: "sqlite3.Connection") -> None:
        """Write every row; among them the one that somebody waits for."""
        while True:
            self.write_some(db)
            if not self._queue:
                break
        if self._entry is not None and self._entry.error is not None:
            raise copy_error(self._entry.error)

    def on_end(self, error: BaseException | None) -> None:
        """Settle the rows once the transaction has been committed, or has failed."""
        taken, self._taken = self._taken, []
        head, self._head = self._head, None
        if error is not None:
            self._queue.put_back(taken, error)
            if self._entry is not None:
                self._entry.dropped = True  # whoever waited does without, whatever comes
        self._on_end(error, head)
