"""Wiretap: a channel between a client and its connection that takes down every message."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.wire.jsonrpc import Frame
from isthmus.wire.struct import Id

__all__ = ["WireLog", "Wiretap"]

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
