"""A server and a client in one process, over any transport and in any revision."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from isthmus.client.client import Client
from isthmus.client.targets import Target
from isthmus.core.framing import Oversize
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.revisions import Revision
from isthmus.runtime.channel import Channel, Delivery, Origin, Outgoing
from isthmus.runtime.peer import Peer
from isthmus.server.server import Server
from isthmus.testing.replay import Strict
from isthmus.testing.script import Script
from isthmus.testing.wiretap import Wire, Wiretap
from isthmus.transports.memory import pair
from isthmus.transports.pipes import LIMIT, Inlet, Outlet
from isthmus.wire.base import Id

__all__ = ["TRANSPORTS", "PipeChannel", "TransportName", "connect", "serving"]

TransportName: TypeAlias = Literal["memory", "stdio", "http"]

TRANSPORTS: tuple[TransportName, ...] = ("memory", "stdio", "http")
"""What :func:`connect` can join a client and a server with."""

Wrap: TypeAlias = Callable[[Channel], Channel]


@contextlib.asynccontextmanager
async def connect(
    server: Server,
    *,
    revision: str | Revision | None = None,
    transport: TransportName = "memory",
    strict: bool = True,
    wire: Wire | None = None,
    wrap: Wrap | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client connected to ``server``, for tests.

    Args:
        server: what is under test.
        revision: the one revision to speak; None negotiates.
        transport: ``"memory"``; ``"stdio"``, which is its framing over real pipes; or
            ``"http"``, which is uvicorn on a free port of the loopback.
        strict: in memory, let every round of questions be asked twice and fail where the
            questions differ; see :mod:`isthmus.testing.replay`.
        wire: is given every message, see :class:`~isthmus.testing.wiretap.Wiretap`.
        wrap: puts a channel of its own around the client's, see :mod:`isthmus.testing.faults`.
        **options: for the :class:`~isthmus.client.Client`: ``elicit``, ``sample``, ``roots``, …

    Raises:
        AssertionError: a :func:`~isthmus.testing.script` was not played to its end, or a
            question changed when it was asked again.
    """
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(in_use(server))
        dial = await _WAYS[transport](server, stack)
        stricts: list[Strict] = []

        async def tapped() -> Channel:
            channel = await dial()
            if wire is not None:
                channel = Wiretap(channel, wire)
            if strict and transport == "memory":
                channel = Strict(channel)
                stricts.append(channel)
            return channel if wrap is None else wrap(channel)

        target = Target(f"test over {transport}", tapped, http=transport == "http")
        try:
            async with Client(target, revision=revision, **options) as client:
                yield client
        except ConnectionLost:
            for channel in stricts:
                if channel.changed is not None:
                    raise channel.changed from None
            raise
    for option in options.values():
        if isinstance(option, Script):
            option.finish()


_users: Counter[int] = Counter()


@contextlib.asynccontextmanager
async def in_use(server: Server) -> AsyncIterator[None]:
    """Leave the server's lifespan when its last test connection is closed."""
    _users[id(server)] += 1
    try:
        yield
    finally:
        _users[id(server)] -= 1
        if not _users[id(server)]:
            del _users[id(server)]
            await server.close()


Dial: TypeAlias = Callable[[], Awaitable[Channel]]


async def _in_memory(server: Server, stack: contextlib.AsyncExitStack) -> Dial:
    async def dial() -> Channel:
        ours, theirs = pair()
        await stack.enter_async_context(running(Peer(theirs, server.router, side="server")))
        return ours

    return dial


async def _over_pipes(server: Server, stack: contextlib.AsyncExitStack) -> Dial:
    async def dial() -> Channel:
        to_server, from_client = os.pipe()
        to_client, from_server = os.pipe()
        theirs = PipeChannel(to_server, from_server)
        await stack.enter_async_context(running(Peer(theirs, server.router, side="server")))
        return PipeChannel(to_client, from_client)

    return dial


async def _over_http(server: Server, stack: contextlib.AsyncExitStack) -> Dial:
    from isthmus.transports.http.client import HttpClientChannel

    url = await stack.enter_async_context(serving(server))

    async def dial() -> Channel:
        return HttpClientChannel(url)

    return dial


_WAYS: Mapping[TransportName, Callable[[Server, contextlib.AsyncExitStack], Awaitable[Dial]]] = {
    "memory": _in_memory,
    "stdio": _over_pipes,
    "http": _over_http,
}


@contextlib.asynccontextmanager
async def running(peer: Peer) -> AsyncIterator[None]:
    """A peer that serves its channel until the block is left."""
    task = asyncio.create_task(peer.run())
    try:
        yield
    finally:
        await peer.close()
        await task


@contextlib.asynccontextmanager
async def serving(server: Server, **options: Any) -> AsyncIterator[str]:
    """``server`` on a free port of the loopback until the block is left; gives its URL.

    Args:
        server: what to serve.
        **options: for :meth:`Server.asgi <isthmus.server.Server.asgi>`.

    Raises:
        ConnectFailed: it could not start; the log has the reason.
    """
    bound: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(_serve(server.asgi(**options), bound.set_result))
    task.add_done_callback(lambda _: bound.cancel())  # it ended before it listened
    try:
        yield await bound
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _serve(app: Any, on_bound: Callable[[str], None]) -> None:
    from isthmus.transports.http.serve import serve

    try:
        await serve(app, port=0, on_bound=on_bound)
    except SystemExit as error:  # which would end the event loop, and the test run with it
        raise ConnectFailed("the server could not start; its log has the reason") from error


class PipeChannel:
    """Newline-framed messages over two pipes: stdio without a process.

    Args:
        reads: the descriptor to read; belongs to the channel.
        writes: the descriptor to write; belongs to the channel.
    """

    def __init__(self, reads: int, writes: int) -> None:
        self._origin = Origin("stdio")
        self._inlet = Inlet(reads, LIMIT)
        self._outlet = Outlet(writes, self._inlet.stop)

    async def receive(self) -> Delivery | None:
        """The next line, or None at the end."""
        while True:
            if self._inlet.lines:
                line = self._inlet.lines.popleft()
                if not isinstance(line, Oversize):
                    return Delivery(line, self._origin)
            elif self._inlet.over:
                return None
            else:
                await self._inlet.more()

    async def send(self, out: Outgoing) -> None:
        """Write one line."""
        if self._outlet.broken is None and self._outlet.write(out.data):
            await self._outlet.room()
        if self._outlet.broken is not None:
            raise ConnectionLost(f"the pipe is closed: {self._outlet.broken}")

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: a message has to say it."""
        return False

    async def close(self) -> None:
        """Write what is left, and close both pipes."""
        await self._outlet.room(0)
        self._outlet.close()
        self._inlet.stop()
