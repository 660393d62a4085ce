"""Lists that come in pages, read to their end."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from msgspec import UNSET, UnsetType

from isthmus.errors import Misbehaved

__all__ = ["MAX_PAGES", "collect_pages"]

T = TypeVar("T")

MAX_PAGES = 1000
"""Pages of one list after which a server is not believed to be near the end."""


class PagedResult(Protocol):
    """A result that may have a sequel."""

    @property
    def next_cursor(self) -> str | UnsetType:
        """Where the next page begins; UNSET on the last one."""
        ...


P = TypeVar("P", bound=PagedResult)


async def collect_pages(
    fetch: Callable[[str | UnsetType], Awaitable[P]],
    items: Callable[[P], list[T]],
    *,
    pages: int = MAX_PAGES,
    most: int | None = None,
) -> list[T]:
    """Every item of a list, page after page.

    Args:
        fetch: gets the page at a cursor, UNSET for the first one.
        items: what a page holds.
        pages: after how many it is not believed to be near its end.
        most: items it may have; None for any number.

    Raises:
        Misbehaved: the pages go round in a circle, or on and on, or hold too much.
    """
    found: list[T] = []
    seen: set[str] = set()
    cursor: str | UnsetType = UNSET
    for _ in range(pages):
        page = await fetch(cursor)
        found += items(page)
        if most is not None and len(found) > most:
            raise Misbehaved(f"the server's list has more than {most} items (Limits.items)")
        cursor = page.next_cursor
        if cursor is UNSET:
            return found
        if cursor in seen:
            raise Misbehaved(f"the server's list goes in circles: cursor {cursor!r} came twice")
        # spec 2026-07-28 server/utilities/pagination: clients MUST treat cursors as opaque
        seen.add(cursor)
    raise Misbehaved(f"the server's list has no end: {len(found)} items on {pages} pages")
