"""Listen on Unix and TCP sockets, made safely, and serve every connection beside the others.

There is no authentication on these sockets. A Unix socket is for whoever may open its file, which
is its owner alone; a TCP socket is for whoever reaches the address, which is this machine alone
unless a program says in so many words that it means more.
"""

import asyncio
import errno
import ipaddress
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from isthmus.errors import ConnectFailed, UsageError
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.pipes import MAX_LINE_BYTES
from isthmus.transports.sockets import (
    NO_UNIX_SOCKETS,
    READ_TIMEOUT_S,
    SocketChannel,
    has_unix_sockets,
    make_origin,
    make_tcp_url,
    make_unix_url,
    prepare_socket,
)
from isthmus.wire.jsonrpc import ErrorBody, encode_error

BACKLOG_CONNECTIONS = 128

DRAIN_TIMEOUT_S = 1.5  # seconds that connections get to finish once the server is told to stop

LINGER_TIMEOUT_S = 1.0  # seconds in which somebody who is turned away can read why

MAX_TURNED_AWAY = 16  # how many at once can; more are closed without a word

ACCEPT_RETRY_S = 0.1  # seconds until the next try when nothing could be accepted

NOT_HTTP = "Invalid request: this socket takes one JSON-RPC message on each line, not HTTP"


class SocketListener:
    """Accepts connections, and serves each with a peer of its own until it ends.

    Args:
        sock: listens already; belongs to the listener.
        router: serves what is asked.
        url: where clients find it.
        limit: the longest message taken, in bytes.
        max_connections: the most connections served at once; more are told so and closed.
        patience: seconds in which a client must read something of what waits for it.
        on_close: called once when nobody listens any more.
    """

    def __init__(
        self,
        sock: socket.socket,
        router: Router,
        url: str,
        *,
        limit: int = MAX_LINE_BYTES,
        max_connections: int = 1000,
        patience: float = READ_TIMEOUT_S,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.url = url
        self._sock = sock
        self._router = router
        self._limit = limit
        self._max = max_connections
        self._patience = patience
        self._on_close = on_close
        self._served: dict[asyncio.Task[None], SocketChannel] = {}
        self._refused: set[asyncio.Task[None]] = set()
        self._count = 0

    async def run(self) -> None:
        """Accept until cancelled; what was accepted is then ended by :meth:`close`."""
        loop = asyncio.get_running_loop()
        while self._sock.fileno() >= 0:
            try:
                sock, _ = await loop.sock_accept(self._sock)
            except OSError:  # no descriptors left, most likely; it may be over soon
                await asyncio.sleep(ACCEPT_RETRY_S)
                continue
            try:
                self._admit(prepare_socket(sock))
            except OSError:  # gone already, or no descriptors left
                sock.close()

    async def close(self) -> None:
        """Listen no longer, read nothing further, let calls in hand finish, end every connection.

        Calls have about a second, as at the end of input; safe to call twice.
        """
        if self._sock.fileno() >= 0:
            self._sock.close()
            if self._on_close is not None:
                self._on_close()
        for channel in self._served.values():
            channel.stop()
        tasks = {*self._served, *self._refused}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=DRAIN_TIMEOUT_S)
            for task in late:
                task.cancel()
            await asyncio.wait(tasks)

    def _admit(self, sock: socket.socket) -> None:
        self._count += 1
        full = len(self._served) >= self._max
        if full and len(self._refused) >= MAX_TURNED_AWAY:
            sock.close()
            return
        origin = make_origin(sock, self._count)
        channel = SocketChannel(sock, origin, limit=self._limit, patience=self._patience)
        loop = asyncio.get_running_loop()
        if full:
            why = f"Too many connections: {self._max} are open; see max_connections"
            task = loop.create_task(self._turn_away(channel, -32603, why))
            self._refused.add(task)
            task.add_done_callback(self._refused.discard)
        else:
            task = loop.create_task(self._serve(channel))
            self._served[task] = channel
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._served.pop(task, None)

    async def _serve(self, channel: SocketChannel) -> None:
        try:
            if await channel.foreign():
                await self._turn_away(channel, -32600, NOT_HTTP)
            else:
                await Peer(channel, self._router, side="server", origin=channel.origin).run()
        finally:
            await channel.close()

    async def _turn_away(self, channel: SocketChannel, code: int, why: str) -> None:
        """Say why, and close once that was read: a connection closed at once may swallow it."""
        refusal = encode_error(None, ErrorBody(code=code, message=why))
        try:
            async with asyncio.timeout(LINGER_TIMEOUT_S):
                await channel.refuse(Outgoing(refusal))
        except TimeoutError:
            pass
        finally:
            await channel.close()


# Unix


def listen_unix(path: str) -> tuple[socket.socket, Callable[[], None]]:
    """Listen on a Unix socket that only this user can open.

    A socket file that a dead server left behind is replaced; anything else at the path stays.

    Args:
        path: where its file shall be.

    Returns:
        The socket, and what removes its file if it is still this one's.

    Raises:
        ConnectFailed: the path cannot be listened on; the message says why.
        UsageError: the path is empty, or of the abstract namespace, which has no owner.
    """
    if not path or path.startswith("\0"):
        raise UsageError(
            f"{path!r} is no path for a socket: write run('unix', path='/run/my.sock')"
        )
    if not has_unix_sockets():
        raise ConnectFailed(NO_UNIX_SOCKETS)
    sock = socket.socket(socket.AF_UNIX)
    try:
        with _lock_folder(path):
            _remove_stale_socket(path)
            sock.bind(path)
            made = os.stat(path)  # noqa: PTH116 - pathlib costs start-up time
            os.chmod(path, 0o600)  # noqa: PTH101 - and nobody can connect before it listens
            sock.listen(BACKLOG_CONNECTIONS)
    except OSError as error:
        sock.close()
        raise ConnectFailed(
            f"cannot listen on {make_unix_url(path)}: {_describe_error(error)}"
        ) from error
    except ConnectFailed:
        sock.close()
        raise
    sock.setblocking(False)

    def remove() -> None:
        with suppress(OSError):
            if os.path.samestat(made, os.stat(path)):  # noqa: PTH116
                os.unlink(path)  # noqa: PTH108

    return sock, remove


@contextmanager
def _lock_folder(path: str) -> Iterator[None]:
    """Keep others who do the same in this folder waiting, where the file system can."""
    import fcntl  # not on Windows, which does not get here

    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)  # noqa: PTH120
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _remove_stale_socket(path: str) -> None:
    """Remove a socket that nobody listens on.

    Raises:
        ConnectFailed: somebody does, or it is something else.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConnectFailed(
            f"cannot listen on {make_unix_url(path)}: there is a file that is no socket"
        )
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)  # noqa: PTH108
            return
        except OSError as error:
            if error.errno not in BUSY_ERRNOS:
                raise
    raise ConnectFailed(
        f"cannot listen on {make_unix_url(path)}: a server is listening there already"
    )


# What connecting says where somebody listens and has no time
BUSY_ERRNOS = frozenset({errno.EAGAIN, errno.ETIMEDOUT, errno.EINPROGRESS})


# TCP


def listen_tcp(host: str, port: int, *, exposed: bool = False) -> socket.socket:
    """Listen on a TCP port.

    Args:
        host: an address of this machine, or a name of one; IPv4 first.
        port: the port; 0 takes a free one.
        exposed: whether it may be an address that other machines reach.

    Raises:
        UsageError: other machines could reach it, and nobody said that they may.
        ConnectFailed: it cannot be listened on; the message says why.
    """
    url = make_tcp_url(host, port)
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=AI_PASSIVE)
        found.sort(key=lambda one: one[0] != socket.AF_INET)
        family, kind, protocol, _, address = found[0]
        if not exposed and not is_loopback(str(address[0])):
            raise UsageError(
                f"{url} can be reached from other machines, and a TCP socket has no "
                "authentication: whoever connects can call every tool. Listen on 127.0.0.1, use HTTP, "
                "or pass exposed=True if the network itself is protected"
            )
        sock = socket.socket(family, kind, protocol)
        try:
            if sys.platform != "win32":  # where it would let two servers share a port
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(BACKLOG_CONNECTIONS)
        except BaseException:
            sock.close()
            raise
    except (OSError, OverflowError) as error:
        raise ConnectFailed(f"cannot listen on {url}: {_describe_error(error)}") from error
    sock.setblocking(False)
    return sock


AI_PASSIVE = socket.AddressInfo.AI_PASSIVE


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _describe_error(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if isinstance(error, socket.gaierror) or not number:
        return str(getattr(error, "strerror", None) or error)
    return os.strerror(number)
