"""Mail between nodes for HTTP+SSE: a message that was posted elsewhere reaches its stream's node.

Who posts is judged where the POST arrives, by its token; the stream's node is told to whom the
token belongs and which scopes it has, and never the token. It takes the message in as if it had
been posted there.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import structs

from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal, digest_owner, owner_of
from isthmus.nodes.node import is_node_id
from isthmus.runtime.channel import Origin
from isthmus.store.mailbox import MailRefused, MailUndelivered
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.refusals import STORE_LOST

if TYPE_CHECKING:
    from isthmus.nodes.node import Node

SSE_TOPIC = "sse"

ROOM_WAIT_S = 1.0  # that a letter waits for its client to read; then it is sent again

MAX_STREAM_ID_CHARS = 128


class SseLetter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message that was posted at another node than its stream's.

    Attributes:
        stream: the id of the stream.
        owner: a digest of whoever posts, from :func:`~isthmus.core.principal.digest_owner`.
        scopes: those of the token that was shown; None where there are no tokens.
        body: the message, one that can be read.
    """

    stream: str
    owner: bytes | None
    scopes: list[str] | None
    body: bytes


class SseInbox(Protocol):
    """Takes in what is posted to the streams of this node."""

    async def take_letter(self, letter: SseLetter) -> Refusal | None:
        """Take a message in.

        Returns:
            Why it is refused, or None.

        Raises:
            TimeoutError: its client has not read enough within :data:`ROOM_WAIT_S`.
        """
        ...


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SseLetter).decode
_decode_refusal = msgspec.msgpack.Decoder(Refusal).decode

TAKEN, NO_ROOM = b"+", b"~"  # the answers that are no refusals


class SseMail:
    """The letters of the streams of one node.

    Args:
        node: this node.
        inbox: takes letters in.
        unknown: the refusal for a stream that is not there.
    """

    def __init__(self, node: "Node", inbox: SseInbox, unknown: Refusal) -> None:
        self._node = node
        self._inbox = inbox
        self._unknown = unknown
        if node.mailbox is not None:
            node.mailbox.handle(SSE_TOPIC, self._take_in)

    def find_node(self, stream: str) -> str | None:
        """The other node that a stream's id names, or None."""
        id, dot, _ = stream.partition(".")
        if not dot or len(stream) > MAX_STREAM_ID_CHARS or self._node.mailbox is None:
            return None
        return id if id != self._node.id and is_node_id(id) else None

    async def send(self, stream: str, principal: Any, body: bytes) -> Refusal | None:
        """Have a stream's node take a message in; waits while its client has much to read.

        Args:
            stream: the stream's id.
            principal: who posts.
            body: the message.

        Returns:
            Why it is refused, or None.
        """
        mailbox, address = self._node.mailbox, self.find_node(stream)
        if mailbox is None or address is None:
            return self._unknown
        scopes = sorted(principal.scopes) if isinstance(principal, Principal) else None
        letter = _encode(SseLetter(stream, digest_owner(owner_of(principal)), scopes, body))
        while True:
            try:
                answer = await mailbox.send(address, SSE_TOPIC, letter)
            except (MailUndelivered, MailRefused):
                return await self._judge_silence(address)
            except StoreUnavailable:
                return STORE_LOST
            if answer != NO_ROOM:
                return None if answer == TAKEN else _decode_refusal(answer)

    async def _judge_silence(self, address: str) -> Refusal:
        """The refusal where a node did not answer: its stream is gone, or it is slow."""
        try:
            alive = await self._node.is_alive(address)
        except StoreUnavailable:
            return STORE_LOST
        return NODE_SILENT if alive else self._unknown

    async def _take_in(self, data: bytes) -> bytes:
        try:
            letter = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise MailRefused("this is no letter to a stream") from None
        try:
            refusal = await self._inbox.take_letter(letter)
        except TimeoutError:
            return NO_ROOM
        return TAKEN if refusal is None else _encode(refusal)


NODE_SILENT = Refusal(
    503,
    -32603,
    "The process that holds this event stream does not answer: try again later",
    msgspec.UNSET,
    (("retry-after", "2"),),
)


def is_from_owner(letter: SseLetter, principal: Any) -> bool:
    """Whether a message was posted by the principal of its stream."""
    return digest_owner(owner_of(principal)) == letter.owner


def make_letter_origin(letter: SseLetter, principal: Any) -> Origin:
    """The origin of a message that was posted elsewhere: it may do no more than its own token.

    Args:
        letter: the message.
        principal: the principal of its stream, who has been found to be the same.
    """
    if isinstance(principal, Principal):
        scopes = principal.scopes.intersection(letter.scopes or ())
        if scopes != principal.scopes:  # where it need not change, who it is stays the same object
            principal = structs.replace(principal, scopes=scopes)
    return Origin("http+sse", principal=principal, session=letter.stream)


async def wait_for_room(stream: Any) -> None:
    """Wait until a stream's client has read, as long as a letter may wait.

    Raises:
        TimeoutError: it has not.
    """
    async with asyncio.timeout(ROOM_WAIT_S):
        await stream.room()
