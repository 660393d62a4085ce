"""Channels that misbehave: what a client or a server has to survive.

A :class:`Faulty` channel stands between a peer and a good channel and asks a *fate* what becomes
of every message that arrives: none, one or several deliveries, in any shape. The named fates are
the usual ones; a test may write its own.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from isthmus.errors import ConnectionLost, copy_error
from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.wire.struct import Id

__all__ = [
    "Fate",
    "Faulty",
    "break_after",
    "cut_after",
    "drop",
    "duplicate",
    "garble",
    "swap",
]

Fate = Callable[[Delivery, int], Sequence[Delivery]]
"""``(delivery, number) -> deliveries``: what becomes of the n-th message, counted from 0.

It may raise ``ConnectionLost`` to break the channel, or ``EOFError`` to end it.
"""


class Faulty:
    """A channel whose incoming messages meet a fate.

    Args:
        channel: the good channel.
        fate: what becomes of what arrives on it.
    """

    def __init__(self, channel: Channel, fate: Fate) -> None:
        self._channel = channel
        self._fate = fate
        self._number = 0
        self._ready: list[Delivery] = []
        self._broken: ConnectionLost | None = None

    async def receive(self) -> Delivery | None:
        """The next message that is let through."""
        while not self._ready:
            if self._broken is not None:
                raise copy_error(self._broken)
            delivery = await self._channel.receive()
            if delivery is None:
                return None
            try:
                self._ready.extend(self._fate(delivery, self._number))
            except EOFError:
                return None
            except ConnectionLost as error:
                self._broken = error.with_traceback(None)
            self._number += 1
        return self._ready.pop(0)

    async def send(self, out: Outgoing) -> None:
        """Hand a message to the good channel.

        Args:
            out: the message.
        """
        await self._channel.send(out)

    def abandon(self, id: Id) -> bool:
        """As the good channel.

        Args:
            id: the id of the request.
        """
        return self._channel.abandon(id)

    async def close(self) -> None:
        """Close the good channel."""
        await self._channel.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the good channel can do, but for going around this one."""
        if name == "attach":
            raise AttributeError(name)
        return getattr(self._channel, name)


def drop(*numbers: int) -> Fate:
    """Lose the messages with these numbers; all of them where none are named.

    Args:
        *numbers: the numbers of the messages, counted from 0.
    """
    return lambda delivery, number: [] if not numbers or number in numbers else [delivery]


def duplicate(delivery: Delivery, _number: int) -> Sequence[Delivery]:
    """Deliver everything twice.

    Args:
        delivery: the message that arrived.
        _number: its number, counted from 0.
    """
    return [delivery, delivery]


def swap() -> Fate:
    """Deliver each pair of messages in the wrong order."""
    held: list[Delivery] = []

    def fate(delivery: Delivery, number: int) -> Sequence[Delivery]:
        if number % 2 == 0:
            held.append(delivery)
            return []
        return [delivery, held.pop()]

    return fate


def garble(*numbers: int, noise: bytes = b'{"jsonrpc": "2.0", "id"\xff') -> Fate:
    """Put noise in the place of the messages with these numbers; of all where none are named.

    Args:
        *numbers: the numbers of the messages, counted from 0.
        noise: the bytes that are delivered; no JSON by default.
    """

    def fate(delivery: Delivery, number: int) -> Sequence[Delivery]:
        spoilt = not numbers or number in numbers
        return [Delivery(noise, delivery.origin)] if spoilt else [delivery]

    return fate


def cut_after(count: int) -> Fate:
    """End the channel after so many messages, as a side does that closes in good order.

    Args:
        count: the number of messages that still arrive.
    """

    def fate(delivery: Delivery, number: int) -> Sequence[Delivery]:
        if number >= count:
            raise EOFError
        return [delivery]

    return fate


def break_after(count: int, reason: str = "the line went dead") -> Fate:
    """Break the channel after so many messages.

    Args:
        count: the number of messages that still arrive.
        reason: the text of the ``ConnectionLost``.
    """

    def fate(delivery: Delivery, number: int) -> Sequence[Delivery]:
        if number >= count:
            raise ConnectionLost(reason)
        return [delivery]

    return fate


async def until(condition: Callable[[], bool], *, turns: int = 10_000) -> None:
    """Give the event loop turns until ``condition`` holds; no clock is involved.

    Raises:
        AssertionError: it still does not hold after ``turns`` turns.
    """
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("what was waited for did not happen")
