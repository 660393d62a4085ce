"""Servers that break one rule each: a good server, and something between it and whoever asks."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from isthmus import Server
from isthmus.client.targets import resolve_target
from isthmus.errors import ConnectionLost
from isthmus.linter.doctor.doctor import Doctor
from isthmus.linter.doctor.http import HttpTarget
from isthmus.linter.doctor.lines import LineTarget
from isthmus.revisions import BY_NAME
from isthmus.runtime.channel import Delivery, Outgoing

Message = dict[str, Any]
Spoil = Callable[[Message | None, Message], Any]
"""``(request, answer)``: what is said instead: a message, several, bytes, or None for nothing."""

URL = "http://127.0.0.1:8000/mcp"


class Sum(Struct):
    total: int


def make_good_server(**options: Any) -> Server:
    """A server with a little of everything, and nothing wrong."""
    server = Server("good", version="1", page_size=2, secret=b"0123456789abcdef", **options)

    @server.tool(read_only=True)
    def now() -> str:
        """Say what time it is."""
        return "noon"

    @server.tool
    def add(a: int, b: Annotated[int, Meta(ge=0)] = 1) -> Sum:
        """Add two numbers."""
        return Sum(a + b)

    @server.tool(read_only=True)
    def whole() -> Sum:
        """Say what it all comes to."""
        return Sum(7)

    @server.resource("notes://all")
    def notes() -> str:
        """Every note."""
        return "nothing"

    @server.resource("notes://{id}")
    def note(id: str) -> str | None:
        """One note."""
        return f"note {id}"

    @server.prompt
    def greet() -> str:
        """Greet somebody."""
        return "Hello!"

    @server.prompt
    def praise(name: str) -> str:
        """Praise somebody."""
        return f"Praise {name}."

    @praise.completes("name")
    def names(typed: str) -> list[str]:
        return [name for name in ("Ada", "Bob") if name.startswith(typed)]

    return server


# Over lines


class SpoiledChannel:
    """A client's end of a channel, on which something else is said than the server says."""

    def __init__(self, channel: Any, spoil: Spoil, noise: list[bytes]) -> None:
        self.noise = noise
        self._channel = channel
        self._spoil = spoil
        self._asked: dict[str, Message] = {}
        self._ready: list[bytes] = []

    async def receive(self) -> Delivery | None:
        while not self._ready:
            delivery = await self._channel.receive()
            if delivery is None:
                return None
            self._ready += self._instead(delivery.data)
        return Delivery(self._ready.pop(0))

    def _instead(self, data: bytes) -> list[bytes]:
        message = json.loads(data)
        asked = None
        if isinstance(message, dict) and "method" not in message:
            asked = self._asked.get(json.dumps(message.get("id")))
        said = self._spoil(asked, message)
        said = said if isinstance(said, list) else [said]
        if HANG_UP in said:
            raise ConnectionLost("it fell over")
        return [s if isinstance(s, bytes) else json.dumps(s).encode() for s in said if s]

    async def send(self, out: Outgoing) -> None:
        with contextlib.suppress(ValueError):
            message = json.loads(out.data)
            if isinstance(message, dict) and "method" in message:
                self._asked[json.dumps(message.get("id"))] = message
                early = self._spoil(message, {})
                if early:
                    self._ready += self._early(early)
        await self._channel.send(out)

    def _early(self, said: Any) -> list[bytes]:
        said = said if isinstance(said, list) else [said]
        return [json.dumps(s).encode() for s in said if s]

    def abandon(self, id: Any) -> bool:
        return False

    async def close(self) -> None:
        await self._channel.close()


HANG_UP = {"hang": "up"}


def pass_through(_asked: Message | None, answer: Message) -> Any:
    """Nothing else than the server says."""
    return answer


def line_site(
    spoil: Spoil = pass_through, server: Server | None = None, noise: list[bytes] | None = None
) -> LineTarget:
    """A server in memory, seen through a spoiler."""
    target = resolve_target(server or make_good_server(), headers=None, connect_timeout=5)

    async def dial() -> Any:
        return SpoiledChannel(await target.dial(), spoil, noise or [])

    return LineTarget(dial)


# Over HTTP


class SpoiledReply:
    """An HTTP response, whole or still coming."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.pieces: asyncio.Queue[bytes] | None = None
        self.task: asyncio.Task[None] | None = None

    async def read(self, limit: int) -> bytes:
        return self.body

    async def piece(self) -> bytes:
        if self.pieces is not None:
            return await self.pieces.get()
        body, self.body = self.body, b""
        return body

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()

    @property
    def message(self) -> Any:
        """The JSON of the body; None where there is none."""
        return json.loads(self.body) if self.body[:1] in (b"{", b"[") else None

    def saying(self, message: Any) -> "SpoiledReply":
        """The same with another message."""
        return SpoiledReply(self.status, self.headers, json.dumps(message).encode())


class SpoiledRequest(Struct):
    """An HTTP request, as a spoiler sees it."""

    verb: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        with contextlib.suppress(ValueError):
            return json.loads(self.body or b"null")
        return None

    @property
    def method(self) -> str:
        """The JSON-RPC method."""
        return self.message.get("method", "") if isinstance(self.message, dict) else ""


WebSpoil = Callable[[SpoiledRequest, SpoiledReply], SpoiledReply]


class AsgiRequests:
    """Requests made to an ASGI app in this process, through a spoiler."""

    def __init__(self, app: Any, spoil: WebSpoil) -> None:
        self._app = app
        self._spoil = spoil

    async def send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> SpoiledReply:
        sent = {"host": "127.0.0.1:8000", **{k.lower(): v for k, v in headers.items()}}
        reply = await self._ask(method, sent, body or b"")
        return self._spoil(SpoiledRequest(method, sent, body or b""), reply)

    async def _ask(self, method: str, headers: dict[str, str], body: bytes) -> SpoiledReply:
        arrived: list[dict[str, Any]] = [{"type": "http.request", "body": body}]
        begun: asyncio.Future[SpoiledReply] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if arrived:
                return arrived.pop()
            await over.wait()
            return {"type": "http.disconnect"}

        head: dict[str, Any] = {}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                named = {k.decode().lower(): v.decode() for k, v in message["headers"]}
                head["reply"] = SpoiledReply(message["status"], named)
                if named.get("content-type", "").startswith("text/event-stream"):
                    head["reply"].pieces = asyncio.Queue()
                    begun.set_result(head["reply"])
                return
            reply = head["reply"]
            if reply.pieces is not None:
                reply.pieces.put_nowait(message.get("body", b""))
            else:
                reply.body += message.get("body", b"")
            if not message.get("more_body") and not begun.done():
                begun.set_result(reply)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
        }
        task = asyncio.create_task(self._app(scope, receive, send))
        reply = await begun
        reply.task = task
        if reply.pieces is None:
            await task
        return reply

    async def close(self) -> None:
        return None


def pass_response(_request: SpoiledRequest, reply: SpoiledReply) -> SpoiledReply:
    """The server's response, unchanged."""
    return reply


@contextlib.asynccontextmanager
async def web_site(spoil: WebSpoil = pass_response, server: Server | None = None):
    """A server behind HTTP, seen through a spoiler."""
    app = (server or make_good_server()).asgi()
    try:
        yield HttpTarget(URL, AsgiRequests(app, spoil), loopback=True)
    finally:
        await app.close()


async def examine_server(site: Any, revision: str, **options: Any) -> Any:
    """The doctor's report about a server in one revision."""
    options = {"timeout": 1.0, "call_read_only": True, **options}
    return await Doctor(site, **options).examine([BY_NAME[revision]])
