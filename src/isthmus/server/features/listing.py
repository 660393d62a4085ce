"""Listings: the tools, resources or prompts of a server, and the pages a client reads of them.

Pages are encoded once per revision and cursor, and kept as bytes until something is added or
removed: a list of hundreds of tools costs no more than a short one. What is paged is sorted once
until then, so that a page costs what is on it, however long the list is (ADR 0074).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.core.pagination import BadCursor, cut_page, paginate
from isthmus.core.principal import NO_SCOPES, owner_of
from isthmus.errors import Refuse, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.stamp import Stamp
from isthmus.server.guard.scopes import ScopeDemand, is_listed_for
from isthmus.server.settings import SharedSettings
from isthmus.wire.jsonrpc import shorten
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.revisions import Revision
    from isthmus.server.features.provided_items import ProvidedItems


class ListedEntry(Protocol):
    """Something that can be listed."""

    @property
    def scopes(self) -> ScopeDemand:
        """The scopes it takes to use it."""
        ...


class OnMove(Protocol):
    """Told of an entry that is hidden or shown again."""

    def __call__(self, key: str, entry: Any, /, *, offered: bool) -> None:
        """Act on it."""
        ...


T = TypeVar("T", bound=ListedEntry)

KeyedEntries: TypeAlias = Sequence[tuple[str, T]]

MAX_CACHED_PAGES = 256  # where they differ by what their reader was granted
MAX_CACHED_ORDERS = 16  # likewise; each holds a reference to every entry that its reader sees

_place_numbers = count()  # the order in which entries came

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
        silent_sources: the sources of which nothing is listed now.
        on_move: told of an entry that rules of visibility hide or show again.
        get: the entry under a key; of versions the highest one that is offered.
        get_plain: the entry under a key that has no versions.
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
        self._withheld: dict[str, T] = {}
        self._plain: dict[str, T] = {}
        self._versions: dict[str, dict[str, T]] = {}
        self._places: dict[str, int] = {}
        self._has_moved = False
        self.silent_sources: set[str] = set()
        self.on_move: OnMove | None = None
        self._cache: ListingCache[T] = ListingCache()
        self.get = self._entries.get
        self.get_plain = self._plain.get

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._entries.values()))

    def list_keys(self) -> tuple[str, ...]:
        """The keys of the entries, in the order they came."""
        return tuple(self._entries)

    def add(self, key: str, entry: T, version: str | None = None) -> None:
        """Take in an entry.

        Raises:
            UsageError: its key is taken, or has such a version.
        """
        if version is not None:
            self._add_version(key, entry, version)
            return
        if key in self._versions:
            raise UsageError(
                f"there is a {self._what} {key!r} with versions already; give this one version=, too"
            )
        if key in self._entries or key in self._withheld:
            raise UsageError(
                f"there is a {self._what} {key!r} already; give this one another name, or remove "
                "the other first"
            )
        self._places[key] = next(_place_numbers)
        if self._settings.visibility_rules and not self._is_offered(key, entry):
            self._withheld[key] = entry
        else:
            self._entries[key] = self._plain[key] = entry
        self._note_change()

    # Versions

    def _add_version(self, key: str, entry: T, version: str) -> None:
        from isthmus.server.guard.versions import rank_version, sort_versions  # few have any

        versions = self._versions.get(key, {})
        if not versions and (key in self._entries or key in self._withheld):
            raise UsageError(
                f"there is a {self._what} {key!r} without a version already; give that one version=, too"
            )
        for other in versions:
            if rank_version(other) == rank_version(version):
                raise UsageError(f"there is a {self._what} {key!r} of version {other} already")
        if not versions:
            self._places[key] = next(_place_numbers)
        self._versions[key] = sort_versions({**versions, version: entry})
        self._choose_version(key)
        self._note_change()

    def _choose_version(self, key: str) -> bool:
        """Offer the highest version that rules of visibility leave; whether that is another one now."""
        before, entries = self._entries.get(key), self._versions[key]
        found = next(iter(self.find_versions(key).values()), None)
        if found is None:
            self._entries.pop(key, None)
            self._withheld[key] = next(iter(entries.values()))
        else:
            self._entries[key] = found
            self._withheld.pop(key, None)
        return found is not before

    def find_versions(self, key: str) -> dict[str, T]:
        """The versions that are offered under a key, the highest one first; none where it has none."""
        versions = self._versions.get(key, {})
        if not self._settings.visibility_rules:
            return versions
        return {one: entry for one, entry in versions.items() if self._is_offered(key, entry)}

    def peek_version(self, key: str, version: str | None) -> T | None:
        """The entry of one version, also one that rules of visibility hide; without one as :meth:`peek`."""
        return self.peek(key) if version is None else self._versions.get(key, {}).get(version)

    def find(self, key: str, meta: Any) -> T:
        """The entry that a request is for, by the version in its ``_meta``.

        An entry that has no versions is found whatever is asked for.

        Raises:
            Refuse: there is none, or not in this version.
        """
        entry = self._entries.get(key)
        if entry is None:
            # spec 2026-07-28 server/tools#error-handling, server/prompts#error-handling
            words = f"Unknown {self._what}: {shorten(key)}"
            raise Refuse(-32602, words)
        if key not in self._versions:
            return entry
        from isthmus.server.guard.versions import make_unknown_version, read_version

        wanted, versions = read_version(meta), self.find_versions(key)
        if wanted is None:
            return entry
        if wanted not in versions:
            raise make_unknown_version(self._what, key, wanted, versions)
        return versions[wanted]

    def seek(self, key: str, meta: Any) -> T | None:
        """As :meth:`find`; None for what is refused there."""
        try:
            return self.find(key, meta)
        except Refuse:
            return None

    def peek(self, key: str) -> T | None:
        """The entry under a key, also one that rules of visibility hide."""
        return self._entries.get(key) or self._withheld.get(key)

    def list_withheld(self) -> Sequence[T]:
        """The entries that rules of visibility hide."""
        return tuple(self._withheld.values())

    def apply_rules(self) -> None:
        """Hide and show entries as the rules of visibility have it now."""
        moved = False
        for key, entry in (*self._entries.items(), *self._withheld.items()):
            if key in self._versions:
                changed = self._choose_version(key)
                moved, self._has_moved = moved or changed, self._has_moved or changed
                continue
            offered = self._is_offered(key, entry)
            if offered is (key in self._entries):
                continue
            moved = self._has_moved = True
            if offered:
                self._entries[key] = self._plain[key] = entry
                del self._withheld[key]
            else:
                self._withheld[key] = entry
                del self._entries[key], self._plain[key]
            if self.on_move is not None:
                self.on_move(key, entry, offered=offered)
        if moved:
            self._note_change()

    def _is_offered(self, key: str, entry: T) -> bool:
        """Whether something is there for anybody, as far as that can be said before a request."""
        if self._settings.has_session_rules:
            return True
        from isthmus.server.guard.tags import is_offered  # few servers hide anything

        shown: Any = self._show(entry)
        return is_offered(self._settings.visibility_rules, key, shown.meta)

    def remove(self, key: str, version: str | None = None) -> None:
        """Take out an entry, or one of its versions.

        Raises:
            UsageError: there is none under this key, or not in this version.
        """
        versions = self._versions.get(key, {})
        if version is not None and version not in versions:
            there = f": it has {', '.join(versions)}" if versions else ""
            raise UsageError(f"there is no {self._what} {key!r} of version {version!r}{there}")
        if version is not None and len(versions) > 1:
            self._versions[key] = {one: versions[one] for one in versions if one != version}
            self._choose_version(key)
            self._note_change()
            return
        self._versions.pop(key, None)
        self._plain.pop(key, None)
        if self._entries.pop(key, None) is None and self._withheld.pop(key, None) is None:
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
        if self._method in self._settings.wrapped:
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

    async def page_beside(
        self,
        beside: Sequence[Wire],
        params: Any,
        inbound: Inbound,
        shows: Callable[[Any], bool] | None = None,
    ) -> Wire:
        """As :meth:`page`, with items that others list after the entries; nothing is kept of it.

        Args:
            beside: the items, of names that no entry has.
            params: the params of the request.
            inbound: the request.
            shows: whether an item is there for the reader; None where everything is.

        Raises:
            Refuse: the cursor is not one of ours.
        """
        visible = self._settings.visible
        granted = None if visible is None else visible.find_granted(inbound, self.list_demands())
        collect = partial(self._collect, granted, shows)
        own = await self._settings.workers.run(collect) if self.live else collect()
        scope = self._method if granted is None else f"{self._method} {owner_of(inbound.principal)}"
        try:
            page, following = paginate(
                [*own, *((get_item_key(item), item) for item in beside)],
                get_key,
                cursor=None if params.cursor is UNSET else params.cursor,
                size=self._settings.page_size,
                secret=self._settings.cursor_secret,
                scope=scope,
            )
        except BadCursor as error:
            # spec 2026-07-28 server/utilities/pagination#error-handling
            raise Refuse(-32602, f"Invalid params: {error}") from error
        return self._make_result([item for _, item in page], following)

    @property
    def is_empty(self) -> bool:
        """Whether the server itself has nothing to list, so that a provider's list is the whole."""
        return not (self._entries or self._sources)

    async def page_provided(
        self, items: "ProvidedItems", params: Any, inbound: Inbound
    ) -> Wire | Raw:
        """The list of the only provider there is; encoded once where it is one page.

        Raises:
            Refuse: the cursor is not one of ours.
        """
        revision, whole = inbound.caller.revision, self._settings.page_size is None
        if whole and params.cursor in {None, UNSET}:
            known = items.pages.get(revision)
            if known is None:
                result = _describe(self._make_result([*items], None), items)
                if self._method in self._settings.wrapped:
                    return result  # a middleware may want to look into it
                stamp = Stamp(revision, self._settings.info, cacheable=True)
                known = items.pages[revision] = Raw(stamp.write(result))
            return known
        return _describe(await self.page_beside(items, params, inbound), items)

    def _collect(
        self, granted: frozenset[str] | None, shows: Callable[[Any], bool] | None
    ) -> list[tuple[str, Wire]]:
        """Everything that a reader sees, by its key, as it is listed."""
        pairs = self._pair_entries()
        if shows is not None:
            pairs = [pair for one in pairs if (pair := self._choose_shown(*one, shows)) is not None]
        own = [(key, self._show(entry)) for key, entry in _select_visible(pairs, granted)]
        beside = self._read_sources(granted)
        return [*own, *(pair for pair in beside if shows is None or shows(pair[1]))]

    def _choose_shown(
        self, key: str, entry: T, shows: Callable[[Any], bool]
    ) -> tuple[str, T] | None:
        """The entry under a key, or the highest of its versions, that is there for a reader."""
        for one in self.find_versions(key).values() or (entry,):
            if shows(self._show(one)):
                return key, one
        return None

    def list_demands(self) -> Collection[ScopeDemand]:
        """The scopes it takes to use the things listed; those of every call are in it once."""
        cache = self._cache
        if cache.demands is None:
            entries, sources = [*self._entries.values()], tuple(self._sources.values())
            for key in tuple(self._versions):
                entries += self.find_versions(key).values()
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
        return self._make_result(items, following)

    def _make_result(self, items: list[Any], following: str | None) -> Wire:
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
        pairs = tuple(self._entries.items())
        if not self._has_moved:
            return pairs
        return sorted(pairs, key=lambda pair: self._places[pair[0]])

    def _read_sources(self, granted: frozenset[str] | None) -> Iterator[tuple[str, Wire]]:
        for key, (source, scopes) in tuple(self._sources.items()):
            if key not in self.silent_sources and is_listed_for(granted, scopes):
                yield from ((get_item_key(item), item) for item in source())


def _select_visible(entries: KeyedEntries[T], granted: frozenset[str] | None) -> KeyedEntries[T]:
    """Select the entries that a reader sees."""
    if granted is None:
        return entries
    return [pair for pair in entries if is_listed_for(granted, pair[1].scopes)]


def _describe(result: Any, items: "ProvidedItems") -> Wire:
    """The page of a list with what its provider says of the list."""
    described: Wire = structs.replace(
        result,
        meta=items.meta or result.meta,
        cache_scope=items.cache_scope,
        ttl_ms=result.ttl_ms if items.ttl_ms is None else items.ttl_ms,
    )
    return described


def get_item_key(shown: Any) -> str:
    """The key of an item, which tells it from all others of its list."""
    key: str = getattr(shown, "uri", None) or getattr(shown, "uri_template", None) or shown.name
    return key


def make_meta(
    meta: Mapping[str, Any] | None,
    tags: Collection[str],
    what: str = "tags=",
    version: str | None = None,
) -> dict[str, Any]:
    """The ``_meta`` of an item, with its tags and version.

    Raises:
        UsageError: they are no tags, or it is no version.
    """
    found = dict(meta or {})
    if tags:
        from isthmus.server.guard.tags import add_tags  # few things have any

        found = add_tags(meta, tags, what)
    if version is not None:
        from isthmus.server.guard.versions import add_version  # likewise

        found = add_version(found, version, what)
    return found


def make_target(name: str, version: str | None) -> str:
    """Make what one version of a name is known by inside: in sealed states, and to completers."""
    return name if version is None else f"{name}\0{version}"


def split_target(target: str) -> tuple[str, str | None]:
    """Split what :func:`make_target` made."""
    name, _, version = target.partition("\0")
    return name, version or None
