"""Authorization checks of single components, under the names of ``fastmcp.utilities.authorization``.

A check is a function, plain or async, of an :class:`AuthContext`: only what it gives True for may be seen and used.
One that fails refuses. Over pipes nobody has a token, and whoever started the server may use all of it.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from isthmus.compat.fastmcp.exceptions import AuthorizationError
from isthmus.errors import UsageError

logger = logging.getLogger("fastmcp.utilities.authorization")

LOCAL_TRANSPORT = "stdio"


@dataclass
class AuthContext:
    """Caller and component that a check is about.

    Attributes:
        token: the access token of the caller; None where nobody authenticated.
        component: the tool, resource, template or prompt.
    """

    token: Any
    component: Any

    @property
    def tool(self) -> Any:
        """The component where it is a tool; None otherwise."""
        return self.component if self.component.KEY_PREFIX == "tool" else None


AuthCheck: TypeAlias = Callable[[AuthContext], bool] | Callable[[AuthContext], Awaitable[bool]]
"""Function that gives True for a caller who may use a component."""


class ScopeCheck:
    """Check of the scopes of a token; it can say which are missing.

    Args:
        scopes: the scopes.
        tag: components without this tag take no scopes; None for all of them.
    """

    def __init__(self, scopes: Iterable[str], tag: str | None = None) -> None:
        self.required_scopes = frozenset(scopes)
        self.tag = tag

    def __call__(self, context: AuthContext) -> bool:
        """Whether the token has the scopes."""
        if not self._applies(context):
            return True
        return context.token is not None and self.required_scopes.issubset(context.token.scopes)

    def find_missing(self, context: AuthContext) -> frozenset[str]:
        """The scopes that the token lacks; none where there is no token, for a scope would not help then."""
        if context.token is None or not self._applies(context):
            return frozenset()
        return self.required_scopes.difference(context.token.scopes)

    def _applies(self, context: AuthContext) -> bool:
        return self.tag is None or self.tag in context.component.tags


class RoleCheck:
    """Check of the roles that the claims of a token give.

    Args:
        roles: the roles.
        extract: finds the roles in the claims.
    """

    def __init__(
        self, roles: Iterable[str], extract: Callable[[dict[str, Any]], Iterable[str]]
    ) -> None:
        self.required_roles = frozenset(roles)
        self._extract = extract

    def __call__(self, context: AuthContext) -> bool:
        """Whether the token gives the roles."""
        if context.token is None:
            return False
        try:
            found = self._extract(context.token.claims)
            granted = {found} if isinstance(found, str) else set(found)
        except (KeyError, IndexError, TypeError):  # the claim is not there
            return False
        return self.required_roles <= granted


def require_scopes(*scopes: str) -> AuthCheck:
    """Make the check that a token has all of some scopes."""
    return ScopeCheck(scopes)


def restrict_tag(tag: str, *, scopes: Collection[str]) -> AuthCheck:
    """Make the check that a token has all of some scopes, where a component has a tag."""
    return ScopeCheck(scopes, tag)


def require_roles(*roles: str, extract: Callable[[dict[str, Any]], Iterable[str]]) -> AuthCheck:
    """Make the check that the claims of a token give all of some roles.

    Raises:
        ValueError: there is no role, so that it would admit everybody with a token.
    """
    if not roles:
        raise ValueError(
            "require_roles() needs at least one role; a check with no roles would admit any authenticated caller."
        )
    return RoleCheck(roles, extract)


def list_checks(checks: Any) -> Sequence[Any]:
    """Checks as a list, also a single one."""
    return [*checks] if isinstance(checks, list | tuple) else [checks]


async def run_check(check: Any, context: AuthContext) -> bool:
    """Run a check; one that fails refuses.

    Raises:
        AuthorizationError: it refuses in its own words.
    """
    try:
        found = check(context)
        return bool(await found if inspect.isawaitable(found) else found)
    except AuthorizationError:
        raise
    except Exception:  # a check that is broken admits nobody
        name = getattr(check, "__name__", repr(check))
        logger.warning("Auth check %s raised an unexpected exception", name, exc_info=True)
        return False


async def run_auth_checks(checks: Any, context: AuthContext) -> bool:
    """Whether all checks admit the caller; the first that does not is the last that is run.

    Raises:
        AuthorizationError: one refuses in its own words.
    """
    for check in list_checks(checks):
        if not await run_check(check, context):
            return False
    return True


async def find_shortfall(checks: Any, context: AuthContext) -> list[str] | None:
    """The scopes for lack of which all checks together refuse; None where they admit the caller.

    They are none where any other check refuses: its component's scopes are nothing for the caller to know then.

    Raises:
        AuthorizationError: one refuses in its own words.
    """
    listed = list_checks(checks)
    lacks = False
    for check in listed:
        if await run_check(check, context):
            continue
        if not isinstance(check, ScopeCheck):
            return []
        lacks = True
    return name_missing(listed, context) if lacks else None


def name_missing(checks: Sequence[Any], context: AuthContext) -> list[str]:
    """The scopes that a token lacks for all checks of scopes among some."""
    of_scopes = (one for one in checks if isinstance(one, ScopeCheck))
    return sorted(frozenset[str]().union(*(one.find_missing(context) for one in of_scopes)))


def is_local_request() -> bool:
    """Whether the request that is served came over pipes, where nobody has a token."""
    from isthmus.compat.fastmcp.server.context import find_context  # it stands above

    context = find_context()
    own = None if context is None else context.find_own()
    return own is not None and own.origin.transport == LOCAL_TRANSPORT


def find_caller_token() -> Any:
    """The access token of the caller; None where nobody authenticated."""
    from isthmus.compat.fastmcp.server.dependencies import get_access_token  # it stands above

    return get_access_token()


async def may_use(component: Any) -> bool:
    """Whether the check of a component, if it has one, admits the caller of the request that is served."""
    if component.auth is None or is_local_request():
        return True
    try:
        return await run_auth_checks(component.auth, AuthContext(find_caller_token(), component))
    except AuthorizationError:
        return False


def check_auth(checks: Any, what: str) -> None:
    """See that ``auth=`` of a component or of a middleware are checks.

    Raises:
        UsageError: something that cannot be called is among them.
    """
    for check in list_checks(checks):
        if not callable(check):
            raise UsageError(
                f'auth= of {what} takes a function or a list of functions, such as require_scopes("admin"), and not '
                f"{type(check).__name__}: see docs/guide/from-fastmcp.md"
            )


__all__ = [
    "AuthCheck",
    "AuthContext",
    "require_roles",
    "require_scopes",
    "restrict_tag",
    "run_auth_checks",
]
