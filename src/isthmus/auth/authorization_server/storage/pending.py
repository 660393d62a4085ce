"""What was asked for at ``/authorize`` and found right, until somebody approves or denies it.

Between the two stand the pages for login and consent, or another authorization server. They get a
:class:`PendingAuthorization`, and end by :meth:`AuthorizationServer.approve` or :meth:`AuthorizationServer.deny`.
"""

import msgspec

from isthmus.auth.authorization_server.storage.clients import ClientKind

__all__ = ["PENDING_LIFE_S", "PendingAuthorization"]

PENDING_LIFE_S = 600.0


class PendingAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """A validated authorization request; client and redirect URI are known to be right.

    It is kept in the store, and taken out of it by the one answer that it gets.

    Attributes:
        txn: names it, unguessable.
        client_id: who asks.
        client_name: what the client calls itself; nobody has verified it unless ``client_kind``
            is ``"static"``.
        client_kind: how the client is known.
        client_uri: the client's home page, as it says; may be empty.
        redirect_uri: where the browser goes in the end.
        scopes: what is asked for, in the order asked.
        resource: the MCP server that the token will be for (RFC 8707).
        state: the client's, handed back unchanged; None if there was none.
        query: all parameters as they came, for the grant to be made of once more.
        created_at: seconds since the epoch.
        expires_at: after that it is gone.
        login_only: nothing is asked for but who is at the browser, which then goes to
            ``redirect_uri``, a page of ours; it cannot be approved.
    """

    txn: str
    client_id: str
    client_name: str
    client_kind: ClientKind
    client_uri: str = ""
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    state: str | None = None
    query: tuple[tuple[str, str], ...]
    created_at: float
    expires_at: float
    login_only: bool = False
