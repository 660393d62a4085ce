"""One HTTP request and the way to respond to it, as they are handed from step to step."""

from typing import Any

import msgspec

from isthmus.core.http_rules import Accepts, Head, Refusal, accepts
from isthmus.runtime.channel import Origin
from isthmus.transports.http.guard import preflight_headers
from isthmus.transports.http.reply import Header, empty, plain
from isthmus.transports.http.request import Headers
from isthmus.wire.base import Id
from isthmus.wire.jsonrpc import encode_error

__all__ = ["EVENTS_ONLY", "Exchange"]

EVENTS_ONLY = Accepts(json=False, events=True)
JSON_ONLY = Accepts(json=True, events=False)


class Exchange(msgspec.Struct):
    """One HTTP request.

    Attributes:
        head: the headers that rules read.
        scope: the ASGI scope.
        receive: the ASGI callable that gives the body, then the disconnect.
        send: the ASGI callable that takes the response.
        extra: headers for whatever the response becomes.
        principal: who authenticated, or None.
        is_unread: its body was not read to the end.
    """

    head: Head
    scope: Any  # the ASGI types are protocols, which msgspec cannot check
    receive: Any
    send: Any
    extra: tuple[Header, ...] = ()
    principal: Any = None
    is_unread: bool = True

    def takes(self, *, streamed: bool = False) -> Accepts:
        """What forms of an answer the client takes.

        Args:
            streamed: leave it no choice where it takes event streams.
        """
        if self.scope["http_version"] == "1.0":
            # RFC 9112 6.1: a server MUST NOT send chunks to a client of HTTP/1.0, and the servers
            # that there are send a stream in no other way
            return JSON_ONLY
        takes = accepts(self.head.accept)
        return EVENTS_ONLY if streamed and takes.events else takes

    def origin(self, session: str | None = None, transport: str = "http") -> Origin:
        """Where the request's message comes from, for handlers that want to know."""
        scope, principal = self.scope, self.principal
        headers = Headers(scope["headers"], bare=principal is not None)
        return Origin(transport, headers, principal, session, scope.get("client"))

    @property
    def takes_streams(self) -> bool:
        """Whether its version of HTTP has event streams."""
        return bool(self.scope["http_version"] != "1.0")

    async def refuse(self, refusal: Refusal, id: Id | None = None) -> None:
        """Respond with a JSON-RPC error, under the request's id where that is known."""
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: else without an id
        body = encode_error(id, refusal.error(), null_id=False)
        own = tuple((name.encode(), value.encode()) for name, value in refusal.headers)
        send = self.send
        if self.is_unread:
            from isthmus.transports.http.lingering import LingeringResponse  # most is read

            send = LingeringResponse(self.scope, self.receive, send).send
        await plain(send, refusal.status, body, (*own, *self.extra))

    async def preflight(self) -> None:
        """Respond to the question whether a page may send a request (CORS)."""
        wanted = self.origin().headers.get("access-control-request-headers")
        await empty(self.send, 204, preflight_headers(self.head.origin, wanted))
