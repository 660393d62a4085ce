"""Lingering close (RFC 9112 9.6): a response whose request is still being sent, and that gets read all the same.

A server that refuses an upload and closes makes the client's stack throw away the response together with the connection. So
the response is sent whole, and what still comes is read and dropped for a while before the connection ends.
"""

import asyncio
from contextlib import suppress
from typing import Any

from isthmus.transports.http.reply import Header, Receive, Scope, Send
from isthmus.transports.http.request import Begun, Message, begun

__all__ = ["LingeringResponse"]

DRAIN_S = 2.0
"""Seconds that a refused body is read on; a server that stops waits for no longer either."""

MAX_DRAIN_BYTES = 64 * 1024 * 1024
CLOSE: Header = (b"connection", b"close")


class LingeringResponse:
    """The ASGI callables of one request, whose response lingers where the body was not read to its end.

    Args:
        scope: the ASGI scope.
        receive: the ASGI callable that gives the body.
        send: the ASGI callable that takes the response.
    """

    __slots__ = ("_is_open", "_pending", "_receive", "_send", "_waits")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        fields: list[tuple[bytes, bytes]] = scope["headers"]
        self._is_open = any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 \t"))
            for name, value in fields
        )
        # RFC 9110 10.1.1: such a client sends its body when it is told to, which it will not be
        self._waits = any(name == b"expect" for name, _ in fields)
        self._pending: Begun[Message] | None = None

    async def receive(self) -> Message:
        """The next piece of the body, as from the server."""
        message = await self._receive()
        self._note(message)
        return message

    async def send(self, message: Message) -> None:
        """A part of the response, as to the server; after the last one the body is drained."""
        if message["type"] == "http.response.start":
            if self._is_open and not self._waits:
                self._peek()
            if self._is_open and CLOSE not in message["headers"]:
                message = {**message, "headers": [*message["headers"], CLOSE]}
            await self._send(message)
        elif self._is_open and not self._waits and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._drain()
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send(message)

    def _note(self, message: Message) -> None:
        more = message["type"] == "http.request" and message.get("more_body", False)
        self._is_open = self._is_open and more

    def _peek(self) -> None:
        """See whether the body is there already: then the connection may be used again."""
        message = begun(self._receive())
        if isinstance(message, Begun):
            self._pending = message
        else:
            self._note(message)

    async def _drain(self) -> None:
        dropped = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while self._is_open and dropped <= MAX_DRAIN_BYTES:
                    pending: Any = self._receive() if self._pending is None else self._pending
                    self._pending = None
                    message: Message = await pending
                    self._note(message)
                    dropped += len(message.get("body", b""))
