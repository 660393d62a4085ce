"""Cache hints of ``mcp`` 2: how long and by whom the results of a server's methods may be kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from isthmus.server.guard.caching import CACHEABLE_METHODS
from isthmus.wire import ReadResourceResult
from isthmus.wire.struct import Wire

HINTED_METHODS = frozenset({*CACHEABLE_METHODS, "resources/read"})


@dataclass(frozen=True, slots=True)
class CacheHint:
    """Cache hint for the results of a method.

    Attributes:
        ttl_ms: milliseconds a client may keep a result; 0 for not at all.
        scope: who may share it.
    """

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if self.ttl_ms < 0:
            raise ValueError(f"ttl_ms must be >= 0, got {self.ttl_ms}")
        if self.scope not in ("public", "private"):
            raise ValueError(f"scope must be 'public' or 'private', got {self.scope!r}")


NO_HINT = CacheHint()


def check_hints(hints: Mapping[str, Any] | None) -> dict[str, CacheHint]:
    """The cache hints that a program gives its server, by method.

    Raises:
        ValueError: results of a method cannot be kept.
        TypeError: something is no hint.
    """
    given = dict(hints or {})
    unknown = sorted(repr(method) for method in given if method not in HINTED_METHODS)
    if unknown:
        raise ValueError(
            f"cache_hints keys must be cacheable methods (see CacheableMethod); got: {', '.join(unknown)}"
        )
    for method, hint in given.items():
        if not isinstance(hint, CacheHint):
            raise TypeError(
                f"cache_hints[{method!r}] must be a CacheHint, got {type(hint).__name__}"
            )
    return given


def make_list_options(hints: Mapping[str, CacheHint]) -> dict[str, Any]:
    """The options of :class:`isthmus.Server` for the hints of its lists and of discovery."""
    listed = {method: hint for method, hint in hints.items() if method in CACHEABLE_METHODS}
    if not listed:
        return {}
    return {
        "list_ttl_ms": {method: hint.ttl_ms for method, hint in listed.items()},
        "list_cache_scope": {method: hint.scope for method, hint in listed.items()},
    }


def hint_read(result: Wire, hints: Mapping[str, CacheHint]) -> Wire:
    """The result of reading a resource with its hint, where its handler gave none."""
    hint = hints.get("resources/read")
    if hint is None or not isinstance(result, ReadResourceResult):
        return result
    return replace(
        result,
        ttl_ms=hint.ttl_ms if result.ttl_ms is UNSET else result.ttl_ms,
        cache_scope=hint.scope if result.cache_scope is UNSET else result.cache_scope,
    )
