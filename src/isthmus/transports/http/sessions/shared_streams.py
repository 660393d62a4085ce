"""Streams in a log that nodes share: written first, sent after, so that any node can go on.

The node that a stream began at is its only writer. What is said in one turn of the loop is written
at once; whoever says it waits for nothing, unless too much is unwritten. The answer waits until it is
written and sent. A write that the log refuses says that this node was taken for dead: another one has
ended the stream, and nothing more is sent here. The call goes on, and its result is dropped: its
caller was told that the outcome is not known, and a cut in the middle would make it none the better.
"""

import asyncio
from collections.abc import Sequence

from isthmus.core.http.sse import encode_event, make_event_id, make_stream_name
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.log import Forgotten, Overtaken
from isthmus.transports.http.sessions.stream_carrier import MAX_REPLAYED_EVENTS, StreamCarrier
from isthmus.transports.http.sessions.stream_entries import (
    CONTINUED,
    END,
    ENDS,
    LAST,
    MESSAGE,
    OPENING,
    decode_entry,
    encode_calls,
    encode_entry,
)
from isthmus.transports.http.sessions.stream_letters import (
    FOLLOWED,
    LOST,
    OVER,
    YIELDED,
    StreamLetters,
)
from isthmus.wire.struct import Id

# What one stream may leave unwritten before whoever speaks has to wait
MAX_UNWRITTEN_ENTRIES = 64
MAX_UNWRITTEN_BYTES = 256 * 1024


def make_log_key(session: str, name: str) -> str:
    """A stream's name in the log.

    Args:
        session: what the session's streams are kept under, with the digest of its owner.
        name: the stream's, from :func:`~isthmus.core.http.sse.make_stream_name`.
    """
    return f"{session}/{name}"


def encode_entries(
    name: str, entries: Sequence[tuple[int, bytes]], *, primes: bool
) -> tuple[bytes, bool, str]:
    """What is sent of a stream's entries.

    Args:
        name: the stream's.
        entries: as the log has them.
        primes: streams begin with an event that has nothing but an id.

    Returns:
        The events; whether the stream is over after them; the name of the stream that continues it,
        or nothing.

    Raises:
        Forgotten: there is an entry that no node wrote.
    """
    events: list[bytes] = []
    for place, value in entries:
        entry = decode_entry(value)
        if entry.kind == CONTINUED:
            return b"".join(events), True, entry.message.decode("utf-8", "replace")
        if entry.kind in (MESSAGE, LAST) or (entry.kind == OPENING and primes):
            # spec 2025-11-25 basic/transports#sending-messages-to-the-server: SHOULD immediately
            # send an event id and an empty data field
            events.append(encode_event(entry.message, id=make_event_id(name, place)))
        if entry.kind in ENDS:
            return b"".join(events), True, ""
    return b"".join(events), False, ""


class SharedStream:
    """One stream of a session that this node writes to the log of all nodes.

    Args:
        letters: tell other nodes of it.
        session: what the session's streams are kept under.
        mark: what the ids of the session's events begin with.
        number: which of the session's streams at this node it is.
        carrier: the response it begins with.
        calls: ids of the requests that it answers; None of a standing stream.
        primes: it begins with an event that has nothing but an id.

    Attributes:
        name: what the ids of its events begin with.
        key: its name in the log.
        carrier: the response that carries it now, or None.
        follower: the node that carries it now, or nothing.
        over: nothing more will be said on it.
        standing: it is not the answer to a request.
        prelude: what is sent before it: the rest of the stream that it continues.
    """

    __slots__ = ("_broken", "_calls", "_ending", "_flushing", "_last", "_letters", "_lock", "_pending",
                 "_pending_bytes", "_primes", "carrier", "follower", "key", "name", "over",
                 "prelude", "standing")  # fmt: skip

    def __init__(
        self,
        letters: StreamLetters,
        session: str,
        mark: str,
        number: int,
        carrier: StreamCarrier,
        *,
        calls: tuple[Id, ...] | None,
        primes: bool,
    ) -> None:
        self.name = make_stream_name(mark, letters.node.id, number)
        self.key = make_log_key(session, self.name)
        self.carrier: StreamCarrier | None = carrier
        self.follower = ""
        self.over = False
        self.standing = calls is None
        self.prelude = b""
        self._letters = letters
        self._calls = encode_calls(calls)
        self._primes = primes
        self._lock = asyncio.Lock()
        self._broken = self._ending = False
        self._last = 0
        self._pending: list[tuple[bytes, bytes]] = [(OPENING, b"")]
        self._pending_bytes = 0
        self._flushing: asyncio.Task[None] | None = None
        letters.add_produced(self)

    @property
    def idle(self) -> bool:
        """Whether nothing more will come, and it may be forgotten where room is needed."""
        return self.over or (self.standing and self.carrier is None)

    @property
    def is_followed(self) -> bool:
        """Whether a client takes it at another node."""
        return self.follower != ""

    # Saying

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Say something, or only that this was all.

        Returns:
            True where it is kept, or will be; False where the stream is over.
        """
        if self.over or self._ending:
            return False
        kind = MESSAGE if not last else END if message is None else LAST
        self._ending = last
        self._pending.append((kind, message or b""))
        self._pending_bytes += len(message or b"")
        flushing = self._start_flush()
        if (
            last
            or self._pending_bytes > MAX_UNWRITTEN_BYTES
            or len(self._pending) > MAX_UNWRITTEN_ENTRIES
        ):
            await asyncio.shield(flushing)
        return True

    async def begin(self, sign: bytes = b"") -> None:
        """Begin to be there although there is nothing to say.

        Args:
            sign: what to send where it does not begin with an event of its own.
        """
        await asyncio.shield(self._start_flush())
        carrier = self.carrier
        if (
            carrier is not None
            and not carrier.writer.has_begun
            and not await carrier.writer.write(sign)
        ):
            self.leave(carrier)

    async def flush(self) -> None:
        """Wait until all that was said is written."""
        await asyncio.shield(self._start_flush())

    def _start_flush(self) -> asyncio.Task[None]:
        """Write what is unwritten in the next turn of the loop, with what is said until then."""
        if self._flushing is None:
            # In a task of its own: a write that is cut leaves in doubt whether it was done.
            self._flushing = self._letters.start(self._flush())
        return self._flushing

    async def _flush(self) -> None:
        try:
            while self._pending:
                await self._lock.acquire()
                try:
                    await self._write_pending()
                finally:
                    self._lock.release()
        finally:
            self._flushing = None

    async def _write_pending(self) -> None:
        """Write what is unwritten, and send it then."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        place, last = self._last + 1, pending[-1][0] in ENDS
        values = [encode_entry(kind, self._calls, message) for kind, message in pending]
        if not self._broken:
            try:
                await self._letters.log.write(self.key, place, values)
            except Overtaken as error:
                self._yield_to_writer(error)
                return
            except Exception as error:  # noqa: BLE001 - a log elsewhere may fail in any way; the call goes on
                self._broken = True
                log_failure("the log of streams", error)
            else:
                self._last += len(pending)
        self.over = self.over or last
        if self.is_followed:
            self._letters.tell_grown(self)
        if self.over:
            self._letters.drop_produced(self)
        if self._broken:
            # What is not kept has no id: nobody can come back after it.
            chunk = b"".join(encode_event(message) for kind, message in pending if message)
        else:
            chunk, _, _ = encode_entries(
                self.name, [*enumerate(values, place)], primes=self._primes
            )
        await self._send(chunk, last=last)

    async def _send(self, chunk: bytes, *, last: bool) -> None:
        carrier = self.carrier
        if carrier is None:
            return
        if self.prelude:
            chunk, self.prelude = self.prelude + chunk, b""
        taken = not (chunk or last) or await carrier.writer.write(chunk, more=not last)
        if last:
            carrier.hang_up()
        if last or not taken:
            self.leave(carrier)

    def _yield_to_writer(self, error: Overtaken) -> None:
        """Another node has ended the stream, or carries it on: say nothing more."""
        log_warning("this node was taken for dead, and a stream was ended elsewhere: %s", error)
        self._pending.clear()
        self.close()

    # Carriers

    async def check(self, after: int) -> None:
        """See to it that everything after a place in the stream is there.

        Raises:
            Forgotten: it is not.
            StoreUnavailable: nobody can tell now.
        """
        await self._read_after(after)

    async def resume(self, carrier: StreamCarrier, after: int) -> None:
        """Go on with another response, with all that came after a place in the stream.

        Raises:
            Forgotten: some of it is not there any more; nothing was sent.
            StoreUnavailable: it cannot be read now; nothing was sent.
        """
        before = self.carrier
        if before is not None:
            before.writer.release()  # it may hold the lock, waiting for a client that is gone
        async with self._lock:
            entries = await self._read_after(after)
            self._drop_follower()
            before, self.carrier = self.carrier, carrier
            if before is not None:
                before.give_way()
            # spec 2025-11-25 basic/transports#resumability-and-redelivery: the messages after the
            # last event id, on the stream that was disconnected, and no others
            rest, _, _ = encode_entries(self.name, entries, primes=self._primes)
            over = self.over
            taken = await carrier.writer.write(rest, more=not over)
            if over:
                carrier.hang_up()
            if over or not taken:
                self.leave(carrier)

    async def let_go(self, retry: int) -> None:
        """End the response, but not the stream: its client comes back for the rest.

        Args:
            retry: milliseconds it is asked to wait before that.
        """
        await self.flush()
        async with self._lock:
            carrier = self.carrier
            if carrier is None or self.over or self._broken:
                return
            # spec 2025-11-25 basic/transports#sending-messages-to-the-server: SHOULD send an event
            # with a retry field before closing, MAY close only after an event with an id
            await carrier.writer.write(encode_event(b"", retry=retry), more=False)
            self.carrier = None
            carrier.hang_up()

    def leave(self, carrier: StreamCarrier) -> None:
        """A response does not carry it any more."""
        if self.carrier is carrier:
            self.carrier = None

    def take_follower(self, node: str, *, newest: bool) -> bytes:
        """Let another node carry it.

        Args:
            node: the other node.
            newest: a client has come back there; else it asks whether it carries the stream still.

        Returns:
            How the stream stands.
        """
        if self.over:
            return OVER
        if self._broken:
            return LOST
        if self.follower != node:
            if not newest and (self.is_followed or self.carrier is not None):
                return YIELDED
            self._drop_follower()
            self.follower = node
        carrier, self.carrier = self.carrier, None
        if carrier is not None:
            carrier.writer.release()
            carrier.give_way()
        return FOLLOWED

    def _drop_follower(self) -> None:
        """Have the node that carries it do so no longer."""
        follower, self.follower = self.follower, ""
        if follower:
            self._letters.tell_yield(self.key, follower)

    # The end

    def abandon(self) -> None:
        """Abandon the stream: nothing more will be said, but that this was all."""
        if not (self.over or self._ending):
            self._ending = True
            self._pending.append((END, b""))
            self._start_flush()
        self._end_carrier()

    def close(self) -> None:
        """Write nothing more: the stream belongs to somebody else, or to nobody."""
        self.over = self._ending = True
        self._letters.drop_produced(self)
        self._end_carrier()

    def _end_carrier(self) -> None:
        carrier, self.carrier = self.carrier, None
        if carrier is not None:
            carrier.give_way()

    async def _read_after(self, after: int) -> list[tuple[int, bytes]]:
        if self._broken:
            raise Forgotten("the log failed")
        return await self._letters.log.read(self.key, after, MAX_REPLAYED_EVENTS)
