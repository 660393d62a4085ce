"""Drives an app in process, one exchange at a time: by ASGI, with nothing between test and app.

Where ``settings["carrier"]`` is ``connection``, it goes over a connection of ours, as bytes.
"""

import asyncio
import json
from typing import Any, Self

from isthmus.transports.http.asgi_exchange import AsgiExchange
from support.http.carried import can_be_carried, carry

settings = {"carrier": "asgi"}


class Exchange:
    """One HTTP request to an ASGI app and its response as it comes.

    Args:
        app: the ASGI callable.
        method: the HTTP method.
        path: the path as the client wrote it.
        headers: names and values; several values of one name are a list.
        body: the request's body: bytes, a list of chunks, or anything JSON can carry.
        scope: further members of the ASGI scope.
        whole: the body ends with its last chunk; False has the client leave before.
    """

    def __init__(
        self,
        app: Any,
        method: str = "POST",
        path: str = "/mcp",
        *,
        headers: dict[str, Any] | None = None,
        body: Any = b"",
        scope: dict[str, Any] | None = None,
        whole: bool = True,
    ) -> None:
        self.chunks = [body] if isinstance(body, bytes) else body
        if not isinstance(self.chunks, list) or any(not isinstance(c, bytes) for c in self.chunks):
            self.chunks = [json.dumps(body).encode()]
        self.whole = whole
        self.read = 0
        self.left = asyncio.Event()
        self.watched = asyncio.Event()
        self.unwatched = asyncio.Event()
        self.started = asyncio.Event()
        self.complete = asyncio.Event()
        self.messages: list[dict[str, Any]] = []
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self._more = asyncio.Event()
        self._taken = 0
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": _encoded(headers or {}),
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "state": {},
            **(scope or {}),
        }
        if settings["carrier"] == "connection" and can_be_carried(self.scope, scope or {}):
            self.task = asyncio.ensure_future(carry(self, app))
        else:
            self.task = asyncio.ensure_future(app(self.scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        return await self.receive()  # looked up each time: a test may replace it

    async def _send(self, message: dict[str, Any]) -> None:
        await self.send(message)

    async def receive(self) -> dict[str, Any]:
        """The ASGI callable: the body's chunks, then the client's leaving."""
        if self.read < len(self.chunks):
            chunk = self.chunks[self.read]
            self.read += 1
            return {
                "type": "http.request",
                "body": chunk,
                "more_body": self.read < len(self.chunks) or not self.whole,
            }
        self.watched.set()
        try:
            await self.left.wait()
        except asyncio.CancelledError:
            self.unwatched.set()
            raise
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """The ASGI callable: checks that messages come in the order the protocol wants."""
        self.messages.append(message)
        if message["type"] == "http.response.start":
            assert not self.started.is_set(), "the response was started twice"
            self.status = message["status"]
            self.headers = [(k.decode(), v.decode()) for k, v in message["headers"]]
            self.started.set()
        else:
            assert self.started.is_set(), "a body came before the response was started"
            assert not self.complete.is_set(), "a body came after the last one"
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                self.complete.set()
        self._more.set()

    def header(self, name: str) -> str | None:
        """A response header, or None."""
        return next((v for k, v in self.headers if k == name), None)

    def leave(self) -> None:
        """The client goes away."""
        self.left.set()

    async def done(self) -> Self:
        """Wait until the app has returned."""
        await self.task
        return self

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The messages in the event stream so far; events without data are none."""
        found = []
        for block in self.body.decode().split("\n\n")[:-1]:
            data = [line[5:].lstrip() for line in block.split("\n") if line.startswith("data:")]
            if any(data):
                found.append(json.loads("\n".join(data)))
        return found

    @property
    def ids(self) -> list[str]:
        """The ids of the events in the stream so far."""
        lines = self.body.decode().split("\n")
        return [line[4:] for line in lines if line.startswith("id: ")]

    async def event(self) -> Any:
        """Wait for the next message of the event stream."""
        while len(self.events) <= self._taken:
            self._more.clear()
            await self._more.wait()
        self._taken += 1
        return self.events[self._taken - 1]

    async def bytes_sent(self, part: bytes) -> None:
        """Wait until the body contains ``part``."""
        while part not in self.body:
            self._more.clear()
            await self._more.wait()


async def fetch(app: Any, method: str = "POST", path: str = "/mcp", **options: Any) -> Exchange:
    """One request from beginning to end."""
    return await Exchange(app, method, path, **options).done()


def _encoded(headers: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode(), str(value).encode())
        for name, values in headers.items()
        for value in (values if isinstance(values, list) else [values])
    ]


def make_sink(send: Any) -> AsgiExchange:
    """An exchange of which there is nothing but the way of its response."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [],
    }
    sink = AsgiExchange(scope, asyncio.Event().wait, send)
    sink.is_unread = False
    return sink
