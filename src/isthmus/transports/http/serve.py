"""Run an HTTP app under uvicorn, on connections of our own and uvloop where it is installed.

Anything that speaks ASGI can serve an :class:`~isthmus.transports.http.app.HttpApp`. What this
adds for the usual case: a shutdown that ends open streams instead of waiting for them, a garbage
collector that stays out of the way, and the address on stderr.
"""

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from isthmus.errors import ConnectFailed, LifespanFailed
from isthmus.lazy import is_installed
from isthmus.transports.http.app import HttpApp
from isthmus.transports.pipes import MAX_UNREAD_BYTES
from isthmus.transports.shutdown import choose_loop_factory, run_to_end
from isthmus.transports.tuning import tune_memory

if TYPE_CHECKING:
    import uvicorn

DRAIN_TIMEOUT_S = 1.0  # seconds that calls in flight get to finish once the server is told to stop

OnBound = Callable[[str], None]
"""Called with the server's URL (or socket path) once it accepts connections."""


async def serve(
    app: HttpApp,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    uds: str | None = None,
    on_bound: OnBound | None = None,
    tune: bool = False,
) -> None:
    """Serve until cancelled, or until SIGINT or SIGTERM where this is the main thread.

    Args:
        app: what to serve.
        host: the address to listen on; the default is reachable from this machine only.
        port: the TCP port; 0 takes a free one.
        uds: the path of a Unix socket to listen on instead.
        on_bound: called with the URL once connections are accepted.
        tune: freeze the garbage collector and raise its thresholds once started, and keep the
            memory that large messages took.

    Raises:
        LifespanFailed: what has to be opened before the first request raised.
        SystemExit: the address cannot be listened on; uvicorn has logged why.
    """
    server = _make_server(app, host, port, uds, on_bound, tune=tune)
    try:
        await server.serve()
    except SystemExit:
        if app.failure is not None:  # the address is free: it was not the listening that failed
            raise LifespanFailed(app.failure) from None
        raise
    except asyncio.CancelledError:
        server.should_exit = True
        await server.shutdown()
        raise


def run(
    app: HttpApp,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    uds: str | None = None,
    on_bound: OnBound | None = None,
) -> None:
    """Serve from synchronous code until SIGINT or SIGTERM; returns at most 2 s later.

    Args:
        app: what to serve.
        host: the address to listen on; the default is reachable from this machine only.
        port: the TCP port; 0 takes a free one.
        uds: the path of a Unix socket to listen on instead.
        on_bound: called with the URL once connections are accepted.
    """
    main = serve(app, host, port, uds=uds, on_bound=on_bound, tune=True)
    run_to_end(main, choose_loop_factory())


def _make_server(
    app: HttpApp, host: str, port: int, uds: str | None, on_bound: OnBound | None, *, tune: bool
) -> "uvicorn.Server":
    import uvicorn

    from isthmus.transports.http.connections import bound_connections

    class Server(uvicorn.Server):
        """Says where it listens, and ends streams before it waits for connections."""

        async def startup(self, sockets: list[Any] | None = None) -> None:
            await super().startup(sockets)
            where = uds or _make_url(self.servers[0].sockets[0].getsockname(), app.path)
            if tune:
                gc.collect()
                tune_memory()
            sys.stderr.write(f"isthmus serves on {where} (Ctrl-C to stop)\n")
            if on_bound is not None:
                on_bound(where)

        async def shutdown(self, sockets: list[Any] | None = None) -> None:
            for listener in self.servers:
                listener.close()
            await app.close(drain=DRAIN_TIMEOUT_S)
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
