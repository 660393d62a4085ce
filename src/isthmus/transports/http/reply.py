"""One HTTP response: plain JSON when the first thing said is the last, an event stream otherwise.

Which of the two it becomes is not decided beforehand. A call that is answered without further
ado costs one JSON body; the stream is opened by the first message that comes before the answer,
or by the heartbeat of a call that takes long.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import Any, Protocol, TypeAlias

from isthmus.core.http.rules import AcceptedForms
from isthmus.core.http.sse import encode_comment, encode_event

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON_TYPE: Header = (b"content-type", b"application/json")
NO_LENGTH: Header = (b"content-length", b"0")
STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    # spec 2026-07-28 basic/transports/streamable-http#receiving-messages: SHOULD, so that no
    # proxy holds events back
    (b"x-accel-buffering", b"no"),
)
HEARTBEAT = encode_comment()

MAX_MISSED_HEARTBEATS = 4  # in a row that a client may fail to take before it counts as gone


async def send_response(
    send: Send, status: int, headers: Sequence[Header], body: bytes = b"", *, verb: str = "GET"
) -> None:
    """Send a whole response of any type.

    Args:
        send: the ASGI callable.
        status: of HTTP.
        headers: all but the length.
        body: what is sent.
        verb: the request's; who asks by HEAD is told the length of the body and not sent it.
    """
    length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": b"" if verb == "HEAD" else body})


class Done:
    """Something that was begun and needs no waiting: awaiting it takes no turn of the loop."""

    __slots__ = ()

    def __await__(self) -> Iterator[Any]:
        return iter(())


DONE: Awaitable[Any] = Done()  # type: ignore[assignment]  # of a generator it has what is used


class ResponseSink(Protocol):
    """The way of one response to its client.

    Both functions do at once what can be done at once, and give what remains to be awaited:
    :data:`DONE` where that is nothing.
    """

    def send_whole(self, status: int, body: bytes, extra: Sequence[Header] = ()) -> Awaitable[Any]:
        """Send a whole response.

        Args:
            status: of HTTP.
            body: JSON, or nothing.
            extra: headers beside the type and the length.
        """
        ...

    def send_part(
        self, chunk: bytes, headers: Sequence[Header] | None, *, more: bool
    ) -> Awaitable[Any]:
        """Send a part of an event stream.

        Args:
            chunk: what is sent.
            headers: those of the response where this is its first part, else None.
            more: there is more to come.
        """
        ...


class SilentSink:
    """Takes a response whose client has left."""

    def send_whole(self, *_response: object) -> Awaitable[Any]:
        """Drop it."""
        return DONE

    def send_part(self, *_part: object, more: bool) -> Awaitable[Any]:  # noqa: ARG002
        """Drop it."""
        return DONE


NOBODY = SilentSink()


class EventSink(Protocol):
    """Takes the messages of a response that has become an event stream."""

    @property
    def has_begun(self) -> bool:
        """Whether its head is on its way or out, so that the client has something to take."""
        ...

    @property
    def is_attended(self) -> bool:
        """Whether the client may still take what is put here."""
        ...

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Put a message on the stream, or only end it; False when it cannot be sent or kept."""
        ...

    async def sign(self, chunk: bytes) -> None:
        """Write what says nothing; begins the stream where nothing was said on it."""
        ...

    def release(self) -> None:
        """Have whoever waits for the client wait no longer; the client gets nothing more."""
        ...

    def drop(self) -> None:
        """Send nothing more to this client."""
        ...

    def close(self) -> None:
        """Let go of everything: the request is over."""
        ...


class StreamOwner(Protocol):
    """A session that may keep the event streams of its responses."""

    def open_sink(self, writer: "EventWriter") -> EventSink:
        """The sink of a response that becomes a stream; ``writer`` itself where nothing is kept."""
        ...


class EventWriter:
    """Writes one event stream to the client, the head first; made with its first event.

    Args:
        sink: where the response goes.
        extra: headers beside those that every event stream has.

    Attributes:
        has_begun: the head is on its way or out.
        is_over: the client has left, or the response was ended.
    """

    __slots__ = ("_extra", "_is_released", "_lock", "_sink", "_writing", "has_begun", "is_over")

    def __init__(self, sink: ResponseSink, extra: tuple[Header, ...] = ()) -> None:
        self._sink = sink
        self._extra = extra
        # Tasks of one call may write at the same time; the head must be out before any of it.
        self._lock = asyncio.Lock()
        self._writing: asyncio.Task[Any] | None = None
        self._is_released = False
        self.has_begun = False
        self.is_over = False

    @property
    def is_attended(self) -> bool:
        """Whether the client may still take what is written."""
        return not self.is_over

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Write a message as an event, or only the end; False when the client has left."""
        return await self.write(b"" if message is None else encode_event(message), more=not last)

    async def sign(self, chunk: bytes) -> None:
        """Write what says nothing, such as a comment."""
        await self.write(chunk)

    async def write(self, chunk: bytes, *, more: bool = True) -> bool:
        """Write to the client as it is; begins the stream where that has not happened.

        Returns:
            False when the client has left.
        """
        if self.is_over:
            return False  # whoever writes may wait for a client that takes nothing any more
        await self._lock.acquire()  # cheaper than "async with"
        self._writing = task = asyncio.current_task()
        before = 0 if task is None else task.cancelling()
        try:
            if self.is_over:
                return False  # type: ignore[unreachable]  # it may be by now
            headers = None
            if not self.has_begun:
                self.has_begun = True
                headers = (*STREAM_HEADERS, *self._extra)
            await self._sink.send_part(chunk, headers, more=more)
        except asyncio.CancelledError:
            if not self._is_released or task is None:
                raise
            self.drop()
            if task.uncancel() > before:
                raise  # not by us alone
            return False
        except Exception:  # noqa: BLE001 - servers and middleware each raise their own for a client that left
            self.drop()
            return False
        finally:
            del task  # which keeps what is raised, and so would this frame
            self._writing = None
            self._lock.release()
        return True

    def release(self) -> None:
        """Have whoever waits for the client wait no longer; the client gets nothing more."""
        if self._writing is not None and not self._is_released:
            self._is_released = True
            self._writing.cancel()

    def drop(self) -> None:
        """Write nothing more: the client has left, or the response was ended."""
        self.has_begun = self.is_over = True
        self._sink = NOBODY

    def close(self) -> None:
        """Do nothing: nothing runs beside it."""


class Reply:
    """The response to one request.

    Args:
        sink: where the response goes.
        takes: the forms of an answer that the client takes.
        extra: headers for whatever the response becomes.
        owner: the session that may keep the stream it becomes; None where nothing is kept.

    Attributes:
        json: it may become one JSON body.
        stream: it may become an event stream.
        extra: headers for whatever it becomes.
        events: the event stream that it has become, or None.
        is_over: nothing more is to be said.
    """

    __slots__ = ("_beating", "_missed", "_owner", "_sink", "events", "extra", "is_over", "json",
                 "stream")  # fmt: skip

    def __init__(
        self,
        sink: ResponseSink,
        takes: AcceptedForms,
        extra: tuple[Header, ...] = (),
        owner: StreamOwner | None = None,
    ) -> None:
        self._sink = sink
        self._owner = owner
        self._beating: asyncio.Task[None] | None = None
        self._missed = 0  # heartbeats in a row that could not be sent
        self.json = takes.json
        self.stream = takes.events
        self.extra = extra
        self.events: EventSink | None = None
        self.is_over = False

    @property
    def is_attended(self) -> bool:
        """Whether somebody waits for what it will say."""
        return not self.is_over and (self.events is None or self.events.is_attended)

    async def say(self, message: bytes) -> bool:
        """Send a message that comes before the answer; opens the stream.

        Returns:
            False when it could not be sent: the response has ended, or the client takes no
            streams.
        """
        if self.is_over or not self.stream:
            return False
        return await (self.events or self.begin()).put(message)

    def answer(self, message: bytes, status: int = 200) -> Awaitable[Any]:
        """Send the last message; the status counts only where no stream was opened before it."""
        if self.is_over:
            return DONE
        self.is_over = True
        if self.events is not None or (status == 200 and not self.json):
            return (self.events or self.begin()).put(message, last=True)
        return self._sink.send_whole(status, message, self.extra)

    async def open(self) -> None:
        """Begin the stream although there is nothing to say yet."""
        await (self.events or self.begin()).sign(b"")

    def end(self, status: int = 202) -> Awaitable[Any]:
        """End without an answer; ``status`` counts only where no stream was opened."""
        if self.is_over:
            return DONE
        self.is_over = True
        if self.events is not None:
            return self.events.put(None, last=True)
        return self._sink.send_whole(status, b"", self.extra)

    def begin(self) -> EventSink:
        """Become an event stream, whose head is sent with the first event."""
        writer = EventWriter(self._sink, self.extra)
        self.events = events = writer if self._owner is None else self._owner.open_sink(writer)
        return events

    def drop(self) -> None:
        """Drop what is said from now on: nobody listens any more."""
        if self.events is None:
            self.is_over = True
            self._sink = NOBODY
        else:
            self.events.drop()

    def beat(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Send a comment, so that nothing between here and there takes silence for the end.

        Returns:
            True as soon as the client has taken none of several: whatever is sent waits for it.
        """
        if self._beating is None:
            if not self.is_over and self.stream:
                self._beating = loop.create_task(self._beat(self.events or self.begin()))
        elif self.events is not None and self.events.has_begun:
            # The sign of life before this one is still on its way.
            self._missed += 1
            if self._missed == MAX_MISSED_HEARTBEATS:
                self.events.release()
                return True
        return False

    async def _beat(self, events: EventSink) -> None:
        try:
            await events.sign(HEARTBEAT)
        finally:
            self._beating = None
        self._missed = 0

    def close(self, events: EventSink) -> None:
        """End what runs beside the event stream that it has become: the request is over."""
        if self._beating is not None:
            self._beating.cancel()
        events.close()
