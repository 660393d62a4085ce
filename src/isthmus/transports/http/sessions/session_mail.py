"""Mail of sessions: what a client posts at one node reaches the node that it is meant for.

The ids of requests that a server sends on HTTP name the node that asks. An answer that arrives at
another one is mailed there, and so is progress; the end of ``initialize`` goes to the node where the
session began. What only the client knows the place of (a call to cancel, a task of its own) is told to
all nodes that hold the session, and only the one that has it acts.
"""

from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, structs

from isthmus.core.calls import find_asking_node
from isthmus.core.principal import digest_owner, owner_of
from isthmus.nodes.node import is_node_id
from isthmus.runtime.channel import Delivery, Origin
from isthmus.runtime.failures import log_debug, log_warning
from isthmus.store.mailbox import MailRefused, MailUndelivered
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.refusals import STORE_LOST
from isthmus.wire.jsonrpc import Frame, Unreadable, parse
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.core.http.rules import Refusal
    from isthmus.nodes.node import Node
    from isthmus.runtime.peer import Peer
    from isthmus.store.bus import Unsubscribe

SESSIONS_CHANNEL = "sessions"

MESSAGE_TOPIC = "session/message"

MAX_MAILED_BYTES = 16 * 1024 * 1024  # of a message from another node, which has its own limit

NewsKind = Literal["changed", "ended"]


class SessionLetter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message of a session's client, on its way to another node.

    Attributes:
        mark: the session.
        owner: a digest of whom it belongs to.
        body: the message.
    """

    mark: str
    owner: bytes | None
    body: bytes


class SessionNews(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What all nodes that hold a session are told.

    Attributes:
        sender: the node that tells it.
        kind: a message of its client; or the session has ended; or its record has changed.
        mark: the session.
        owner: a digest of whom it belongs to.
        body: the message, or nothing.
    """

    sender: str
    kind: NewsKind | Literal["message"]
    mark: str
    owner: bytes | None
    body: bytes = b""


class MailedSession(Protocol):
    """A session, as far as mail is concerned."""

    @property
    def mark(self) -> str:
        """Its name for all nodes."""
        ...

    @property
    def principal(self) -> object:
        """Whom it belongs to, or None."""
        ...

    @property
    def birth_node(self) -> str:
        """The node that it was opened at."""
        ...

    @property
    def peer(self) -> "Peer":
        """Takes its messages in."""
        ...

    def is_serving(self, id: Id) -> bool:
        """Whether a call of its client is in flight here."""
        ...


S = TypeVar("S", bound=MailedSession)


class SessionHolder(Protocol[S]):
    """Has the sessions that this node holds."""

    def find_marked(self, mark: str) -> S | None:
        """A session by its mark."""
        ...

    def hear_end(self, session: S) -> None:
        """Another node has ended a session."""
        ...

    def hear_change(self, session: S) -> None:
        """Another node has changed the record of a session."""
        ...

    def hear_of_unheld(self, mark: str) -> None:
        """Another node has told something of a session that this one does not hold."""
        ...

    def hear_gap(self) -> None:
        """What other nodes told may have been missed."""
        ...


_encode = msgspec.msgpack.Encoder().encode
_decode_letter = msgspec.msgpack.Decoder(SessionLetter).decode
_decode_news = msgspec.msgpack.Decoder(SessionNews).decode


class _Token(msgspec.Struct):
    """The id that a notification is about."""

    token: Id | None = msgspec.field(name="progressToken", default=None)
    request: Id | None = msgspec.field(name="requestId", default=None)


_read_token = msgspec.json.Decoder(_Token).decode


class Route(msgspec.Struct, frozen=True):
    """The way of one message of a client.

    Attributes:
        here: it is taken in here.
        node: the one other node it is for, or None.
        everywhere: all other nodes that hold the session are told.
    """

    here: bool = True
    node: str | None = None
    everywhere: bool = False


HERE = Route()
EVERYWHERE = Route(everywhere=True)


class SessionMail(Generic[S]):
    """Letters and news about the sessions of one node.

    Args:
        node: this node, which has a store.
        holder: has the sessions.
    """

    def __init__(self, node: "Node", holder: SessionHolder[S]) -> None:
        self._node = node
        self._holder = holder
        self._undo: list[Unsubscribe] = []

    async def open(self) -> None:
        """Begin to take letters in, and to hear what other nodes tell.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        bus, mailbox = self._node.bus, self._node.mailbox
        if bus is not None and mailbox is not None:
            mailbox.handle(MESSAGE_TOPIC, self._take_letter)
            self._undo.append(await bus.subscribe(SESSIONS_CHANNEL, self._hear))
            self._undo.append(bus.on_gap(self._holder.hear_gap))

    def close(self) -> None:
        """Hear nothing more."""
        undo, self._undo = self._undo, []
        for unsubscribe in undo:
            unsubscribe()

    # What a client posts here

    async def take(
        self, session: MailedSession, frame: Frame, delivery: Delivery
    ) -> "Refusal | None":
        """Take in a response or a notification, here and wherever it belongs.

        Args:
            session: its session.
            frame: the message.
            delivery: the same as bytes, and where it came from.

        Returns:
            Why it cannot be taken in now, or None.
        """
        route = self._find_route(frame, session)
        if route.here:
            session.peer.take(delivery, frame)
        return None if route is HERE else await self._forward(route, session, delivery.data)

    async def take_batch(
        self, session: MailedSession, delivery: Delivery
    ) -> "Delivery | Refusal | None":
        """Send on what belongs elsewhere of several messages.

        Returns:
            What is to be taken in here, None where that is nothing; or why they cannot be taken in
            now.
        """
        members = parse(delivery.data)
        if isinstance(members, Frame | Unreadable):
            return delivery
        kept = []
        for member in members:
            frame = parse(bytes(member))
            route = HERE
            if isinstance(frame, Frame) and not _is_request(frame):
                route = self._find_route(frame, session)
            if route.here:
                kept.append(member)
            if route is not HERE:
                refusal = await self._forward(route, session, bytes(member))
                if refusal is not None:
                    return refusal
        if len(kept) == len(members):
            return delivery
        if not kept:
            return None
        return structs.replace(delivery, data=b"[" + b",".join(map(bytes, kept)) + b"]")

    def _find_route(self, frame: Frame, session: MailedSession) -> Route:
        """The way of a response or a notification that a client has posted here."""
        if frame.method is UNSET:
            return self._find_answer_route(None if frame.id is UNSET else frame.id)
        if frame.method == "notifications/progress":
            return self._find_answer_route(_read_ids(frame).token)
        if frame.method == "notifications/cancelled":
            id = _read_ids(frame).request
            return HERE if id is None or session.is_serving(id) else EVERYWHERE
        if frame.method == "notifications/tasks/status":
            return EVERYWHERE
        if frame.method == "notifications/initialized":
            born_here = session.birth_node == self._node.id
            return HERE if born_here else Route(node=session.birth_node)
        return HERE

    def _find_answer_route(self, id: Id | None) -> Route:
        """The way of what is about a request of ours: to the node that its id names."""
        node = find_asking_node(id)
        if node is None or node == self._node.id or not is_node_id(node):
            return HERE
        return Route(here=False, node=node)

    # What is sent

    async def _forward(self, route: Route, session: MailedSession, body: bytes) -> "Refusal | None":
        try:
            if route.node is not None:
                await self._send(route.node, session, body)
            if route.everywhere:
                await self._publish(session, "message", body)
        except StoreUnavailable:
            return STORE_LOST
        return None

    async def _send(self, node: str, session: MailedSession, body: bytes) -> None:
        """Have another node take a message in; where it is gone, nobody waits for it any more.

        Raises:
            StoreUnavailable: it was not sent.
        """
        mailbox = self._node.mailbox
        letter = _encode(SessionLetter(session.mark, _digest(session), body))
        try:
            if mailbox is not None:
                await mailbox.send(node, MESSAGE_TOPIC, letter)
        except MailRefused as error:
            log_debug("what a client said came too late: %s", error)
        except MailUndelivered as error:
            if await self._node.is_alive(node):
                raise StoreUnavailable(str(error)) from None  # it may be reached again
            log_debug("what a client said came too late: %s", error)

    async def tell(self, session: MailedSession, kind: NewsKind) -> None:
        """Tell all other nodes that hold a session that its record has changed, or that it ended.

        Raises:
            StoreUnavailable: nobody was told.
        """
        await self._publish(session, kind, b"")

    async def _publish(
        self, session: MailedSession, kind: "NewsKind | Literal['message']", body: bytes
    ) -> None:
        if self._node.bus is not None:
            news = SessionNews(self._node.id, kind, session.mark, _digest(session), body)
            await self._node.bus.publish(SESSIONS_CHANNEL, _encode(news))

    # What arrives

    async def _take_letter(self, data: bytes) -> bytes:
        try:
            letter = _decode_letter(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise MailRefused("this is no message of a session") from None
        session = self._find(letter.mark, letter.owner)
        if session is None:
            raise MailRefused("there is no such session here")
        _take_in(session, letter.body)
        return b""

    def _hear(self, message: bytes) -> None:
        try:
            news = _decode_news(message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            log_warning("the bus carried news of a session that no node of this version sends")
            return
        if news.sender == self._node.id:
            return
        session = self._find(news.mark, news.owner)
        if session is None:
            self._holder.hear_of_unheld(news.mark)
            return
        if news.kind == "message":
            _take_in(session, news.body)
        elif news.kind == "ended":
            self._holder.hear_end(session)
        else:
            self._holder.hear_change(session)

    def _find(self, mark: str, owner: bytes | None) -> S | None:
        """The session of a letter, if it is held here and belongs to whom the letter says."""
        session = self._holder.find_marked(mark)
        return session if session is not None and _digest(session) == owner else None


MAILED_NOTIFICATIONS = frozenset(
    {
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/tasks/status",
    }
)


def _take_in(session: MailedSession, body: bytes) -> None:
    """Take in a message that was posted at another node: no request ever is."""
    frame = parse(body) if len(body) <= MAX_MAILED_BYTES else None
    if not isinstance(frame, Frame):
        return
    if frame.method is not UNSET and (
        frame.method not in MAILED_NOTIFICATIONS or frame.id is not UNSET
    ):
        return
    peer = session.peer
    origin = Origin("http", principal=session.principal, session=session.mark)
    peer.take(Delivery(body, origin), frame)
    if peer.outbox:
        peer.start(peer.flush())


def _is_request(frame: Frame) -> bool:
    return frame.method is not UNSET and frame.id is not UNSET and frame.id is not None


def _read_ids(frame: Frame) -> _Token:
    try:
        return _read_token(frame.params or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Token()  # a malformed one is ignored where it arrived


def _digest(session: MailedSession) -> bytes | None:
    return digest_owner(owner_of(session.principal))
