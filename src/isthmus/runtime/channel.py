"""Channel: what a transport is, the seam between bytes and conversation.

A transport is a class with ``receive`` and ``send``. How long the channel lives is the
transport's business: a pipe lives as long as the process, a modern HTTP response as long as one
call.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from isthmus.errors import ConnectionLost
from isthmus.wire.struct import Id

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Origin(msgspec.Struct, frozen=True):
    """The origin of a message.

    Attributes:
        transport: "memory", "stdio", "http", …
        headers: the HTTP request's headers, lower-case names; empty elsewhere. A transport may
            give a mapping that is filled when it is first read.
        principal: who authenticated, or None.
        session: a name for the legacy session it belongs to, or None.
        peer: the other end of the network connection it came over, or None.
    """

    transport: str
    headers: Mapping[str, str] = NO_HEADERS
    principal: Any = None
    session: str | None = None
    peer: Any = None


LOCAL = Origin("memory")


class Delivery(msgspec.Struct, frozen=True):
    """One message's bytes, and where they came from."""

    data: bytes
    origin: Origin = LOCAL


class Outgoing(msgspec.Struct, frozen=True):
    """One message on its way out, with what a transport may need to route it.

    Attributes:
        data: one JSON-RPC message, no newline; of a large answer in pieces, its beginning.
        calls: the id of the request this message is, or None.
        answers: the id of the request this message answers, or None.
        relates_to: the id of the other side's request this message belongs to, or None.
        method: the method, for requests and notifications.
        name: ``params.name``, ``params.uri`` or ``params.taskId``, for the ``Mcp-Name`` header.
        headers: further HTTP headers (``Mcp-Param-*``), mirrored from the arguments.
        members: the messages in ``data``, where it is an array of several (a 2025-03-26 batch);
            what is said above is then said of each of them, and not of the array.
        rest: what follows ``data``, of a large answer to a channel that takes pieces.
    """

    data: bytes
    calls: Id | None = None
    answers: Id | None = None
    relates_to: Id | None = None
    method: str = ""
    name: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    members: tuple[Any, ...] = ()  # Outgoing, which no annotation of its own can name
    rest: tuple[bytes, ...] = ()


LARGE_RESULT_BYTES = 64 * 1024  # of a result that a channel which takes pieces gets uncopied


class Channel(Protocol):
    """Carries messages to one other side and back.

    One whose class has a true ``takes_pieces`` gets a large answer as ``data`` and ``rest``.

    A class of channels may have ``give_to(take)``, too: then ``take`` is called with each
    :class:`Delivery` that comes while :meth:`receive` waits, which goes on waiting. So a message
    is taken in where it is read, and nobody need be woken. What needs more than handing over comes
    by :meth:`receive` as ever.
    """

    async def receive(self) -> Delivery | None:
        """The next message, or None when the channel is over.

        Raises:
            ConnectionLost: the channel broke; the message says how, with what is known of why.
        """
        ...

    async def send(self, out: Outgoing) -> None:
        """Hand one message over; returns when it may be forgotten. Waits where the pipe is full.

        Raises:
            ConnectionLost: the channel is over.
        """
        ...

    def abandon(self, id: Id) -> bool:
        """Stop waiting for the answer to our request ``id``.

        Returns:
            True when that alone tells the other side (a closed modern HTTP stream), False when
            a ``notifications/cancelled`` must say it.
        """
        ...

    async def close(self) -> None:
        """End it, letting go of every resource; safe to call twice and from any task."""
        ...


class ClosedChannel:
    """Stands for a channel that is gone, where a peer outlives it."""

    async def receive(self) -> Delivery | None:
        """None: it is over."""
        return None

    async def send(self, out: Outgoing) -> None:  # noqa: ARG002 - the protocol of channels
        """Refuse to send.

        Raises:
            ConnectionLost: always.
        """
        raise ConnectionLost("the connection was closed")

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """True: nobody is left to be told."""
        return True

    async def close(self) -> None:
        """Nothing is left to be ended."""


CLOSED = ClosedChannel()
