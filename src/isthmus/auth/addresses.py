"""What an IP address is for: the special-purpose registries of IANA, as data.

The standard library's ``is_global`` answers differently from one Python to the next, and calls an
address global that stands for a private one. Here an address that carries an IPv4 address within
(mapped, NAT64, 6to4, Teredo) is judged by that one too, since that is where a packet may end.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

__all__ = ["Address", "address_of", "purpose"]

Address: TypeAlias = IPv4Address | IPv6Address

SPECIAL: Sequence[tuple[str, str]] = (
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
"""What is not for everybody, the narrower ranges first where two overlap."""

CARRIERS: Sequence[tuple[str, str, int, int]] = (
    ("::ffff:0:0/96", "IPv4-mapped", 0, 0),
    ("64:ff9b::/96", "NAT64", 0, 0),
    ("2002::/16", "6to4", 80, 0),
    ("2001::/32", "Teredo", 0, 0xFFFFFFFF),
)
"""IPv6 ranges that carry an IPv4 address: where its lowest bit is, and what it is masked with."""

STILL_USED = {"IPv4-mapped", "NAT64"}
"""Carriers that lead to public addresses today; the others are refused whatever they carry."""

GLOBAL_IPV6 = ip_network("2000::/3")
"""The only range that IANA gives out to be reached by everybody."""


@cache
def _special() -> Sequence[tuple[IPv4Network | IPv6Network, str]]:
    return tuple((ip_network(text), name) for text, name in SPECIAL)


@cache
def _carriers() -> Sequence[tuple[IPv4Network | IPv6Network, str, int, int]]:
    return tuple((ip_network(text), *rest) for text, *rest in CARRIERS)  # type: ignore[misc]  # the rest of a row keeps its types


def address_of(host: str) -> Address | None:
    """The address that a host spells in the one usual way; None for a name, or any other spelling.

    Args:
        host: with or without the brackets of a URL; a zone (``%eth0``) is kept.
    """
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return ip_address(bare)
    except ValueError:
        return None


def purpose(address: Address) -> str | None:
    """What an address is reserved for; None if it is one of the public internet.

    Example::

        >>> purpose(ip_address("64:ff9b::7f00:1"))
        'NAT64 of 127.0.0.1, which is loopback'
    """
    for carrier, within in _carried(address):
        inner = purpose(within)
        if inner is not None:
            return f"{carrier} of {within}, which is {inner}"
        return None if carrier in STILL_USED else carrier
    for network, name in _special():
        if address.version == network.version and address in network:
            return name
    if isinstance(address, IPv6Address) and address not in GLOBAL_IPV6:
        return "not assigned"
    return None


def _carried(address: Address) -> Iterator[tuple[str, IPv4Address]]:
    """The IPv4 address within an IPv6 address, and how it got there."""
    if isinstance(address, IPv4Address):
        return
    for network, name, shift, mask in _carriers():
        if address in network:
            yield name, IPv4Address(((int(address) >> shift) & 0xFFFFFFFF) ^ mask)
