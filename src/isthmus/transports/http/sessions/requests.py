"""The requests of a legacy session that are watched while they run: each POST, and each open GET.

A client that leaves does not cancel its call here (spec 2025-11-25 basic/transports: a disconnect
is no cancellation): it may come back for the rest of the stream, which its session keeps.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from isthmus.core.http.rules import AcceptedForms
from isthmus.transports.http.reply import (
    EventWriter,
    Reply,
    StreamOwner,
)
from isthmus.transports.http.request import EVENTS_ONLY, Exchange
from isthmus.transports.http.request_watch import WatchedRequest
from isthmus.transports.http.sessions.resume import PostedStream, SessionStreams
from isthmus.wire.jsonrpc import ErrorBody, encode_error
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.transports.http.sessions.stream_carrier import CarriedStream

FAREWELL_TIMEOUT_S = 0.5  # that a client may take to read that it shall come back

PRIME_AFTER_S = 1.0  # that a call lasts until its client is given an id to come back with


class ResumableSession(StreamOwner, Protocol):
    """A session, as far as its requests are concerned."""

    @property
    def streams(self) -> SessionStreams | None:
        """Its streams, or None where the revision agreed on cannot resume any."""
        ...


class PostRequest(WatchedRequest):
    """One POST of a session, and its response.

    Args:
        exchange: the request.
        takes: the forms of an answer that the client takes.
        session: keeps what is said; None for the ``initialize`` that it is opened by.

    Attributes:
        reply: the response.
        exchange: the request.
    """

    __slots__ = ("_leaving", "_lingers", "_primer", "_session", "exchange", "reply")

    def __init__(
        self, exchange: Exchange, takes: AcceptedForms, session: ResumableSession | None = None
    ) -> None:
        # As WatchedRequest has it: each call makes one of these.
        self.task = None
        self._cut = False
        self.reply = Reply(exchange, takes, exchange.extra, session)
        self.exchange = exchange
        self._session = session
        self._lingers = False
        self._primer: asyncio.TimerHandle | None = None
        self._leaving: asyncio.Task[None] | None = None

    @property
    def principal(self) -> Any:
        """The principal whose permission it lasts by, or None."""
        return self.exchange.principal

    @property
    def _primed_streams(self) -> SessionStreams | None:
        """The session's streams, where a client can be asked to come back to them."""
        streams = None if self._session is None else self._session.streams
        return streams if streams is not None and streams.primes and self.reply.stream else None

    async def let_go(self, retry: int) -> None:
        """End the response and have its client come back, where the revision can poll.

        Args:
            retry: milliseconds that the client is asked to wait before that.
        """
        # spec 2025-06-18 basic/transports: before 2025-11-25 a server SHOULD NOT close a stream
        # before its answer
        if not self.reply.is_over and self._primed_streams is not None:
            events = self.reply.events or self.reply.begin()
            if isinstance(events, PostedStream):
                await events.open_stream().let_go(retry)

    def expire(self, why: ErrorBody) -> None:
        """End the stream; where a client can come back for the rest, it does with another token."""
        if self.reply.events is None or not self.reply.is_attended:
            return  # it is an answer in one piece, or another response that listens now
        if self._primed_streams is None:
            self.cut(why)
        else:
            self._leaving = asyncio.get_running_loop().create_task(self.let_go(0))

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """The request runs on: from now on a client that leaves is noticed."""
        if self._primed_streams is not None:  # the client is given the means to come back
            self._primer = loop.call_later(PRIME_AFTER_S, self.beat, loop)
        self._lingers = True
        self.exchange.watch(self._drop)

    def _drop(self) -> None:
        """The client has left."""
        if self._primer is not None:
            self._primer.cancel()
        self.reply.drop()

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Another heartbeat's time has passed."""
        if self.reply.beat(loop):
            self.reply.drop()

    async def answer_cut(self, id: Id | None, usual: ErrorBody) -> None:
        """Answer after :meth:`cut`.

        Args:
            id: the call; None for several.
            usual: the error where nobody gave another: that the session has ended (404).
        """
        why = self.why(usual)
        # spec 2025-11-25 basic/transports#session-management: 404 has a client begin a new session
        status = 404 if why is usual else 503
        await self.reply.answer(encode_error(id, why, null_id=False), status)

    def finish(self) -> None:
        """The request is over: let go of everything that belongs to it."""
        if self._cut:
            self.was_cut()  # whoever swallowed the cancellation leaves it to be taken back
        self.task = None
        reply = self.reply
        reply.is_over = True
        if reply.events is not None:
            reply.close(reply.events)
        if self._primer is not None:
            self._primer.cancel()
        if self._lingers:
            self.exchange.unwatch()
        if self._leaving is not None:
            self._leaving.cancel()


class GetRequest(WatchedRequest):
    """A GET of a session: its response is open until one side has enough, or the stream is over.

    Args:
        exchange: the request.
        session: whose it is.
        retry: seconds that its client is asked to wait where the server stops.

    Attributes:
        reply: the response.
        writer: writes the response, which is an event stream in any case.
        stream: the stream it carries, or None where the revision cannot resume any.
        standing: it takes what belongs to no request.
        retry: milliseconds that its client is asked to wait before it comes back, where the server
            stops; None where the revision has no such thing.
    """

    __slots__ = ("_exchange", "_leaving", "reply", "retry", "standing", "stream", "writer")

    def __init__(
        self, exchange: Exchange, session: ResumableSession | None = None, retry: float = 0.0
    ) -> None:
        super().__init__(exchange.task)
        streams = None if session is None else session.streams
        primes = streams is not None and streams.primes
        self.retry = round(1000 * retry) if primes else None
        self._exchange = exchange
        self.writer = EventWriter(exchange, exchange.extra)
        self.reply = Reply(exchange, EVENTS_ONLY, exchange.extra)
        self.reply.events = self.writer
        self.stream: CarriedStream | None = None
        self.standing = True
        self._leaving: asyncio.Task[None] | None = None

    @property
    def principal(self) -> Any:
        """The principal whose permission it lasts by, or None."""
        return self._exchange.principal

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be sent."""
        return self.reply.is_over or self.writer.is_over

    async def say(self, message: bytes) -> bool:
        """Send a message; False when it cannot be sent."""
        if self.is_over:
            return False
        return await (self.stream or self.writer).put(message)

    def hang_up(self) -> None:
        """The response was ended."""
        self.reply.is_over = True
        self.give_way()

    def give_way(self) -> None:
        """End this response: its task wakes up and does it."""
        if self.task is not asyncio.current_task():
            self.cut()

    def drop(self) -> None:
        """Write nothing more: nobody listens here any more."""
        self.writer.drop()
        if self.stream is not None:
            self.stream.leave(self)

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Another heartbeat's time has passed."""
        if self.reply.beat(loop):  # the client takes nothing any more
            self.drop()
            self.give_way()

    def farewell(self) -> None:
        """The server stops: so does the response, and its client comes back, to another node."""
        if self.stream is None or self.retry is None or not self.writer.has_begun:
            self.cut()
        elif self._leaving is None:
            leaving = self._let_go(self.stream, self.retry)
            self._leaving = asyncio.get_running_loop().create_task(leaving)

    async def _let_go(self, stream: "CarriedStream", retry: int) -> None:
        try:
            async with asyncio.timeout(FAREWELL_TIMEOUT_S):
                await stream.let_go(retry)
        except TimeoutError:
            pass  # its client does not read
        finally:
            self.give_way()

    def expire(self, why: ErrorBody) -> None:
        """End the stream: whoever listens may not any more."""
        if self.writer.has_begun:
            self.cut(why)

    def finish(self) -> None:
        """The request is over: let go of everything that belongs to it."""
        if self._cut:
            self.was_cut()
        self.task = None
        self.reply.is_over = True
        self.reply.close(self.writer)
        if self._leaving is not None:
            self._leaving.cancel()
        if self.stream is not None:
            self.stream.leave(self)
