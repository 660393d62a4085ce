"""The principal: who authenticated, with their scopes, and what belongs to them."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from isthmus.errors import UsageError


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The user or client a request was authorized for, as its access token says.

    It holds no token: what is not there cannot be handed on by accident.

    Attributes:
        issuer: the authorization server that vouches for all of this, as it spells itself.
        subject: the user, unique within the issuer; the client itself where no user is behind it.
        client_id: the client the token was given to; empty where the issuer does not tell.
        scopes: what the token allows.
        expires_at: seconds since the epoch when the token ends; None if it does not.
        claims: what else the issuer says.
        jkt: the thumbprint of the key that the token is bound to (RFC 9449), or None.
    """

    issuer: str
    subject: str
    client_id: str = ""
    scopes: frozenset[str] = frozenset()
    expires_at: float | None = None
    claims: Mapping[str, Any] = {}
    jkt: str | None = None

    @property
    def owner(self) -> str:
        """The principal as one text, which no other issuer's user or client shares."""
        return msgspec.json.encode([self.issuer, self.subject, self.client_id]).decode()


def owner_of(principal: Any) -> str | None:
    """To whom a session, a task or a sealed state belongs; None for nobody.

    The scopes and the life of a token do not matter: who comes back with a newer one owns what
    the older one made.

    Args:
        principal: a :class:`Principal`, or what a transport without tokens knows, such as
            ``"uid:1000"``.
    """
    if principal is None:
        return None
    return principal.owner if isinstance(principal, Principal) else str(principal)


OWNER_DIGEST_BYTES = 16


def digest_owner(owner: str | None) -> bytes | None:
    """A digest of whom something belongs to, for other processes to compare; None for nobody.

    Args:
        owner: from :func:`owner_of`.
    """
    if owner is None:
        return None
    from hashlib import sha256  # most servers let everybody in

    return sha256(owner.encode("utf-8", "surrogatepass")).digest()[:OWNER_DIGEST_BYTES]


NO_SCOPES: frozenset[str] = frozenset()

SCOPE_PATTERN = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749 3.3

OFFLINE_ACCESS = "offline_access"


def is_scope(text: str) -> bool:
    """Whether a text can be a scope: signs of ASCII without blanks, quotes and backslashes."""
    return SCOPE_PATTERN.fullmatch(text) is not None


def filter_scopes(named: Iterable[str]) -> frozenset[str]:
    """Keep what can be a scope of what somebody else named; nobody could ask for the rest."""
    return frozenset(scope for scope in named if is_scope(scope))


def check_scopes(scopes: Any, what: str) -> frozenset[str]:
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
        if scope == OFFLINE_ACCESS:
            raise UsageError(
                f"{what}: offline_access is a scope for authorization servers only: leave it out"
            )
    return frozenset(scopes)
