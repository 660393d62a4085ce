"""Response cache: answers that a server allows to be kept, for as long as it says.

Since 2026-07-28 lists, reads and ``server/discover`` say how long they stay fresh and who may
share them (server/utilities/caching). Private answers belong to one connection and the tokens it
has; public ones are shared by all connections of the process to the same target. What is kept is
JSON, so that nobody can change what the next caller gets.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from isthmus.client.subscriptions import Change, is_at_or_below
from isthmus.revisions import METHODS
from isthmus.wire.jsonrpc import encode

MAX_TTL_S = 7 * 86_400.0  # after which anything is stale, whatever a server says

ENTRY_OVERHEAD_BYTES = 400  # bytes that an entry costs beside its contents

# What is stale once a change of a kind is heard of.
STALE_METHODS: dict[str, tuple[str, ...]] = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "resource": ("resources/read",),
}


class Caching(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the cache in which a client keeps answers.

    Attributes:
        ttl: seconds that answers stay fresh whose server does not say so: those of servers of up
            to 2025-11-25, too. None keeps only what a server says may be kept.
        max_bytes: what the private answers of one connection may take.
        shared: whether public answers are shared with other connections of this process.
        clock: gives seconds that never go back.
    """

    ttl: float | None = None
    max_bytes: int = 8 * 1024 * 1024
    shared: bool = True
    clock: Callable[[], float] = time.monotonic


class CacheEntry(msgspec.Struct):
    """One answer.

    Attributes:
        data: the result as JSON.
        until: when it becomes stale, in seconds of the clock.
        about: the URI it is about, where it is about one.
    """

    data: bytes
    until: float
    about: str | None = None


CacheKey = tuple[Hashable, bytes]
"""A group, and the parameters as JSON."""


class ResponseStore:
    """Answers up to so many bytes; the one that was used longest ago makes room.

    Args:
        max_bytes: how many.
    """

    def __init__(self, max_bytes: int) -> None:
        self.bytes = 0
        self._max = max_bytes
        self._entries: OrderedDict[CacheKey, CacheEntry] = OrderedDict()
        self._groups: dict[Hashable, set[bytes]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def has(self, group: Hashable) -> bool:
        """Whether there is anything of this group, fresh or stale."""
        return group in self._groups

    def get(self, group: Hashable, params: bytes, now: float) -> bytes | None:
        """A fresh answer, or None."""
        key = group, params
        entry = self._entries.get(key)
        if entry is None:
            return None
        # spec 2026-07-28 server/utilities/caching#freshness-calculation: fresh while
        # now < t_received + ttlMs
        if now >= entry.until:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.data

    def put(self, group: Hashable, params: bytes, entry: CacheEntry) -> None:
        """Keep an answer, unless it is larger than all that may be kept."""
        self._drop((group, params))
        size = entry_size(params, entry)
        if size > self._max:
            return
        while self.bytes + size > self._max:
            self._drop(next(iter(self._entries)))
        self._entries[group, params] = entry
        self._groups.setdefault(group, set()).add(params)
        self.bytes += size

    def forget(self, group: Hashable, about: str | None = None) -> None:
        """Drop a group, or those of its answers that a change of ``about`` concerns."""
        for params in list(self._groups.get(group, ())):
            entry = self._entries[group, params]
            if about is None or entry.about is None or are_related(entry.about, about):
                self._drop((group, params))

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        group, params = key
        self.bytes -= entry_size(params, entry)
        of_group = self._groups[group]
        of_group.discard(params)
        if not of_group:
            del self._groups[group]


def entry_size(params: bytes, entry: CacheEntry) -> int:
    """The bytes an entry takes."""
    return len(entry.data) + len(params) + ENTRY_OVERHEAD_BYTES


def are_related(one: str, other: str) -> bool:
    """Whether a change of one resource may be seen in the other: it is that, above or below."""
    return is_at_or_below(one, other) or is_at_or_below(other, one)


# What every connection of this process may share.
PUBLIC_RESPONSES = ResponseStore(64 * 1024 * 1024)


class ResponseCache:
    """The answers that one connection keeps, and those it shares.

    Args:
        caching: how.
        target: what the server is known by in this process; None for one that nobody else meets.
        revision: the name of the revision spoken.
        public: the answers that are shared.
        context: gives whatever stands for the authorization that requests carry just now.
    """

    def __init__(
        self,
        caching: Caching,
        target: Hashable,
        revision: str,
        public: ResponseStore = PUBLIC_RESPONSES,
        context: Callable[[], object] = lambda: None,
    ) -> None:
        self._caching = caching
        self._own = ResponseStore(caching.max_bytes)
        self._context = context
        self._owner = context()
        self._owners = 0
        self._target = target
        self._revision = revision
        self._public = public if caching.shared and target is not None else None
        self._changes: dict[str, int] = {}

    def find(self, method: str, params: Any) -> Any:
        """The fresh answer to a request, decoded anew; None where there is none."""
        if not self.holds(method):
            return None
        key, now = encode(params), self._caching.clock()
        for store, group in self._stores(method):
            data = store.get(group, key, now)
            if data is not None:
                return METHODS[method].decode_result(data)
        return None

    def holds(self, method: str) -> bool:
        """Whether there is any answer to a method, fresh or stale."""
        self._be_of_now()
        return any(store.has(group) for store, group in self._stores(method))

    def changes(self, method: str) -> int:
        """The number of times that answers to a method became stale: by a change, or by other tokens."""
        self._be_of_now()
        return self._owners + self._changes.get(method, 0)

    def _be_of_now(self) -> None:
        """Have nothing private that was given for other tokens than those of now."""
        context = self._context()
        # spec 2026-07-28 server/utilities/caching#cache-scope-field: MUST NOT be shared across
        # authorization contexts; a different access token requires a different cache
        if context is not self._owner:
            self._owner, self._own = context, ResponseStore(self._caching.max_bytes)
            self._owners += 1

    def keep(
        self, method: str, params: Any, result: Any, changes: int, *, private: bool = False
    ) -> None:
        """Keep an answer that has just come, if it may be kept.

        Args:
            method: what was asked.
            params: with which parameters.
            result: the answer.
            changes: what :meth:`changes` said when it was asked for.
            private: it is a part of something private.
        """
        ttl = self._ttl(result)
        # What was asked for before a change was heard of may be from before the change.
        if ttl <= 0 or changes != self.changes(method):
            return
        shared = result.cache_scope == "public" and not private
        until = self._caching.clock() + ttl
        entry = CacheEntry(encode(result), until, getattr(params, "uri", None))
        # spec 2026-07-28 server/utilities/caching#cache-scope-field: private answers MUST NOT be
        # shared across authorization contexts, so they never leave the connection
        store, group = self._own, self._group(method)
        if shared and self._public is not None:
            store, group = self._public, self._shared_group(method)
        store.put(group, encode(params), entry)

    def _ttl(self, result: Any) -> float:
        """Seconds that an answer stays fresh."""
        said = result.ttl_ms
        if said is UNSET:
            # spec 2026-07-28 server/utilities/caching#time-to-live-ttl-field: absent means 0, or
            # the client's own heuristics
            return self._caching.ttl or 0.0
        return float(min(max(said, 0) / 1000 if said < 1e15 else MAX_TTL_S, MAX_TTL_S))

    def changed(self, change: Change) -> None:
        """A change was heard of: what it concerns is stale from now on."""
        # spec 2026-07-28 server/utilities/caching#interaction-with-notifications: the notification
        # invalidates the cached response
        for method in STALE_METHODS.get(change.kind, ()):
            self.forget(method, change.uri or None)

    def forget(self, method: str, about: str | None = None) -> None:
        """Keep no answer to a method any longer."""
        self._changes[method] = self._changes.get(method, 0) + 1
        for store, group in self._stores(method):
            store.forget(group, about)

    def _stores(self, method: str) -> Iterator[tuple[ResponseStore, Hashable]]:
        yield self._own, self._group(method)
        if self._public is not None:
            yield self._public, self._shared_group(method)

    def _group(self, method: str) -> Hashable:
        return method

    def _shared_group(self, method: str) -> Hashable:
        return self._target, self._revision, method
