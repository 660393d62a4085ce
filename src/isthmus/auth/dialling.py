"""The moment of connecting, where the network guard stands: looked up once, judged, dialled.

aiohttp asks two things on its way to a connection: a resolver for the addresses of a name, and a
factory for the socket of each address. The resolver judges every address, and the factory makes
sockets only for what was judged in the same request. An address that is written in the URL itself
passes no resolver: it is judged beforehand, and the factory holds that too.
"""

import asyncio
import errno
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from isthmus.auth.addresses import Address, address_of, purpose
from isthmus.auth.urls import brief, split
from isthmus.errors import AuthError, AuthUnsafe

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from aiohttp.abc import AbstractResolver

__all__ = [
    "NetworkFailed",
    "NetworkRefused",
    "Place",
    "Resolve",
    "admitting",
    "judge_host",
    "look_up",
    "open_session",
]

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Every address of a host, for a port."""

NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
"""The last part of what systems read as an address in one of its unusual spellings."""


class NetworkRefused(AuthUnsafe):
    """The policy forbids to go there; no connection was made. Says why, and which setting it is."""


class NetworkFailed(AuthError):
    """No answer, or none of use: it is too long, of another type, late, or there is none."""


class Place(NamedTuple):
    """Where a connection goes to."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Place":
        """Where a URL leads."""
        parts = split(url)
        return cls(parts.host, parts.port)


class Admitted:
    """What one request may connect to.

    Args:
        place: the one place whose addresses are not judged, since the application named it.
    """

    def __init__(self, place: Place | None) -> None:
        self._place = place
        self.addresses: set[Address] = set()
        if place is not None and (literal := address_of(place.host)) is not None:
            self.addresses.add(bare(literal))

    def admit(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """Judge every address of a name.

        Raises:
            NetworkRefused: one of them is not for everybody.
        """
        own = self._place is not None and self._place == (host.lower(), port)
        for text in addresses:
            address = address_of(text)
            if address is None:
                raise NetworkRefused(f"{brief(host)} was looked up as {brief(text)}, no address")
            if not own:
                judge(host, address)
            self.addresses.add(bare(address))


ADMITTED: ContextVar[Admitted | None] = ContextVar("ADMITTED", default=None)
"""What the request in whose context a connection is being made may connect to."""


@contextmanager
def admitting(place: Place | None, host: str | None = None) -> Iterator[None]:
    """The time of one request.

    Args:
        place: what may have any address.
        host: what was judged already: an address that the URL itself spells.
    """
    admitted = Admitted(place)
    if host is not None and (literal := address_of(host)) is not None:
        admitted.addresses.add(bare(literal))
    token = ADMITTED.set(admitted)
    try:
        yield
    finally:
        ADMITTED.reset(token)


def bare(address: Address) -> Address:
    """An address without its zone, which only says through which card of this machine."""
    if address.version == 6 and address.scope_id is not None:
        return type(address)(int(address))
    return address


def judge(host: str, address: Address) -> None:
    """Refuse an address that is not one of the public internet.

    Raises:
        NetworkRefused: says which class it is of, and where it would be allowed.
    """
    reserved = purpose(address)
    if reserved is not None:
        at = "" if host == str(address) else f" is at {address}, which"
        raise NetworkRefused(
            f"{host}{at} is {reserved}: only public addresses are asked, "
            "and the origins that NetworkPolicy(origins=…) names"
        )


def judge_host(host: str) -> None:
    """Refuse a host that is an address, in any spelling, and not a public one.

    Raises:
        NetworkRefused: so it is.
    """
    literal = address_of(host)
    if literal is not None:
        judge(str(literal), literal)
    elif host.startswith("[") or NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        # Some systems read 0177.1 as 127.0.0.1, and nobody needs to write that.
        raise NetworkRefused(
            f"{brief(host)} is neither a name nor an address as it is usually spelt"
        )


async def look_up(host: str, port: int) -> Sequence[str]:
    """The system's answer."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in found]


class Resolver:
    """Looks a name up once for each connection, and judges every answer.

    Args:
        resolve: does the looking up.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: int = socket.AF_UNSPEC
    ) -> list[dict[str, Any]]:
        """As aiohttp wants it.

        Raises:
            NetworkRefused: one of the addresses is not for everybody.
        """
        addresses = await self._resolve(host, port)
        if not addresses:
            raise OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
        admitted = ADMITTED.get() or Admitted(None)
        admitted.admit(host, port, addresses)
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in addresses
            if family in {socket.AF_UNSPEC, socket.AF_INET6 if ":" in address else socket.AF_INET}
        ]

    async def close(self) -> None:
        """Nothing is kept."""


def make_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for an address that was judged.

    Raises:
        OSError: it was not.
    """
    family, kind, proto, _, target = info
    admitted = ADMITTED.get()
    address = address_of(str(target[0])) if family in {socket.AF_INET, socket.AF_INET6} else None
    if admitted is None or address is None or bare(address) not in admitted.addresses:
        raise OSError(errno.EACCES, "the network guard has not judged this address")
    return socket.socket(family, kind, proto)


def open_session(
    resolve: Resolve, tls: "ssl.SSLContext | None", total: float, connect: float
) -> "aiohttp.ClientSession":
    """An aiohttp session whose connections are guarded.

    Args:
        resolve: looks hosts up.
        tls: how certificates are checked; None trusts what the system trusts.
        total: seconds for a whole request.
        connect: seconds for its connection.
    """
    import aiohttp

    connector = aiohttp.TCPConnector(
        ssl=True if tls is None else tls,
        resolver=cast("AbstractResolver", Resolver(resolve)),
        use_dns_cache=False,  # what was judged for one request is not the next one's
        socket_factory=make_socket,
        limit=100,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=total, connect=connect, sock_connect=connect),
    )
