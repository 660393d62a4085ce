"""Exchanges of tests that go over a connection of ours, and not by ASGI: as bytes, both ways."""

import asyncio
from typing import Any
from urllib.parse import quote

from support.http.connection_driver import Wire, make_config
from support.http.http_differences import settle

__all__ = ["ResponseReader", "can_be_carried", "carry"]

CHUNK = b"%x\r\n%b\r\n"


class ResponseReader:
    """Makes of the bytes of one response what an ASGI app would have sent.

    Args:
        exchange: gets the messages.
        bodiless: it answers HEAD: its length is that of a body which does not come (RFC 9110 9.3.2).
    """

    def __init__(self, exchange: Any, bodiless: bool = False) -> None:
        self._exchange = exchange
        self._bodiless = bodiless
        self._data = b""
        self._left = -1  # of the body; -1 for chunks
        self._begun = False
        self.complete = False

    async def feed(self, data: bytes) -> None:
        """Take in what came."""
        self._data += data
        if not self._begun:
            if b"\r\n\r\n" not in self._data:
                return
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            first, *lines = head.split(b"\r\n")
            status = int(first.split(b" ")[1])
            if status == 100:
                await self.feed(b"")
                return
            fields = dict(line.split(b": ", 1) for line in lines)
            chunked = fields.pop(b"transfer-encoding", None) is not None
            del fields[b"date"]
            length = 0 if self._bodiless else int(fields.get(b"content-length", b"0"))
            self._left = -1 if chunked and not self._bodiless else length
            self._begun = True
            start = {"type": "http.response.start", "status": status, "headers": [*fields.items()]}
            await self._exchange.send(start)
        await (self._feed_chunks() if self._left < 0 else self._feed_body())

    async def _feed_body(self) -> None:
        body, self._data = self._data[: self._left], self._data[self._left :]
        self._left -= len(body)
        self.complete = not self._left
        await self._say(body)

    async def _feed_chunks(self) -> None:
        while not self.complete and b"\r\n" in self._data:
            size, _, rest = self._data.partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length + 2:
                return
            self._data = rest[length + 2 :]
            self.complete = not length
            await self._say(rest[:length])

    async def _say(self, body: bytes) -> None:
        part = {"type": "http.response.body", "body": body, "more_body": not self.complete}
        await self._exchange.send(part)


def can_be_carried(scope: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether a connection says the same; a scope with members of its own is one of a framework's."""
    return not set(given) - {"http_version", "client", "server", "query_string"} and bool(scope)


async def carry(exchange: Any, app: Any) -> None:
    """Send a request to an app over a connection, and hear the response up to its end."""
    scope = exchange.scope
    ends = {"peername": scope["client"], "sockname": scope["server"]}
    wire = Wire(make_config(app, log_level="critical"), extra=ends)
    reader = ResponseReader(exchange, bodiless=scope["method"] == "HEAD")
    sending = asyncio.ensure_future(_send_request(exchange, wire))
    leaving = asyncio.ensure_future(exchange.left.wait())
    try:
        while not (reader.complete or wire.transport.closing or exchange.left.is_set()):
            wire.transport.news.clear()
            for data in wire.take():
                await reader.feed(data)
            if reader.complete:
                break
            news = asyncio.ensure_future(wire.transport.news.wait())
            await asyncio.wait((news, leaving), return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        for data in wire.take():
            await reader.feed(data)
    finally:
        leaving.cancel()
        sending.cancel()
        wire.close()
        await settle()
        if wire.state.tasks:
            await asyncio.wait(wire.state.tasks)


async def _send_request(exchange: Any, wire: Wire) -> None:
    """Send a request in its pieces."""
    scope, chunks = exchange.scope, exchange.chunks
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    first = f"{scope['method']} {quote(scope['path'])}".encode() + query
    fields = [*scope["headers"]]
    has_length = any(name == b"content-length" for name, _ in fields)
    chunked = not has_length and (len(chunks) > 1 or not exchange.whole)
    if chunked:
        fields.append((b"transfer-encoding", b"chunked"))
    elif not has_length and (chunks[0] or scope["method"] == "POST"):
        fields.append((b"content-length", b"%d" % len(chunks[0])))
    lines = b"".join(b"%b: %b\r\n" % field for field in fields)
    head = b"%b HTTP/%b\r\n%b\r\n" % (first, scope["http_version"].encode(), lines)
    for chunk in chunks:
        await wire.send(head + (CHUNK % (len(chunk), chunk) if chunked and chunk else chunk))
        head = b""
        exchange.read += 1
        await settle()
    if exchange.whole and chunked:
        await wire.send(b"0\r\n\r\n")
    await settle()
    exchange.watched.set()
