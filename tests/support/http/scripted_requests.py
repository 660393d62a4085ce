"""HTTP without a network, so that time can be virtual: the five methods of ``Requests``, scripted."""

import asyncio

from isthmus.errors import ConnectionLost

__all__ = ["BREAK", "HOLD", "ScriptedReply", "ScriptedRequests"]

BREAK = object()
"""In the place of a piece: the connection breaks."""

HOLD = object()
"""In the place of a piece: nothing more comes until somebody closes."""


class ScriptedReply:
    """A response: status, headers, and pieces of a body.

    Args:
        status: the HTTP status.
        *pieces: bytes, ``BREAK``, ``HOLD``, an event to wait for or a function to call before the
            next one.
        kind: the content type.
        **headers: further headers, with ``_`` for ``-``.
    """

    def __init__(self, status=200, *pieces, kind="text/event-stream", **headers):
        self.status = status
        self.headers = {"Content-Type": kind}
        self.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        self.pieces = list(pieces)
        self.closed = asyncio.Event()

    async def read(self, _limit):
        """The whole body."""
        return b"".join([piece async for piece in self])

    async def __aiter__(self):
        while piece := await self.piece():
            yield piece

    async def piece(self):
        """The next piece."""
        await asyncio.sleep(0)
        if self.closed.is_set():
            raise ConnectionLost("closed")
        while self.pieces:
            piece = self.pieces.pop(0)
            if piece is BREAK:
                raise ConnectionLost("broke off")
            if piece is HOLD:
                await self.closed.wait()
                raise ConnectionLost("closed")
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            if isinstance(piece, bytes):
                return piece
            piece()
        return b""

    def close(self):
        """Let go of it."""
        self.closed.set()


class ScriptedRequests:
    """Requests that a function answers.

    Args:
        answer: ``(method, url, headers, body)`` to a ``ScriptedReply`` or an exception; may be async.

    Attributes:
        heard: each request: its time, method, URL, headers and body.
    """

    def __init__(self, answer):
        self.answer = answer
        self.heard = []
        self.closed = False

    async def send(self, method, url, headers, body=None):
        """Answer one request."""
        now = asyncio.get_running_loop().time()
        self.heard.append((now, method, url, dict(headers), body))
        await asyncio.sleep(0)
        reply = self.answer(method, url, headers, body)
        if hasattr(reply, "__await__"):
            reply = await reply
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self):
        """Note that it is over."""
        self.closed = True

    def times(self, method):
        """When requests of a method came."""
        return [round(now, 6) for now, verb, *_ in self.heard if verb == method]
