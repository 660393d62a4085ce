"""A server and a client in one process, over any transport and in any revision.

:func:`connect` joins them. A server that runs elsewhere is connected to by its URL or command, with
the same arguments.
"""

import asyncio
import contextlib
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol, TypeAlias, get_args

from isthmus.client.client import Client
from isthmus.client.targets import ClientTarget, Dial, Target, resolve_target, tap_target
from isthmus.errors import ConnectFailed, ConnectionLost, UsageError, copy_error
from isthmus.lazy import is_installed
from isthmus.revisions import BY_NAME, Feature, Revision
from isthmus.runtime.channel import Channel
from isthmus.runtime.peer import Peer
from isthmus.runtime.wiretap import WireLog, Wiretap
from isthmus.server.server import Server
from isthmus.testing.replay import StrictChannel
from isthmus.testing.scripts import Script
from isthmus.transports.line_channel import LineChannel
from isthmus.transports.memory import open_pair
from isthmus.transports.pipes import MAX_LINE_BYTES, STDIO_ORIGIN

TransportName: TypeAlias = Literal[
    "memory", "stdio", "http", "http+sse", "unix", "tcp", "websocket"
]

# What connect can join a client and a server with: memory; stdio's framing over real pipes; http,
# http+sse and websocket by uvicorn on a free port of the loopback; unix and tcp, which are sockets
# in a new folder and on a free port.
TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)
"""Names of the transports that :func:`connect` knows."""

Wrap: TypeAlias = Callable[[Channel], Channel]


@contextlib.asynccontextmanager
async def connect(
    server: "Server | ClientTarget",
    *,
    revision: str | Revision | None = None,
    transport: TransportName | None = None,
    strict: bool = True,
    wire: WireLog | None = None,
    wrap: Wrap | None = None,
    token: str | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client connected to ``server``, for tests.

    Args:
        server: what is under test: a :class:`~isthmus.Server`, or whatever a client can be pointed
            at, such as the URL or the ``Command`` of a server in any language.
        revision: the one revision to speak; None negotiates.
        transport: for a ``Server``, one of ``TRANSPORTS``; in memory by default.
        strict: in memory, let every round of questions be asked twice and fail where the
            questions differ; see :mod:`isthmus.testing.replay`.
        wire: is given every message, see :class:`~isthmus.testing.connections.Wiretap`.
        token: an access token, for a server with ``auth=``; sent where a transport has headers.
        wrap: puts a channel of its own around the client's, see :mod:`isthmus.testing.faults`.
        **options: for the :class:`~isthmus.client.Client`: ``elicit``, ``sample``, ``roots``, …

    Raises:
        AssertionError: a :func:`~isthmus.testing.script` was not played to its end, or a
            question changed when it was asked again.
        UsageError: ``transport`` is given for a server that has its own.
        unittest.SkipTest: the transport is not to be had; test runners skip by it.
    """
    sent = {} if token is None else {"Authorization": f"Bearer {token}"}
    stricts: list[StrictChannel] = []

    def tap(channel: Channel) -> Channel:
        if wire is not None:
            channel = Wiretap(channel, wire)
        if strict and isinstance(server, Server) and transport in {None, "memory"}:
            channel = StrictChannel(channel)
            stricts.append(channel)
        return channel if wrap is None else wrap(channel)

    async with contextlib.AsyncExitStack() as stack:
        if isinstance(server, Server):
            skip_where_lacking(revision, transport or "memory")
        target = await _find_target(server, transport, stack, sent, options)
        try:
            async with Client(tap_target(target, tap), revision=revision, **options) as client:
                yield client
        except ConnectionLost:
            for channel in stricts:
                if channel.changed is not None:
                    raise copy_error(channel.changed) from None
            raise
    for option in options.values():
        if isinstance(option, Script):
            option.finish()


async def _find_target(
    server: "Server | ClientTarget",
    transport: TransportName | None,
    stack: contextlib.AsyncExitStack,
    sent: "Sent",
    options: dict[str, Any],
) -> Target:
    """The way to a server: one of ours is served for it, over the transport."""
    if isinstance(server, Server):
        return await _serve_target(server, transport or "memory", stack, sent)
    if transport is not None:
        raise UsageError(
            f"transport={transport!r} is for a Server in this process, and {server!r} is "
            "served already: leave it out"
        )
    return _take_target(server, sent, options)


async def _serve_target(
    server: Server, transport: TransportName, stack: contextlib.AsyncExitStack, sent: "Sent"
) -> Target:
    """A server of ours, served until the stack is left."""
    await stack.enter_async_context(hold_server(server))
    dial = await _WAYS[transport](server, stack, sent)
    return Target(f"test over {transport}", dial, http=transport.startswith("http"))


def _take_target(target: "ClientTarget", sent: "Sent", options: dict[str, Any]) -> Target:
    """A server that runs elsewhere; takes out of a client's options what is about the way to it."""
    headers = {**(options.pop("headers", None) or {}), **sent}
    patience, auth = options.get("connect_timeout", CONNECT_TIMEOUT_S), options.pop("auth", None)
    return resolve_target(target, headers or None, patience, auth)


_users: Counter[int] = Counter()


@contextlib.asynccontextmanager
async def hold_server(server: Server) -> AsyncIterator[None]:
    """Leave the server's lifespan when its last test connection is closed."""
    _users[id(server)] += 1
    try:
        yield
    finally:
        _users[id(server)] -= 1
        if not _users[id(server)]:
            del _users[id(server)]
            await server.close()


Sent: TypeAlias = Mapping[str, str]
"""Headers that go with every request, on transports that have some."""


async def _in_memory(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    async def dial() -> Channel:
        ours, theirs = open_pair()
        await stack.enter_async_context(run_peer(Peer(theirs, server.router, side="server")))
        return ours

    return dial


class PipeLines(LineChannel):
    """The client's end of lines."""

    SERVES = False


async def _over_pipes(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    async def dial() -> Channel:
        to_server, from_client = os.pipe()
        to_client, from_server = os.pipe()
        theirs = LineChannel(to_server, from_server, STDIO_ORIGIN)
        await stack.enter_async_context(run_peer(Peer(theirs, server.router, side="server")))
        return PipeLines(to_client, from_client, STDIO_ORIGIN)

    return dial


async def _over_http(server: Server, stack: contextlib.AsyncExitStack, sent: Sent) -> Dial:
    from isthmus.transports.http.client.channel import HttpClientChannel

    url = await stack.enter_async_context(serving(server, body_limit=MAX_LINE_BYTES))

    async def dial() -> Channel:
        return HttpClientChannel(url, headers=sent)

    return dial


async def _over_http_sse(server: Server, stack: contextlib.AsyncExitStack, sent: Sent) -> Dial:
    from isthmus.transports.http.client.sse import HttpSseChannel

    url = await stack.enter_async_context(serving(server, body_limit=MAX_LINE_BYTES, sse="/sse"))
    url = url.removesuffix("/mcp") + "/sse"

    async def dial() -> Channel:
        channel = HttpSseChannel(url, headers=sent)
        await channel.open()
        return channel

    return dial


async def _over_websocket(server: Server, stack: contextlib.AsyncExitStack, sent: Sent) -> Dial:
    from isthmus.transports.http.client.websocket import connect_websocket as dial_websocket

    url = await stack.enter_async_context(
        serving(server, body_limit=MAX_LINE_BYTES, websocket=True)
    )
    url = url.replace("http://", "ws://", 1)

    async def dial() -> Channel:
        return await dial_websocket(url, headers=sent, connect_timeout=CONNECT_TIMEOUT_S)

    return dial


async def _over_unix(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    from isthmus.server.serve.run import serve_unix

    folder = stack.enter_context(TemporaryDirectory(prefix="isthmus-"))
    path = os.path.join(folder, "socket")  # noqa: PTH118 - it is a string to everybody else, too
    return await _listening(lambda on_bound: serve_unix(server, path, on_bound=on_bound), stack)


async def _over_tcp(server: Server, stack: contextlib.AsyncExitStack, _sent: Sent) -> Dial:
    from isthmus.server.serve.run import serve_tcp

    return await _listening(
        lambda on_bound: serve_tcp(server, "127.0.0.1", 0, on_bound=on_bound), stack
    )


async def _listening(serve: "Serve", stack: contextlib.AsyncExitStack) -> Dial:
    from isthmus.transports.sockets import dial as dial_socket

    url = await stack.enter_async_context(run_until_left(serve))

    async def dial() -> Channel:
        return await dial_socket(url, connect_timeout=CONNECT_TIMEOUT_S)

    return dial


CONNECT_TIMEOUT_S = 10.0

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
    """Skip a test whose revision does not have its transport, or that lacks a library for it.

    Raises:
        unittest.SkipTest: it is not to be had; the message says why.
    """
    reason = find_missing_transport(revision, transport)
    if reason is not None:
        from unittest import SkipTest  # slow, and only where a test is skipped

        raise SkipTest(reason)


def find_missing_transport(revision: str | Revision | None, transport: TransportName) -> str | None:
    """Why a transport is not to be had here, or for a revision; None where it is."""
    if transport == "websocket" and not is_installed("websockets"):
        return "websocket needs the library websockets: pip install 'isthmus[websocket]'"
    if transport == "unix" and not hasattr(socket, "AF_UNIX"):
        return "this machine has no Unix sockets"
    known = BY_NAME.get(revision) if isinstance(revision, str) else revision
    if known is None:
        return None
    if transport == "http" and not known.has(Feature.STREAMABLE_HTTP):
        return f"{known.name} has no Streamable HTTP; its HTTP is http+sse"
    if transport == "http+sse" and not known.allows("client", "initialize"):
        return f"{known.name} has no sessions, and a stream of http+sse is one"
    return None


@contextlib.asynccontextmanager
async def run_peer(peer: Peer) -> AsyncIterator[None]:
    """A peer that serves its channel until the block is left."""
    task = asyncio.create_task(peer.run())
    try:
        yield
    finally:
        await peer.close()
        await task


class ServesHttp(Protocol):
    """Whatever is served over HTTP by an ASGI app of its own: a ``Server``, a ``Gateway``."""

    def asgi(self) -> Any:
        """The app; it may take options."""
        ...


@contextlib.asynccontextmanager
async def serving(server: ServesHttp, **options: Any) -> AsyncIterator[str]:
    """``server`` on a free port of the loopback until the block is left; gives its URL.

    Args:
        server: what to serve: a server, or a gateway.
        **options: for :meth:`Server.asgi <isthmus.server.Server.asgi>`.

    Raises:
        LifespanFailed: what it opens before its first request raised.
        ConnectFailed: it could not listen; the log has the reason.
    """
    app = server.asgi(**options)
    async with run_until_left(lambda on_bound: _serve(app, on_bound)) as url:
        yield url


Serve: TypeAlias = Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def run_until_left(serve: Serve) -> AsyncIterator[str]:
    """Run a server that serves until it is cancelled, until the block is left; gives its URL."""
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
