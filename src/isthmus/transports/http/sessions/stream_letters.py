"""Letters between nodes about streams: who follows which, that one grew, and that one is carried on.

A stream is written by the node that it began at, its producer. Another node that has its client
reads the log, and is told by a letter when there is more. A letter may be lost: a follower looks at
the log now and then anyway.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from isthmus.errors import IsthmusError
from isthmus.nodes.node import Node
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.log import Log, MemoryLog
from isthmus.store.mailbox import MailRefused, MailUndelivered
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.store.bus import Unsubscribe

FOLLOW_TOPIC = "stream/follow"
ASK_TOPIC = "stream/ask"
UNFOLLOW_TOPIC = "stream/unfollow"
GREW_TOPIC = "stream/grew"
YIELD_TOPIC = "stream/yield"

FOLLOW_TIMEOUT_S = 0.5  # that a producer may take to answer; it is asked again

FOLLOWED = b"followed"  # the producer tells from now on when the stream grew
OVER = b"over"  # nothing more will be written
LOST = b"lost"  # what is said is not kept any more, for the log failed
YIELDED = b"yielded"  # another response carries it
UNKNOWN = b"unknown"  # the producer has no such stream


class ProducedStream(Protocol):
    """A stream that this node writes."""

    @property
    def key(self) -> str:
        """Its name in the log."""
        ...

    follower: str

    def take_follower(self, node: str, *, newest: bool) -> bytes:
        """Let another node carry it; says how the stream stands.

        Args:
            node: the other node.
            newest: a client has come back there; else it asks whether it carries the stream still.
        """
        ...


class FollowedStream(Protocol):
    """A stream that another node writes, and a client of this one takes."""

    @property
    def key(self) -> str:
        """Its name in the log."""
        ...

    def wake(self) -> None:
        """Look at the log."""
        ...

    def give_way(self) -> None:
        """Another response carries it from now on."""
        ...

    def doubt(self) -> None:
        """Another response may carry it: ask its producer before anything more is sent."""
        ...


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, str]).decode


def open_stream_log(given: Log | None, node: Node) -> "tuple[Log, StreamLetters | None]":
    """What keeps streams, and what tells other nodes of them where these have it in common.

    Args:
        given: the log that the app was given, for itself alone.
        node: this process.
    """
    if given is not None:
        return given, None
    if node.store is None:
        return MemoryLog(asyncio.get_running_loop().time), None
    return node.store.log, StreamLetters(node, node.store.log)


class StreamLetters:
    """The streams of this node that others may follow, and those of others that it follows.

    Args:
        node: this process, which has a store.
        log: the streams' log, which all nodes share.

    Attributes:
        node: this process.
        log: the streams' log.
        is_closing: the node leaves: its streams stay in the log, for clients that come back.
    """

    def __init__(self, node: Node, log: Log) -> None:
        self.node = node
        self.log = log
        self.is_closing = False
        self._produced: dict[str, ProducedStream] = {}
        self._followed: dict[str, FollowedStream] = {}
        self._grown: dict[str, str] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._unsubscribe: Unsubscribe | None = None
        if node.mailbox is not None and node.store is not None:
            node.mailbox.handle(FOLLOW_TOPIC, self._take_follow)
            node.mailbox.handle(ASK_TOPIC, self._take_ask)
            node.mailbox.handle(UNFOLLOW_TOPIC, self._take_unfollow)
            node.mailbox.handle(GREW_TOPIC, self._take_grew)
            node.mailbox.handle(YIELD_TOPIC, self._take_yield)
            self._unsubscribe = node.store.bus.on_gap(self._wake_all)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside the requests; it is waited for in :meth:`close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def close(self) -> None:
        """Stop: wait for what is being written."""
        self.is_closing = True
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for stream in [*self._followed.values()]:
            stream.give_way()
        if self._work:
            await asyncio.wait(self._work)

    # Streams of this node

    def add_produced(self, stream: ProducedStream) -> None:
        """Let other nodes follow a stream."""
        self._produced[stream.key] = stream

    def drop_produced(self, stream: ProducedStream) -> None:
        """A stream is over, or forgotten."""
        self._produced.pop(stream.key, None)

    def tell_grown(self, stream: ProducedStream) -> None:
        """Wake the follower of a stream: there is more in the log, or there will be no more."""
        known = self._grown.get(stream.key)
        self._grown[stream.key] = stream.follower
        if known is None:  # else the letter on its way counts for this, too
            self.start(self._tell_grown(stream.key))

    def tell_yield(self, key: str, node: str) -> None:
        """Have a node carry a stream no longer: another one does."""
        self.start(self._post(node, YIELD_TOPIC, key))

    async def _tell_grown(self, key: str) -> None:
        await self._post(self._grown.pop(key), GREW_TOPIC, key)

    async def _post(self, node: str, topic: str, key: str) -> None:
        if self.node.mailbox is None:
            return
        try:
            await self.node.mailbox.post(node, topic, _encode((key, self.node.id)))
        except IsthmusError as error:
            log_warning("a letter about a stream was not sent: %s", error)

    async def _take_follow(self, body: bytes) -> bytes:
        key, node = _decode(body)
        stream = self._produced.get(key)
        return UNKNOWN if stream is None else stream.take_follower(node, newest=True)

    async def _take_ask(self, body: bytes) -> bytes:
        key, node = _decode(body)
        stream = self._produced.get(key)
        return UNKNOWN if stream is None else stream.take_follower(node, newest=False)

    async def _take_unfollow(self, body: bytes) -> bytes:
        key, node = _decode(body)
        stream = self._produced.get(key)
        if stream is not None and stream.follower == node:
            stream.follower = ""
        return b""

    # Streams of other nodes

    async def follow(self, stream: FollowedStream, producer: str) -> bytes | None:
        """Have a producer tell when its stream grew, and say nothing on it where it was carried before.

        Returns:
            How the stream stands, or None where the producer does not answer.
        """
        before = self._followed.get(stream.key)
        if before is not None and before is not stream:
            before.give_way()
        self._followed[stream.key] = stream
        return await self._send(FOLLOW_TOPIC, stream, producer)

    async def ask(self, stream: FollowedStream, producer: str) -> bytes | None:
        """Ask a producer how a stream stands that is followed here; None where it does not answer."""
        return await self._send(ASK_TOPIC, stream, producer)

    async def _send(self, topic: str, stream: FollowedStream, producer: str) -> bytes | None:
        body = _encode((stream.key, self.node.id))
        if producer == self.node.id:
            return UNKNOWN  # else it would be carried on, and not followed
        if self.node.mailbox is None:
            return None
        try:
            return await self.node.mailbox.send(producer, topic, body, FOLLOW_TIMEOUT_S)
        except MailRefused as error:
            log_failure("following a stream of another node", error)
            return UNKNOWN
        except (MailUndelivered, StoreUnavailable):
            return None

    def unfollow(self, stream: FollowedStream, producer: str, *, over: bool) -> None:
        """Follow a stream no longer."""
        if self._followed.get(stream.key) is stream:
            del self._followed[stream.key]
            if not over and not self.is_closing:
                self.start(self._post(producer, UNFOLLOW_TOPIC, stream.key))

    async def _take_grew(self, body: bytes) -> bytes:
        stream = self._followed.get(_decode(body)[0])
        if stream is not None:
            stream.wake()
        return b""

    async def _take_yield(self, body: bytes) -> bytes:
        stream = self._followed.get(_decode(body)[0])
        if stream is not None:
            stream.doubt()  # the letter may be meant for one that was here before
        return b""

    def _wake_all(self) -> None:
        """Letters may be lost: look at everything."""
        for stream in self._followed.values():
            stream.wake()
