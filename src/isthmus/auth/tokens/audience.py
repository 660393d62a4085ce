"""Audience of a token (``aud``): checked here for JWTs, introspection answers and tokens of our own."""

from collections.abc import Collection, Mapping
from typing import Any


def audiences_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """For whom a token is: its ``aud``, which may be one text or several."""
    aud = claims.get("aud")
    listed = [aud] if isinstance(aud, str) else aud if isinstance(aud, list) else []
    return frozenset(one for one in listed if isinstance(one, str))


def is_issued_for(claims: Mapping[str, Any], audiences: Collection[str]) -> bool:
    """Whether a token was issued for one of some audiences, such as the URL of an MCP server."""
    # spec 2026-07-28
    # basic/authorization/security-considerations#token-audience-binding-and-validation
    return not audiences_of(claims).isdisjoint(audiences)
