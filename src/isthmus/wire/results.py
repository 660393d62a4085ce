"""What results have in common."""

from typing import Literal, TypeAlias

from isthmus.wire.base import UNSET, Meta, UnsetType, Wire

__all__ = ["CacheScope", "CacheableResult", "EmptyResult", "Result"]

CacheScope: TypeAlias = Literal["public", "private"]
"""Who may share a cached result: everybody, or one user only."""


class Result(Wire, frozen=True, kw_only=True):
    """What every result of a server may carry.

    Since 2026-07-28 ``result_type`` is required on the wire; the router writes it where a
    handler leaves it out. A client treats its absence as ``"complete"``.
    """

    result_type: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class EmptyResult(Result, frozen=True, kw_only=True):
    """Done, with nothing to report."""


class CacheableResult(Result, frozen=True, kw_only=True):
    """A result that says how long and by whom it may be cached (2026-07-28 server/utilities/caching).

    Attributes:
        ttl_ms: milliseconds it stays fresh; 0 for not at all.
        cache_scope: who may share it.
    """

    ttl_ms: int | UnsetType = UNSET
    cache_scope: CacheScope | UnsetType = UNSET
