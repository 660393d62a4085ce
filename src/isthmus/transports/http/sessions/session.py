"""Sessions of the legacy era (Mcp-Session-Id): each is one channel; they expire when they are idle.

A session is a record. Nothing runs for it: its calls are served in the tasks of the POSTs that
brought them, its standing stream in the task of the GET that opened it, and one timer looks after
all sessions together.
"""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice
from os import urandom
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.core.calls import CallIds
from isthmus.core.http.session_id import MARK_BYTES
from isthmus.core.principal import owner_of
from isthmus.errors import ConnectionLost
from isthmus.revisions import Feature
from isthmus.runtime.channel import CLOSED, Delivery, Origin, Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.store.log import Forgotten, Log
from isthmus.transports.http.reply import EventSink, EventWriter
from isthmus.transports.http.request import Exchange
from isthmus.transports.http.request_watch import RequestWatch
from isthmus.transports.http.sessions.requests import GetRequest, PostRequest
from isthmus.transports.http.sessions.resume import PostedStream, SessionStreams
from isthmus.transports.http.sessions.seal import SessionSeal
from isthmus.wire.jsonrpc import ErrorBody, Frame, encode_error
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.nodes.node import Node
    from isthmus.transports.http.sessions.stream_letters import StreamLetters

SESSION_ENDED = ErrorBody(code=-32600, message="Invalid request: the session was ended")
ID_IN_FLIGHT = ErrorBody(code=-32600, message="Invalid request: this id is in flight already")
MAX_KEPT_MESSAGES = 64  # messages kept for a standing stream that is not open; the oldest give way

MAX_KEPT_BYTES = 1024 * 1024  # bytes of those messages together

# Standing streams of one session; the oldest gives way, for it is the likeliest to be dead
MAX_STANDING_STREAMS = 4

# Looks at all sessions per idle time: one may stay that fraction of it longer than allowed
SWEEPS_PER_IDLE_TIME = 8

MAX_EVICTION_CANDIDATES = 64  # sessions looked at for one that may give way to a new one


# What an id begins with until the handshake has gone well: no header can carry it
UNNAMED = "\0"


class HttpSession:
    """One legacy session: the channel its peer sends on.

    Args:
        id: its name, in ``Mcp-Session-Id``; whoever knows it is in.
        mark: names its streams and records; part of the id, and no secret.
        book: where it is found and ended.
        principal: who opened it, or None; nobody else may use it.
        caller: whose share of all sessions it counts in.
    """

    __slots__ = ("_book", "_gets", "_kept", "_posts", "_streams", "caller", "id", "mark", "over",
                 "peer", "principal", "touched")  # fmt: skip

    def __init__(
        self, id: str, mark: str, book: "SessionBook", principal: Any = None, caller: str = ""
    ) -> None:
        self.id = id
        self.mark = mark
        self.principal = principal
        self.caller = caller
        self.touched = 0.0
        self.over = False
        self.peer = Peer(self, book.router, side="server", call_ids=book.call_ids)
        self._book = book
        self._posts: dict[Id, PostRequest] = {}
        self._gets: tuple[GetRequest, ...] = ()
        self._streams: SessionStreams | None = None
        self._kept: list[bytes] | None = None

    @property
    def busy(self) -> bool:
        """Whether somebody waits for this session right now.

        A call whose client has left goes on (spec 2025-11-25 basic/transports: a disconnect is no
        cancellation), but only for as long as the session may be idle: nobody may ever come back.
        """
        return bool(self._gets) or any(post.reply.is_attended for post in self._posts.values())

    @property
    def streams(self) -> SessionStreams | None:
        """Its streams, or None where the revision agreed on cannot resume any."""
        if self._streams is None:
            revision = self.peer.revision
            if not revision.has(Feature.RESUMPTION):
                return None
            primes = revision.has(Feature.PRIMING)
            self._streams = SessionStreams(
                self._make_log_name(),
                self._book.log,
                primes=primes,
                mark=self.mark,
                node=self._book.node.id,
                letters=self._book.letters,
                find_calls=self._find_calls,
            )
        return self._streams

    def _find_calls(self, carrier: object) -> tuple[Id, ...]:
        """The ids of the requests that a response answers."""
        return tuple(id for id, post in self._posts.items() if post.reply.events is carrier)

    def open_sink(self, writer: EventWriter) -> EventSink:
        """The sink of a POST's response that becomes a stream; kept where the revision resumes."""
        streams = self.streams
        return writer if streams is None else PostedStream(streams, writer)

    def _make_log_name(self) -> str:
        """The name its streams are kept under: its owner's is part of it, so that nobody else finds them."""
        owner = owner_of(self.principal)
        if owner is None:
            return self.id
        from hashlib import sha256  # where there are owners, tokens have been hashed already

        return f"{self.id}@{sha256(owner.encode()).hexdigest()[:32]}"

    # What the client sends

    async def post(
        self,
        frame: Frame,
        delivery: Delivery,
        post: PostRequest,
        envelope: Envelope | None = None,
    ) -> None:
        """Serve one POST, up to the end of its response.

        Args:
            frame: the message, parsed and checked.
            delivery: its bytes and origin.
            post: the request, with the response to it.
            envelope: the message's envelope, where it has been read.
        """
        post.task = post.exchange.task
        if self.over:  # since it was found for this request
            await post.reply.answer(encode_error(None, SESSION_ENDED, null_id=False), 404)
            return
        if frame.method is UNSET or frame.id is UNSET or frame.id is None:
            self.peer.take(delivery, frame)
            # spec 2025-11-25 basic/transports#sending-messages-to-the-server: 202, no body
            await post.reply.end(202)
        elif frame.id in self._posts:
            await post.reply.answer(encode_error(frame.id, ID_IN_FLIGHT))
        else:
            await self._serve(frame.id, frame, delivery, post, envelope)
        self._book.touch(self)

    async def _serve(
        self,
        id: Id,
        frame: Frame,
        delivery: Delivery,
        post: PostRequest,
        envelope: Envelope | None,
    ) -> None:
        self._posts[id] = post
        self._book.request_watch.enter(post)
        try:
            for inbound in self.peer.take(delivery, frame, envelope):
                await self.peer.serve(inbound, post.task)
            if self.peer.outbox:
                await self.peer.flush()
            if not post.reply.is_over:  # a call that was withdrawn has no answer
                await post.reply.end(202)
        except asyncio.CancelledError:
            if not post.was_cut():
                raise
            await post.answer_cut(id, SESSION_ENDED)
        finally:
            self._book.request_watch.leave(post)
            self._posts.pop(id, None)
            post.finish()

    async def post_batch(self, delivery: Delivery, post: PostRequest) -> None:
        """Serve one POST of several messages, up to the end of its response.

        Args:
            delivery: their bytes and origin.
            post: the request, with the response to them.
        """
        post.task = post.exchange.task
        if self.over:
            await post.reply.answer(encode_error(None, SESSION_ENDED, null_id=False), 404)
            return
        calls = self.peer.take(delivery)
        refused, self.peer.outbox = self.peer.outbox, []
        self._posts.update((inbound.id, post) for inbound in calls)
        self._book.request_watch.enter(post)
        try:
            for out in refused:  # the whole of it, or all that is to be said about it
                await post.reply.answer(out.data)
            # one that was withdrawn before it began ends as cancelled, and nobody else does
            works = [self.peer.spawn(inbound) for inbound in calls]
            await asyncio.gather(*works, return_exceptions=True)
            if self.peer.outbox:
                await self.peer.flush()
            # spec 2025-03-26 basic/transports#sending-messages-to-the-server: 202 where there
            # were only notifications and responses
            await post.reply.end(202)
        except asyncio.CancelledError:
            if not post.was_cut():
                raise
            await post.answer_cut(None, SESSION_ENDED)
        finally:
            self._book.request_watch.leave(post)
            for inbound in calls:
                self.peer.forget_unstarted(inbound.id)
                self._posts.pop(inbound.id, None)
            post.finish()
            self._book.touch(self)

    async def open(self, frame: Frame, delivery: Delivery, post: PostRequest) -> bool:
        """Serve the ``initialize`` that a session begins with.

        Returns:
            Whether it went well, and the session is to be kept.
        """
        post.reply.stream = False  # no heartbeat may send the head before the session's id is in it
        for inbound in self.peer.take(delivery, frame):
            outcome = await self.peer.router.serve(inbound)
            if isinstance(outcome, bytes):
                self._book.name(self)
                answer = self.peer.session.answer(inbound.id, outcome)
                post.reply.extra = (*post.reply.extra, (b"mcp-session-id", self.id.encode()))
                await post.reply.answer(answer or b"")
                return True
            await post.reply.answer(self.peer.session.fail(inbound.id, outcome) or b"")
        for out in self.peer.outbox:
            await post.reply.answer(out.data)
        return False

    async def listen(self, exchange: Exchange, get: GetRequest, last_id: str | None) -> None:
        """Keep a GET's response open until the client leaves, or there is nothing more to say.

        Args:
            exchange: the request.
            get: what is made of it, with its response.
            last_id: the event after which a stream is to go on, or None for one of its own.

        Raises:
            Forgotten: there is no such event, or not everything after it any more; nothing was
                sent.
        """
        after = await self._assign_stream(get, last_id)
        if get.standing:
            standing = [one for one in self._gets if one.standing]
            for old in standing[: 1 - MAX_STANDING_STREAMS]:
                old.cut()
        self._gets = (*self._gets, get)
        self._book.request_watch.stay(get)
        try:
            await self._begin_stream(get, after)
            if not get.is_over:
                await exchange.wait_until_left()
            get.drop()
        except asyncio.CancelledError:
            if not get.was_cut():
                raise
            await get.reply.end()
        finally:
            self._book.request_watch.leave(get)
            self._gets = tuple(one for one in self._gets if one is not get)
            get.finish()
            self._book.touch(self)

    async def _assign_stream(self, get: GetRequest, last_id: str | None) -> int | None:
        """Give a response a stream to carry; the place in it to go on after, or None."""
        streams = self.streams
        if last_id is None:
            if streams is not None:
                get.stream = streams.open(get, standing=True)
            return None
        if streams is None:
            raise Forgotten(f"revision {self.peer.revision.name} has no streams that go on")
        get.stream, after = streams.find(last_id)
        get.standing = get.stream.standing
        await get.stream.check(after)
        return after

    async def _begin_stream(self, get: GetRequest, after: int | None) -> None:
        """Say what is there to be said when a stream begins or goes on."""
        if get.stream is None:
            await get.reply.open()
        elif after is None:
            await get.stream.begin()
        else:
            await get.stream.resume(get, after)
        if get.standing:
            kept, self._kept = self._kept or [], None
            for message in kept:
                await get.say(message)

    # The channel

    async def receive(self) -> Delivery | None:
        """None: every POST brings its own message to :meth:`post`, so nobody reads here."""
        return None

    @property
    def hears(self) -> bool:
        """Whether the client has a stream open for what we say of our own accord."""
        return any(get.standing for get in self._gets)

    async def send(self, out: Outgoing) -> None:
        """Put a message on the one stream it belongs to.

        Answers end the response to their call; what relates to a call precedes its answer; the
        rest goes to the standing stream, or waits for one.

        Raises:
            ConnectionLost: the session has ended.
        """
        if self.over:
            raise ConnectionLost("the session has ended")
        if out.answers is not None:
            post = self._posts.get(out.answers)
            if post is not None:
                await post.reply.answer(out.data)
            return
        if out.relates_to is not None:
            post = self._posts.get(out.relates_to)
            if post is not None and await post.reply.say(out.data):
                return
            if out.calls is None:
                return  # progress or a log line that nobody can take
        await self._say_standing(out.data)

    async def _say_standing(self, message: bytes) -> None:
        # spec 2025-11-25 basic/transports#multiple-connections: on one stream only
        for get in reversed(self._gets):
            if get.standing and await get.say(message):
                return
        kept = [*(self._kept or [])[1 - MAX_KEPT_MESSAGES :], message]
        while len(kept) > 1 and sum(map(len, kept)) > MAX_KEPT_BYTES:
            del kept[0]
        self._kept = kept

    async def let_go(self, id: Id, retry: float | None) -> None:
        """End the response to a call, whose client comes back for the rest of its stream.

        Args:
            id: the call.
            retry: seconds its client is asked to wait before that; None for the usual.
        """
        post = self._posts.get(id)
        if post is not None:
            seconds = self._book.retry if retry is None else retry
            await post.let_go(max(0, round(1000 * seconds)))

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - part of the channel's shape
        """False: only a ``notifications/cancelled`` tells the client."""
        return False

    async def close(self) -> None:
        """End the session; its id is unknown from now on."""
        self._book.end(self)

    def stop(self) -> None:
        """Cut everything short that goes on in this session."""
        self.over = True
        for request in (*self._posts.values(), *self._gets):
            request.cut()

    async def settle(self) -> None:
        """Settle what it still waits for, and forget what was said in it."""
        await self.peer.finish()
        self.peer.channel = CLOSED  # each would keep the other, and wait for the collector
        if self._streams is not None:
            await self._streams.close()


def _name_caller(origin: Origin) -> str:
    """Whose share of all sessions a new one counts in: who authenticated, or else an address.

    Of an IPv6 address it is the network: whoever has one has all addresses in it.
    """
    owner = owner_of(origin.principal)
    if owner is not None:
        return owner
    host = str(origin.peer[0]) if origin.peer else ""
    return ":".join(host.split(":")[:4]) if ":" in host and "." not in host else host


class SessionBook:
    """All sessions, found by their ids; bounded, and rid of the idle by one timer.

    A client that only ever initializes, however often, cannot push out sessions that are in use:
    newcomers give way to newcomers first. And a caller that has more than its share and goes on
    opening sessions pushes out its own.

    Args:
        router: serves the requests of all sessions.
        request_watch: watches over calls and streams that last.
        loop: the event loop everything lives on.
        node: this process among those that serve together.
        seal: makes and opens their ids.
        log: keeps what is said on streams.
        letters: tell other nodes of streams, where the log is one that nodes share.
        idle: seconds without a request or an open stream until a session ends.
        limit: the most sessions there may be.
        retry: seconds that a client is asked to wait before it comes back for the rest of a
            stream.
    """

    def __init__(
        self,
        router: Router,
        request_watch: RequestWatch,
        loop: asyncio.AbstractEventLoop,
        *,
        node: "Node",
        seal: SessionSeal,
        log: Log,
        letters: "StreamLetters | None" = None,
        idle: float,
        limit: int,
        retry: float,
    ) -> None:
        self.router = router
        self.call_ids = CallIds(node.id)
        self.request_watch = request_watch
        self.node = node
        self.log = log
        self.letters = letters
        self.retry = retry
        self._loop = loop
        self._seal = seal
        self._idle = idle
        self._limit = limit
        self._newcomers: dict[str, HttpSession] = {}
        self._settled: dict[str, HttpSession] = {}
        self._callers: dict[str, dict[str, HttpSession]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._endings: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._newcomers) + len(self._settled)

    def find(self, id: str, principal: Any = None) -> HttpSession | None:
        """The session of this name, for the one it belongs to; None for everybody else."""
        session = self._settled.get(id)
        if session is None:
            session = self._newcomers.get(id)
            if session is None:
                return None
        # Somebody else's session looks like none, so that ids cannot be tried out.
        theirs = session.principal
        mine = theirs is principal or owner_of(theirs) == owner_of(principal)
        return session if mine else None

    async def open(self, frame: Frame, delivery: Delivery, post: PostRequest) -> bool:
        """Serve an ``initialize`` in a new session, and keep it if that went well.

        Returns:
            False when there is no room for another session; nothing was sent then.
        """
        caller = _name_caller(delivery.origin)
        if len(self) >= self._limit and not self._make_room(caller):
            return False
        mark = urandom(MARK_BYTES).hex()
        session = HttpSession(UNNAMED + mark, mark, self, delivery.origin.principal, caller)
        post.task = post.exchange.task
        self.request_watch.enter(post)
        session.touched = self._loop.time()
        self._keep(session)  # it counts from now on, and is found as soon as it has a name
        kept = False
        try:
            kept = await session.open(frame, delivery, post)
        except asyncio.CancelledError:
            if not post.was_cut():
                raise
            await post.reply.answer(encode_error(None, SESSION_ENDED, null_id=False), 503)
        finally:
            self.request_watch.leave(post)
            post.finish()
            if not kept:
                self.end(session)
        if self._timer is None:
            self._timer = self._loop.call_later(self._idle, self._expire_idle)
        return True

    def name(self, session: HttpSession) -> None:
        """Give a session its id, now that its handshake has settled what the id says.

        It is found by it before the answer leaves: the client may use it at once.
        """
        self._drop(session)
        session.id = self._seal.make_id(session.mark, session.peer.caller, session.principal)
        if not session.over:
            self._keep(session)

    def _keep(self, session: HttpSession) -> None:
        self._newcomers[session.id] = session
        self._callers.setdefault(session.caller, {})[session.id] = session

    def _drop(self, session: HttpSession) -> None:
        self._settled.pop(session.id, None)
        self._newcomers.pop(session.id, None)
        theirs = self._callers.get(session.caller, {})
        theirs.pop(session.id, None)
        if not theirs:
            self._callers.pop(session.caller, None)

    def touch(self, session: HttpSession) -> None:
        """Note that a session was used just now."""
        session.touched = self._loop.time()
        if self._settled.pop(session.id, None) or self._newcomers.pop(session.id, None):
            self._settled[session.id] = session

    def end(self, session: HttpSession) -> None:
        """Forget a session, cut short what goes on in it, and settle what it waits for."""
        if session.over:
            return
        self._drop(session)
        session.stop()
        ending = self._loop.create_task(session.settle())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """End all sessions and wait until they are settled."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.letters is not None:
            self.letters.is_closing = True  # clients come back for their streams at other nodes
        for session in [*self._all()]:
            self.end(session)
        if self._endings:
            await asyncio.wait(self._endings)
        if self.letters is not None:
            await self.letters.close()

    def _all(self) -> Iterator[HttpSession]:
        """Every session, the ones likeliest to be abandoned first."""
        yield from self._newcomers.values()
        yield from self._settled.values()

    def _make_room(self, caller: str) -> bool:
        """End a session for one that a caller opens; False where none may be ended for that."""
        theirs, callers = self._callers.get(caller, {}), self._callers
        if not callers:
            return False  # there may be no session at all
        if len(callers) > 1 and len(theirs) * len(callers) >= self._limit:
            return self._end_idlest(theirs)  # more than a fair share: others have no part in this
        largest = max(callers.values(), key=len)
        return (
            self._end_idlest(self._newcomers)
            or (len(largest) * len(callers) > self._limit and self._end_idlest(largest))
            or self._end_idlest(self._settled)
        )

    def _end_idlest(self, sessions: Mapping[str, HttpSession]) -> bool:
        """End a session that nobody waits for: one that was never used, or longest ago."""
        idle = [one for one in islice(sessions.values(), MAX_EVICTION_CANDIDATES) if not one.busy]
        if idle:
            self.end(min(idle, key=lambda one: (one.id not in self._newcomers, one.touched)))
        return bool(idle)

    def _expire_idle(self) -> None:
        """End the sessions that are idle for too long, and come again when the next may be."""
        now = self._loop.time()
        for session in [*self._all()]:
            if session.busy:
                session.touched = now
            elif session.touched + self._idle <= now:
                self.end(session)
        oldest = min((session.touched for session in self._all()), default=None)
        if oldest is None:
            self._timer = None
        else:
            then = max(oldest + self._idle, now + self._idle / SWEEPS_PER_IDLE_TIME)
            self._timer = self._loop.call_at(then, self._expire_idle)
