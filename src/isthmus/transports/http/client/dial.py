"""TCP and TLS connections to an origin: its addresses tried in turn, the first that stands is it."""

import asyncio
import errno
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

NEXT_ADDRESS_DELAY_S = 0.25  # RFC 8305 5: until the next address is tried as well


class HttpOrigin(NamedTuple):
    """Scheme, host and port that requests go to.

    Attributes:
        scheme: ``http`` or ``https``.
        host: in lower case; of an IPv6 address without the brackets.
        port: of TCP.
    """

    scheme: str
    host: str
    port: int


class HostAddress(NamedTuple):
    """An address of a host, as sockets take it.

    Attributes:
        family: of the socket.
        target: what it connects to.
    """

    family: int
    target: Any


ResolveOrigin: TypeAlias = Callable[[HttpOrigin], Awaitable[Sequence[HostAddress]]]
"""Looks an origin up for one connection; connections are made to what it gives, and nothing else."""


async def open_connection(
    origin: HttpOrigin,
    make_protocol: Callable[[], asyncio.Protocol],
    *,
    resolve: ResolveOrigin,
    tls: ssl.SSLContext | None,
) -> Any:
    """Connect, and with ``https`` make sure who answers; gives the protocol.

    Args:
        origin: where to.
        make_protocol: makes the protocol of the connection.
        resolve: looks the origin up, once.
        tls: how certificates are checked; None trusts what the system trusts.

    Raises:
        OSError: no address can be reached, or the certificate is not the host's.
    """
    loop = asyncio.get_running_loop()
    addresses = await resolve(origin)
    if not addresses:
        raise OSError(errno.EADDRNOTAVAIL, f"{origin.host} has no address")
    sock = await connect_first(loop, addresses)
    try:
        if origin.scheme == "http":
            _, protocol = await loop.create_connection(make_protocol, sock=sock)
        else:
            _, protocol = await loop.create_connection(
                make_protocol,
                sock=sock,
                ssl=tls or make_default_context(),
                server_hostname=origin.host.rstrip("."),
            )
    except BaseException:
        sock.close()
        raise
    return protocol


@cache
def make_default_context() -> ssl.SSLContext:
    """The context that trusts what the system trusts: slow to make, so there is one."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def resolve_origin(origin: HttpOrigin) -> Sequence[HostAddress]:
    """The system's addresses of an origin; of one that is an address, itself."""
    literal = parse_literal(origin)
    if literal is not None:
        return (literal,)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    return [HostAddress(row[0], row[4]) for row in found]


def parse_literal(origin: HttpOrigin) -> HostAddress | None:
    """The address that a host spells; None for a name, or an address with a zone."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, origin.host)
        except (OSError, ValueError):
            continue
        return HostAddress(family, (origin.host, origin.port))
    return None


async def connect_first(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[HostAddress]
) -> socket.socket:
    """A socket connected to the first address that answers (RFC 8305, "happy eyeballs").

    Raises:
        OSError: none does; the one that was tried first says why.
    """
    if len(addresses) == 1:
        return await connect_socket(loop, addresses[0])
    waiting = deque(interleave_families(addresses))
    under_way: set[asyncio.Task[socket.socket]] = set()
    reason: tuple[Any, ...] = ()
    try:
        while waiting or under_way:
            if waiting:
                under_way.add(loop.create_task(connect_socket(loop, waiting.popleft())))
            done, _ = await asyncio.wait(
                under_way,
                timeout=NEXT_ADDRESS_DELAY_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                under_way.discard(task)
                error = task.exception()
                if error is None:
                    return task.result()
                # its words, and not itself, which would hold all that waited for it
                reason = reason or error.args
                del error
    finally:
        for task in under_way:
            task.add_done_callback(close_unused)
            task.cancel()
    raise OSError(*reason)


def interleave_families(addresses: Sequence[HostAddress]) -> list[HostAddress]:
    """The addresses in their order, the families in turn (RFC 8305 4)."""
    first = [address for address in addresses if address.family == addresses[0].family]
    others = [address for address in addresses if address.family != addresses[0].family]
    pairs = zip_longest(first, others)
    return [address for pair in pairs for address in pair if address is not None]


async def connect_socket(loop: asyncio.AbstractEventLoop, address: HostAddress) -> socket.socket:
    """A socket connected to one address.

    Raises:
        OSError: it cannot be reached.
    """
    # asyncio sets TCP_NODELAY where the socket names its protocol, and only there
    sock = socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address.target)
    except BaseException:
        sock.close()
        raise
    return sock


def close_unused(task: "asyncio.Task[socket.socket]") -> None:
    """Close the socket of an attempt that was overtaken."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
