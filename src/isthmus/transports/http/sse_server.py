"""HTTP+SSE, the transport of 2024-11-05, the server's side.

A client opens a stream by GET and is told where to send its messages; each of them is a POST that
is accepted at once, and everything the server has to say, answers included, is an event of the
one stream. The stream is the session: when it ends, so do its calls. Nothing here can be resumed.

It is an ordinary pipe to a :class:`~isthmus.runtime.peer.Peer`, so every revision with a handshake
can be spoken over it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from isthmus.core.caller import MalformedEnvelope, read_envelope
from isthmus.core.http.rules import Refusal, judge_head, parse_accept
from isthmus.core.http.sse import encode_event
from isthmus.core.principal import owner_of
from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import CLOSED, Delivery, Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.http.reply import EventWriter, Reply
from isthmus.transports.http.request import EVENTS_ONLY, Exchange
from isthmus.transports.http.request_watch import RequestWatch, WatchedRequest
from isthmus.transports.pipes import MAX_UNREAD_BYTES as FULL_STREAM
from isthmus.wire.jsonrpc import ErrorBody, Frame, Unreadable, parse
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.nodes.node import Node
    from isthmus.transports.http.admission import Admission
    from isthmus.transports.http.sse_mail import SseLetter, SseMail

GET_ONLY = Refusal(
    405,
    -32600,
    "This path opens an event stream (HTTP+SSE of 2024-11-05): send GET",
    UNSET,
    (("allow", "GET"),),
)
POST_ONLY = Refusal(
    405,
    -32600,
    "This path takes the messages of a client of HTTP+SSE: send POST",
    UNSET,
    (("allow", "POST"),),
)
HTTP_TOO_OLD = Refusal(406, -32600, "HTTP+SSE is event streams: HTTP/1.0 has none, use HTTP/1.1")
NO_EVENTS = Refusal(406, -32600, "A GET opens an event stream: accept text/event-stream")
NO_SESSION = Refusal(400, -32600, "session_id is missing: post to the URI of the endpoint event")
UNKNOWN_SESSION = Refusal(404, -32600, "There is no such session: open an event stream again")
TOO_MANY_SESSIONS = Refusal(503, -32603, "Too many sessions are in use: see max_sessions")
TOO_MUCH_UNREAD = Refusal(503, -32603, "Too much is left unread: read the event stream, then go on")
# Requests of one session that wait for their acceptance until its stream was read
MAX_HELD_REQUESTS = 64

MODERN_REQUEST = Refusal(
    400, -32600, "Since 2026-07-28 requests go to the endpoint of Streamable HTTP"
)


class SseStream(WatchedRequest):
    """The response to a GET: the channel that one session's peer sends on.

    Args:
        exchange: the request.
        router: serves what is sent to it; nobody may send but who opened it.
        id: its name, in ``session_id``.
    """

    __slots__ = ("_principal", "_room", "_unread", "held", "id", "peer", "reply", "writer")

    def __init__(self, exchange: Exchange, router: Router, id: str) -> None:
        super().__init__(exchange.task)
        self.writer = EventWriter(exchange, exchange.extra)
        self.reply = Reply(exchange, EVENTS_ONLY, exchange.extra)
        self.reply.events = self.writer
        self.id = id
        self._principal = exchange.principal
        self.peer = Peer(self, router, side="server")
        self.held = 0
        self._unread = 0
        self._room: asyncio.Event | None = None

    @property
    def principal(self) -> Any:
        """The principal who opened it, by their newest token, or None."""
        return self._principal

    def renew(self, principal: Any) -> None:
        """Last as long as the token that its user has shown again, which may be a newer one."""
        if principal is not None and self._principal is not None:
            self._principal = principal

    @property
    def full(self) -> bool:
        """Whether so much waits to be read that no further work should be taken in."""
        return self._unread > FULL_STREAM

    async def room(self) -> None:
        """Wait until the client has read, or is given up."""
        self.held += 1
        try:
            while self.full:
                self._room = self._room or asyncio.Event()
                await self._room.wait()
        finally:
            self.held -= 1

    async def receive(self) -> Delivery | None:  # noqa: D102 - the channel's
        return None  # every POST hands over its own message

    async def send(self, out: Outgoing) -> None:
        """Send a message as an event.

        Raises:
            ConnectionLost: the stream has ended.
        """
        self._unread += len(out.data)
        try:
            # spec 2024-11-05 basic/transports#http-with-sse: messages are sent as message events
            event = encode_event(out.data, event="message")
            if self.is_over or not await self.writer.write(event):
                raise ConnectionLost("the client has closed its event stream")
        finally:
            self._unread -= len(out.data)
            if self._room is not None and not self.full:
                self._room.set()
                self._room = None

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - part of the channel's shape
        """False: only a ``notifications/cancelled`` tells the client."""
        return False

    async def close(self) -> None:
        """End the stream, and with it the session."""
        self.cut()

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be sent."""
        return self.reply.is_over or self.writer.is_over

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Another heartbeat's time has passed."""
        if self.reply.beat(loop):  # the client takes nothing any more
            self.writer.drop()
            self.cut()

    def farewell(self) -> None:
        """The server stops: so does the stream."""
        self.cut()

    def expire(self, why: ErrorBody) -> None:
        """End the stream: whoever listens may not any more."""
        if self.writer.has_begun:
            self.cut(why)

    def finish(self) -> None:
        """The session is over: let go of everything that belongs to it."""
        if self._cut:
            self.was_cut()
        self.task = None
        self.reply.is_over = True
        self.reply.close(self.writer)


class SseServer:
    """The two endpoints of HTTP+SSE.

    Args:
        router: serves the requests.
        listening: the path of the event stream.
        posting: the path that messages are posted to.
        admission: says what is permitted; None permits everything.
        node: this process among those that serve together.

    Attributes:
        listening: the path of the event stream.
        paths: both paths.
        admission: says what is permitted here.
    """

    def __init__(
        self,
        router: Router,
        listening: str,
        posting: str,
        admission: "Admission | None" = None,
        *,
        node: "Node",
    ) -> None:
        self.admission = None if admission is None else admission.for_sse()
        self.listening = "/" + listening.strip("/")
        self.paths = frozenset({self.listening, "/" + posting.strip("/")})
        self._posting = "/" + posting.lstrip("/")  # mounts of others want the slash at its end
        self._router = router
        self._node = node
        self._mail = None if node.mailbox is None else _make_mail(node, self)
        self._streams: dict[str, SseStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    async def listen(self, exchange: Exchange, request_watch: RequestWatch, limit: int) -> None:
        """Serve a GET, from its first event to the end of the session.

        Args:
            exchange: the request.
            request_watch: watches over the stream.
            limit: the most streams there may be.
        """
        if exchange.request.method != "GET":
            # spec 2025-03-26 basic/transports#backwards-compatibility: clients that try the newer
            # transport here first learn from a 4xx that this is the older one
            await exchange.refuse(GET_ONLY)
        elif not parse_accept(exchange.request.head.accept).events:
            await exchange.refuse(NO_EVENTS)
        elif not exchange.takes_streams:
            await exchange.refuse(HTTP_TOO_OLD)
        elif len(self) >= limit:
            await exchange.refuse(TOO_MANY_SESSIONS)
        elif await self._permits(exchange, ()):
            await self._hold_open(exchange, request_watch)

    async def _hold_open(self, exchange: Exchange, request_watch: RequestWatch) -> None:
        # Another node sees by its id where its messages belong.
        id = f"{self._node.id}.{urandom(24).hex()}"
        stream = SseStream(exchange, self._router, id)
        self._streams[stream.id] = stream
        request_watch.stay(stream)
        lost = "the client has closed its event stream"
        try:
            # spec 2024-11-05 basic/transports#http-with-sse: when a client connects, the server
            # MUST send an endpoint event with a URI to send messages to
            where = f"{self._make_posting_path(exchange.request.outer_path)}?session_id={stream.id}"
            await stream.writer.write(encode_event(where.encode("latin-1"), event="endpoint"))
            if not stream.is_over:
                await exchange.wait_until_left()
            stream.writer.drop()
        except asyncio.CancelledError:
            if not stream.was_cut():
                raise
            lost = "the server has closed the event stream"
            await stream.reply.end()
        finally:
            del self._streams[stream.id]
            request_watch.leave(stream)
            stream.finish()
            await stream.peer.finish(ConnectionLost(lost))
            stream.peer.channel = CLOSED  # each would keep the other, and wait for the collector

    def _make_posting_path(self, path: str) -> str:
        """The path to post to as the client sees it: where its GET went to, but for the end."""
        return path.rstrip("/").removesuffix(self.listening) + self._posting

    async def find_session(self, exchange: Exchange) -> "SseStream | str | None":
        """The session that a message is for, from the head of the request that brings it.

        Returns:
            The id of a stream that another node may hold; None where the request was refused.
        """
        stream: SseStream | str | None = None
        id = _session_id(exchange.request.query)
        if exchange.request.method != "POST":
            refusal: Refusal | None = POST_ONLY
        elif id is None:
            refusal = NO_SESSION
        else:
            stream = self._find_stream(id, exchange.principal)
            if stream is None:
                refusal = UNKNOWN_SESSION
            else:
                bad = judge_head("POST", exchange.request.head, self._router.supported)
                refusal = bad if isinstance(bad, Refusal) else None
        if refusal is not None:
            await exchange.refuse(refusal)
            return None
        return stream

    def _find_stream(self, id: str, principal: Any) -> "SseStream | str | None":
        """The stream of this id, or the id where another node may have it."""
        stream = self._streams.get(id)
        if stream is None:
            there = None if self._mail is None else self._mail.find_node(id)
            return None if there is None else id
        # Somebody else's session looks like none, so that ids cannot be tried out.
        return stream if owner_of(stream.principal) == owner_of(principal) else None

    async def post(self, exchange: Exchange, stream: "SseStream | str", body: bytes) -> None:
        """Take in a message: it is accepted now, and answered on the stream.

        A client that asks and does not read gets no more work done: what it asks is accepted when
        it has read, and refused where many requests wait for that already.
        """
        frame = parse(body)
        if isinstance(frame, Unreadable):
            await exchange.refuse(Refusal(400, frame.code, frame.message), frame.id)
            return
        if isinstance(frame, Frame) and _is_modern(frame):
            await exchange.refuse(MODERN_REQUEST, None if frame.id is UNSET else frame.id)
            return
        if self.admission is not None:
            parsed = [frame] if isinstance(frame, Frame) else [parse(bytes(one)) for one in frame]
            if not await self._permits(exchange, [one for one in parsed if isinstance(one, Frame)]):
                return
        if isinstance(stream, str):
            refusal = await self._send(stream, exchange.principal, body)
        else:
            # The one stream cannot be opened again: it lasts as long as its user's newest token.
            stream.renew(exchange.principal)
            refusal = await self._find_lack(stream, frame, stream.room)
            if refusal is None:
                _take_in(stream, frame, Delivery(body, exchange.origin(stream.id, "http+sse")))
        if refusal is not None:
            await exchange.refuse(refusal)
            return
        await exchange.send_whole(202, b"", exchange.extra)

    async def _send(self, id: str, principal: Any, body: bytes) -> Refusal | None:
        """Have another node take a message in; why it is refused, or None."""
        return UNKNOWN_SESSION if self._mail is None else await self._mail.send(id, principal, body)

    async def _find_lack(
        self,
        stream: SseStream,
        frame: Frame | Sequence[Raw],
        room: Callable[[], Awaitable[None]],
    ) -> Refusal | None:
        """Wait until a stream takes a message in; why it does not, or None."""
        if stream.full and _asks(frame):
            if stream.held >= MAX_HELD_REQUESTS:
                return TOO_MUCH_UNREAD
            await room()
            if stream.is_over:
                return UNKNOWN_SESSION
        return None

    async def take_letter(self, letter: "SseLetter") -> Refusal | None:
        """Take in what was posted at another node, where it was permitted; see ``SseInbox``."""
        from isthmus.transports.http.sse_mail import (
            is_from_owner,
            make_letter_origin,
            wait_for_room,
        )

        stream = self._streams.get(letter.stream)
        if stream is None or not is_from_owner(letter, stream.principal):
            return UNKNOWN_SESSION
        frame = parse(letter.body)
        if isinstance(frame, Unreadable):
            return Refusal(400, frame.code, frame.message)
        lack = await self._find_lack(stream, frame, partial(wait_for_room, stream))
        if lack is None:
            _take_in(
                stream, frame, Delivery(letter.body, make_letter_origin(letter, stream.principal))
            )
        return lack

    async def _permits(self, exchange: Exchange, frames: Sequence[Frame]) -> bool:
        """Whether a request may have what it asks for; False where it was refused."""
        if self.admission is None:
            return True
        refusal = self.admission.find_refusal(exchange.principal, frames, modern=False)
        if refusal is None:
            return True
        one = frames[0] if len(frames) == 1 else Frame()
        asks = one.method is not UNSET and one.id is not UNSET
        await exchange.refuse(refusal, one.id if asks else None)  # type: ignore[arg-type]  # UNSET does not ask
        return False


def _make_mail(node: "Node", server: SseServer) -> "SseMail":
    from isthmus.transports.http.sse_mail import SseMail  # most servers are one process

    return SseMail(node, server, UNKNOWN_SESSION)


def _take_in(stream: SseStream, frame: Frame | Sequence[Raw], delivery: Delivery) -> None:
    """Begin to serve a message."""
    peer = stream.peer
    for inbound in peer.take(delivery, frame if isinstance(frame, Frame) else None):
        peer.spawn(inbound)
    if peer.outbox:
        peer.start(peer.flush())


def _session_id(query: bytes) -> str | None:
    for part in query.split(b"&"):
        name, _, value = part.partition(b"=")
        if name == b"session_id":
            return value.decode("latin-1")
    return None


def _asks(frame: Frame | Sequence[Raw]) -> bool:
    """Whether a message wants something, rather than answer or withdraw."""
    return not isinstance(frame, Frame) or (frame.method is not UNSET and frame.id is not UNSET)


def _is_modern(frame: Frame) -> bool:
    """Whether a request states its own facts: the rules for those are the other endpoint's."""
    envelope = read_envelope(frame.params or None)
    if isinstance(envelope, MalformedEnvelope) or envelope.meta is UNSET:
        return False
    return bool(envelope.meta.protocol_version)
