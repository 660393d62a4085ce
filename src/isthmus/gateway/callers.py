"""Callers of a gateway: its principals, with their clients and sessions, and its profiles, for surfaces."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isthmus.gateway.principals import make_principal
from isthmus.host.model.view import PrincipalLine, ProfileLine

if TYPE_CHECKING:
    from isthmus.gateway.connection_places import ConnectionPlaces
    from isthmus.host.host import Host
    from isthmus.host.model.gateway_options import GatewayOptions


class GatewayCallers:
    """What a gateway knows of whoever calls, read when somebody asks: no call does anything for it.

    Args:
        host: makes the attempts.
        get_options: gives the options in force.
        places: has the connections that belong to one session or principal.
    """

    def __init__(
        self, host: "Host", get_options: "Callable[[], GatewayOptions]", places: "ConnectionPlaces"
    ) -> None:
        self._host = host
        self._get_options = get_options
        self._places = places

    def principals(self) -> Sequence[PrincipalLine]:
        """The principals that call just now, or have a connection of their own."""
        sessions = self._places.count_by_principal()
        clients: dict[str, dict[str, None]] = {}
        flying: Counter[str] = Counter()
        for client in self._host.core.clients.all.values():
            inbound = getattr(client, "inbound", None)
            if inbound is None:
                continue
            principal = make_principal(inbound.principal)
            flying[principal] += 1
            named = " ".join(part for part in client.introduction if part)
            if named:
                clients.setdefault(principal, {})[named] = None
        return [
            PrincipalLine(
                principal=principal,
                clients=tuple(clients.get(principal, ())),
                sessions=sessions.get(principal, 0),
                in_flight=flying[principal],
            )
            for principal in sorted({*sessions, *flying})
        ]

    def profiles(self) -> Sequence[ProfileLine]:
        """The profiles of the gateway."""
        layers = self._host.core.pipeline.profiles.layers
        return [
            ProfileLine(
                name=name,
                servers=profile.servers,
                tools=(*profile.include, *(f"!{glob}" for glob in profile.exclude)),
                rules=sum(len(layer.rules) for layer in layers.get(name, ())),
                policy=profile.policy,
            )
            for name, profile in self._get_options().profiles.items()
        ]
