"""Listings: the tools, resources or prompts of a server, and the pages a client reads of them.

Pages are encoded once per revision and cursor, and kept as bytes until something is added or
removed: a list of hundreds of tools costs no more than a short one. What is paged is sorted once
until then, so that a page costs what is on it, however long the list is (ADR 0074).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.core.pagination import BadCursor, cut_page
from isthmus.core.principal import NO_SCOPES, owner_of
from isthmus.errors import Refuse, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.stamp import Stamp
from isthmus.server.guard.scopes import ScopeDemand, is_listed_for
from isthmus.server.settings import SharedSettings
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.revisions import Revision


class ListedEntry(Protocol):
    """Something that can be listed."""

    @property
    def scopes(self) -> ScopeDemand:
        """The scopes it takes to use it."""
        ...


T = TypeVar("T", bound=ListedEntry)

KeyedEntries: TypeAlias = Sequence[tuple[str, T]]

MAX_CACHED_PAGES = 256  # where they differ by what their reader was granted
MAX_CACHED_ORDERS = 16  # likewise; each holds a reference to every entry that its reader sees

get_key: Callable[[tuple[str, Any]], str] = itemgetter(0)


class ListingCache(Generic[T]):
    """What was worked out of a listing as it is; with a change of it, a new one begins.

    Whoever works something out takes the cache first and looks at the entries then: what is made
    of entries that change meanwhile, in another thread, goes into a cache that nobody asks again.

    Attributes:
        pages: pages as bytes, by revision, cursor, and the scopes that their reader has.
        ordered: the entries in the order of their keys, by the scopes that their reader has.
        demands: the scopes that it takes to use what is listed; those that are the same for
            every call once.
    """

    __slots__ = ("demands", "ordered", "pages")

    def __init__(self) -> None:
        self.pages: dict[tuple[Revision, str | UnsetType, frozenset[str] | None], Raw] = {}
        self.ordered: dict[frozenset[str] | None, KeyedEntries[T]] = {}
        self.demands: Collection[ScopeDemand] | None = None


class Listing(Generic[T]):
    """Entries by their key, in the order they came.

    Args:
        what: what the entries are, in the singular: ``"tool"``.
        method: the method that lists them.
        show: an entry as it is listed.
        result: makes the result of a page: ``result(items, next_cursor)``.
        settings: those of the server, shared by all its parts.
        announce: called after every change.

    Attributes:
        used: something was here once, so the server has offered this kind of thing.
        live: what is listed changes by itself, so that every page is made anew, in a thread.
    """

    def __init__(
        self,
        what: str,
        method: str,
        *,
        show: Callable[[T], Wire],
        result: Callable[[list[Any], str | UnsetType], Wire],
        settings: SharedSettings,
        announce: Callable[[], None],
    ) -> None:
        self.used = False
        self.live = False
        self._sources: dict[str, tuple[Callable[[], Iterable[Wire]], ScopeDemand]] = {}
        self._what = what
        self._method = method
        self._show = show
        self._result = result
        self._settings = settings
        self._announce = announce
        self._entries: dict[str, T] = {}
        self._cache: ListingCache[T] = ListingCache()
        self.get = self._entries.get

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._entries.values()))

    def add(self, key: str, entry: T) -> None:
        """Take in an entry.

        Raises:
            UsageError: its key is taken.
        """
        if key in self._entries:
            raise UsageError(
                f"there is a {self._what} {key!r} already; give this one another name, or remove "
                "the other first"
            )
        self._entries[key] = entry
        self._note_change()

    def remove(self, key: str) -> None:
        """Take out an entry.

        Raises:
            UsageError: there is none under this key.
        """
        if self._entries.pop(key, None) is None:
            raise UsageError(f"there is no {self._what} {key!r}")
        self._note_change()

    def add_source(
        self, key: str, source: Callable[[], Iterable[Wire]], scopes: ScopeDemand = NO_SCOPES
    ) -> None:
        """List what a function gives whenever it is called, beside the entries.

        Args:
            key: what it is known by.
            source: the function.
            scopes: what it takes to use what is listed.

        Raises:
            UsageError: there is one under this key.
        """
        if key in self._sources:
            raise UsageError(f"there are {self._what}s of {key!r} already")
        self._sources[key] = source, scopes
        self.live = True
        self._note_change()

    def remove_source(self, key: str) -> None:
        """List it no longer, if it was."""
        if self._sources.pop(key, None) is not None:
            self._note_change()

    def _note_change(self) -> None:
        self.used = True
        self._cache = ListingCache()
        self._announce()

    async def page(self, params: Any, inbound: Inbound) -> Wire | Raw:
        """Handle the method that lists the entries.

        Raises:
            Refuse: the server offers no such thing, or the cursor is not one of ours.
        """
        if not self.used:
            # spec 2026-07-28 schema#methodnotfounderror: a capability not advertised is no method
            raise Refuse(-32601, f"Method not found: this server has no {self._what}s")
        revision: Revision = inbound.caller.revision
        cursor = UNSET if params.cursor is None else params.cursor
        visible, cache = self._settings.visible, self._cache
        granted = None if visible is None else visible.find_granted(inbound, self.list_demands())
        known = cache.pages.get((revision, cursor, granted))
        if known is not None:
            return known
        scope = self._method if granted is None else f"{self._method} {owner_of(inbound.principal)}"
        if self.live:
            return await self._settings.workers.run(
                partial(self._make_page, cursor, scope, granted)
            )
        result = self._make_page(cursor, scope, granted)
        if self._settings.wrapped:
            return result  # a middleware may want to look into it
        stamp = Stamp(revision, self._settings.info, cacheable=True)
        raw = Raw(stamp.write(result))
        # A page of what somebody may see is for everybody who may see as much, but for a cursor
        # in it, which is theirs alone.
        if granted is None or (
            self._settings.page_size is None and len(cache.pages) < MAX_CACHED_PAGES
        ):
            cache.pages[revision, cursor, granted] = raw
        return raw

    def list_demands(self) -> Collection[ScopeDemand]:
        """The scopes it takes to use the things listed; those of every call are in it once."""
        cache = self._cache
        if cache.demands is None:
            entries, sources = tuple(self._entries.values()), tuple(self._sources.values())
            demands = [*(entry.scopes for entry in entries), *(scopes for _, scopes in sources)]
            fixed = {one for one in demands if isinstance(one, frozenset)}
            cache.demands = [*fixed, *(one for one in demands if not isinstance(one, frozenset))]
        return cache.demands

    def _make_page(
        self, cursor: str | UnsetType, scope: str, granted: frozenset[str] | None
    ) -> Wire:
        size = self._settings.page_size
        found: Sequence[tuple[str, T | Wire]]
        following = None
        if size is None and cursor is UNSET:
            found = [*_select_visible(self._pair_entries(), granted), *self._read_sources(granted)]
        else:
            try:
                found, following = cut_page(
                    self._order_entries(granted),
                    get_key,
                    cursor=None if cursor is UNSET else cursor,
                    size=size,
                    secret=self._settings.cursor_secret,
                    scope=scope,
                )
            except BadCursor as error:
                # spec 2026-07-28 server/utilities/pagination#error-handling
                raise Refuse(-32602, f"Invalid params: {error}") from error
        items = [one if isinstance(one, Wire) else self._show(one) for _, one in found]
        result = self._result(items, UNSET if following is None else following)
        caching = self._settings.caching
        return structs.replace(
            result, ttl_ms=caching.ttl_ms(self._method), cache_scope=caching.scope(self._method)
        )

    def _order_entries(self, granted: frozenset[str] | None) -> Sequence[tuple[str, T | Wire]]:
        """What a reader sees, in the order of the keys; only sources are sorted for each page."""
        cache = self._cache
        everything = cache.ordered.get(None)
        if everything is None:
            everything = cache.ordered[None] = sorted(self._pair_entries(), key=get_key)
        ordered = cache.ordered.get(granted)
        if ordered is None:
            ordered = _select_visible(everything, granted)
            if len(cache.ordered) < MAX_CACHED_ORDERS:
                cache.ordered[granted] = ordered
        if not self._sources:
            return ordered
        return sorted((*ordered, *self._read_sources(granted)), key=get_key)

    def _pair_entries(self) -> KeyedEntries[T]:
        return tuple(self._entries.items())

    def _read_sources(self, granted: frozenset[str] | None) -> Iterator[tuple[str, Wire]]:
        for source, scopes in tuple(self._sources.values()):
            if is_listed_for(granted, scopes):
                yield from ((_get_item_key(item), item) for item in source())


def _select_visible(entries: KeyedEntries[T], granted: frozenset[str] | None) -> KeyedEntries[T]:
    """Select the entries that a reader sees."""
    if granted is None:
        return entries
    return [pair for pair in entries if is_listed_for(granted, pair[1].scopes)]


def _get_item_key(shown: Any) -> str:
    """The key of an item, which tells it from all others of its list."""
    key: str = getattr(shown, "uri", None) or getattr(shown, "uri_template", None) or shown.name
    return key
