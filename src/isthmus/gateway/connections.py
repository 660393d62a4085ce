"""Connections of a gateway's callers to servers: which of them share one, and which have their own.

A server since 2026-07-28 is told with every call who calls, so that all callers share one connection.
One of up to 2025-11-25 settles that once for a connection and keeps state in it: there each session of a
client has its own, and a client without sessions that can be asked borrows one for one call at a time, so
that what the server asks can be nobody else's.
"""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from isthmus.bridge.upstream import askable_part, asks_in_result, is_askable
from isthmus.gateway.principals import make_owner_key
from isthmus.wire.jsonrpc import encode

if TYPE_CHECKING:
    from isthmus.host.host import Host
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.runtime.inbound import Inbound


class CallerConnections:
    """Chooses the connection of each call: the isolation key under which the host keeps it.

    Args:
        host: keeps the connections.
    """

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._numbers = itertools.count(1)
        self._sessions: dict[int, str] = {}
        self._idle: dict[tuple[str, str, bytes], list[str]] = {}

    @asynccontextmanager
    async def borrow(self, server: str, inbound: "Inbound", principal: str) -> AsyncIterator[str]:
        """The isolation key for one call.

        Args:
            server: the server's name.
            inbound: the request of the client.
            principal: who calls.

        Raises:
            Unknown: there is no such server.
            ServerUnavailable: it cannot be reached.
        """
        hosted = self._host.parts.supervisor.server(server)
        instance = hosted.entry.options.instance
        if instance == "per-user":
            yield principal
        elif instance == "shared" or await self._shares(hosted, inbound):
            yield ""
        elif not asks_in_result(inbound.caller.revision):
            yield self._find_session(inbound)
        else:
            key = (
                server,
                make_owner_key(inbound.principal),
                encode(askable_part(inbound.caller.capabilities)),
            )
            idle = self._idle.setdefault(key, [])
            own = idle.pop() if idle else f"call:{next(self._numbers)}"
            try:
                yield own
            finally:
                self._idle.setdefault(key, []).append(own)

    async def _shares(self, hosted: "HostedServer", inbound: "Inbound") -> bool:
        """Whether a caller may share the connection of all."""
        if hosted.entry.options.instance == "per-session":
            return False
        shared = hosted.connections[""].client
        if shared is None:
            supervisor = self._host.parts.supervisor
            async with supervisor.use(hosted.entry.name, "", again=True) as shared:
                pass
        if asks_in_result(shared.revision):
            return True
        caller = inbound.caller
        return (
            asks_in_result(caller.revision)
            and inbound.principal is None
            and not is_askable(caller.capabilities)
        )

    def _find_session(self, inbound: "Inbound") -> str:
        """The key of a session's own connections; they end with it."""
        link = inbound.link
        key = self._sessions.get(id(link))
        if key is None:
            key = self._sessions[id(link)] = f"session:{next(self._numbers)}"
            link.on_close(lambda: self._end_session(id(link)))
        return key

    def _end_session(self, link: int) -> None:
        key = self._sessions.pop(link, None)
        if key is not None:
            self._host.beside(self._close(key))

    async def _close(self, key: str) -> None:
        for hosted in list(self._host.servers.values()):
            connection = hosted.connections.get(key)
            if connection is not None:
                await connection.stop(drain=0.0)
                hosted.connections.pop(key, None)
