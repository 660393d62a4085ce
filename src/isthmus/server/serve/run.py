"""``Server.run``: serving over stdio, HTTP, WebSocket, a Unix socket or a TCP socket."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack

from isthmus.errors import ConnectFailed, UsageError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.peer import Peer
from isthmus.server.options import SocketOptions, TcpOptions, check_options

if TYPE_CHECKING:
    from isthmus.server.server import Server
    from isthmus.transports.http.app import HttpApp
    from isthmus.transports.listener import SocketListener

Runner = TypeVar("Runner")

RunOptions: TypeAlias = Any  # dict[str, Any], of which each way checks its part

DEFAULT_ADDRESS = ("127.0.0.1", 8000)  # for HTTP; only this machine reaches it


def run_server(server: "Server", transport: str, given: RunOptions) -> None:
    """Serve until it ends, in the way that the transport's name says.

    Args:
        server: what to serve.
        transport: one of ``RUNNERS_BY_TRANSPORT``.
        given: the address and the options.

    Raises:
        UsageError: there is no such transport, or it has no such options.
        ConnectFailed: the address cannot be listened on.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError(
            "run() starts an event loop, and one is running here: write await server.run_async(…)"
        )
    find_runner(RUNNERS_BY_TRANSPORT, transport)(server, given)


async def run_server_async(server: "Server", transport: str, given: RunOptions) -> None:
    """As :func:`run_server`, in an event loop that runs already, until cancelled.

    Raises:
        UsageError: there is no such transport, or it has no such options.
        LifespanFailed: what has to be opened before the first request raised.
        ConnectFailed: the address cannot be listened on.
    """
    await find_runner(ASYNC_RUNNERS_BY_TRANSPORT, transport)(server, given)


def find_runner(runners: "Mapping[str, Runner]", transport: str) -> "Runner":
    """The function that serves over a transport.

    Raises:
        UsageError: there is none.
    """
    if transport not in runners:
        raise UsageError(
            f"there is no transport {transport!r}: write 'stdio', 'http', which is Streamable "
            "HTTP, 'websocket', 'unix' or 'tcp'"
        )
    return runners[transport]


def _check_stdio(given: RunOptions) -> None:
    if given:
        raise UsageError(
            f"{', '.join(given)}: stdio has no such option; write run('http', ...) for HTTP, and "
            "run('unix', path=...) or run('tcp', port=...) for a socket"
        )


def _run_stdio(server: "Server", given: RunOptions) -> None:
    _check_stdio(given)
    run_stdio(server)


async def _run_stdio_async(server: "Server", given: RunOptions) -> None:
    _check_stdio(given)
    await serve_stdio(server, stops_on_signals=False)


def _run_http(server: "Server", given: RunOptions) -> None:
    from isthmus.transports.http.serve import run as serve

    serve(*_make_app(server, given))


async def _run_http_async(server: "Server", given: RunOptions) -> None:
    from isthmus.transports.http.serve import serve

    app, host, port = _make_app(server, given)
    try:
        await serve(app, host, port)
    except SystemExit as error:  # of uvicorn, which has logged why
        raise ConnectFailed(f"cannot listen on {host}:{port}: the log says why") from error


def _make_app(server: "Server", given: RunOptions) -> "tuple[HttpApp, str, int]":
    host, port = given.pop("host", DEFAULT_ADDRESS[0]), given.pop("port", DEFAULT_ADDRESS[1])
    resource = None if server.auth is None else server.auth.resource
    if resource is not None and has_other_port(resource, port):
        log_warning(
            "auth= names this server %s, but it listens on port %s: clients can log in at the first "
            "address only",
            resource,
            port,
        )
    return server.asgi(**given), host, port


def has_other_port(resource: str, port: int) -> bool:
    """Whether a URL of plain HTTP, which is one of this machine, has another port.

    What is https is the URL of a proxy, and may have any.
    """
    from urllib.parse import urlsplit  # slow, and needed by servers with authorization alone

    named = urlsplit(resource)
    return named.scheme == "http" and (named.port or 80) != port


def _run_websocket(server: "Server", given: RunOptions) -> None:
    _run_http(server, {**given, "websocket": True})


async def _run_websocket_async(server: "Server", given: RunOptions) -> None:
    await _run_http_async(server, {**given, "websocket": True})


def _take_path(given: RunOptions) -> str:
    path: str | None = given.pop("path", None)
    if path is None:
        raise UsageError(
            "run('unix') needs a path: write run('unix', path='/run/user/1000/my.sock')"
        )
    return path


def _run_unix(server: "Server", given: RunOptions) -> None:
    run_unix(server, _take_path(given), check_options(given, SocketOptions))


async def _run_unix_async(server: "Server", given: RunOptions) -> None:
    await serve_unix(server, _take_path(given), **check_options(given, SocketOptions))


def _run_tcp(server: "Server", given: RunOptions) -> None:
    host, port = _take_address(server, given)
    run_tcp(server, host, port, check_options(given, TcpOptions))


async def _run_tcp_async(server: "Server", given: RunOptions) -> None:
    host, port = _take_address(server, given)
    await serve_tcp(server, host, port, **check_options(given, TcpOptions))


def _take_address(server: "Server", given: RunOptions) -> tuple[str, int]:
    host, port = given.pop("host", DEFAULT_ADDRESS[0]), given.pop("port", None)
    if port is None:
        raise UsageError("run('tcp') needs a port: write run('tcp', port=9000)")
    if server.auth is not None:
        raise UsageError(
            "auth= works over HTTP and WebSockets only: a TCP socket has no authentication, so "
            "everybody on this machine could use the server; write run('http', ...)"
        )
    return host, port


RUNNERS_BY_TRANSPORT: Mapping[str, Callable[["Server", RunOptions], None]] = {
    "stdio": _run_stdio,
    "http": _run_http,
    "websocket": _run_websocket,
    "unix": _run_unix,
    "tcp": _run_tcp,
}

ASYNC_RUNNERS_BY_TRANSPORT: Mapping[str, Callable[["Server", RunOptions], Awaitable[None]]] = {
    "stdio": _run_stdio_async,
    "http": _run_http_async,
    "websocket": _run_websocket_async,
    "unix": _run_unix_async,
    "tcp": _run_tcp_async,
}


def run_stdio(server: "Server") -> None:
    """As :func:`serve_stdio`, from synchronous code; returns soon after the host hung up."""
    from isthmus.transports.shutdown import run_to_end

    run_to_end(serve_stdio(server))


async def serve_stdio(server: "Server", *, stops_on_signals: bool = True) -> None:
    """Serve over standard input and output until the host hangs up, or until told to stop.

    Args:
        server: what to serve.
        stops_on_signals: this is what the process is for, so that SIGINT and SIGTERM end it in good order.
    """
    from isthmus.transports.shutdown import exit_with_host
    from isthmus.transports.stdio import StdioChannel
    from isthmus.transports.tuning import tune_memory

    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            f"{server.info.name} serves the program that started it, on standard input and output "
            "(Ctrl-C to stop)\n"
        )
    hung_up = exit_with_host(0, 1, asyncio.get_running_loop())  # before the channel claims it
    channel = StdioChannel()
    hung_up.add_done_callback(lambda _: channel.hang_up())
    if stops_on_signals:
        stop_on_signals(asyncio.current_task())
        tune_memory()
    try:
        await server.open()
        await Peer(channel, server.router, side="server").run()
    except asyncio.CancelledError:
        if not stops_on_signals:
            raise
        # told to stop: that is what ends a server
    finally:
        await channel.close()
        await server.close()


def stop_on_signals(task: "asyncio.Task[None] | None") -> None:
    """Cancel a task when this process is told to stop; SIGTERM and SIGINT are the same to it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, task.cancel if task else loop.stop)
        except (NotImplementedError, RuntimeError):
            return  # Windows, or not the main thread: the default will do


BoundCallback = Callable[[str], None]  # gets the URL for clients, once connections are accepted

EXPOSED_WARNING = (
    "warning: every machine that reaches this address can call every tool, since a TCP socket "
    "has no authentication\n"
)


def run_unix(server: "Server", path: str, options: SocketOptions) -> None:
    """As :func:`serve_unix`, from synchronous code, until SIGINT or SIGTERM."""
    from isthmus.transports.shutdown import choose_loop_factory, run_to_end

    run_to_end(serve_unix(server, path, announce=True, **options), choose_loop_factory())


def run_tcp(server: "Server", host: str, port: int, options: TcpOptions) -> None:
    """As :func:`serve_tcp`, from synchronous code, until SIGINT or SIGTERM."""
    from isthmus.transports.shutdown import choose_loop_factory, run_to_end

    run_to_end(serve_tcp(server, host, port, announce=True, **options), choose_loop_factory())


async def serve_unix(
    server: "Server",
    path: str,
    *,
    on_bound: BoundCallback | None = None,
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
    from isthmus.transports.listener import SocketListener, listen_unix
    from isthmus.transports.sockets import make_unix_url

    sock, remove = listen_unix(path)
    listener = SocketListener(sock, server.router, make_unix_url(path), on_close=remove, **options)
    await _serve_listener(server, listener, on_bound, announce=announce)


async def serve_tcp(
    server: "Server",
    host: str,
    port: int,
    *,
    on_bound: BoundCallback | None = None,
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
    from isthmus.transports.listener import SocketListener, is_loopback, listen_tcp
    from isthmus.transports.sockets import make_tcp_url

    sock = listen_tcp(host, port, exposed=exposed)
    host, port = sock.getsockname()[:2]
    if announce and not is_loopback(host):
        sys.stderr.write(EXPOSED_WARNING)
    listener = SocketListener(sock, server.router, make_tcp_url(host, port), **options)
    await _serve_listener(server, listener, on_bound, announce=announce)


async def _serve_listener(
    server: "Server", listener: "SocketListener", on_bound: BoundCallback | None, *, announce: bool
) -> None:
    from isthmus.transports.tuning import tune_memory

    if announce:
        stop_on_signals(asyncio.current_task())
        tune_memory()
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
