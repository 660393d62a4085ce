"""Run an HTTP app under uvicorn, on connections of our own and uvloop where it is installed.

Anything that speaks ASGI can serve an :class:`~isthmus.transports.http.app.HttpApp`. What this
adds for the usual case: a shutdown that ends open streams instead of waiting for them, a garbage
collector that stays out of the way, and the address on stderr.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from isthmus.errors import ConnectFailed, LifespanFailed
from isthmus.lazy import is_installed
from isthmus.transports.pipes import MAX_UNREAD_BYTES
from isthmus.transports.shutdown import choose_loop_factory, run_to_end
from isthmus.transports.tuning import tune_memory

if TYPE_CHECKING:
    from socket import socket

    import uvicorn

# Of the time to drain: how long a connection without a request stays open for the next one, so that
# a client which is about to send it does not lose it
IDLE_DRAIN_SHARE = 0.1
MAX_IDLE_DRAIN_S = 2.0
IDLE_LOOK_S = 0.05

OnBound = Callable[[str], None]
"""Called with the server's URL (or socket path) once it accepts connections."""


class ServedApp(Protocol):
    """An HTTP app as whoever serves it sees it: an ``HttpApp``, or several of them.

    Attributes:
        path: where its endpoint is.
        head_limit, target_limit: the most bytes of a request's head, and of its first line.
        sockets: its WebSockets, or None.
        drain: its end.
        failure: why it could not start, or None.
    """

    @property
    def path(self) -> str: ...  # noqa: D102 - an attribute
    @property
    def head_limit(self) -> int: ...  # noqa: D102 - an attribute
    @property
    def target_limit(self) -> int: ...  # noqa: D102 - an attribute
    @property
    def sockets(self) -> Any: ...  # noqa: D102 - an attribute
    @property
    def drain(self) -> Any: ...  # noqa: D102 - an attribute
    @property
    def failure(self) -> str | None: ...  # noqa: D102 - an attribute

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI connection."""
        ...

    async def close(self) -> None:
        """Stop."""
        ...


async def serve(
    app: ServedApp,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    uds: str | None = None,
    sockets: "Sequence[socket] | None" = None,
    on_bound: OnBound | None = None,
    tune: bool = False,
    announce: bool = True,
) -> None:
    """Serve until cancelled, or until SIGINT or SIGTERM where this is the main thread.

    Args:
        app: what to serve.
        host: the address to listen on; the default is reachable from this machine only.
        port: the TCP port; 0 takes a free one.
        uds: the path of a Unix socket to listen on instead.
        sockets: sockets that listen already, to be used instead; they are closed in the end.
        on_bound: called with the URL once connections are accepted.
        tune: freeze the garbage collector and raise its thresholds once started, and keep the
            memory that large messages took.
        announce: say on standard error where this is.

    Raises:
        LifespanFailed: what has to be opened before the first request raised.
        SystemExit: the address cannot be listened on; uvicorn has logged why.
    """
    server = _make_server(app, host, port, uds, on_bound, tune=tune, announce=announce)
    try:
        await server.serve(None if sockets is None else [*sockets])
    except SystemExit:
        if app.failure is not None:  # the address is free: it was not the listening that failed
            raise LifespanFailed(app.failure) from None
        raise
    except asyncio.CancelledError:
        server.should_exit = True
        await server.shutdown(None if sockets is None else [*sockets])
        raise


def run(
    app: ServedApp,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    uds: str | None = None,
    sockets: "Sequence[socket] | None" = None,
    on_bound: OnBound | None = None,
    announce: bool = True,
) -> None:
    """Serve from synchronous code until SIGINT or SIGTERM; returns soon after the app's drain.

    Args:
        app: what to serve.
        host: the address to listen on; the default is reachable from this machine only.
        port: the TCP port; 0 takes a free one.
        uds: the path of a Unix socket to listen on instead.
        sockets: as for :func:`serve`.
        on_bound: called with the URL once connections are accepted.
        announce: as for :func:`serve`.
    """
    main = serve(
        app, host, port, uds=uds, sockets=sockets, on_bound=on_bound, tune=True, announce=announce
    )
    run_to_end(main, choose_loop_factory())


def _make_server(
    app: ServedApp,
    host: str,
    port: int,
    uds: str | None,
    on_bound: OnBound | None,
    *,
    tune: bool,
    announce: bool,
) -> "uvicorn.Server":
    import uvicorn

    from isthmus.transports.http.connections import bound_connections

    class Server(uvicorn.Server):
        """Says where it listens, and ends streams before it waits for connections."""

        async def startup(self, sockets: "list[socket] | None" = None) -> None:
            await super().startup(sockets)
            app.drain.awaits_connections = True
            where = uds or _make_url(self.servers[0].sockets[0].getsockname(), app.path)
            if tune:
                gc.collect()
                tune_memory()
            if announce:
                sys.stderr.write(f"isthmus serves on {where} (Ctrl-C to stop)\n")
            if on_bound is not None:
                on_bound(where)

        def handle_exit(self, sig: int, frame: Any) -> None:
            self.force_exit = self.should_exit  # the second one waits for nothing
            super().handle_exit(sig, frame)

        async def shutdown(self, sockets: "list[socket] | None" = None) -> None:
            for listener in self.servers:
                listener.close()
            await drain_connections(app, self.server_state)
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            uds=uds,
            http=bound_connections(app.head_limit, app.target_limit),
            ws="none" if app.sockets is None else load_websocket_protocol(),
            ws_max_size=0 if app.sockets is None else app.sockets.limit,
            loop="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # who connects is who connects: any program here can send one
            timeout_graceful_shutdown=1,
        )
    )


async def drain_connections(app: ServedApp, state: Any) -> None:
    """Stop an app while its clients are told, answer by answer, to use other connections.

    A connection that is closed between two requests may lose the one that is on its way. So those
    stay open for a while, and each is closed by its next answer.

    Args:
        app: what is served.
        state: uvicorn's record of the server.
    """
    loop = asyncio.get_running_loop()
    context = getattr(state, "isthmus_context", None)
    if context is not None:
        context.drain()
    app.drain.hold()
    closing = loop.create_task(app.close())
    until = loop.time() + min(app.drain.seconds * IDLE_DRAIN_SHARE, MAX_IDLE_DRAIN_S)
    while state.connections and not app.drain.is_hurried and (left := until - loop.time()) > 0:  # noqa: ASYNC110 - uvicorn's set has no event
        await asyncio.sleep(min(left, IDLE_LOOK_S))
    for connection in [*state.connections]:
        connection.shutdown()
    app.drain.release()
    await closing


def load_websocket_protocol() -> Any:
    """Uvicorn's WebSocket connection with a bound on pongs that are not read.

    Raises:
        ConnectFailed: the package that uvicorn needs for WebSockets is not installed.
    """
    if not is_installed("websockets"):
        raise ConnectFailed(
            "WebSockets need the package websockets: pip install 'isthmus[websocket]'"
        )
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class SocketConnection(WebSocketsSansIOProtocol):
        """A WebSocket that reads no further pings while the pongs to those before are not read.

        uvicorn answers each ping at once, whatever waits to be written already. Messages have
        their own bound, above this.
        """

        def handle_ping(self) -> None:
            super().handle_ping()
            if not self.read_paused and self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
                self.read_paused = True
                self.transport.pause_reading()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self.read_paused and self.queue.empty():
                self.read_paused = False
                self.transport.resume_reading()

    return SocketConnection


def _make_url(name: Any, path: str) -> str:
    """The URL of a listening socket."""
    host, port = name[0], name[1]
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"
