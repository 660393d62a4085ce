"""Sessions in memory under the names of ``mcp.shared.memory``, for tests of servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from isthmus.client.targets import Target, memory_target
from isthmus.compat.mcp.client.session import ClientSession
from isthmus.compat.mcp.client.streams import make_streams
from isthmus.compat.mcp.stdio import StandardStream
from isthmus.runtime.channel import Channel


@asynccontextmanager
async def create_connected_server_and_client_session(
    server: Any,
    read_timeout_seconds: Any = None,
    sampling_callback: Any = None,
    list_roots_callback: Any = None,
    logging_callback: Any = None,
    message_handler: Any = None,
    client_info: Any = None,
    raise_exceptions: bool = False,
    elicitation_callback: Any = None,
) -> AsyncIterator[ClientSession]:
    """A session with a server in this process, initialized."""
    del raise_exceptions  # what a handler raises is in the log
    async with (
        InMemoryTransport(server) as (read, write),
        ClientSession(
            read,
            write,
            read_timeout_seconds,
            sampling_callback,
            elicitation_callback,
            list_roots_callback,
            logging_callback,
            message_handler,
            client_info,
        ) as session,
    ):
        await session.initialize()
        yield session


class InMemoryTransport:
    """Way to a server in this process: ``async with InMemoryTransport(server) as (read, write)``.

    Args:
        server: a server of a façade, or of isthmus.
        raise_exceptions: not heeded; what a handler raises is in the log.
    """

    def __init__(self, server: Any, *, raise_exceptions: bool = False) -> None:
        del raise_exceptions
        make = getattr(server, "make_isthmus_server", None)
        self._server = server if make is None else make()

    async def __aenter__(self) -> tuple[Any, Any]:
        return make_streams(self._server)

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()


class MemoryStream(StandardStream):
    """Stream of a server in memory: ``Server.run`` takes it, and serves the session at its other end.

    Args:
        name: of the stream.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._server: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._closed = asyncio.Event()

    async def serve(self, server: Any, options: Any = None) -> None:
        """Serve the session until the streams are closed.

        Args:
            server: a server of a façade.
            options: what it says of itself.
        """
        made = server.make_isthmus_server(options)
        self._server.set_result(made)
        try:
            await self._closed.wait()
        finally:
            await made.close()

    async def dial(self) -> Channel:
        """Connect to the server, once it is there."""
        return await memory_target(await self._server).dial()

    def end(self) -> None:
        """Have the server end."""
        self._closed.set()
        self._server.cancel()


@asynccontextmanager
async def create_client_server_memory_streams() -> AsyncIterator[tuple[Any, Any]]:
    """Give two streams for ``ClientSession`` and two for ``Server.run``."""
    served = MemoryStream("read")
    try:
        yield make_streams(Target("memory", served.dial)), (served, StandardStream("write"))
    finally:
        served.end()
