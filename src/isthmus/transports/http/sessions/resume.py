"""Resumable streams (Last-Event-ID): what was said is kept, and a GET asks for the rest.

A :class:`ResumableStream` belongs to a session, and to the response that carries it at the moment: first
the response to the POST or GET that it began with, later that of a GET which resumed it, or none
while nobody is connected. What is put on a stream is kept in a log first, so that it does not
matter to whoever speaks whether somebody listens.

The id of an event names the session's mark, the stream and the place in it. It is looked up in
the session that the request belongs to, so that elsewhere it is worth nothing. An answer that is
plain JSON has no stream and costs none of this.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from os import urandom

from isthmus.core.http.sse import encode_event, make_event_id, make_stream_name, parse_event_id
from isthmus.runtime.failures import log_failure
from isthmus.store.log import Forgotten, Log, MemoryLog
from isthmus.transports.http.reply import EventWriter
from isthmus.transports.http.sessions.shared_streams import SharedStream
from isthmus.transports.http.sessions.standing_streams import continue_stream
from isthmus.transports.http.sessions.stream_carrier import MAX_REPLAYED_EVENTS, StreamCarrier
from isthmus.transports.http.sessions.stream_followers import StreamFollower
from isthmus.transports.http.sessions.stream_letters import StreamLetters
from isthmus.wire.struct import Id

# Streams of one session that are kept; those that have ended give way, the oldest first
MAX_KEPT_STREAMS = 64

LONE_NODE = "n0"  # stands for the id of a process that is alone


class ResumableStream:
    """One stream of a session: what is said on it, and the response that carries it.

    Args:
        book: the session's streams.
        number: which of them it is.
        carrier: the response it begins with.
        standing: it is not the answer to a request.

    Attributes:
        carrier: the response that carries it now, or None.
        over: nothing more will be said on it.
        standing: it is not the answer to a request.
    """

    __slots__ = ("_begun", "_book", "_broken", "_last", "_lock", "_name", "carrier", "over",
                 "standing")  # fmt: skip

    def __init__(
        self, book: "SessionStreams", number: int, carrier: StreamCarrier, *, standing: bool
    ) -> None:
        self._book = book
        self._name = make_stream_name(book.mark, book.node, number)
        self._lock = asyncio.Lock()
        self._begun = False
        self._broken = False
        self._last = 0
        self.carrier: StreamCarrier | None = carrier
        self.over = False
        self.standing = standing

    @property
    def key(self) -> str:
        """The stream's name in the log."""
        return f"{self._book.session}/{self._name}"

    @property
    def idle(self) -> bool:
        """Whether nothing more will come, and it may be forgotten where room is needed."""
        return self.over or (self.standing and self.carrier is None)

    @property
    def is_followed(self) -> bool:
        """False: nobody else has its log."""
        return False

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Say something, or only that this was all.

        Args:
            message: what to say, or None.
            last: nothing more will be said.

        Returns:
            True: it is kept, whether or not somebody listens.
        """
        book = self._book
        if book.stale:
            await book.sweep()
        # As everywhere that a plain answer comes by: a lock is cheaper without its "async with".
        await self._lock.acquire()
        try:
            if message is None:
                chunk = b""
            elif book.memory is not None:
                self._last = book.memory.add(self.key, message)
                chunk = encode_event(message, id=make_event_id(self._name, self._last))
            else:
                chunk = await self._keep(message)
            self.over = self.over or last
            carrier = self.carrier
            if carrier is not None:
                taken = await carrier.writer.write(self._prime(chunk), more=not last)
                if last:
                    carrier.hang_up()
                if last or not taken:
                    self.leave(carrier)
        finally:
            self._lock.release()
        return True

    def keep_whole(self, message: bytes, memory: MemoryLog) -> bytes:
        """Keep an answer before which nothing was said; the stream is over.

        Args:
            message: the answer.
            memory: the log, which is one that keeps it at once.

        Returns:
            All that is to be sent.
        """
        # Whoever comes back while it is sent finds it kept, so that it takes no lock.
        self.over = True
        self._last = memory.add(self.key, message)
        return self._prime(encode_event(message, id=make_event_id(self._name, self._last)))

    async def begin(self, sign: bytes = b"") -> None:
        """Begin to be there although there is nothing to say.

        Args:
            sign: what to send where it does not begin with an event of its own.
        """
        async with self._lock:
            carrier = self.carrier
            if carrier is not None and not await carrier.writer.write(self._prime(b"") or sign):
                self.leave(carrier)

    async def check(self, after: int) -> None:
        """See to it that everything after a place in the stream is there.

        Raises:
            Forgotten: it is not.
        """
        await self._read_after(after)

    async def resume(self, carrier: StreamCarrier, after: int) -> None:
        """Go on with another response, with all that came after a place in the stream.

        Raises:
            Forgotten: some of it is not there any more; nothing was sent.
        """
        before = self.carrier
        if before is not None:
            before.writer.release()  # it may hold the lock, waiting for a client that is gone
        async with self._lock:
            entries = await self._read_after(after)
            before, self.carrier = self.carrier, carrier
            if before is not None:
                before.give_way()
            self._begun = True
            # spec 2025-11-25 basic/transports#resumability-and-redelivery: the messages after the
            # last event id, on the stream that was disconnected, and no others
            rest = b"".join(
                encode_event(value, id=make_event_id(self._name, id)) for id, value in entries
            )
            taken = await carrier.writer.write(rest, more=not self.over)
            if self.over:
                carrier.hang_up()
            if self.over or not taken:
                self.leave(carrier)

    async def let_go(self, retry: int) -> None:
        """End the response, but not the stream: its client comes back for the rest.

        Args:
            retry: milliseconds it is asked to wait before that.
        """
        async with self._lock:
            carrier = self.carrier
            if carrier is None or self.over:
                return
            # spec 2025-11-25 basic/transports#sending-messages-to-the-server: SHOULD send an event
            # with a retry field before closing, MAY close only after an event with an id
            id = None if self._begun else make_event_id(self._name, 0)
            self._begun = True
            await carrier.writer.write(encode_event(b"", id=id, retry=retry), more=False)
            self.carrier = None
            carrier.hang_up()

    def leave(self, carrier: StreamCarrier) -> None:
        """A response does not carry it any more."""
        if self.carrier is carrier:
            self.carrier = None

    def abandon(self) -> None:
        """Abandon the stream: nothing more will be said, not even that this was all."""
        self.over = True
        carrier, self.carrier = self.carrier, None
        if carrier is not None:
            carrier.give_way()

    async def _keep(self, message: bytes) -> bytes:
        """A message as an event, kept in the log under the event's id."""
        if not self._broken:
            try:
                await self._book.log.write(self.key, self._last + 1, (message,))
            except Exception as error:  # noqa: BLE001 - a log elsewhere may fail in any way; the call goes on
                self._broken = True
                log_failure("the log of streams", error)
            else:
                self._last += 1
                return encode_event(message, id=make_event_id(self._name, self._last))
        return encode_event(message)

    def _prime(self, chunk: bytes) -> bytes:
        """Put an event with nothing but an id before what is sent first."""
        if self._begun:
            return chunk
        self._begun = True
        # spec 2025-11-25 basic/transports#sending-messages-to-the-server: SHOULD immediately send
        # an event id and an empty data field
        return (
            encode_event(b"", id=make_event_id(self._name, 0)) + chunk
            if self._book.primes
            else chunk
        )

    async def _read_after(self, after: int) -> list[tuple[int, bytes]]:
        if self._broken:
            raise Forgotten("the log failed")
        if after == self._last == 0:
            return []  # nothing was ever said, so the log has never heard of it
        return await self._book.log.read(self.key, after, MAX_REPLAYED_EVENTS)


class SessionStreams:
    """The streams of one session.

    Args:
        session: what they are kept under: the session's mark or id, with a digest of its owner.
        log: keeps what is said.
        primes: streams begin with an event that has nothing but an id, and may be polled.
        mark: what the ids of this session's events begin with; made up where it is empty.
        node: the id of this process.
        letters: tell other nodes of streams, where the log is one that nodes share.
        find_calls: finds the requests that a response answers; where nodes share the log.
        numbers: gives each stream its number; 1, 2, 3 by default.

    Attributes:
        mark: what the ids of this session's events begin with.
        memory: the log, where it is one that never makes anybody wait.
        stale: what the log can forget.
    """

    __slots__ = ("_find_calls", "_numbers", "_streams", "letters", "log", "mark", "memory", "node",
                 "primes", "session", "stale")  # fmt: skip

    def __init__(
        self,
        session: str,
        log: Log,
        *,
        primes: bool,
        mark: str = "",
        node: str = LONE_NODE,
        letters: StreamLetters | None = None,
        find_calls: Callable[[object], tuple[Id, ...]] | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.session = session
        self.log = log
        self.memory = log if type(log) is MemoryLog and letters is None else None
        self.primes = primes
        self.mark = mark or urandom(6).hex()
        self.node = node
        self.letters = letters
        self.stale: list[str] = []
        self._find_calls = find_calls
        self._numbers = count(1) if numbers is None else numbers
        self._streams: dict[int, ResumableStream | SharedStream] = {}

    def open(
        self, carrier: StreamCarrier, *, standing: bool = False
    ) -> ResumableStream | SharedStream:
        """Begin a stream."""
        number = next(self._numbers)
        if len(self._streams) >= MAX_KEPT_STREAMS:
            self._make_room()
        stream: ResumableStream | SharedStream
        if self.letters is None:
            stream = ResumableStream(self, number, carrier, standing=standing)
        else:
            calls = None if standing or self._find_calls is None else self._find_calls(carrier)
            stream = SharedStream(
                self.letters,
                self.session,
                self.mark,
                number,
                carrier,
                calls=calls,
                primes=self.primes,
            )
        self._streams[number] = stream
        return stream

    def find(self, event_id: str) -> tuple[ResumableStream | SharedStream | StreamFollower, int]:
        """The stream an event was on, and its place there.

        Raises:
            Forgotten: it is of no stream of this session, or of one that is not kept any more.
        """
        found = parse_event_id(event_id)
        if found is not None and found.mark == self.mark:
            stream = self._streams.get(found.stream) if found.node == self.node else None
            if stream is not None and not (self.letters and stream.standing and stream.over):
                return stream, found.place
            if self.letters is not None:
                name = make_stream_name(found.mark, found.node, found.stream)
                follower = StreamFollower(
                    self.letters, self.session, name, found.node, primes=self.primes
                )
                return follower, found.place
        raise Forgotten(f"event {event_id[:80]!r} is of no stream of this session")

    async def continue_standing(
        self, event_id: str, following: ResumableStream | SharedStream
    ) -> None:
        """Continue a standing stream that another node began as one of this node.

        Args:
            event_id: the event after which a client comes back.
            following: the stream of this node.

        Raises:
            Forgotten: some of it is not there any more.
            StoreUnavailable: it cannot be read or written now.
        """
        if self.letters is not None and isinstance(following, SharedStream):
            following.prelude = await continue_stream(
                self.letters, self.session, event_id, following.name, primes=self.primes
            )

    async def end_standing(self) -> None:
        """End the standing streams: another node is the session's home from now on."""
        for stream in [*self._streams.values()]:
            if isinstance(stream, SharedStream) and stream.standing and not stream.over:
                await stream.flush()
                stream.close()

    async def sweep(self) -> None:
        """Have the log forget what nobody can ask for any more."""
        stale, self.stale = self.stale, []
        for key in stale:
            await self.log.forget(key)

    async def close(self, *, forget: bool = True) -> None:
        """Forget all streams.

        Args:
            forget: so does the log; it keeps them in any case where this node alone ends.
        """
        self._find_calls = None  # each would keep the other, and wait for the collector
        streams = [*self._streams.values()]
        self._streams.clear()
        for stream in streams:
            if isinstance(stream, SharedStream):
                await stream.flush()
                stream.close()
        if not forget or (self.letters is not None and self.letters.is_closing):
            return
        self.stale += [stream.key for stream in streams]
        await self.sweep()

    def _make_room(self) -> None:
        for number, stream in self._streams.items():
            if stream.idle:
                if isinstance(stream, SharedStream):
                    stream.close()
                if self.memory is not None:
                    self.memory.drop(stream.key)
                else:
                    self.stale.append(stream.key)
                del self._streams[number]
                return


class PostedStream:
    """The event stream that the response to a POST has become, of which its session keeps what is said.

    Args:
        streams: the session's streams, which it becomes one of with its first event.
        writer: writes to the client.

    Attributes:
        stream: what is said on it; None before the first event.
        writer: writes to the client.
    """

    __slots__ = ("_parting", "_streams", "stream", "writer")

    def __init__(self, streams: SessionStreams, writer: EventWriter) -> None:
        self._streams = streams
        self._parting: asyncio.Task[None] | None = None
        self.stream: ResumableStream | SharedStream | None = None
        self.writer = writer

    @property
    def has_begun(self) -> bool:
        """Whether the client has something to take, and not only the log."""
        return self.writer.has_begun

    @property
    def is_attended(self) -> bool:
        """Whether this response still carries the stream, and not another one, or none."""
        stream = self.stream
        if stream is None:
            return not self.writer.is_over
        return stream.carrier is self or stream.is_followed

    def open_stream(self) -> ResumableStream | SharedStream:
        """The stream it is, which begins here where nothing was said yet."""
        if self.stream is None:
            self.stream = self._streams.open(self)
        return self.stream

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Say something on the stream, or only that this was all; True where it is kept."""
        streams, stream = self._streams, self.stream
        if stream is None:
            if last and not streams.primes:
                # A stream that is nothing but its answer: there is no event to come back after.
                return await self.writer.put(message, last=True)
            stream = self.stream = streams.open(self)
            if (
                last
                and message is not None
                and isinstance(stream, ResumableStream)
                and streams.memory is not None
            ):
                await self.writer.write(stream.keep_whole(message, streams.memory), more=False)
                self.writer.drop()
                stream.leave(self)
                return True
        return await stream.put(message, last=last)

    async def sign(self, chunk: bytes) -> None:
        """Give a sign of life: at first an event with an id, where the revision primes streams."""
        if not self.writer.has_begun:
            await self.open_stream().begin(chunk)
        elif not await self.writer.write(chunk):
            self.drop()

    def release(self) -> None:
        """Have whoever waits for the client wait no longer."""
        self.writer.release()

    def drop(self) -> None:
        """Write nothing more here; what is said goes on where the stream does."""
        self.writer.drop()
        if self.stream is not None:
            self.stream.leave(self)

    def hang_up(self) -> None:
        """The response was ended: nothing more is written to it."""
        self.writer.drop()

    def give_way(self) -> None:
        """Another response carries the stream: end this one, as soon as its client takes that."""
        if self._parting is None and not self.writer.is_over:
            self._parting = asyncio.get_running_loop().create_task(self._part())

    async def _part(self) -> None:
        try:
            await self.writer.write(b"", more=False)
        finally:
            self.writer.drop()
            self._parting = None

    def close(self) -> None:
        """Let go of everything: the request is over."""
        if self._parting is not None:
            self._parting.cancel()
        stream = self.stream
        if stream is not None:
            stream.leave(self)
            if not stream.over:
                stream.abandon()
