"""TCP tap before a probe server: takes down every byte, and can be made to refuse or to be gone."""

import asyncio
from contextlib import suppress

from isthmus.runtime.failures import log_warning

MAX_TAPPED_BYTES = 16 * 2**20  # of one direction that are taken down
READ_BYTES = 65536
MAX_HEAD_BYTES = 65536  # of a request that is refused


class UpstreamTap:
    """A port before a server, whose bytes are taken down in both directions.

    Attributes:
        port: where it listens.
        heard: what arrived for the server: heads, queries and bodies as they were sent.
        said: what the server answered.
        refusal: the HTTP status that each request is answered by instead, with its header lines; None to serve.
    """

    def __init__(self) -> None:
        self.port = 0
        self.heard = bytearray()
        self.said = bytearray()
        self.refusal: tuple[int, str] | None = None
        self._server_port = 0
        self._listener: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def requests(self) -> int:
        """The number of messages that arrived."""
        return self.heard.count(b"POST /")

    async def listen(self, port: int, server_port: int) -> None:
        """Begin to pass on connections.

        Args:
            port: where to listen; 0 for any free one.
            server_port: where the server listens.

        Raises:
            OSError: somebody else listens there.
        """
        self._server_port = server_port
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Be gone: connections are cut, and no further ones are taken."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in [*self._open]:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            server_reader, server_writer = await asyncio.open_connection(
                "127.0.0.1", self._server_port
            )
        except OSError as error:
            log_warning("the probe server is gone: %s", error)
            writer.transport.abort()
            self._open.discard(writer)
            return
        try:
            back = asyncio.create_task(self._pass_on(server_reader, writer, self.said))
            await self._pass_on(reader, server_writer, self.heard, writer)
            await back
        finally:
            self._open.discard(writer)
            for one in (writer, server_writer):
                one.transport.abort()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        taken: bytearray,
        refuse_to: asyncio.StreamWriter | None = None,
    ) -> None:
        """Pass on one direction until it ends.

        Args:
            reader: where it comes from.
            writer: where it goes.
            taken: where it is taken down.
            refuse_to: who is told the refusal, in the direction of requests.
        """
        with suppress(OSError):
            while piece := await reader.read(READ_BYTES):
                if len(taken) < MAX_TAPPED_BYTES:
                    taken += piece
                if refuse_to is not None and self.refusal is not None:
                    await self._refuse(refuse_to)
                    break
                writer.write(piece)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

    async def _refuse(self, writer: asyncio.StreamWriter) -> None:
        status, headers = self.refusal or (503, "")
        head = (
            f"HTTP/1.1 {status} Refused\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"
        )
        writer.write(head.encode())
        await writer.drain()
