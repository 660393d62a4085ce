"""Scopes: the words by which a token says what it allows."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from isthmus.errors import UsageError

__all__ = ["NONE", "is_scope", "real_scopes", "scope_set"]

NONE: frozenset[str] = frozenset()

SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749 3.3

OFFLINE = "offline_access"


def is_scope(text: str) -> bool:
    """Whether a text can be a scope: signs of ASCII without blanks, quotes and backslashes."""
    return SCOPE.fullmatch(text) is not None


def real_scopes(named: Iterable[str]) -> frozenset[str]:
    """What somebody else named that are scopes; the rest, which nobody could ask for, is left out."""
    return frozenset(scope for scope in named if is_scope(scope))


def scope_set(scopes: Any, what: str) -> frozenset[str]:
    """Scopes as a set.

    Args:
        scopes: the scopes.
        what: who takes them, for the message.

    Raises:
        UsageError: something among them is no scope, or is one that no resource takes.
    """
    if isinstance(scopes, str) or not isinstance(scopes, Collection):
        raise UsageError(f"{what}: scopes are a set, as {{'files:read'}}, not {scopes!r}")
    for scope in scopes:
        if not isinstance(scope, str) or not is_scope(scope):
            raise UsageError(
                f"{what}: {scope!r} is no scope: letters, digits and signs, but no blanks, quotes "
                "or backslashes"
            )
        # spec 2026-07-28 basic/authorization#refresh-tokens: servers SHOULD NOT name it
        if scope == OFFLINE:
            raise UsageError(
                f"{what}: offline_access is between a client and its authorization server: no "
                "server takes it"
            )
    return frozenset(scopes)
