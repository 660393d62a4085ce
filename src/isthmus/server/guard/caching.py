"""Caching hints: ``ttlMs`` and ``cacheScope`` of lists and of discovery."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isthmus.errors import UsageError
from isthmus.wire.results import CacheScope

if TYPE_CHECKING:
    from isthmus.transports.http.authorizer import Authorizer

LIST_METHODS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
CACHEABLE_METHODS = (*LIST_METHODS, "server/discover")
CACHE_SCOPES = ("public", "private")


class CacheHints:
    """The hints of lists, and of discovery.

    Args:
        ttl_ms: milliseconds a client may keep any of them; or for each method its own, and none
            for those left out.
        scope: who may share any of the lists; or for each method its own, and ``"private"`` for
            those left out. What is discovered is the same for everybody, unless this says
            otherwise for ``server/discover``, or authorization is asked for.
        auth: who authorizes those who ask: then nothing is public that is not said to be, and no
            list that depends on who asks. None lets everybody ask.

    Raises:
        UsageError: there is no such method, or a hint is none.
    """

    __slots__ = ("_scopes", "_ttls")

    def __init__(
        self,
        ttl_ms: int | Mapping[str, int],
        scope: CacheScope | Mapping[str, CacheScope],
        auth: "Authorizer | None" = None,
    ) -> None:
        ttls = (
            dict.fromkeys(CACHEABLE_METHODS, ttl_ms)
            if isinstance(ttl_ms, int)
            else _check_methods(ttl_ms)
        )
        scopes = (
            dict.fromkeys(LIST_METHODS, scope) if isinstance(scope, str) else _check_methods(scope)
        )
        for method in CACHEABLE_METHODS:
            check_cache_hints(ttls.get(method, 0), scopes.get(method, "private"), method)
        self._ttls: dict[str, int] = ttls
        self._scopes: dict[str, CacheScope] = {
            "server/discover": "public" if auth is None else "private",
            **scopes,
            # spec 2026-07-28 server/utilities/caching#choosing-a-cache-scope: what depends on who
            # asks MUST be private
            **(dict.fromkeys(LIST_METHODS, "private") if auth is not None and auth.hides else {}),
        }

    def make_private(self) -> None:
        """Lists depend on who asks from now on: nobody may share one."""
        # spec 2026-07-28 server/utilities/caching#choosing-a-cache-scope: MUST be private
        self._scopes.update(dict.fromkeys(LIST_METHODS, "private"))

    def ttl_ms(self, method: str) -> int:
        """Milliseconds that a client may keep the results of a method."""
        return self._ttls.get(method, 0)

    def scope(self, method: str) -> CacheScope:
        """The cache scope of a method: who may share its results."""
        # spec 2026-07-28 server/utilities/caching#interaction-with-pagination: MUST be the same
        # for all pages of a list, and so it is one for the list
        return self._scopes.get(method, "private")


def _check_methods(hints: Mapping[str, Any]) -> dict[str, Any]:
    for method in hints:
        if method not in CACHEABLE_METHODS:
            raise UsageError(
                f"there are no caching hints for {method!r}: they are for {', '.join(CACHEABLE_METHODS)}"
            )
    return dict(hints)


def check_cache_hints(ttl_ms: int, scope: CacheScope, what: str) -> None:
    """See to it that hints can be sent.

    Raises:
        UsageError: a time before now, or nobody's scope.
    """
    # spec 2026-07-28 server/utilities/caching#time-to-live-ttl-field: MUST be >= 0
    if type(ttl_ms) is not int or ttl_ms < 0:
        raise UsageError(f"{what}: ttl_ms={ttl_ms!r} is no number of milliseconds from 0 on")
    if scope not in CACHE_SCOPES:
        raise UsageError(f'{what}: a cache scope is "public" or "private", not {scope!r}')
