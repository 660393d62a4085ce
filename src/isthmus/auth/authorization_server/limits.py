"""How often somebody may ask, per address and per client."""

import ipaddress
import math

from isthmus.auth.authorization_server.requests import Unfit
from isthmus.store.meter import MemoryMeter, Rate

__all__ = ["Limits", "TooMany", "network_of"]

PER_ADDRESS = Rate(300, seconds=60)
PER_CLIENT = Rate(1200, seconds=60)
PER_IP_HOUR = 20


class TooMany(Unfit):
    """Somebody asks too often."""

    def __init__(self, wait: float) -> None:
        super().__init__(
            "too many requests: try again later",
            status=429,
            error="slow_down",
            retry_after=max(1, math.ceil(wait)),
        )


class Limits:
    """Counts requests in this process, and refuses those beyond a rate.

    Example::

        AuthorizationServer(…, limits=Limits(5, per_address=Rate(60, seconds=60)))

    Args:
        per_ip_hour: registrations of one address in an hour.
        per_address: other requests of one address.
        per_client: token requests of one client.
    """

    def __init__(
        self,
        per_ip_hour: int = PER_IP_HOUR,
        *,
        per_address: Rate = PER_ADDRESS,
        per_client: Rate = PER_CLIENT,
    ) -> None:
        self._registrations = MemoryMeter(Rate(per_ip_hour, seconds=3600))
        self._addresses = MemoryMeter(per_address)
        self._clients = MemoryMeter(per_client)

    def address(self, address: str) -> None:
        """A request came from an address.

        Raises:
            TooMany: too often.
        """
        judge(self._addresses, network_of(address))

    def not_from(self, address: str) -> None:
        """A request was made for others by one who is trusted to: it takes nothing from an address."""
        self._addresses.spend(network_of(address), -1)

    def client(self, client_id: str) -> None:
        """A token request came from somebody who says that they are this client.

        Raises:
            TooMany: too often.
        """
        judge(self._clients, client_id)

    def not_of(self, client_id: str) -> None:
        """A token request was not that client's, or none that it got anything by.

        It takes nothing from the client, whose name anybody knows: else anybody could use it up.
        """
        self._clients.spend(client_id[:512], -1)

    def registration(self, address: str) -> None:
        """A registration came from an address.

        Raises:
            TooMany: too often.
        """
        judge(self._registrations, network_of(address))


def judge(meter: MemoryMeter, key: str) -> None:
    """Take one out of what a key has left.

    Raises:
        TooMany: there is nothing left.
    """
    wait = meter.spend(key[:512])
    if wait:
        raise TooMany(wait)


def network_of(address: str) -> str:
    """What counts as one address: of IPv6 the /64 that a household or a machine has."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a Unix socket has none
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
