"""Scopes that a caller must have been granted for a tool, a resource or a prompt.

They are settled before a call is begun, from its body: by HTTP's status where there is one. Where
nobody authenticates, as over stdio, they do not apply.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.core.principal import NO_SCOPES, Principal, check_scopes
from isthmus.errors import UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.wire.results import CacheScope

if TYPE_CHECKING:
    from isthmus.transports.http.authorizer import Authorizer

ScopesByCall: TypeAlias = Callable[[Mapping[str, Any], Principal | None], Collection[str]]

Scopes: TypeAlias = Collection[str] | ScopesByCall
"""Scopes; or ``(arguments, principal) -> scopes``, which names all that one call takes, at once."""

OwnScopes: TypeAlias = Collection[str] | Callable[[Any, Principal | None], Collection[str]]
"""Scopes of a method of a server's own; or ``(params, principal) -> scopes``."""

ScopeDemand: TypeAlias = frozenset[str] | ScopesByCall

TOKEN_TRANSPORTS = frozenset({"http", "http+sse", "websocket"})


def parse_scopes(
    scopes: Scopes | OwnScopes, what: str, cache_scope: CacheScope = "private"
) -> ScopeDemand:
    """Scopes as an author gave them, looked at.

    Args:
        scopes: the scopes.
        what: what takes them, for the message.
        cache_scope: who may share what is given for them.

    Raises:
        UsageError: something is no scope, the function cannot be called before the call, or what
            takes scopes would be shared with whoever lacks them.
    """
    found: ScopeDemand
    if callable(scopes):
        if inspect.iscoroutinefunction(scopes):
            raise UsageError(
                f"{what}: scopes= is a plain function, for nothing is waited for before a call is "
                "permitted"
            )
        found = scopes
    else:
        found = check_scopes(scopes, what)
    # spec 2026-07-28 server/utilities/caching#choosing-a-cache-scope: what depends on who asks
    # MUST NOT be public
    if found and cache_scope == "public":
        raise UsageError(f'{what}: cache_scope="public" shares it with those who lack its scopes')
    return found


def find_required_scopes(
    wanted: ScopeDemand,
    principal: Principal | None,
    what: str,
    arguments: Callable[[], Mapping[str, Any] | None],
) -> frozenset[str]:
    """The scopes that one call takes.

    Args:
        wanted: what the author said.
        principal: who calls.
        what: what is called.
        arguments: gives the arguments as the function will get them; None for a call that is
            refused for them anyhow.

    Raises:
        Exception: the author's function raised, or gave no scopes: nobody may call it then.
    """
    if isinstance(wanted, frozenset):
        return wanted
    given = arguments()
    if given is None:
        return NO_SCOPES
    return check_scopes(wanted(given, principal), what)


def make_params_scopes(
    wanted: ScopeDemand, name: str
) -> Callable[[Any, Principal | None], frozenset[str]]:
    """Make the function that finds the scopes of a method of a server's own by its params.

    Args:
        wanted: what the author said.
        name: the method.
    """
    return lambda params, who: find_required_scopes(wanted, who, f"method {name!r}", lambda: params)


def collect_fixed_scopes(demands: Iterable[ScopeDemand]) -> frozenset[str]:
    """All scopes that are the same for every call."""
    return NO_SCOPES.union(*(one for one in demands if isinstance(one, frozenset)))


class ScopeVisibility:
    """The part of a list that its reader may see, where lists hold only what one may use.

    Args:
        auth: says what somebody may use.
    """

    def __init__(self, auth: "Authorizer") -> None:
        self._auth = auth

    def find_granted(
        self, inbound: Inbound, demands: Iterable[ScopeDemand]
    ) -> frozenset[str] | None:
        """The scopes among those demanded that a reader has; None for whoever sees everything.

        What a function demands is not known before the call, so that everybody sees it.
        """
        if inbound.origin.transport not in TOKEN_TRANSPORTS:
            return None
        known = (frozenset({scope}) for scope in collect_fixed_scopes(demands))
        return NO_SCOPES.union(*(one for one in known if self._auth.allows(inbound.principal, one)))


def is_listed_for(granted: frozenset[str] | None, wanted: ScopeDemand) -> bool:
    """Whether what demands scopes is listed for whoever has these of them."""
    return granted is None or not isinstance(wanted, frozenset) or wanted <= granted
