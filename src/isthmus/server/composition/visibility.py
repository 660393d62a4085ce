"""Visibility by caller: which tools, resources and prompts are there for a principal, or for a session.

It is looked at for each request, on servers that have such a rule. What is hidden is listed nowhere, and a
request for it is answered as one for something that does not exist.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.core.principal import Principal
from isthmus.core.uri_template import UriTemplate
from isthmus.errors import Refuse, ToolError, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.server.features.listing import get_item_key
from isthmus.server.guard.tags import (
    SESSION_RULES_KEY,
    VisibilityRule,
    decode_rules,
    is_offered,
)
from isthmus.wire import ResourceTemplate

if TYPE_CHECKING:
    from isthmus.server.settings import SharedSettings

VisibilityFunction = Callable[[Any, Principal | None], bool]
"""``(item, principal) -> bool``: whether a tool, resource, template or prompt is there for a caller."""

Shows = Callable[[Any], bool]
"""Says of an item, as it is listed, whether it is there for the sender of one request."""


class CallerGate:
    """Visibility that depends on who asks: the author's function, and the rules of sessions.

    Args:
        settings: those of the server.

    Attributes:
        function: the author's function, or None.
    """

    def __init__(self, settings: "SharedSettings") -> None:
        self.function: VisibilityFunction | None = None
        self._settings = settings

    def add_function(self, fn: Any) -> None:
        """Ask a function, too; what any of them hides is hidden.

        Raises:
            UsageError: it is no plain function of an item and a principal.
        """
        if not callable(fn) or inspect.iscoroutinefunction(fn):
            raise UsageError(
                f"visibility() takes a plain function (item, principal) -> bool, not {fn!r}: async "
                "functions are not awaited before a call is permitted"
            )
        before = self.function
        self.function = (
            fn if before is None else lambda item, who: bool(before(item, who) and fn(item, who))
        )

    def shows_to(self, item: Any, principal: Principal | None) -> bool:
        """Whether something may be there for a principal: for all its sessions, or for one of them.

        Raises:
            Exception: whatever the function raised; the request fails then.
        """
        rules = self._settings.visibility_rules
        decided = rules and not self._settings.has_session_rules
        if decided and not is_offered(rules, get_item_key(item), item.meta):
            return False
        return self.function is None or bool(self.function(item, principal))

    async def load(self, inbound: Inbound) -> Shows:
        """What says whether things are there for the sender of a request.

        Raises:
            StoreUnavailable: the rules of its session cannot be read now.
        """
        rules, principal = self._settings.visibility_rules, inbound.principal
        if self._settings.has_session_rules:  # those of a session come last, and so they decide
            rules = (*rules, *await self._load_rules(inbound))

        def shows(item: Any) -> bool:
            return is_offered(rules, get_item_key(item), item.meta) and self.shows_to(
                item, principal
            )

        return shows

    async def _load_rules(self, inbound: Inbound) -> Sequence[VisibilityRule]:
        from isthmus.server.asking.session_state import find_place  # few servers have such rules

        try:
            place = find_place(inbound, self._settings)
        except (Refuse, ToolError):  # nobody to keep anything for, so that nothing was ever kept
            return ()
        return decode_rules((await place.load()).get(SESSION_RULES_KEY))


def matches_item(item: Any, key: str) -> bool:
    """Whether an item of a list is what a request names: by its key, or by the template of a URI."""
    if get_item_key(item) == key:
        return True
    return isinstance(item, ResourceTemplate) and _match(item.uri_template, key)


def _match(template: str, uri: str) -> bool:
    try:
        return UriTemplate(template).match(uri) is not None
    except UsageError:  # another server's, which no request could fit
        return False
