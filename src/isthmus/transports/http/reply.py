"""One HTTP response: plain JSON when the first thing said is the last, an event stream otherwise.

Which of the two it becomes is not decided beforehand. A call that is answered without further
ado costs one JSON body; the stream is opened by the first message that comes before the answer,
or by the heartbeat of a call that takes long.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from isthmus.core.http_rules import Accepts
from isthmus.core.sse import comment, encode_event

__all__ = ["Header", "Receive", "Reply", "Scope", "Send", "WatchedReply", "empty", "plain"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
NO_LENGTH: Header = (b"content-length", b"0")
STREAM: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    # spec 2026-07-28 basic/transports/streamable-http#receiving-messages: SHOULD, so that no
    # proxy holds events back
    (b"x-accel-buffering", b"no"),
)
HEARTBEAT = comment()


async def plain(send: Send, status: int, body: bytes, extra: tuple[Header, ...] = ()) -> None:
    """Send a whole JSON response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *extra]})
    await send({"type": "http.response.body", "body": body})


async def empty(send: Send, status: int, extra: tuple[Header, ...] = ()) -> None:
    """Send a response without a body."""
    headers = [*extra] if status == 204 else [NO_LENGTH, *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class Reply:
    """The response to one request.

    Args:
        send: the ASGI callable that takes response messages.
        takes: the forms of an answer that the client takes.
        extra: headers for whatever the response becomes.

    Attributes:
        json: it may become one JSON body.
        stream: it may become an event stream.
        streaming: it has.
        over: nothing more can be sent.
        task: the request's own task, while it runs.
    """

    __slots__ = ("_beating", "_cut", "_lock", "_send", "extra", "json", "over", "stream",
                 "streaming", "task")  # fmt: skip

    def __init__(self, send: Send, takes: Accepts, extra: tuple[Header, ...] = ()) -> None:
        self._send = send
        self.json = takes.json
        self.stream = takes.events
        self.extra = extra
        self.over = False
        self.streaming = False
        self.task = asyncio.current_task()
        self._cut = False
        self._lock: asyncio.Lock | None = None
        self._beating: asyncio.Task[None] | None = None

    async def say(self, message: bytes) -> bool:
        """Send a message that comes before the answer; opens the stream.

        Returns:
            False when it could not be sent: the response has ended, or the client takes no
            streams.
        """
        if self.over or not self.stream:
            return False
        return await self._write(encode_event(message))

    async def answer(self, message: bytes, status: int = 200) -> None:
        """Send the last message; the status counts only where no stream was opened before it."""
        if self.over:
            return
        self.over = True
        if self.streaming or (status == 200 and not self.json):
            await self._write(encode_event(message), more=False)
        else:
            await plain(self._send, status, message, self.extra)

    async def open(self) -> None:
        """Begin the stream although there is nothing to say yet."""
        await self._write(b"")

    async def end(self, status: int = 202) -> None:
        """End without an answer; ``status`` counts only where no stream was opened."""
        if self.over:
            return
        self.over = True
        if self.streaming:
            await self._write(b"", more=False)
        else:
            await empty(self._send, status, self.extra)

    def drop(self) -> None:
        """Nobody listens any more: what is said from now on goes nowhere."""
        self.over = True
        self.streaming = True
        self._send = _nowhere

    def cut(self) -> None:
        """Stop the work behind this response; it comes out as a cancellation that is ours."""
        if not self._cut and self.task is not None:
            self._cut = True
            self.task.cancel()

    def was_cut(self) -> bool:
        """Whether a cancellation came from :meth:`cut` alone; asked once, takes it back."""
        if not self._cut or self.task is None:
            return False
        self._cut = False
        return self.task.uncancel() == 0

    def finish(self) -> None:
        """The request is over: let go of everything that belongs to it."""
        if self._cut:
            self.was_cut()  # whoever swallowed the cancellation leaves it to be taken back
        self.over = True
        self.task = None
        if self._beating is not None:
            self._beating.cancel()

    def farewell(self) -> None:
        """The server stops: end what would otherwise last for ever."""

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """The request runs on; a response without a watch of its own does nothing about it."""

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send a comment, so that nothing between here and there takes silence for the end."""
        if not self.over and self.stream and self._beating is None:
            self._beating = loop.create_task(self._beat())

    async def _beat(self) -> None:
        try:
            await self._write(HEARTBEAT)
        finally:
            self._beating = None

    async def _write(self, chunk: bytes, *, more: bool = True) -> bool:
        if self._lock is None:
            self._lock = asyncio.Lock()
        # Tasks of one call may write at the same time; the head must be out before any of it.
        async with self._lock:
            try:
                if not self.streaming:
                    self.streaming = True
                    await self._send(
                        {
                            "type": "http.response.start",
                            "status": 200,
                            "headers": [*STREAM, *self.extra],
                        }
                    )
                await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
            except Exception:  # noqa: BLE001 - servers and middleware each raise their own for a client that left
                self.drop()
                return False
        return True


class WatchedReply(Reply):
    """A response that notices when its client leaves, once the request runs on.

    Args:
        send: the ASGI callable that takes response messages.
        takes: the forms of an answer that the client takes.
        extra: headers for whatever the response becomes.
        receive: the ASGI callable that says when the client has left.
    """

    __slots__ = ("_receive", "_watcher")

    def __init__(
        self, send: Send, takes: Accepts, extra: tuple[Header, ...], receive: Receive
    ) -> None:
        super().__init__(send, takes, extra)
        self._receive = receive
        self._watcher: asyncio.Task[None] | None = None

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """The request runs on: from now on a client that leaves is noticed."""
        self._watcher = loop.create_task(self._watch())

    def left(self) -> None:
        """The client has left."""
        self.drop()

    def finish(self) -> None:
        """The request is over, and so is the watch."""
        super().finish()
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None

    async def _watch(self) -> None:
        # A server that cannot receive any more says the same as one that says so.
        with suppress(Exception):
            while (await self._receive())["type"] != "http.disconnect":
                pass
        self.left()


async def _nowhere(_message: MutableMapping[str, Any]) -> None:
    """Where a dropped response's messages go."""
