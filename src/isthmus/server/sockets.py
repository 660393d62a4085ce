"""Serving everybody who connects to a Unix or TCP socket."""

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from isthmus.server.options import SocketOptions, TcpOptions
from isthmus.server.pipes import THRESHOLDS, stop_on_signals

if TYPE_CHECKING:
    from isthmus.server.server import Server
    from isthmus.transports.listener import Listener

__all__ = ["run_tcp", "run_unix", "serve_tcp", "serve_unix"]

Bound = Callable[[str], None]
"""Called with the URL for clients, once connections are accepted."""

EXPOSED = (
    "warning: every machine that reaches this address can call every tool, since nothing on a TCP "
    "socket asks who is there\n"
)


def run_unix(server: "Server", path: str, options: SocketOptions) -> None:
    """As :func:`serve_unix`, from synchronous code, until SIGINT or SIGTERM."""
    from isthmus.transports.leaving import event_loops, run_to_end

    run_to_end(serve_unix(server, path, announce=True, **options), event_loops())


def run_tcp(server: "Server", host: str, port: int, options: TcpOptions) -> None:
    """As :func:`serve_tcp`, from synchronous code, until SIGINT or SIGTERM."""
    from isthmus.transports.leaving import event_loops, run_to_end

    run_to_end(serve_tcp(server, host, port, announce=True, **options), event_loops())


async def serve_unix(
    server: "Server",
    path: str,
    *,
    on_bound: Bound | None = None,
    announce: bool = False,
    **options: Unpack[SocketOptions],
) -> None:
    """Serve on a Unix socket until cancelled.

    Args:
        server: what to serve.
        path: where the socket's file shall be; removed in the end.
        on_bound: called with the URL for clients.
        announce: this is what the process is for: say where on standard error, and stop on
            SIGINT and SIGTERM.
        **options: more about it.

    Raises:
        UsageError, ConnectFailed: the path cannot be listened on.
    """
    from isthmus.transports.listener import Listener, listen_unix
    from isthmus.transports.sockets import unix_url

    sock, remove = listen_unix(path)
    listener = Listener(sock, server.router, unix_url(path), on_close=remove, **options)
    await _serve(server, listener, on_bound, announce=announce)


async def serve_tcp(
    server: "Server",
    host: str,
    port: int,
    *,
    on_bound: Bound | None = None,
    announce: bool = False,
    exposed: bool = False,
    **options: Unpack[SocketOptions],
) -> None:
    """Serve on a TCP socket until cancelled.

    Args:
        server: what to serve.
        host: the address to listen on.
        port: the port; 0 takes a free one.
        on_bound: called with the URL for clients.
        announce: as for :func:`serve_unix`.
        exposed: other machines may reach the address.
        **options: more about it.

    Raises:
        UsageError, ConnectFailed: the address may not, or cannot, be listened on.
    """
    from isthmus.transports.listener import Listener, is_loopback, listen_tcp
    from isthmus.transports.sockets import tcp_url

    sock = listen_tcp(host, port, exposed=exposed)
    host, port = sock.getsockname()[:2]
    if announce and not is_loopback(host):
        sys.stderr.write(EXPOSED)
    listener = Listener(sock, server.router, tcp_url(host, port), **options)
    await _serve(server, listener, on_bound, announce=announce)


async def _serve(
    server: "Server", listener: "Listener", on_bound: Bound | None, *, announce: bool
) -> None:
    if announce:
        stop_on_signals(asyncio.current_task())
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
    try:
        await server.open()
        if announce:
            sys.stderr.write(f"isthmus serves on {listener.url} (Ctrl-C to stop)\n")
        if on_bound is not None:
            on_bound(listener.url)
        await listener.run()
    except asyncio.CancelledError:
        if not announce:
            raise
    finally:
        await listener.close()
        await server.close()
