"""An OAuth authorization server of our own: what it is configured with, and its ASGI app."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from isthmus.auth.authorization_server.pending import Front, Pending
from isthmus.auth.authorization_server.users import User, UserBackend
from isthmus.auth.urls import is_secure
from isthmus.errors import UsageError
from isthmus.transports.http.bearer import Asgi
from isthmus.transports.http.reply import Receive, Scope, Send

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.store import AuthStore

__all__ = ["AuthorizationServer"]


class AuthorizationServer:
    """Issues tokens for MCP servers: OAuth 2.1 with PKCE, as every revision since 2025-03-26 wants.

    Attributes:
        issuer: as it was given.
        resources: the MCP servers it issues tokens for; the first is the default.
        scopes: each scope and the sentence that people read about it.
        users: who can log in, or None where machines alone get tokens.
        store: where everything is kept.
        consent: ``"always"`` asks each time, ``"remember"`` asks once.
        front: what browsers see.
        routes: its endpoints and pages by exact path.
    """

    issuer: str
    resources: tuple[str, ...]
    scopes: Mapping[str, str]
    users: UserBackend | None
    store: "AuthStore"
    consent: Literal["always", "remember"]
    front: Front
    routes: Mapping[str, Asgi]

    async def approve(
        self,
        pending: Pending,
        user: User,
        *,
        scopes: Collection[str] | None = None,
        upstream_id: str | None = None,
    ) -> str:
        """Give the client a code, because its user said yes.

        Args:
            pending: what was asked; it is answered by this, once.
            user: who said yes.
            scopes: what of it was allowed; None is all.
            upstream_id: the row of upstream tokens that stands behind the new grant.

        Returns:
            Where to send the browser: the client's redirect URI with code, state and iss.

        Raises:
            AuthRefused: it was answered before, or is too old.
        """
        raise NotImplementedError

    async def deny(self, pending: Pending, error: str = "access_denied") -> str:
        """Tell the client that it gets nothing.

        Args:
            pending: what was asked; it is answered by this, once.
            error: why, as RFC 6749 4.1.2.1 spells it.

        Returns:
            Where to send the browser: the client's redirect URI with error, state and iss.

        Raises:
            AuthRefused: it was answered before, or is too old.
        """
        raise NotImplementedError
