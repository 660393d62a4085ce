"""The response to a modern request (2026-07-28): one POST is one call, and its response the connection.

The call runs in the request's own task. What a plain call does not need is made when it is
first needed: the stream by the first notification, the watch for a client that leaves by a call
that runs on.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from isthmus.core.caller import Caller
from isthmus.errors import NotInRevision, UsageError
from isthmus.revisions import METHODS, project
from isthmus.revisions.codes import http_status
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.transports.http.reply import Reply
from isthmus.transports.http.request import Exchange
from isthmus.transports.http.request_watch import RequestWatch, WatchedRequest
from isthmus.wire.jsonrpc import ErrorBody, encode, encode_answer, encode_error, encode_note
from isthmus.wire.struct import Id, Wire

R = TypeVar("R")

# Seconds for a goodbye, on a stream whose listener may not listen any more
FAREWELL_TIMEOUT_S = 1.0

SERVER_STOPPING = ErrorBody(code=-32603, message="Internal error: the server is shutting down")


class ResponseChannel(WatchedRequest):
    """The channel of one modern POST: serves its request, and is the link back to who sent it.

    Args:
        exchange: the request, whose client may leave.
        reply: the response to it.
        caller: the facts the request states about itself.
    """

    __slots__ = ("_caller", "_closers", "_exchange", "_lingers", "_reply")

    def __init__(self, exchange: Exchange, reply: Reply, caller: Caller) -> None:
        # As WatchedRequest has it: each call makes one of these.
        self.task = None
        self._cut = False
        self._exchange = exchange
        self._reply = reply
        self._caller = caller
        self._closers: dict[object, Callable[[], None]] | None = None
        self._lingers = False

    @property
    def principal(self) -> Any:
        """The principal whose permission it lasts by, or None."""
        return self._exchange.principal

    async def serve(self, router: Router, watch: RequestWatch, inbound: Inbound) -> None:
        """Serve the request and send its answer, unless the client leaves before."""
        id, reply = inbound.id, self._reply
        self.task = self._exchange.task
        watch.enter(self)
        try:
            outcome = await router.serve(inbound)
            if isinstance(outcome, bytes):
                await reply.answer(encode_answer(id, outcome))
            else:
                await reply.answer(encode_error(id, outcome), http_status(outcome.code))
        except asyncio.CancelledError:
            if not self.was_cut():
                raise
            await reply.answer(encode_error(id, self.why(SERVER_STOPPING)), 503)
        finally:
            watch.leave(self)
            self._finish()

    def _finish(self) -> None:
        """Stop what runs beside the request, and tell whoever wanted to know: it is over."""
        if self._cut:
            self.was_cut()  # whoever swallowed the cancellation leaves it to be taken back
        self.task = None
        reply = self._reply
        reply.is_over = True
        if reply.events is not None:
            reply.close(reply.events)
        if self._lingers:
            self._exchange.unwatch()
        if self._closers is not None:
            self.farewell()

    def farewell(self) -> None:
        """The link ends: whoever asked to be told may still say goodbye on it."""
        closers, self._closers = self._closers or {}, None
        for callback in list(closers.values()):
            callback()

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:  # noqa: ARG002 - of the watch
        """The request runs on: from now on a client that leaves is noticed."""
        self._lingers = True
        self._exchange.watch(self._end)

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Another heartbeat's time has passed."""
        if self._reply.beat(loop):
            self._end()

    def _end(self) -> None:
        """The client has left, and with it the call."""
        # spec 2026-07-28 basic/transports/streamable-http#cancellation: a disconnect MUST be
        # treated as cancellation, and nothing more MUST be sent for the request
        self._reply.drop()
        self.cut()

    def expire(self, why: ErrorBody) -> None:
        """End the stream, if it is one: first whoever can part in good order, then the rest."""
        if self._reply.events is not None:
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
        await self._reply.say(encode_note(method, body))

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
