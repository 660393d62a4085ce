"""Rows on their way to the store: none is lost where it fails, none is written twice."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import anew
from isthmus.host.audit.columns import Snapshot
from isthmus.host.audit.head import HeadUpdate

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Drain", "Entry", "Waiting"]

MOST = 10_000
"""Rows that are held while the store is not there; the oldest go, and their number is written."""

TOGETHER = 500
"""Rows in one transaction that nobody waits for."""

Append: TypeAlias = Callable[["sqlite3.Connection", Sequence[Snapshot]], HeadUpdate | None]


class Entry:
    """One row on its way.

    Args:
        taken: the row.
        awaited: whether somebody waits for it, and does without where it cannot be written.

    Attributes:
        dropped: nobody wants it any more.
        error: why it was not written.
    """

    __slots__ = ("awaited", "dropped", "error", "taken")

    def __init__(self, taken: Snapshot, *, awaited: bool = False) -> None:
        self.taken = taken
        self.awaited = awaited
        self.dropped = False
        self.error: BaseException | None = None


class Waiting:
    """The rows that wait, in order. One thread puts, another takes.

    Attributes:
        lost: how many went because there were too many.
    """

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self.lost = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry) -> None:
        """One more, at the end."""
        self._entries.append(entry)
        if len(self._entries) > MOST:
            with suppress(IndexError):  # the store's thread took them meanwhile
                self._entries.popleft()
                self.lost += 1

    def take(self, most: int) -> list[Entry]:
        """Those that are first, without those that are not wanted any more."""
        taken: list[Entry] = []
        while self._entries and len(taken) < most:
            entry = self._entries.popleft()
            if not entry.dropped:
                taken.append(entry)
        return taken

    def back(self, entries: Sequence[Entry], error: BaseException) -> None:
        """They were not written: those that nobody waits for go to the front again."""
        for entry in reversed(entries):
            if entry.awaited:
                entry.error = error
            else:
                self._entries.appendleft(entry)


class Drain:
    """One piece of work for the store's thread: writes what waits.

    Args:
        waiting: what waits.
        append: writes rows at the end of the log, and says what the head is to be after that.
        ended: hears how it went, and what the head is to be.
        entry: the row that somebody waits for; None where nobody does.
    """

    def __init__(
        self,
        waiting: Waiting,
        append: Append,
        ended: Callable[[BaseException | None, HeadUpdate | None], None],
        entry: Entry | None = None,
    ) -> None:
        self._waiting = waiting
        self._append = append
        self._ended = ended
        self._entry = entry
        self._taken: list[Entry] = []
        self._head: HeadUpdate | None = None

    def some(self, db: "sqlite3.Connection") -> None:
        """Write those that are first."""
        taken = self._waiting.take(TOGETHER)
        self._taken += taken
        self._head = self._append(db, [entry.taken for entry in taken]) or self._head

    def all(self, db: "sqlite3.Connection") -> None:
        """Write everything; among it the row that somebody waits for."""
        while True:
            self.some(db)
            if not self._waiting:
                break
        if self._entry is not None and self._entry.error is not None:
            raise anew(self._entry.error)

    def ended(self, error: BaseException | None) -> None:
        """It has been committed, or it was not."""
        taken, self._taken = self._taken, []
        head, self._head = self._head, None
        if error is not None:
            self._waiting.back(taken, error)
            if self._entry is not None:
                self._entry.dropped = True  # whoever waited does without, whatever comes
        self._ended(error, head)
