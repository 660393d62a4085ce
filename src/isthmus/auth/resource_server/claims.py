"""What a token or an introspection says, read into what a server knows of its sender."""

from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.auth.jose import InvalidToken

__all__ = ["binding_of", "scopes_of", "text_of"]

MOST = 1000
"""Scopes of one token that are looked at."""


def text_of(claims: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some claims that is a text and not empty."""
    for name in names:
        value = claims.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def scopes_of(claims: Mapping[str, Any], names: Sequence[str]) -> frozenset[str] | None:
    """The scopes in the first of some claims that is there; None where none is.

    They are one text with spaces (RFC 8693 4.2), or a list as some issuers write it.
    """
    for name in names:
        value = claims.get(name)
        if isinstance(value, str):
            return frozenset(value.split(" ")[:MOST]) - {""}
        if isinstance(value, list):
            return frozenset(one for one in value[:MOST] if isinstance(one, str))
    return None


def binding_of(claims: Mapping[str, Any]) -> str | None:
    """The thumbprint of the key that a token is bound to; None if it is bound to none.

    Raises:
        InvalidToken: it is bound to something that cannot be checked here. Without the check it would be
            good for anybody who has it.
    """
    bound = claims.get("cnf")
    if bound is None:
        return None
    jkt = bound.get("jkt") if isinstance(bound, dict) else None
    if not isinstance(jkt, str) or set(bound) != {"jkt"}:
        raise InvalidToken("the token is bound to something else than a DPoP key")
    return jkt
