"""Wiretap: a channel between a client and its connection that takes down every message."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.wire.jsonrpc import Frame
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.runtime.inbound import Inbound
    from isthmus.runtime.peer import Peer
    from isthmus.wire.meta import Envelope

__all__ = ["HeardChannel", "PeerTap", "WireLog", "Wiretap"]

Sink: TypeAlias = Callable[[Delivery, Frame], None]

WireLog = list[tuple[Literal["client", "server"], bytes]]
"""A conversation as it was: who said it, and its bytes, in order."""


class Wiretap:
    """The client's end of a connection, with a record of both sides' messages.

    Args:
        channel: the channel to listen to.
        wire: is added to.
    """

    def __init__(self, channel: Channel, wire: WireLog) -> None:
        self._channel = channel
        self._wire = wire

    async def receive(self) -> Delivery | None:
        """The next message, taken down."""
        delivery = await self._channel.receive()
        if delivery is not None:
            self._wire.append(("server", delivery.data))
        return delivery

    async def send(self, out: Outgoing) -> None:
        """Send a message, taken down."""
        self._wire.append(("client", out.data))
        await self._channel.send(out)

    def abandon(self, id: Id) -> bool:
        """As the channel listened to."""
        return self._channel.abandon(id)

    async def close(self) -> None:
        """Close the channel listened to."""
        await self._channel.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the channel can do: HTTP is told the revision, for its headers."""
        ability = getattr(self._channel, name)
        return partial(self._attach, ability) if name == "attach" else ability

    def _attach(self, attach: Callable[[Sink], None], sink: Sink) -> None:
        """Listen also where messages do not wait to be received: HTTP hands them on at once."""

        def heard(delivery: Delivery, frame: Frame) -> None:
            self._wire.append(("server", delivery.data))
            sink(delivery, frame)

        attach(heard)


Hear: TypeAlias = Callable[[Literal["sent", "received"], bytes, Outgoing | None], None]
"""Told of each message, and of a sent one what a transport is told."""


class HeardChannel:
    """A channel of a peer that is listened to for a while: it tells what is sent."""

    def __init__(self, channel: Channel, hear: Hear) -> None:
        self.channel = channel
        self._hear = hear

    async def receive(self) -> Delivery | None:
        """As the channel listened to: what is received is told where the peer takes it in."""
        return await self.channel.receive()

    async def send(self, out: Outgoing) -> None:
        """Send a message, and tell of it before."""
        self._hear("sent", out.data if not out.rest else b"".join((out.data, *out.rest)), out)
        await self.channel.send(out)

    def abandon(self, id: Id) -> bool:
        """As the channel listened to."""
        return self.channel.abandon(id)

    async def close(self) -> None:
        """Close the channel listened to."""
        await self.channel.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the channel can do."""
        return getattr(self.channel, name)


class PeerTap:
    """Listens to a peer that is at work, from now on until it is let go; others are as they were.

    Args:
        peer: our side of a conversation.
        hear: told of each message; it must not raise.
    """

    def __init__(self, peer: "Peer", hear: Hear) -> None:
        self._peer = peer
        self._heard = HeardChannel(peer.channel, hear)
        take = peer.take

        def take_heard(
            delivery: Delivery, frame: Frame | None = None, envelope: "Envelope | None" = None
        ) -> "list[Inbound]":
            hear("received", delivery.data, None)
            return take(delivery, frame, envelope)

        peer.channel = self._heard
        # every way in looks this up at the peer; the class is not touched
        peer.take = take_heard  # type: ignore[method-assign]  # of this one peer, for a while

    def release(self) -> None:
        """Listen no more."""
        if self._peer.channel is self._heard:
            self._peer.channel = self._heard.channel
        vars(self._peer).pop("take", None)
