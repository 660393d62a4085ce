"""Sessions of the legacy era (Mcp-Session-Id): each is one channel; they expire when they are idle.

A session is a record. Nothing runs for it: its calls are served in the tasks of the POSTs that
brought them, its standing stream in the task of the GET that opened it, and one timer looks after
all sessions together.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from itertools import count, islice
from os import urandom
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs

from isthmus.core.caller import Caller
from isthmus.core.calls import CallIds
from isthmus.core.http.session_id import MARK_BYTES, SessionFacts
from isthmus.core.phases import Phase
from isthmus.core.principal import owner_of
from isthmus.errors import ConnectionLost, Refuse
from isthmus.revisions import BY_NAME, Feature
from isthmus.runtime.channel import CLOSED, Delivery, Origin, Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.store.log import Forgotten, Log
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.refusals import SHUTTING_DOWN, STORE_LOST
from isthmus.transports.http.reply import EventSink, EventWriter
from isthmus.transports.http.request import Exchange
from isthmus.transports.http.request_watch import RequestCut, RequestWatch
from isthmus.transports.http.sessions.node_sessions import NodeSessions
from isthmus.transports.http.sessions.records import (
    BLANK,
    RecordChange,
    SessionRecord,
)
from isthmus.transports.http.sessions.requests import GetRequest, PostRequest
from isthmus.transports.http.sessions.resume import PostedStream, SessionStreams
from isthmus.transports.http.sessions.seal import SessionSeal
from isthmus.transports.http.sessions.standing_streams import SessionHomes
from isthmus.transports.http.sessions.stream_followers import StreamFollower
from isthmus.wire.jsonrpc import ErrorBody, Frame, encode_error
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.core.http.rules import Refusal
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


FIRST_ADOPTED_STREAM = 1_000_000  # a session that comes back must not use a number again

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

    Attributes:
        birth: when it was opened, in seconds since the epoch.
        birth_node: the node that opened it.
        is_adopted: this node did not open it, or has released it since.
        is_stale: nobody has told its client of changes meanwhile; its next standing stream does.
        record: what its client has changed since, as far as this node knows.
        is_home: this node says what belongs to no request; see ``standing_streams.py``.
    """

    opens_elsewhere = True  # the end of a handshake may be posted to another process
    __slots__ = ("_book", "_gets", "_kept", "_posts", "_streams", "birth", "birth_node", "caller",
                 "home_version", "id", "is_adopted", "is_home", "is_stale", "mark", "over", "peer", "principal",
                 "record", "touched")  # fmt: skip

    def __init__(
        self, id: str, mark: str, book: "SessionBook", principal: Any = None, caller: str = ""
    ) -> None:
        self.id = id
        self.mark = mark
        self.principal = principal
        self.caller = caller
        self.touched = 0.0
        self.birth = self.home_version = 0
        self.birth_node = book.node.id
        self.is_adopted = self.is_stale = False
        self.record = BLANK
        self.over = False
        self.is_home = True
        self.peer = Peer(self, book.router, side="server", call_ids=book.call_ids)
        self._book = book
        self._posts: dict[Id, PostRequest] = {}
        self._gets: tuple[GetRequest, ...] = ()
        self._streams: SessionStreams | None = None
        self._kept: list[bytes] | None = None

    @property
    def tells_changes(self) -> bool:
        """Whether changes are told from here: by its home, or one that was or will be it."""
        homes = self._book.homes
        return self.is_home or (homes is not None and homes.tells_changes(self.mark))

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
                numbers=self._book.stream_numbers if self.is_adopted else None,
            )
        return self._streams

    def _find_calls(self, carrier: object) -> tuple[Id, ...]:
        """The ids of the requests that a response answers."""
        return tuple(id for id, post in self._posts.items() if post.reply.events is carrier)

    def is_serving(self, id: Id) -> bool:
        """Whether a call of its client is in flight here."""
        return id in self._posts

    def open_sink(self, writer: EventWriter) -> EventSink:
        """The sink of a POST's response that becomes a stream; kept where the revision resumes."""
        streams = self.streams
        return writer if streams is None else PostedStream(streams, writer)

    def _make_log_name(self) -> str:
        """The name its streams are kept under: its owner's is part of it, so that nobody else finds them."""
        owner = owner_of(self.principal)
        if owner is None:
            return self.mark
        from hashlib import sha256  # where there are owners, tokens have been hashed already

        return f"{self.mark}@{sha256(owner.encode()).hexdigest()[:32]}"

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
            await self._take_note(frame, delivery, post)
        elif frame.id in self._posts:
            await post.reply.answer(encode_error(frame.id, ID_IN_FLIGHT))
        else:
            await self._serve(frame.id, frame, delivery, post, envelope)
        self._book.touch(self)

    async def _take_note(self, frame: Frame, delivery: Delivery, post: PostRequest) -> None:
        """Take in a response or a notification, here or at the node that it is for."""
        mail = self._book.shared.mail
        refusal: Refusal | None = None
        if mail is None:
            self.peer.take(delivery, frame)
        else:
            refusal, taking = SHUTTING_DOWN, mail.take(self, frame, delivery)
            with suppress(RequestCut):
                refusal = await self._book.request_watch.await_watched(post.task, taking)
        if refusal is not None:
            await post.exchange.refuse(refusal)
        else:
            # spec 2025-11-25 basic/transports#sending-messages-to-the-server: 202, no body
            await post.reply.end(202)

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
        if self._book.shared.mail is not None:
            taking = self._book.shared.mail.take_batch(self, delivery)
            there: Delivery | Refusal | None = SHUTTING_DOWN
            with suppress(RequestCut):
                there = await self._book.request_watch.await_watched(post.task, taking)
            if not isinstance(there, Delivery):
                await (post.reply.end(202) if there is None else post.exchange.refuse(there))
                return
            delivery = there
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
            RequestCut: the server stops; nothing was sent.
        """
        watch = self._book.request_watch
        after = await watch.await_watched(get.task, self._assign_stream(get, last_id))
        if get.standing:
            standing = [one for one in self._gets if one.standing]
            for old in standing[: 1 - MAX_STANDING_STREAMS]:
                old.cut()
        self._gets = (*self._gets, get)
        self._book.request_watch.stay(get)
        if self.is_stale and get.standing:
            self.is_stale = False
            self._book.router.restore(self.peer, self.record.subscriptions, True)
        try:
            if get.standing and not self.is_home:
                get.cut()  # a newer one has come to another node
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
        streams, homes = self.streams, self._book.homes
        if last_id is None:
            if homes is not None:
                await homes.take_over(self)
            if streams is not None:
                get.stream = streams.open(get, standing=True)
            return None
        if streams is None:
            raise Forgotten(f"revision {self.peer.revision.name} has no streams that go on")
        stream, after = streams.find(last_id)
        await stream.check(after)
        get.standing = stream.standing
        if stream.standing and homes is not None:
            await homes.take_over(self)
            if isinstance(stream, StreamFollower):
                following = streams.open(get, standing=True)
                await streams.continue_standing(last_id, following)
                get.stream = following
                return None
        get.stream = stream
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
        if self.is_home or self._book.homes is None:
            await self.say_standing(out.data)
        else:
            await self._book.homes.say(self, out.data)

    async def say_standing(self, message: bytes) -> None:
        """Say what belongs to no request, or keep it until there is a stream for it."""
        # spec 2025-11-25 basic/transports#multiple-connections: on one stream only
        for get in reversed(self._gets):
            if get.standing and await get.say(message):
                return
        self._keep(message)

    def _keep(self, *messages: bytes) -> None:
        """Keep messages for a standing stream that is not open; the oldest give way."""
        kept = [*(self._kept or []), *messages][-MAX_KEPT_MESSAGES:]
        while len(kept) > 1 and sum(map(len, kept)) > MAX_KEPT_BYTES:
            del kept[0]
        self._kept = kept

    # Its home, where there are several nodes

    async def hand_over(self) -> list[bytes]:
        """Be its home no longer: end its standing streams; gives what was kept for one."""
        self.is_home = False
        standing = [get for get in self._gets if get.standing]  # one that comes now may stay
        kept, self._kept = self._kept or [], None
        if self._streams is not None:
            await self._streams.end_standing()
        for get in standing:
            get.cut()
        return kept

    def become_home(self, kept: list[bytes], *, from_dead: bool) -> None:
        """Be its home from now on.

        Args:
            kept: what the former home had for a standing stream that was not open.
            from_dead: nobody knows what the former home had to say.
        """
        self.is_home = True
        self._keep(*(message for message in kept if message not in (self._kept or ())))
        if from_dead:
            self._book.router.restore(self.peer, self.record.subscriptions, True)

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

    async def remember(self, change: RecordChange, id: Id) -> None:
        """Change what nodes that adopt the session must know; see ``sessions/records.py``.

        Args:
            change: makes the new record.
            id: the request that says so.

        Raises:
            Refuse: it cannot be kept now; nothing has changed.
        """
        try:
            await self._book.shared.change_record(self, change)
        except StoreUnavailable:
            post = self._posts.get(id)
            if post is not None:
                retry = [(name.encode(), value.encode()) for name, value in STORE_LOST.headers]
                post.reply.extra = (*post.reply.extra, *retry)
                await post.reply.answer(encode_error(id, STORE_LOST.error()), STORE_LOST.status)
            raise Refuse(STORE_LOST.code, STORE_LOST.message) from None

    def take_record(self, record: SessionRecord) -> None:
        """Act on a record that another node has written."""
        self.record = record
        peer = self.peer
        if record.log_level != peer.caller.log_level:
            peer.agree(structs.replace(peer.caller, log_level=record.log_level))
        self._book.router.restore(peer, record.subscriptions, False)

    def begin_elsewhere(self, facts: SessionFacts, caller: Caller) -> None:
        """Go on with a session that was opened at another node, or in a process before this one."""
        self.birth, self.birth_node, self.is_adopted = facts.birth, facts.node, True
        self.is_home = self._book.homes is None
        self.peer.agree(caller)
        self.peer.session.phase = Phase.OPEN

    async def close(self) -> None:
        """End the session; its id is unknown from now on."""
        await self._book.shared.end_for_good(self)

    def stop(self) -> None:
        """Cut everything short that goes on in this session."""
        self.over = True
        for request in (*self._posts.values(), *self._gets):
            request.cut()

    async def settle(self, *, forget: bool = True) -> None:
        """Settle what it still waits for, and forget what was said in it.

        Args:
            forget: nobody can ask for it any more, at other nodes either.
        """
        await self.peer.finish()
        self.peer.channel = CLOSED  # each would keep the other, and wait for the collector
        if self._streams is not None:
            await self._streams.close(forget=forget)


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

    A session that nobody uses is released, and adopted when its client comes back, here or elsewhere.

    Args:
        router: serves the requests of all sessions.
        request_watch: watches over calls and streams that last.
        loop: the event loop everything lives on.
        node: this process among those that serve together.
        seal: makes and opens their ids.
        log: keeps what is said on streams.
        letters: tell other nodes of streams, where the log is one that nodes share.
        idle: seconds without a request or an open stream until a session is released.
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
        self.seal = seal
        self.stream_numbers = count(FIRST_ADOPTED_STREAM)
        self.loop = loop
        self._idle = idle
        self._limit = limit
        self._newcomers: dict[str, HttpSession] = {}
        self._settled: dict[str, HttpSession] = {}
        self._callers: dict[str, dict[str, HttpSession]] = {}
        self._marks: dict[str, HttpSession] | None = None if node.store is None else {}
        self._timer: asyncio.TimerHandle | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self.shared = NodeSessions(self)
        self.homes: SessionHomes | None = None
        if node.store is not None:
            self.homes = SessionHomes(node, self.find_marked, self.shared.read_record)

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
        if not self._make_room(caller):
            return False
        mark = urandom(MARK_BYTES).hex()
        session = HttpSession(UNNAMED + mark, mark, self, delivery.origin.principal, caller)
        post.task = post.exchange.task
        self.request_watch.enter(post)
        session.touched = self.loop.time()
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
        self._watch_idle()
        return True

    def find_marked(self, mark: str) -> HttpSession | None:
        """The session of a mark, where nodes share a store."""
        return None if self._marks is None else self._marks.get(mark)

    def name(self, session: HttpSession) -> None:
        """Give a session its id, now that its handshake has settled what the id says.

        It is found by it before the answer leaves: the client may use it at once.
        """
        self._drop(session)
        session.birth = int(self.seal.clock())
        session.id = self.seal.make_id(
            session.mark, session.birth, session.peer.caller, session.principal
        )
        if not session.over:
            self._keep(session)

    def adopt(self, id: str, facts: SessionFacts, record: SessionRecord, origin: Origin) -> bool:
        """Hold a session that was opened elsewhere; False where there is no room for it."""
        name, principal = _name_caller(origin), origin.principal
        if not self._make_room(name):
            return False
        session = HttpSession(id, facts.mark, self, principal, name)
        revision, level = BY_NAME[facts.revision], record.log_level
        caller = Caller(revision, facts.capabilities, facts.info, level, principal)
        session.begin_elsewhere(facts, caller)
        session.record = record
        session.touched = self.loop.time()
        self._keep(session)
        session.is_stale = self.node.store is None
        self.router.restore(session.peer, record.subscriptions, False)
        self._watch_idle()
        return True

    def _keep(self, session: HttpSession) -> None:
        self._newcomers[session.id] = session
        self._callers.setdefault(session.caller, {})[session.id] = session
        if self._marks is not None:
            self._marks[session.mark] = session

    def _drop(self, session: HttpSession) -> None:
        self._settled.pop(session.id, None)
        self._newcomers.pop(session.id, None)
        if self._marks is not None:
            self._marks.pop(session.mark, None)
        theirs = self._callers.get(session.caller, {})
        theirs.pop(session.id, None)
        if not theirs:
            self._callers.pop(session.caller, None)

    def touch(self, session: HttpSession) -> None:
        """Note that a session was used just now."""
        session.touched = self.loop.time()
        if self._settled.pop(session.id, None) or self._newcomers.pop(session.id, None):
            self._settled[session.id] = session

    def end(self, session: HttpSession) -> None:
        """Forget a session, cut short what goes on in it, and settle what it waits for."""
        self._let_go(session, forget=True)

    def _release(self, session: HttpSession) -> None:
        """Give back the memory of a session whose client may come back, here or elsewhere."""
        self.shared.note_release(session)
        self._let_go(session, forget=self.node.store is None)

    def _let_go(self, session: HttpSession, *, forget: bool) -> None:
        if not session.over:
            self._drop(session)
            session.stop()
            self.start(session.settle(forget=forget))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that :meth:`close` waits for."""
        task = self.loop.create_task(work)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """Release all sessions and wait until they are settled: their clients may come back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.shared.leave()
        if self.letters is not None:
            self.letters.is_closing = True  # clients come back for their streams at other nodes
        for session in [*self.list_all()]:
            self._release(session)
        if self._endings:
            await asyncio.wait(self._endings)
        if self.letters is not None:
            await self.letters.close()

    def list_all(self) -> Iterator[HttpSession]:
        """Every session, the ones likeliest to be abandoned first."""
        yield from self._newcomers.values()
        yield from self._settled.values()

    def _make_room(self, caller: str) -> bool:
        """Have room for another session of a caller; False where none may be released for it."""
        if len(self) < self._limit:
            return True
        theirs, callers = self._callers.get(caller, {}), self._callers
        if not callers:
            return False  # there may be no session at all
        if len(callers) > 1 and len(theirs) * len(callers) >= self._limit:
            return self._release_idlest(
                theirs
            )  # more than a fair share: others have no part in this
        largest = max(callers.values(), key=len)
        return (
            self._release_idlest(self._newcomers)
            or (len(largest) * len(callers) > self._limit and self._release_idlest(largest))
            or self._release_idlest(self._settled)
        )

    def _release_idlest(self, sessions: Mapping[str, HttpSession]) -> bool:
        """Release a session that nobody waits for: one that was never used, or longest ago."""
        idle = [one for one in islice(sessions.values(), MAX_EVICTION_CANDIDATES) if not one.busy]
        if idle:
            self._release(min(idle, key=lambda one: (one.id not in self._newcomers, one.touched)))
        return bool(idle)

    def _watch_idle(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._idle, self._expire_idle)

    def _expire_idle(self) -> None:
        """Release the sessions that are idle for too long, and come again when the next may be."""
        now = self.loop.time()
        for session in [*self.list_all()]:
            if session.busy:
                session.touched = now
            elif session.touched + self._idle <= now or self.seal.find_rest(session.birth) <= 0:
                self._release(session)
        oldest = min((session.touched for session in self.list_all()), default=None)
        if oldest is None:
            self._timer = None
        else:
            then = max(oldest + self._idle, now + self._idle / SWEEPS_PER_IDLE_TIME)
            self._timer = self.loop.call_at(then, self._expire_idle)
