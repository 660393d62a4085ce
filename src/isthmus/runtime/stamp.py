"""Stamp on every result: it is cut to its revision, and the members that this wants are put on as bytes.

Since 2026-07-28 a result says its type, who served it and, for some methods, how long it may be
cached. The members are the same for every answer, so they are encoded once and put in front of
the result's own; only a result that brings a ``_meta`` of its own is rebuilt.
"""

from msgspec import UNSET, structs

from isthmus.core.encoding import replace_surrogates
from isthmus.revisions import Feature, Revision
from isthmus.revisions.projection import find_cuts
from isthmus.wire import Implementation
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import SERVER_INFO
from isthmus.wire.struct import Wire

LARGE_RESULT_BYTES = 4096


class Stamp:
    """The form of every result of one method in one revision, with the members that this adds.

    Args:
        revision: the revision the answers travel in.
        server: who we are, or None to keep it to ourselves (and on the client side).
        cacheable: whether results of this method carry caching hints.

    Attributes:
        front: what a result begins with that has no ``_meta`` of its own, the brace included.
    """

    __slots__ = ("_cuts", "_hints", "_info", "_type", "front")

    def __init__(
        self, revision: Revision, server: Implementation | None, *, cacheable: bool
    ) -> None:
        self._cuts = find_cuts(revision)
        self._type = b'"resultType":"complete",' if revision.has(Feature.RESULT_TYPE) else b""
        # spec 2026-07-28 server/utilities/caching: servers MUST include caching hints
        hints = cacheable and revision.has(Feature.CACHE_HINTS)
        self._hints = b'"ttlMs":0,"cacheScope":"private",' if hints else b""
        self._info = server if revision.has(Feature.SERVER_STAMP) else None
        meta = b'"_meta":%b,' % encode({SERVER_INFO: self._info}) if self._info else b""
        self.front = b"{" + self._type + meta

    def write(self, result: Wire) -> bytes:
        """A result as JSON in the revision's shape, stamped."""
        cut = self._cuts[type(result)]
        if cut is not None:
            result = cut(result)
        if self._info is not None and getattr(result, "meta", UNSET) is not UNSET:
            result = self._merge_meta(result)
            front = b"{" + self._type
        else:
            front = self.front
        if getattr(result, "result_type", UNSET) is not UNSET:
            # spec 2026-07-28 server/utilities/caching: input_required carries no caching hints
            front = front.replace(self._type, b"")
        elif self._hints and getattr(result, "ttl_ms", UNSET) is UNSET:
            front += self._hints
        try:
            body = encode(result)
        except UnicodeEncodeError:  # a half of a surrogate pair, which UTF-8 has no bytes for
            body = encode(replace_surrogates(result))
        if len(front) == 1:
            return body
        if body == b"{}":
            return front[:-1] + b"}"
        # a large one is copied once, and not without its brace first
        return front + (body[1:] if len(body) < LARGE_RESULT_BYTES else memoryview(body)[1:])

    def _merge_meta(self, result: Wire) -> Wire:
        meta = result.meta  # type: ignore[attr-defined]  # the caller saw that it is there
        return structs.replace(result, meta={SERVER_INFO: self._info, **meta})
