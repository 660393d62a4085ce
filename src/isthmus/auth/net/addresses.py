"""IP addresses and connections: only public addresses are dialled, judged where the connection is made (SSRF).

The special-purpose registries of IANA stand here as data. The standard library's ``is_global`` answers
differently from one Python to the next, and calls an address global that stands for a private one. Here
an address that carries an IPv4 address within (mapped, NAT64, 6to4, Teredo) is judged by that one too,
since that is where a packet may end.

A connection goes to one of the addresses that its resolver gives, and to nothing else. So the
resolver is the guard: it looks a name up once for each connection, judges every address, and gives
those, as sockets take them. An address that is written in the URL itself passes it like any other.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from isthmus.auth.net.urls import display_url
from isthmus.errors import AuthError, AuthUnsafe
from isthmus.transports.http.client.dial import HostAddress, HttpOrigin

IpAddress: TypeAlias = IPv4Address | IPv6Address

# Addresses that are not for everybody, the narrower ranges first where two overlap.
SPECIAL_RANGES: Sequence[tuple[str, str]] = (
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a carrier"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "the host of a virtual machine"),  # Azure's own; not in the registry
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "AMT"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "AS112"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::1/128", "loopback"),
    ("::/128", "unspecified"),
    ("::/96", "IPv4-compatible"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
    ("64:ff9b:1::/48", "NAT64 of a local network"),
    ("100::/64", "discard-only"),
    ("100:0:0:1::/64", "dummy"),
    ("2001:2::/48", "benchmarking"),
    ("2001:3::/32", "AMT"),
    ("2001:4:112::/48", "AS112"),
    ("2001:10::/28", "ORCHID"),
    ("2001:20::/28", "ORCHIDv2"),
    ("2001:30::/28", "drone remote identification"),
    ("2001:db8::/32", "documentation"),
    ("2001::/23", "protocol assignments"),
    ("2620:4f:8000::/48", "AS112"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)

# IPv6 ranges that carry an IPv4 address: where its lowest bit is, and what it is masked with.
IPV4_CARRIERS: Sequence[tuple[str, str, int, int]] = (
    ("::ffff:0:0/96", "IPv4-mapped", 0, 0),
    ("64:ff9b::/96", "NAT64", 0, 0),
    ("2002::/16", "6to4", 80, 0),
    ("2001::/32", "Teredo", 0, 0xFFFFFFFF),
)
PUBLIC_CARRIERS = {"IPv4-mapped", "NAT64"}  # the others are refused whatever they carry
GLOBAL_IPV6 = ip_network("2000::/3")  # all that IANA gives out to be reached by everybody
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Every address of a host, for a port."""
# the last part of an address in an unusual spelling
NUMERIC_HOST = re.compile(r"0x[0-9a-f]*|[0-9]+")


@cache
def _special_networks() -> Sequence[tuple[IPv4Network | IPv6Network, str]]:
    return tuple((ip_network(text), name) for text, name in SPECIAL_RANGES)


@cache
def _carrier_networks() -> Sequence[tuple[IPv4Network | IPv6Network, str, int, int]]:
    return tuple((ip_network(text), *rest) for text, *rest in IPV4_CARRIERS)  # type: ignore[misc]  # the rest of a row keeps its types


def parse_address(host: str) -> IpAddress | None:
    """The address that a host spells in the one usual way; None for a name, or any other spelling.

    Args:
        host: with or without the brackets of a URL; a zone (``%eth0``) is kept.
    """
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return ip_address(bare)
    except ValueError:
        return None


def special_purpose(address: IpAddress) -> str | None:
    """The purpose that an address is reserved for; None if it is one of the public internet.

    Example::

        >>> purpose(ip_address("64:ff9b::7f00:1"))
        'NAT64 of 127.0.0.1, which is loopback'
    """
    for carrier, within in _carried_addresses(address):
        inner = special_purpose(within)
        if inner is not None:
            return f"{carrier} of {within}, which is {inner}"
        return None if carrier in PUBLIC_CARRIERS else carrier
    for network, name in _special_networks():
        if address.version == network.version and address in network:
            return name
    if isinstance(address, IPv6Address) and address not in GLOBAL_IPV6:
        return "not assigned"
    return None


def _carried_addresses(address: IpAddress) -> Iterator[tuple[str, IPv4Address]]:
    """The IPv4 address within an IPv6 address, and how it got there."""
    if isinstance(address, IPv4Address):
        return
    for network, name, shift, mask in _carrier_networks():
        if address in network:
            yield name, IPv4Address(((int(address) >> shift) & 0xFFFFFFFF) ^ mask)


class NetworkRefused(AuthUnsafe):
    """A request that the policy forbids; no connection was made. The message names the setting."""


class NetworkFailed(AuthError):
    """A request without a usable answer: none came, or it is late, too long or of another type."""


def judge_address(host: str, address: IpAddress) -> None:
    """Refuse an address that is not one of the public internet.

    Raises:
        NetworkRefused: says which class it is of, and where it would be allowed.
    """
    reserved = special_purpose(address)
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
    literal = parse_address(host)
    if literal is not None:
        judge_address(str(literal), literal)
    elif host.startswith("[") or NUMERIC_HOST.fullmatch(host.rstrip(".").rpartition(".")[2]):
        # Some systems read 0177.1 as 127.0.0.1, and nobody needs to write that.
        raise NetworkRefused(
            f"{display_url(host)} is neither a name nor an address as it is usually spelt"
        )


async def admit_addresses(
    origin: HttpOrigin, resolve: Resolve, *, trusted: bool
) -> Sequence[HostAddress]:
    """The addresses that a connection may be made to.

    Args:
        origin: is looked up, once.
        resolve: does the looking up.
        trusted: the addresses are not judged, since the application named this origin.

    Raises:
        NetworkRefused: one of them is not for everybody.
    """
    literal = parse_address(origin.host)
    texts = await resolve(origin.host, origin.port) if literal is None else (origin.host,)
    for text in texts:
        address = parse_address(text)
        if address is None:
            raise NetworkRefused(
                f"{display_url(origin.host)} was looked up as {display_url(text)}, no address"
            )
        if not trusted:
            judge_address(origin.host, address)
    return [
        HostAddress(socket.AF_INET6 if ":" in text else socket.AF_INET, (text, origin.port))
        for text in texts
    ]


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The system's answer."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in found]


def address_block(address: str) -> str:
    """The block that counts as one address: of IPv6 the /64 that a household or a machine has."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a Unix socket has none
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
