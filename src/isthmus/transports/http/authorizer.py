"""The authorizer that a server may have: the place where :mod:`isthmus.auth` plugs into HTTP.

On the serving side an :class:`Authorizer` stands between the guard and the message: it says who
sends a request, and whether what they ask for is theirs to ask. (On the calling side there is an
:class:`~isthmus.transports.http.client.requests.Authorization`.)
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal
from isthmus.transports.http.reply import Receive, Scope, Send

KnownScopes: TypeAlias = Callable[[], frozenset[str]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class MethodScopes(msgspec.Struct, frozen=True):
    """The method of one message, and the scopes it takes.

    Attributes:
        method: its method; empty for an answer.
        scopes: what its caller must have been granted for it.
    """

    method: str
    scopes: frozenset[str] = frozenset()


class Authorizer(Protocol):
    """Says who sends a request to a server, and what they may ask for.

    One that has an ``sse``, which is an authorizer, too, leaves HTTP+SSE to that.

    One that can tell without waiting whose token a request brings also has ``def recall(headers) ->
    Principal | None``, of the request's headers: whom :meth:`admit` would find now. It is asked first,
    and makes no coroutine; None has :meth:`admit` asked. Where a subclass or a wrapper has an ``admit`` of
    its own, what is recalled beneath it does not count.

    Attributes:
        routes: pages of its own on the server's origin, such as metadata, by exact path.
        hides: lists hold only what their reader may use.
    """

    routes: Mapping[str, AsgiApp]
    hides: bool

    @property
    def resource(self) -> str | None:
        """The URL of the endpoint as clients know it, whose host is a name of the server's; or None."""
        ...

    async def admit(self, scope: Scope) -> Principal | Refusal | None:
        """The principal who sends a request, from its head alone; None for nobody, where nobody may ask.

        Args:
            scope: the ASGI scope of the HTTP request, or of a WebSocket's handshake.
        """
        ...

    def permit(
        self,
        principal: Principal | None,
        asked: Sequence[MethodScopes],
        *,
        modern: bool,
        known: KnownScopes,
    ) -> Refusal | None:
        """Refuse a request whose sender lacks what it takes; None lets it through.

        Args:
            principal: whom :meth:`admit` found.
            asked: every message of the body; none where a request has no body.
            modern: the request is of 2026-07-28 or later.
            known: gives the scopes that anything on the server takes, whoever asks.
        """
        ...

    def allows(self, principal: Principal | None, scopes: frozenset[str]) -> bool:
        """Whether somebody was granted scopes, by name or by implication."""
        ...

    async def lasts(self, principal: Principal) -> bool:
        """Whether a stream that was opened for somebody may stay open."""
        ...

    async def upstream(self, principal: Principal, name: str) -> Any:
        """The way to a service behind the server, with a token of its own; see ``ctx.upstream``."""
        ...


def find_recall(judge: object, asked: str) -> Callable[..., Principal | None] | None:
    """The ``recall`` of an authorizer or a verifier; None where there is none to rely on.

    Who overrides the method that judges, in a subclass, in a wrapper or on the object itself, may
    refuse what is known beneath it, and means to be asked.

    Args:
        judge: the authorizer or verifier.
        asked: the method that judges: ``admit`` or ``verify``.
    """
    if asked in getattr(judge, "__dict__", ()):
        return None
    for kind in type(judge).__mro__:
        if "recall" in vars(kind):
            found: Callable[..., Principal | None] = judge.recall  # type: ignore[attr-defined]  # seen a line above
            return found
        if asked in vars(kind):
            return None
    return None
