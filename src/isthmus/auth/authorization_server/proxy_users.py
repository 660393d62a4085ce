"""Users whom a proxy in front of this server has logged in already."""

import ipaddress
import logging
from collections.abc import Mapping, Sequence

from isthmus.auth.authorization_server.users import LoginRefused, LoginRequest, User
from isthmus.errors import UsageError

__all__ = ["HeaderUsers"]

LONGEST = 255

NOT_THE_PROXY = LoginRefused(
    text="This server lets people in through its proxy only. Open it under its public address."
)
NOBODY = LoginRefused(text="The proxy of this server did not say who you are. Sign in there first.")


class HeaderUsers:
    """Users whom a header of a trusted proxy names, such as ``X-Forwarded-User``.

    Anybody can send a header. So it counts only from the addresses of the proxy, as the TCP
    connection has them, and everybody else is refused. The proxy must drop the header where it
    comes from outside, and must be the only way to this server.

    An ASGI server that puts ``X-Forwarded-For`` in the place of the peer's address takes away what
    this looks at: then everybody is refused, or whoever may send that header can be anybody. Server.run
    and ``isthmus`` do not; uvicorn does, without ``--no-proxy-headers``, for programs on its machine.

    Args:
        header: its name.
        trusted_proxies: addresses and networks, such as ``"10.0.0.7"`` or ``"10.0.0.0/24"``.
        name_header: the header with the name to show, if the proxy sends one.

    Raises:
        UsageError: one of the addresses is none, or they are everybody's.
    """

    def __init__(
        self, header: str, *, trusted_proxies: Sequence[str], name_header: str | None = None
    ) -> None:
        self._header = header.lower()
        self._name_header = name_header.lower() if name_header else None
        self._trusted = [_network(text) for text in trusted_proxies]
        if not self._trusted:
            raise UsageError("HeaderUsers needs trusted_proxies: the addresses of your proxy")
        self._told = False

    async def begin(self, request: LoginRequest) -> User | LoginRefused:
        """The user whom the proxy names; asked for every page, as the proxy keeps the login."""
        if not self._trusts(request.address):
            self._tell(request.address)
            return NOT_THE_PROXY
        user_id = request.headers.get(self._header, "").strip()
        # a comma: the header is there twice, and one of the two is not the proxy's
        if not user_id or "," in user_id or len(user_id) > LONGEST or not user_id.isprintable():
            return NOBODY
        name = request.headers.get(self._name_header, "") if self._name_header else ""
        return User(id=user_id, name=name.strip()[:LONGEST])

    async def submit(
        self,
        request: LoginRequest,
        form: Mapping[str, str],  # noqa: ARG002 - there is no form of ours to send
    ) -> User | LoginRefused:
        """The user whom the proxy names, whatever was sent."""
        return await self.begin(request)

    async def get(self, user_id: str) -> User | None:
        """The user of that id; the proxy alone knows whether it is still one."""
        return User(id=user_id)

    def _trusts(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self._trusted)

    def _tell(self, address: str) -> None:
        if self._told:
            return
        self._told = True
        logging.getLogger("isthmus.auth").warning(
            "a login from %r was refused: HeaderUsers believes %s only from trusted_proxies %s. "
            "If that is not the proxy's address, the ASGI server may have replaced it by what "
            "X-Forwarded-For says (uvicorn: --no-proxy-headers). This is said once.",
            address,
            self._header,
            ", ".join(map(str, self._trusted)),
        )


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise UsageError(f"trusted_proxies: {text!r} is no address or network") from error
    if network.prefixlen == 0:
        raise UsageError(f"trusted_proxies: {text} is everybody, who could then be anybody")
    return network
