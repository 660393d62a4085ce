"""The modern era's way back: one POST is one call, and its response is the whole connection.

The call runs in the ASGI request's own task. What a plain call does not need is made when it is
first needed: the stream by the first notification, the watch for a client that leaves by a call
that runs on.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from isthmus.core.caller import Caller
from isthmus.core.http.rules import AcceptedForms
from isthmus.errors import NotInRevision, UsageError
from isthmus.revisions import METHODS, project
from isthmus.revisions.codes import http_status
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.transports.http.reply import Header, Receive, Send, WatchedReply
from isthmus.transports.http.request_watch import RequestWatch
from isthmus.wire.jsonrpc import ErrorBody, encode, encode_answer, encode_error, encode_note
from isthmus.wire.struct import Id, Wire

__all__ = ["SERVER_STOPPING", "ResponseChannel"]

R = TypeVar("R")

FAREWELL_TIMEOUT_S = 1.0
"""Seconds for a goodbye, on a stream whose listener may not listen any more."""

SERVER_STOPPING = ErrorBody(code=-32603, message="Internal error: the server is shutting down")


class ResponseChannel(WatchedReply):
    """One modern POST: serves its request and is the link back to who sent it.

    Args:
        send: the ASGI callable that takes response messages.
        takes: the forms of an answer that the client takes.
        extra: headers for whatever the response becomes.
        receive: the ASGI callable that says when the client has left.
        caller: the facts the request states about itself.
    """

    __slots__ = ("_caller", "_closers")

    def __init__(
        self,
        send: Send,
        takes: AcceptedForms,
        extra: tuple[Header, ...],
        receive: Receive,
        caller: Caller,
    ) -> None:
        super().__init__(send, takes, extra, receive)
        self._caller = caller
        self._closers: dict[object, Callable[[], None]] | None = None

    async def serve(self, router: Router, lookout: RequestWatch, inbound: Inbound) -> None:
        """Serve the request and send its answer, unless the client leaves before."""
        id = inbound.id
        lookout.enter(self)
        try:
            outcome = await router.serve(inbound)
            if isinstance(outcome, bytes):
                await self.answer(encode_answer(id, outcome))
            else:
                await self.answer(encode_error(id, outcome), http_status(outcome.code))
        except asyncio.CancelledError:
            if not self.was_cut():
                raise
            await self.answer(encode_error(id, self.why(SERVER_STOPPING)), 503)
        finally:
            lookout.leave(self)
            self.finish()

    def finish(self) -> None:
        """The request is over: stop the watch and tell whoever wanted to know."""
        super().finish()
        if self._closers is not None:
            self.farewell()

    def farewell(self) -> None:
        """The link ends: whoever asked to be told may still say goodbye on it."""
        closers, self._closers = self._closers or {}, None
        for callback in list(closers.values()):
            callback()

    def left(self) -> None:
        """The client has left, and with it the call."""
        # spec 2026-07-28 basic/transports/streamable-http#cancellation: a disconnect MUST be
        # treated as cancellation, and nothing more MUST be sent for the request
        super().left()
        self.cut()

    def expire(self, why: ErrorBody) -> None:
        """End the stream, if it is one: first whoever can part in good order, then the rest."""
        if self.streaming:
            self.farewell()
            asyncio.get_running_loop().call_later(FAREWELL_TIMEOUT_S, self.cut, why)

    # The link

    async def note(
        self,
        method: str,
        params: Wire | None = None,
        *,
        relates_to: Id | None = None,  # noqa: ARG002 - part of the link's shape; all relates here
    ) -> None:
        """Send a notification; nothing happens where the client takes no streams or has left.

        Raises:
            NotInRevision: the revision has no such notification from a server.
        """
        revision = self._caller.revision
        if method in METHODS and not revision.allows("server", method):
            raise NotInRevision(f"revision {revision.name} has no {method!r} from the server")
        body = None if params is None else encode(project(params, revision))
        await self.say(encode_note(method, body))

    async def call(
        self,
        method: str,
        params: Wire | None,  # noqa: ARG002 - part of the link's shape
        result: type[R],  # noqa: ARG002
        *,
        relates_to: Id | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
    ) -> R:
        """Refuse: this revision has no requests from servers; questions travel in results.

        Raises:
            UsageError: always.
        """
        # spec 2026-07-28 basic/transports/streamable-http#receiving-messages: a server MUST NOT
        # send requests on a response stream
        raise UsageError(
            f"cannot send {method!r} on the response to a request of revision "
            f"{self._caller.revision.name}; ask in the result instead"
        )

    async def let_go(self, id: Id, retry: float | None = None) -> None:
        """Do nothing: since 2026-07-28 a response that ends has cancelled its call."""

    def agree(self, caller: Caller) -> None:
        """Take note of nothing: each request states its own facts."""

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run ``callback`` when the request ends or the server stops; returns how to undo it."""
        if self._closers is None:
            self._closers = {}
        closers, key = self._closers, object()
        closers[key] = callback

        def undo() -> None:
            closers.pop(key, None)

        return undo
