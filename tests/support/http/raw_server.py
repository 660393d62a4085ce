"""A server on this machine that writes what a test says, byte for byte, and ends all it began."""

import asyncio
import contextlib

__all__ = ["RawServer", "answer_each", "serve_raw"]


class RawServer:
    """The server, and what came.

    Attributes:
        heads: of the requests, in the order they came.
        bodies: of those that :meth:`read_request` read.
        connections: how many there were.
        port: where it listens.
    """

    def __init__(self):
        self.heads, self.bodies = [], []
        self.connections = 0
        self.port = 0
        self.scheme = "http"

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}/mcp"

    async def read_request(self, reader):
        """A request's head, and its body of known length."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        sizes = [
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        self.bodies.append(await reader.readexactly(sum(sizes)))
        return head


@contextlib.asynccontextmanager
async def serve_raw(script, tls=None, host="127.0.0.1"):
    """A server whose connections run ``script(server, reader, writer)``."""
    found = RawServer()
    found.scheme = "https" if tls else "http"
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        found.connections += 1
        try:
            await script(found, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the test is over
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    listening = await asyncio.start_server(connected, host, 0, ssl=tls)
    found.port = listening.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answer_each(*answers):
    """A script that gives these answers in turn, over all connections; the last one again and again.

    None closes the connection instead.
    """
    left = list(answers)

    async def script(server, reader, writer):
        while True:
            await server.read_request(reader)
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer is None:
                return
            writer.write(answer)
            await writer.drain()

    return script
