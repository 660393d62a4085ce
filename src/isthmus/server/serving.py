"""What ``Server.run`` may be told, and who does it."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import UsageError
from isthmus.server.options import SocketOptions, TcpOptions, known

if TYPE_CHECKING:
    from isthmus.server.server import Server

__all__ = ["run"]

Given: TypeAlias = Any  # dict[str, Any], of which each way checks its part

ADDRESS = ("127.0.0.1", 8000)
"""Where HTTP is served by default; only this machine reaches it."""


def run(server: "Server", transport: str, given: Given) -> None:
    """Serve until it ends, in the way that the transport's name says.

    Args:
        server: what to serve.
        transport: one of ``WAYS``.
        given: the address and the options.

    Raises:
        UsageError: there is no such transport, or it has no such options.
        ConnectFailed: the address cannot be listened on.
    """
    way = WAYS.get(transport)
    if way is None:
        raise UsageError(
            f"there is no transport {transport!r}: write 'stdio', 'http', which is Streamable "
            "HTTP, 'websocket', 'unix' or 'tcp'"
        )
    way(server, given)


def _stdio(server: "Server", given: Given) -> None:
    if given:
        raise UsageError(
            f"{', '.join(given)}: stdio has no such option; write run('http', ...) for HTTP, and "
            "run('unix', path=...) or run('tcp', port=...) for a socket"
        )
    from isthmus.server.pipes import run_pipes

    run_pipes(server)


def _http(server: "Server", given: Given) -> None:
    from isthmus.transports.http.serve import run as serve

    host, port = given.pop("host", ADDRESS[0]), given.pop("port", ADDRESS[1])
    resource = None if server.auth is None else server.auth.resource
    if resource is not None and is_elsewhere(resource, port):
        logging.getLogger("isthmus").warning(
            "auth= says that clients know this server as %s, and it listens on port %s: they log in "
            "by the first alone",
            resource,
            port,
        )
    serve(server.asgi(**given), host, port)


def is_elsewhere(resource: str, port: int) -> bool:
    """Whether a URL of plain HTTP, which is one of this machine, has another port.

    What is https is the URL of a proxy, and may have any.
    """
    from urllib.parse import urlsplit  # slow, and needed by servers with authorization alone

    named = urlsplit(resource)
    return named.scheme == "http" and (named.port or 80) != port


def _websocket(server: "Server", given: Given) -> None:
    _http(server, {**given, "websocket": True})


def _unix(server: "Server", given: Given) -> None:
    path = given.pop("path", None)
    if path is None:
        raise UsageError("where? write run('unix', path='/run/user/1000/my.sock')")
    from isthmus.server.sockets import run_unix

    run_unix(server, path, known(given, SocketOptions))


def _tcp(server: "Server", given: Given) -> None:
    host, port = given.pop("host", ADDRESS[0]), given.pop("port", None)
    if port is None:
        raise UsageError("which port? write run('tcp', port=9000)")
    if server.auth is not None:
        raise UsageError(
            "auth= guards HTTP and WebSockets: on a TCP socket nothing asks who is there, so that "
            "everybody on this machine would get past it; write run('http', ...)"
        )
    from isthmus.server.sockets import run_tcp

    run_tcp(server, host, port, known(given, TcpOptions))


WAYS: Mapping[str, Callable[["Server", Given], None]] = {
    "stdio": _stdio,
    "http": _http,
    "websocket": _websocket,
    "unix": _unix,
    "tcp": _tcp,
}
