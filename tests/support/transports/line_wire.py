"""A client of sockets moved by hand: lines in, lines out, and a server to talk to."""

import asyncio
import contextlib
import json

from isthmus import Server
from isthmus.server.serve.run import serve_tcp, serve_unix

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request_line(id, method, **params):
    """A modern request, as a line without its end."""
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": MODERN}}
    ).encode()


def call_line(id, name, **arguments):
    """A modern call of a tool."""
    return request_line(id, "tools/call", name=name, arguments=arguments)


class LineClient:
    """One connection."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def says(self, *lines):
        """Send lines."""
        self.writer.write(b"".join(line + b"\n" for line in lines))
        await self.writer.drain()

    async def hears(self):
        """The next message, or None at the end."""
        line = await self.reader.readline()
        return json.loads(line) if line else None

    async def hears_all(self):
        """Every message up to the end."""
        heard = []
        while (message := await self.hears()) is not None:
            heard.append(message)
        return heard

    def hangs_up(self):
        """Say the last word, and listen on."""
        self.writer.write_eof()

    async def leaves(self):
        """Close the connection."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def connect_wire(url):
    """A connection to a URL, closed in the end."""
    limit = 64 * 1024 * 1024
    if url.startswith("unix://"):
        streams = asyncio.open_unix_connection(url.removeprefix("unix://"), limit=limit)
    else:
        host, _, port = url.removeprefix("tcp://").rpartition(":")
        streams = asyncio.open_connection(host, int(port), limit=limit)
    wire = LineClient(*await streams)
    try:
        yield wire
    finally:
        await wire.leaves()


@contextlib.asynccontextmanager
async def serve_lines(server, way="tcp", path=None, **options):
    """A server on a socket until the block is left; gives its URL, and the task that serves."""
    bound = asyncio.get_running_loop().create_future()
    if way == "unix":
        serving = serve_unix(server, str(path), on_bound=bound.set_result, **options)
    else:
        serving = serve_tcp(server, "127.0.0.1", 0, on_bound=bound.set_result, **options)
    task = asyncio.create_task(serving)
    task.add_done_callback(lambda _: bound.cancel())
    try:
        yield await bound, task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def make_echo_server():
    """A server with what the tests of sockets need."""
    server = Server("echoing", version="1")
    server.gate = asyncio.Event()
    server.begun = asyncio.Event()

    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool
    async def wait() -> str:
        """Wait for the gate."""
        server.begun.set()
        await server.gate.wait()
        return "waited"

    @server.tool
    async def big(size: int) -> str:
        """Say much."""
        return "x" * size

    return server
