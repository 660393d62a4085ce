"""Who authenticated: what handlers may know of them, and what belongs to whom."""

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["Principal", "owner_of"]


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who a request was authorized for, as its access token says.

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
        """Who this is, as one text that no other issuer's user or client shares."""
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
