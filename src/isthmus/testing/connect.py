"""A server and a client in one process, over any transport and in any revision."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias, get_args

from isthmus.client.client import Client
from isthmus.client.targets import Target
from isthmus.errors import ConnectFailed, ConnectionLost, anew
from isthmus.revisions import BY_NAME, Feature, Revision
from isthmus.runtime.channel import Channel
from isthmus.runtime.peer import Peer
from isthmus.server.server import Server
from isthmus.testing.replay import Strict
from isthmus.testing.script import Script
from isthmus.testing.wiretap import Wire, Wiretap
from isthmus.transports.lines import LineChannel
from isthmus.transports.memory import pair
from isthmus.transports.pipes import LIMIT, STDIO

__all__ = ["TRANSPORTS", "TransportName", "connect", "lacking", "serving"]

TransportName: TypeAlias = Literal[
    "memory", "stdio", "http", "http+sse", "unix", "tcp", "websocket"
]

TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)
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
    token: str | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client connected to ``server``, for tests.

    Args:
        server: what is under test.
        revision: the one revision to speak; None negotiates.
        transport: ``"memory"``; ``"stdio"``, which is its framing over real pipes; ``"http"``,
            ``"http+sse"`` and ``"websocket"``, which are uvicorn on a free port of the loopback; ``"unix"`` and
            ``"tcp"``, which are sockets in a new folder and on a free port.
        strict: in memory, let every round of questions be asked twice and fail where the
            questions differ; see :mod:`isthmus.testing.replay`.
        wire: is given every message, see :class:`~isthmus.testing.wiretap.Wiretap`.
        token: an access token, for a server with ``auth=``; sent where a transport has headers.
        wrap: puts a channel of its own around the client's, see :mod:`isthmus.testing.faults`.
        **options: for the :class:`~isthmus.client.Client`: ``elicit``, ``sample``, ``roots``, …

    Raises:
        AssertionError: a :func:`~isthmus.testing.script` was not played to its end, or a
            question changed when it was asked again.
        unittest.SkipTest: the revision does not have the transport; test runners skip by it.
    """
    skip_where_lacking(revision, transport)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(in_use(server))
        sent = {} if token is None else {"Authorization": f"Bearer {token}"}
        dial = await _WAYS[transport](server, stack, sent)
        stricts: list[Strict] = []

        async def tapped() -> Channel:
            channel = await dial()
            if wire is not None:
                channel = Wiretap(channel, wire)
            if strict and transport == "memory":
                channel = Strict(channel)
                stricts.append(channel)
            return channel if wrap is None else wrap(channel)

        target = Target(f"test over {transport}", tapped, http=transport.startswith("http"))
        try:
            async with Client(target, revision=revision, **options) as client:
                yield client
        except ConnectionLost:
            for channel in stricts:
                if channel.changed is not None:
                    raise anew(channel.changed) from None
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

Sent: TypeAlias = Mapping[str, str]
"""Headers that go with every request, on transports that have some."""


async def _in_memory(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    async def dial() -> Channel:
        ours, theirs = pair()
        await stack.enter_async_context(running(Peer(theirs, server.router, side="server")))
        return ours

    return dial


class Lines(LineChannel):
    """The client's end of lines."""

    SERVES = False


async def _over_pipes(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    async def dial() -> Channel:
        to_server, from_client = os.pipe()
        to_client, from_server = os.pipe()
        theirs = LineChannel(to_server, from_server, STDIO)
        await stack.enter_async_context(running(Peer(theirs, server.router, side="server")))
        return Lines(to_client, from_client, STDIO)

    return dial


async def _over_http(server: Server, stack: contextlib.AsyncExitStack, sent: Sent) -> Dial:
    from isthmus.transports.http.client import HttpClientChannel

    url = await stack.enter_async_context(serving(server, body_limit=LIMIT))

    async def dial() -> Channel:
        return HttpClientChannel(url, headers=sent)

    return dial


async def _over_http_sse(server: Server, stack: contextlib.AsyncExitStack, sent: Sent) -> Dial:
    from isthmus.transports.http.sse_client import HttpSseChannel

    url = await stack.enter_async_context(serving(server, body_limit=LIMIT, sse="/sse"))
    url = url.removesuffix("/mcp") + "/sse"

    async def dial() -> Channel:
        channel = HttpSseChannel(url, headers=sent)
        await channel.open()
        return channel

    return dial


async def _over_websocket(server: Server, stack: contextlib.AsyncExitStack, sent: Sent) -> Dial:
    from isthmus.transports.websocket_client import connect as dial_websocket

    url = await stack.enter_async_context(serving(server, body_limit=LIMIT, websocket=True))
    url = url.replace("http://", "ws://", 1)

    async def dial() -> Channel:
        return await dial_websocket(url, headers=sent, connect_timeout=CONNECT_TIMEOUT)

    return dial


async def _over_unix(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    from isthmus.server.sockets import serve_unix

    folder = stack.enter_context(TemporaryDirectory(prefix="isthmus-"))
    path = os.path.join(folder, "socket")  # noqa: PTH118 - it is a string to everybody else, too
    return await _listening(lambda on_bound: serve_unix(server, path, on_bound=on_bound), stack)


async def _over_tcp(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    from isthmus.server.sockets import serve_tcp

    return await _listening(
        lambda on_bound: serve_tcp(server, "127.0.0.1", 0, on_bound=on_bound), stack
    )


async def _listening(serve: "Serve", stack: contextlib.AsyncExitStack) -> Dial:
    from isthmus.transports.sockets import dial as dial_socket

    url = await stack.enter_async_context(bound(serve))

    async def dial() -> Channel:
        return await dial_socket(url, connect_timeout=CONNECT_TIMEOUT)

    return dial


CONNECT_TIMEOUT = 10.0

_WAYS: Mapping[
    TransportName, Callable[[Server, contextlib.AsyncExitStack, Sent], Awaitable[Dial]]
] = {
    "memory": _in_memory,
    "stdio": _over_pipes,
    "http": _over_http,
    "http+sse": _over_http_sse,
    "unix": _over_unix,
    "tcp": _over_tcp,
    "websocket": _over_websocket,
}


def skip_where_lacking(revision: str | Revision | None, transport: TransportName) -> None:
    """Skip a test whose revision does not have its transport.

    Raises:
        unittest.SkipTest: it does not.
    """
    reason = lacking(revision, transport)
    if reason is not None:
        from unittest import SkipTest  # slow, and only where a test is skipped

        raise SkipTest(reason)


def lacking(revision: str | Revision | None, transport: TransportName) -> str | None:
    """Why a revision cannot be spoken over a transport, or None where it can."""
    known = BY_NAME.get(revision) if isinstance(revision, str) else revision
    if known is None:
        return None
    if transport == "http" and not known.has(Feature.STREAMABLE_HTTP):
        return f"{known.name} has no Streamable HTTP; its HTTP is http+sse"
    if transport == "http+sse" and not known.allows("client", "initialize"):
        return f"{known.name} has no sessions, and a stream of http+sse is one"
    return None


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
        LifespanFailed: what it opens before its first request raised.
        ConnectFailed: it could not listen; the log has the reason.
    """
    app = server.asgi(**options)
    async with bound(lambda on_bound: _serve(app, on_bound)) as url:
        yield url


Serve: TypeAlias = Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def bound(serve: Serve) -> AsyncIterator[str]:
    """What serves until it is cancelled, until the block is left; gives its URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(url.set_result))
    task.add_done_callback(lambda _: url.cancel())  # it ended before it listened
    try:
        yield await url
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
