"""One HTTP response: plain JSON when the first thing said is the last, an event stream otherwise.

Which of the two it becomes is not decided beforehand. A call that is answered without further
ado costs one JSON body; the stream is opened by the first message that comes before the answer,
or by the heartbeat of a call that takes long.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from isthmus.core.http.rules import AcceptedForms
from isthmus.core.http.sse import encode_comment, encode_event
from isthmus.wire.jsonrpc import ErrorBody

__all__ = [
    "HEARTBEAT",
    "Header",
    "Receive",
    "Reply",
    "Scope",
    "Send",
    "WatchedReply",
    "WatchedRequest",
    "drop_message",
    "send_empty",
    "send_json",
    "send_response",
]  # fmt: skip

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

MAX_MISSED_HEARTBEATS = 4
"""Heartbeats in a row that a client may fail to take before it counts as gone."""


async def send_json(send: Send, status: int, body: bytes, extra: tuple[Header, ...] = ()) -> None:
    """Send a whole JSON response."""
    length = (b"content-length", b"%d" % len(body))
    await send(
        {"type": "http.response.start", "status": status, "headers": [JSON_TYPE, length, *extra]}
    )
    await send({"type": "http.response.body", "body": body})


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


async def send_empty(send: Send, status: int, extra: tuple[Header, ...] = ()) -> None:
    """Send a response without a body."""
    headers = [*extra] if status == 204 else [NO_LENGTH, *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class WatchedRequest:
    """What goes on for a request, and can be cut short.

    Attributes:
        task: the request's own task, while it runs.
    """

    __slots__ = ("_cut", "_why", "task")

    def __init__(self) -> None:
        self.task = asyncio.current_task()
        self._cut = False

    def cut(self, why: ErrorBody | None = None) -> None:
        """Stop the work behind this; it comes out as a cancellation that is ours.

        Args:
            why: what is answered, where another reason is the usual one.
        """
        if not self._cut and self.task is not None:
            self._cut = True
            if why is not None:
                self._why = why
            self.task.cancel()

    def why(self, usual: ErrorBody) -> ErrorBody:
        """What to answer after :meth:`cut`."""
        return getattr(self, "_why", usual)  # most are never cut: then there is no such thing

    def was_cut(self) -> bool:
        """Whether a cancellation came from :meth:`cut` alone; asked once, takes it back."""
        if not self._cut or self.task is None:
            return False
        self._cut = False
        return self.task.uncancel() == 0

    def farewell(self) -> None:
        """The server stops: end what would otherwise last for ever."""

    def expire(self, why: ErrorBody) -> None:
        """Whoever asked may not listen any more: end what is open to them."""

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """It goes on for longer than most; what has no watch of its own does nothing about it."""

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Another heartbeat's time has passed."""


class WritePace:
    """How a client takes what it is sent; made with the first event of a stream.

    Attributes:
        lock: tasks of one call may write at the same time; the head must be out before any of it.
        writer: whoever waits for the client to take something.
        stuck: it was told to wait no longer.
        missed: heartbeats in a row that could not be sent.
    """

    __slots__ = ("lock", "missed", "stuck", "writer")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.writer: asyncio.Task[Any] | None = None
        self.stuck = False
        self.missed = 0


class Reply(WatchedRequest):
    """The response to one request.

    Args:
        send: the ASGI callable that takes response messages.
        takes: the forms of an answer that the client takes.
        extra: headers for whatever the response becomes.
        receive: the ASGI callable that says when the client has left; None where nobody watches.
        owner: what the response belongs to, for kinds of it that want to know.

    Attributes:
        json: it may become one JSON body.
        stream: it may become an event stream.
        streaming: it has.
        over: nothing more can be sent.
        carried: what goes on without it where it breaks, for kinds of it that have that.
    """

    __slots__ = ("_beating", "_owner", "_pace", "_receive", "_send", "_watcher", "carried", "extra",
                 "json", "over", "stream", "streaming")  # fmt: skip

    def __init__(
        self,
        send: Send,
        takes: AcceptedForms,
        extra: tuple[Header, ...] = (),
        receive: Receive | None = None,
        owner: Any = None,
    ) -> None:
        # All that any kind of response has: each request makes one, so that calls up a chain of
        # classes would be paid for by every call.
        self.task = asyncio.current_task()
        self._cut = False
        self._send = send
        self._receive = receive
        self._owner = owner
        self._watcher: asyncio.Task[None] | None = None
        self.carried: Any = None
        self.json = takes.json
        self.stream = takes.events
        self.extra = extra
        self.over = False
        self.streaming = False
        self._pace: WritePace | None = None
        self._beating: asyncio.Task[None] | None = None

    @property
    def attended(self) -> bool:
        """Whether somebody waits for what it will say."""
        return not self.over

    async def say(self, message: bytes) -> bool:
        """Send a message that comes before the answer; opens the stream.

        Returns:
            False when it could not be sent: the response has ended, or the client takes no
            streams.
        """
        if self.over or not self.stream:
            return False
        return await self._put(message)

    async def answer(self, message: bytes, status: int = 200) -> None:
        """Send the last message; the status counts only where no stream was opened before it."""
        if self.over:
            return
        self.over = True
        if self.streaming or (status == 200 and not self.json):
            await self._put(message, last=True)
        else:
            await send_json(self._send, status, message, self.extra)

    async def open(self) -> None:
        """Begin the stream although there is nothing to say yet."""
        await self.write(b"")

    async def end(self, status: int = 202) -> None:
        """End without an answer; ``status`` counts only where no stream was opened."""
        if self.over:
            return
        self.over = True
        if self.streaming:
            await self._put(None, last=True)
        else:
            await send_empty(self._send, status, self.extra)

    def drop(self) -> None:
        """Nobody listens any more: what is said from now on goes nowhere."""
        self.over = True
        self.streaming = True
        self._send = drop_message

    def left(self) -> None:
        """The client has left."""
        self.drop()

    def expire(self, why: ErrorBody) -> None:
        """End it if it is a stream; an answer in one piece was permitted when it was asked for."""
        if self.streaming:
            self.cut(why)

    def finish(self) -> None:
        """The request is over: let go of everything that belongs to it."""
        if self._cut:
            self.was_cut()  # whoever swallowed the cancellation leaves it to be taken back
        self.over = True
        self.task = None
        if self.streaming or self._watcher is not None:
            self._unwind()

    def _unwind(self) -> None:
        """The request is over: end what was begun beside it."""
        for task in (self._beating, self._watcher):
            if task is not None:
                task.cancel()
        self._watcher = None  # which holds this response, too

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send a comment, so that nothing between here and there takes silence for the end."""
        if self._beating is not None:
            self._missed()
        elif not self.over and self.stream:
            self._beating = loop.create_task(self._beat())

    async def _beat(self) -> None:
        try:
            await self._sign()
        finally:
            self._beating = None
        if self._pace is not None:
            self._pace.missed = 0

    async def _sign(self) -> None:
        """Give a sign of life."""
        await self.write(HEARTBEAT)

    def _missed(self) -> None:
        """The sign of life before this one is still on its way."""
        if self._pace is not None:
            self._pace.missed += 1
            if self._pace.missed == MAX_MISSED_HEARTBEATS:
                # Whatever is sent waits for a client that takes nothing: that must have an end.
                self.release()
                self.left()

    def release(self) -> None:
        """Have whoever waits for the client wait no longer; the client gets nothing more."""
        pace = self._pace
        if pace is not None and pace.writer is not None and not pace.stuck:
            pace.stuck = True
            pace.writer.cancel()

    async def _put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Put a message on the stream, or only end it."""
        return await self.write(b"" if message is None else encode_event(message), more=not last)

    async def write(self, chunk: bytes, *, more: bool = True) -> bool:
        """Write to the client as it is; begins the stream where that has not happened.

        Returns:
            False when the client has left.
        """
        pace = self._pace
        if pace is None:
            pace = self._pace = WritePace()
        await pace.lock.acquire()  # cheaper than "async with"
        pace.writer = task = asyncio.current_task()
        before = 0 if task is None else task.cancelling()
        try:
            if not self.streaming:
                self.streaming = True
                await self._send(
                    {
                        "type": "http.response.start",
                        "status": 200,
                        "headers": [*STREAM_HEADERS, *self.extra],
                    }
                )
            await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
        except asyncio.CancelledError:
            if not pace.stuck or task is None:
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
            pace.writer = None
            pace.lock.release()
        return True


class WatchedReply(Reply):
    """A response that notices when its client leaves, once the request runs on."""

    __slots__ = ()

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """The request runs on: from now on a client that leaves is noticed."""
        self._watcher = loop.create_task(self._watch())

    async def _watch(self) -> None:
        # A server that cannot receive any more says the same as one that says so.
        with suppress(Exception):
            while self._receive and (await self._receive())["type"] != "http.disconnect":
                pass
        self.left()


async def drop_message(_message: MutableMapping[str, Any]) -> None:
    """Where a dropped response's messages go."""
