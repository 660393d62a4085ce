"""What was asked for at ``/authorize`` and found right, until somebody approves or denies it.

Between the two stand the pages for login and consent, or another authorization server. They get a
:class:`Pending`, and end by :meth:`AuthorizationServer.approve` or :meth:`AuthorizationServer.deny`.
"""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from isthmus.transports.http.bearer import Asgi
from isthmus.transports.http.reply import Receive, Scope, Send

__all__ = ["PENDING_LIFE", "ClientKind", "Front", "Pending"]

PENDING_LIFE = 600.0
"""Seconds that somebody has to log in and decide."""

ClientKind: TypeAlias = Literal["static", "document", "dynamic"]
"""How a client is known: set up by the operator, by the document its id names, by registering."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
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


class Front(Protocol):
    """What a browser sees of an authorization server.

    Attributes:
        routes: its pages by exact path.
    """

    routes: Mapping[str, Asgi]

    async def begin(self, pending: Pending, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a validated request to ``/authorize``: log in, ask, or go on at once.

        Args:
            pending: what was asked; it is in the store.
            scope: the ASGI scope of the request; its body has been read, its query judged.
            receive: the ASGI callable.
            send: the ASGI callable.
        """
        ...

    async def problem(self, status: int, text: str, send: Send) -> None:
        """Show a page that says what was wrong; the browser is sent nowhere.

        Args:
            status: of the HTTP response.
            text: a sentence without anything that came with the request.
            send: the ASGI callable.
        """
        ...

    async def astray(self, back: str, send: Send) -> None:
        """Say that a request failed, and leave it to people whether they go on to its client.

        Args:
            back: a URL of the client's, which nobody vouches for.
            send: the ASGI callable.
        """
        ...
