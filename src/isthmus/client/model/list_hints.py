"""Hints about lists: how long a server says that its lists may be kept, for whoever offers them on."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import UNSET, UnsetType


class ListHints:
    """The hints of the pages of one list.

    Attributes:
        ttl_ms: the least ``ttlMs`` of its pages; 0 where one of them has none, or none came.
    """

    __slots__ = ("_least",)

    def __init__(self) -> None:
        self._least: int | None = None

    @property
    def ttl_ms(self) -> int:
        """The least ``ttlMs`` of the pages."""
        return self._least or 0

    def add(self, ttl_ms: int | UnsetType) -> None:
        """Take note of the ``ttlMs`` of one page."""
        # spec 2026-07-28 server/utilities/caching#time-to-live-ttl-field: absent or negative means 0
        said = 0 if ttl_ms is UNSET else max(ttl_ms, 0)
        self._least = said if self._least is None else min(self._least, said)


# the hints of the list that is being fetched in this context; None where nobody wants them
LIST_HINTS: ContextVar[ListHints | None] = ContextVar("isthmus_list_hints", default=None)


@contextmanager
def collect_hints() -> Iterator[ListHints]:
    """Collect the hints of the one list that is fetched in this block."""
    hints = ListHints()
    token = LIST_HINTS.set(hints)
    try:
        yield hints
    finally:
        LIST_HINTS.reset(token)
