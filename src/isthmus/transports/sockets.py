"""Unix and TCP sockets that carry lines, as stdio does: one connection is one conversation.

Nothing here says who the other side is, beyond what the kernel knows of a Unix socket. Access is
granted by the file's mode, or by being on this machine: see :mod:`isthmus.transports.listener` for
the side that listens.
"""

import asyncio
import errno
import os
import re
import socket
import struct
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from isthmus.core.framing import Oversize
from isthmus.core.principal import Principal
from isthmus.errors import ConnectFailed, ConnectionLost, UsageError
from isthmus.runtime.channel import Delivery, Origin, Outgoing
from isthmus.transports.line_channel import LineChannel
from isthmus.transports.pipes import MAX_LINE_BYTES

SOCKET_SCHEMES = ("unix://", "tcp://")

# Seconds in which the other side must read something of what waits for it, or twice as many
READ_TIMEOUT_S = 30.0

HTTP_OR_TLS = re.compile(rb"\S+ \S.* HTTP/\d|\x16\x03")  # or what TLS begins with, for HTTPS


class SocketChannel(LineChannel):
    """The server's end of one connection.

    Args:
        sock: the connection; belongs to the channel.
        origin: where its messages come from.
        limit: the longest message taken, in bytes; a longer one is refused with -32600.
        patience: see :data:`READ_TIMEOUT_S`.
    """

    def __init__(
        self,
        sock: socket.socket,
        origin: Origin,
        *,
        limit: int = MAX_LINE_BYTES,
        patience: float = READ_TIMEOUT_S,
    ) -> None:
        reads, self._writes = split_socket(sock)
        super().__init__(reads, self._writes, origin, limit=limit, patience=patience)

    async def foreign(self) -> bool:
        """Wait for the first line; True if it is that of an HTTP request, or far too long.

        A page in a browser can make the browser connect to any port and send an HTTP request
        whose body is a line of the page's choice. That line must never be looked at. Nor must
        what TLS begins with: a server elsewhere chose the ticket of a session that is in it.
        """
        inlet = self._inlet
        while not inlet.lines and not inlet.over:
            await inlet.more()
        first = inlet.lines[0] if inlet.lines else b""
        return isinstance(first, Oversize) or HTTP_OR_TLS.match(first) is not None

    async def refuse(self, out: Outgoing) -> None:
        """Send one message, and wait until the other side has read it and hung up."""
        self._inlet.ignore()
        self._outlet.write(out.data)
        await self._outlet.room(0)
        if self._outlet.broken is None:
            with socket.socket(fileno=os.dup(self._writes)) as half, suppress(OSError):
                half.shutdown(socket.SHUT_WR)
            await self._inlet.ended

    def _explain_loss(self, error: OSError) -> ConnectionLost:
        if self._closing is not None:
            return ConnectionLost("the connection was closed")
        return ConnectionLost(f"the connection to the client broke: {error}")


class SocketClientChannel(LineChannel):
    """The client's end of a connection, see :func:`dial`.

    Args:
        sock: the connection; belongs to the channel.
        url: where it leads.
        limit: the longest message taken, in bytes.
        patience: see :data:`READ_TIMEOUT_S`.
    """

    SERVES = False

    def __init__(
        self,
        sock: socket.socket,
        url: str,
        *,
        limit: int = MAX_LINE_BYTES,
        patience: float = READ_TIMEOUT_S,
    ) -> None:
        self._url = url
        origin = Origin(url.partition("://")[0])
        super().__init__(*split_socket(sock), origin, limit=limit, patience=patience)

    def _take_last_line(self) -> Delivery | None:
        last = super()._take_last_line()
        if last is not None and not last.data.rstrip().endswith((b"}", b"]")):
            last = None  # an answer that was cut off is no answer
        if last is None and self._closing is None:
            raise ConnectionLost(f"the server at {self._url} closed the connection")
        return last

    def _explain_loss(self, error: OSError) -> ConnectionLost:
        if self._closing is not None:
            return ConnectionLost(f"the connection to {self._url} was closed")
        return ConnectionLost(f"the connection to {self._url} broke: {error}")

    def _explain_oversize(self, line: Oversize) -> None:
        raise ConnectionLost(
            f"the server at {self._url} sent a message of {line.size} bytes, and the limit is "
            f"{self._limit}"
        )


def split_socket(sock: socket.socket) -> tuple[int, int]:
    """A descriptor to read a socket and one to write to it, each to be closed by its owner."""
    sock.setblocking(False)
    reads = sock.detach()
    try:
        return reads, os.dup(reads)
    except OSError:
        os.close(reads)
        raise


def prepare_socket(sock: socket.socket) -> socket.socket:
    """A connection whose messages leave at once, and whose other side's death is noticed."""
    sock.setblocking(False)
    if sock.family != socket.AddressFamily.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


def make_origin(sock: socket.socket, number: int) -> Origin:
    """Make the origin of the messages of an accepted connection.

    Its principal is the user at the other end of a Unix socket, with ``"uid:1000"`` as subject,
    where the kernel tells (Linux, macOS). Nothing is known of who is at the other end of a TCP connection.

    Args:
        sock: the connection.
        number: tells connections apart.
    """
    if sock.family != socket.AddressFamily.AF_UNIX:
        return Origin("tcp", session=f"tcp-{number}")
    user = read_peer_user(sock)
    principal = None if user is None else Principal(issuer="unix", subject=f"uid:{user}")
    return Origin("unix", principal=principal, session=f"unix-{number}")


def read_peer_user(sock: socket.socket, platform: str = sys.platform) -> int | None:
    """The user id of the process at the other end of a Unix socket; None where nobody tells it.

    Args:
        sock: the connection.
        platform: the system.
    """
    if platform == "linux":
        size = struct.calcsize("3i")
        told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", told)[1])
    if platform == "darwin":
        # struct xucred: its version, then the user id; level 0 is SOL_LOCAL, option 1 LOCAL_PEERCRED
        with suppress(OSError, struct.error):
            return int(struct.unpack("2I", sock.getsockopt(0, 1, 76)[:8])[1])
    return None


MAX_ANCESTORS = 256  # processes that are looked at to learn where one comes from


def read_peer_pid(sock: socket.socket, platform: str = sys.platform) -> int | None:
    """The process at the other end of a Unix socket; None where nobody tells it.

    Args:
        sock: the connection.
        platform: the system.
    """
    if platform != "linux":
        return None
    told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[0]) or None


def read_ancestry(process: int) -> tuple[int, ...]:
    """A process, its group, its session, and all that they come from; empty where nobody tells it.

    A process that was handed on to ``init`` keeps its group and its session, unless it left them.
    """
    found: dict[int, None] = {}
    waiting = [process]
    while waiting and len(found) < MAX_ANCESTORS:
        one = waiting.pop()
        if one <= 1 or one in found:
            continue
        try:
            with open(f"/proc/{one}/stat", "rb") as file:  # noqa: PTH123 - read by the loop itself
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            if one == process:
                return ()
            found[one] = None  # its number is known, and it is gone
            continue
        found[one] = None
        waiting += map(int, fields[1:4])  # parent, group, session
    return tuple(found)


# Places


def make_unix_url(path: str) -> str:
    """The target of a Unix socket, as a client writes it."""
    return f"unix://{path}"


def make_tcp_url(host: str, port: int) -> str:
    """The target of a TCP socket, as a client writes it."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def parse_socket_url(url: str) -> str | tuple[str, int]:
    """Parse a socket's URL: a path, or a host and a port.

    Raises:
        UsageError: it says neither; the message shows how it is written.
    """
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        if not rest:
            raise UsageError(f"{url!r} names no socket: write unix:///path/of/the.sock")
        return rest
    host, _, port = rest.rpartition(":")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise UsageError(f"{url!r} is no TCP address: write tcp://HOST:PORT")
    return host.strip("[]"), int(port)


MAX_PORT = 65535


async def dial(
    url: str, *, connect_timeout: float, limit: int = MAX_LINE_BYTES
) -> SocketClientChannel:
    """Connect to ``unix:///path`` or ``tcp://host:port``.

    Args:
        url: where to.
        connect_timeout: seconds until it counts as failed.
        limit: the longest message taken, in bytes.

    Raises:
        ConnectFailed: nobody listens there, or nobody may; the message says what to try.
        UsageError: the URL is no such place.
    """
    place = parse_socket_url(url)
    way = _dial_unix(place) if isinstance(place, str) else _dial_tcp(*place)
    try:
        async with asyncio.timeout(connect_timeout):
            sock = await way
    except TimeoutError as error:
        message = f"cannot connect to {url}: no connection within {connect_timeout:g} s"
        raise ConnectFailed(message) from error
    except OSError as error:
        raise ConnectFailed(f"cannot connect to {url}: {_explain_failure(error)}") from error
    return SocketClientChannel(prepare_socket(sock), url, limit=limit)


def _dial_unix(path: str) -> Coroutine[Any, Any, socket.socket]:
    if not has_unix_sockets():
        raise ConnectFailed(f"cannot connect to {make_unix_url(path)}: {NO_UNIX_SOCKETS}")
    return _connect_socket(lambda: socket.socket(socket.AF_UNIX), path)


async def _dial_tcp(host: str, port: int) -> socket.socket:
    """Try each address of a host in turn."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    for family, kind, protocol, _, address in found:

        def make(family: int = family, kind: int = kind, protocol: int = protocol) -> socket.socket:
            return socket.socket(family, kind, protocol)

        try:
            return await _connect_socket(make, address)
        except OSError as error:
            failure = error.with_traceback(None)
    try:
        raise failure
    finally:
        del failure  # it keeps this frame, and must not be kept by it


async def _connect_socket(make: Callable[[], socket.socket], address: Any) -> socket.socket:
    sock = make()
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


NO_UNIX_SOCKETS = "Unix sockets are not supported on this system; use tcp:// or stdio"


def has_unix_sockets() -> bool:
    """Whether this system's event loops can read and write Unix sockets."""
    return sys.platform != "win32" and hasattr(socket, "AF_UNIX")


def _explain_failure(error: OSError) -> str:
    why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    if isinstance(error, socket.gaierror):
        why = str(error.strerror)
    hint = CONNECT_HINTS.get(error.errno or 0, "")
    return f"{why}{hint and f': {hint}'}"


CONNECT_HINTS = {
    errno.ENOENT: "is the server running?",
    errno.ECONNREFUSED: "is a server running there?",
    errno.EACCES: "the socket belongs to another user",
    errno.ENOTSOCK: "the file is no socket",
}
