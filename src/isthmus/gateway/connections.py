"""Connections of a gateway's callers to servers: which of them share one, and which have their own.

A server since 2026-07-28 is told with every call who calls, so that all callers share one connection.
One of up to 2025-11-25 settles that once for a connection and keeps state in it: there each session of a
client has its own, and a client without sessions that can be asked borrows one for one call at a time, so
that what the server asks can be nobody else's.
"""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.bridge.upstream import askable_part, asks_in_result, is_askable
from isthmus.gateway.connection_places import ConnectionPlace, ConnectionPlaces
from isthmus.host.model.gateway_options import GatewayLimits
from isthmus.wire.jsonrpc import encode

if TYPE_CHECKING:
    from isthmus.bridge.forwarded import ForwardedCall
    from isthmus.host.host import Host
    from isthmus.host.supervisor.connection import ServerConnection
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.runtime.inbound import Inbound


PoolKey: TypeAlias = tuple[str, str, bytes]
"""A server, a principal, and what its client can be asked."""

MAX_TASK_DRAIN_S = 86_400.0  # that a connection of a session that has ended is kept for its tasks


class CallerConnections:
    """Chooses the connection of each call: the isolation key under which the host keeps it.

    Args:
        host: keeps the connections.
        get_limits: gives the limits in force.

    Attributes:
        places: the connections that are not everybody's.
    """

    def __init__(self, host: "Host", get_limits: Callable[[], GatewayLimits]) -> None:
        self._host = host
        self._numbers = itertools.count(1)
        self._sessions: dict[Any, str] = {}
        self._pools: dict[PoolKey, list[str]] = {}
        self._pool_of: dict[str, PoolKey] = {}
        self.places = ConnectionPlaces(
            get_limits, self._close, is_busy=self._is_busy, on_closing=self._forget_pooled
        )

    @asynccontextmanager
    async def borrow(
        self, server: str, inbound: "Inbound", principal: str, call: "ForwardedCall"
    ) -> AsyncIterator[str]:
        """The isolation key for one call that does not share a connection.

        Args:
            server: the server's name.
            inbound: the request of the client.
            principal: who calls.
            call: the call.

        Raises:
            Unknown: there is no such server.
            Exhausted: there is no place for one more connection.
        """
        instance = self._host.parts.supervisor.server(server).entry.options.instance
        pooled: PoolKey | None = None
        if instance == "per-user":
            key = principal
        elif not asks_in_result(inbound.caller.revision):
            key = self._find_session(inbound)
        else:
            pooled = server, principal, encode(askable_part(inbound.caller.capabilities))
            key = self._take_pooled(pooled)
        place = await self.places.take(server, key, principal, call)
        try:
            yield key
        finally:
            if pooled is not None and place.closing is None:
                self._pools.setdefault(pooled, []).append(key)
                self._pool_of[key] = pooled
            self.places.leave(place, call)

    async def shares(self, server: str, inbound: "Inbound", principal: str) -> bool:
        """Whether one call uses the connection of all, under the key that is empty; else see :meth:`borrow`.

        Raises:
            Unknown: there is no such server.
            ServerUnavailable: it cannot be reached.
        """
        hosted = self._host.parts.supervisor.server(server)
        instance = hosted.entry.options.instance
        if instance in {"shared", "per-user"}:
            return instance == "shared"
        return await self._shares(hosted, inbound, principal)

    async def _shares(self, hosted: "HostedServer", inbound: "Inbound", principal: str) -> bool:
        """Whether a caller may share the connection of all, or of all who show the same account."""
        if hosted.entry.options.instance == "per-session":
            return False
        parts = self._host.parts
        key = self._host.accounts.find_isolation(hosted.entry, principal, "")
        connection = hosted.connections.get(key)
        shared = None if connection is None else connection.client
        if shared is None:
            async with parts.supervisor.use(hosted.entry.name, key, again=True) as shared:
                pass
        if asks_in_result(shared.revision):
            return True
        caller = inbound.caller
        return (
            asks_in_result(caller.revision)
            and inbound.principal is None
            and not is_askable(caller.capabilities)
        )

    # Connections of callers that have no sessions

    def _take_pooled(self, pooled: PoolKey) -> str:
        """The key of a connection that nobody uses just now, or of another one."""
        idle = self._pools.get(pooled)
        if not idle:
            return f"call:{next(self._numbers)}"
        key = idle.pop()
        self._forget_key(pooled, key)
        return key

    def _forget_pooled(self, place: ConnectionPlace) -> None:
        pooled = self._pool_of.get(place.key)
        if pooled is not None:
            self._pools[pooled].remove(place.key)
            self._forget_key(pooled, place.key)

    def _forget_key(self, pooled: PoolKey, key: str) -> None:
        self._pool_of.pop(key, None)
        if not self._pools[pooled]:
            del self._pools[pooled]

    # Connections of sessions

    def _find_session(self, inbound: "Inbound") -> str:
        """The key of a session's own connections; they end with it."""
        link = inbound.link
        key = self._sessions.get(link)
        if key is None:
            key = self._sessions[link] = f"session:{next(self._numbers)}"
            link.on_close(lambda: self._end_session(link))
        return key

    def _end_session(self, link: Any) -> None:
        key = self._sessions.pop(link, None)
        if key is not None:
            self.places.end(key)

    # What places need

    def _is_busy(self, server: str, key: str) -> bool:
        connection = self._find_connection(server, key)
        return connection is not None and connection.in_flight > 0

    def _find_connection(self, server: str, key: str) -> "ServerConnection | None":
        hosted = self._host.parts.supervisor.servers.get(server)
        connections = {} if hosted is None else hosted.connections
        # where it shows an account, the key begins with whose that is
        found = [one for own, one in connections.items() if own.endswith(f" {key}")]
        return connections.get(key) or next(iter(found), None)

    def _has_task(self, server: str, key: str) -> bool:
        """Whether a call on a connection has been answered with a task, which outlives its session."""
        calls = self._host.parts.calls
        flying = calls.pipeline.flying.at(server, key)
        return any(getattr(calls.clients.find(one.id), "is_task", False) for one in flying)

    async def _close(self, server: str, key: str) -> None:
        connection = self._find_connection(server, key)
        if connection is None:
            return  # never opened, or closed with its server
        await connection.stop(drain=MAX_TASK_DRAIN_S if self._has_task(server, key) else 0.0)
        hosted = self._host.parts.supervisor.servers.get(server)
        key = connection.isolation
        if hosted is not None and hosted.connections.get(key) is connection:
            del hosted.connections[key]

    async def close(self) -> None:
        """Wait for connections that are being closed; the host closes the rest."""
        await self.places.close()
