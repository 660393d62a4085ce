"""Provided items: a list that comes from somewhere else, as one object until it changes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from msgspec import Raw

from isthmus.wire.results import CacheScope
from isthmus.wire.struct import Meta, Wire

if TYPE_CHECKING:
    from isthmus.revisions import Revision


class ProvidedItems(tuple[Wire, ...]):  # noqa: SLOT001 - a tuple has no slots of its own
    """A list of a provider that stays the same object until it changes, so that it is encoded once.

    Args:
        items: the items.
        meta: the ``_meta`` of the list.
        cache_scope: who may share it.
        ttl_ms: milliseconds for which it may be kept; None for what the server says of its own lists.

    Attributes:
        meta, cache_scope, ttl_ms: see there.
        pages: the whole list as bytes, by revision; whoever sends it keeps it here.
    """

    meta: Meta
    cache_scope: CacheScope
    ttl_ms: int | None
    pages: dict["Revision", Raw]

    def __new__(
        cls,
        items: Iterable[Wire],
        *,
        meta: Meta,
        cache_scope: CacheScope,
        ttl_ms: int | None = None,
    ) -> Self:
        """Make it of the items."""
        made = super().__new__(cls, items)
        made.meta, made.cache_scope, made.ttl_ms, made.pages = meta, cache_scope, ttl_ms, {}
        return made
