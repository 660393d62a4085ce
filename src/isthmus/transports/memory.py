"""Memory transport: two ends of a conversation within one event loop.

Tests and servers embedded in the program that calls them talk through a pair of these. A message
costs a list append and, where the other end waits for one, the waking of it.
"""

import asyncio
from collections import deque

from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Delivery, Outgoing
from isthmus.wire.struct import Id

# Messages that may wait in one direction before whoever sends more has to wait
MAX_WAITING_MESSAGES = 256


class MemoryPipe:
    """One direction of a pair: what was sent and not yet received, and who waits for a change of that."""

    __slots__ = ("closed", "messages", "reader", "writers")

    def __init__(self) -> None:
        self.messages: deque[Delivery] = deque()
        self.closed = False
        self.reader: asyncio.Future[None] | None = None
        self.writers: list[asyncio.Future[None]] = []

    def wake(self) -> None:
        """Let the task that receives look again."""
        reader, self.reader = self.reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def let_in(self) -> None:
        """Let the tasks that wait to send look again."""
        writers, self.writers = self.writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)

    def close(self) -> None:
        """Take nothing more; what is here can still be received."""
        self.closed = True
        self.wake()
        self.let_in()


class MemoryChannel:
    """One end of a pair; see :func:`open_pair`.

    What was sent before the other end closed can still be received. Only one task may receive
    at a time; any number may send.
    """

    __slots__ = ("_incoming", "_outgoing")

    def __init__(self, incoming: MemoryPipe, outgoing: MemoryPipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> Delivery | None:
        """The next message, or None when either end has closed and all is taken."""
        lane = self._incoming
        messages = lane.messages
        while not messages:
            if lane.closed:
                return None
            lane.reader = asyncio.get_running_loop().create_future()
            await lane.reader
        delivery = messages.popleft()
        if not messages and lane.writers:
            lane.let_in()
        return delivery

    async def send(self, out: Outgoing) -> None:
        """Hand one message to the other end; waits while too many are waiting there.

        Raises:
            ConnectionLost: either end has closed.
        """
        lane = self._outgoing
        while len(lane.messages) >= MAX_WAITING_MESSAGES and not lane.closed:
            writer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            lane.writers.append(writer)
            await writer
        if lane.closed:
            raise ConnectionLost("the connection in memory was closed")
        lane.messages.append(Delivery(out.data))
        if lane.reader is not None:
            lane.wake()

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: the other end has to be told in a message."""
        return False

    async def close(self) -> None:
        """End the conversation for both ends; what this end has not yet received is lost."""
        self._incoming.messages.clear()
        self._incoming.close()
        self._outgoing.close()


def open_pair() -> tuple[MemoryChannel, MemoryChannel]:
    """Two channels, each receiving what the other sends; closing one closes both."""
    there, back = MemoryPipe(), MemoryPipe()
    return MemoryChannel(back, there), MemoryChannel(there, back)
