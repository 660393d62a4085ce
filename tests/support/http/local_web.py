"""A web server of a few lines on this machine, which counts who comes."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Web", "WebRequest", "make_json_response", "make_response", "serve_responses"]


@dataclass
class WebRequest:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """The web server, and the requests that came.

    Attributes:
        url: where it is, without a slash.
        connections: how many there were.
        requests: each of them.
    """

    port: int = 0
    connections: int = 0
    requests: list[WebRequest] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def make_response(body: bytes = b"", status: int = 200, **headers: str) -> bytes:
    """An answer with a body of known length; ``content_type=`` is a header."""
    named = {
        "content-length": str(len(body)),
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} It Is\r\n{head}\r\n".encode() + body


def make_json_response(value: Any, status: int = 200, **headers: str) -> bytes:
    """An answer in JSON."""
    return make_response(
        json.dumps(value).encode(), status, content_type="application/json", **headers
    )


Handler = Callable[[WebRequest], bytes | None]


@asynccontextmanager
async def serve_responses(
    handler: Handler, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Web]:
    """A server on 127.0.0.1; where the handler returns None, no answer ever comes."""
    web = Web()
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        web.connections += 1
        writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                asked = read_head(head.decode("latin-1"))
                size = int(asked.headers.get("content-length", 0))
                asked.body = await reader.readexactly(size)
                web.requests.append(asked)
                said = handler(asked)
                if said is not None:
                    writer.write(said)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


def read_head(head: str) -> WebRequest:
    """The head of a request."""
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    return WebRequest(
        method, target, {name.lower(): value.strip() for name, _, value in pairs}, b""
    )
