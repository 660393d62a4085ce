"""A stand-in for an HTTP API: it keeps what it was sent, and answers as a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from isthmus.openapi.document import read_document
from isthmus.openapi.request import PreparedRequest, parse_base_url
from isthmus.openapi.sending import ApiResponse
from isthmus.openapi.tools.facade import build_server
from isthmus.server.server import Server


class StandInSender:
    """A sender that sends nothing: it keeps requests, and gives one answer."""

    def __init__(self, answer: ApiResponse | None = None) -> None:
        self.sent: list[PreparedRequest] = []
        self.answer = answer or answer_json({})
        self.closed = False

    async def send(self, request: PreparedRequest, **_: Any) -> ApiResponse:
        self.sent.append(request)
        return self.answer

    async def close(self) -> None:
        self.closed = True


def answer_json(value: Any, status: int = 200, kind: str = "application/json") -> ApiResponse:
    return ApiResponse(status, {"content-type": kind}, msgspec.json.encode(value))


def make_document(paths: Any, **members: Any) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "paths": paths,
        **members,
    }


def serve_document(spec: Any, sender: StandInSender, **options: Any) -> Server:
    """A server of a document, whose requests are sent to nobody."""
    base = parse_base_url(options.get("base_url", "https://api.example/v1"))
    return build_server(Server, read_document(spec), sender, base, options)


@asynccontextmanager
async def listen(
    respond: Callable[[bytes, bytes, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server of HTTP by hand, as APIs are that misbehave; gives its URL."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        int(line[15:])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    0,
                )
                await respond(head, await reader.readexactly(length), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
