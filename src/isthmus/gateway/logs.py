"""Log messages of servers for a gateway's callers: each server is asked for the lowest level that is wanted.

A request since 2026-07-28 says its level itself. Up to 2025-11-25 a connection has one: the lowest of those
whose calls are under way on it, and of the host, which keeps a log of its own. Whoever wants less is told
less: every message is held against the level of the caller that gets it.
"""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import UNSET

from isthmus.core.caller import Caller
from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_warning
from isthmus.server.asking.logging import DEFAULT_LEVEL, SEVERITY
from isthmus.wire import LogLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isthmus.client.client import Client
    from isthmus.gateway.calls import GatewayCall
    from isthmus.host.host import Host

HOST_LEVEL: LogLevel = "info"  # which a host asks for its own log


def find_level(caller: Caller) -> LogLevel:
    """The level to ask of a server on behalf of a caller, whose own may be a higher one."""
    level = caller.log_level
    if level is None and caller.revision.allows("client", "logging/setLevel"):
        level = DEFAULT_LEVEL  # of a session that never said which level it wants
    return HOST_LEVEL if level is None else find_lowest(HOST_LEVEL, level)


def find_lowest(*levels: LogLevel) -> LogLevel:
    """The lowest of some levels: what is as severe or more is wanted."""
    return min(levels, key=SEVERITY.__getitem__)


class ConnectionLevels:
    """The levels that connections up to 2025-11-25 were asked for.

    Args:
        host: keeps the connections.
    """

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._asked: WeakKeyDictionary[Client, LogLevel] = WeakKeyDictionary()

    async def follow(self, server: str, isolation: str, call: "GatewayCall") -> None:
        """Ask for the lowest level of all whose calls share a connection, one of which begins.

        Args:
            server: the server's name.
            isolation: whose connection it is.
            call: the call that begins.
        """
        parts = self._host.parts
        hosted = parts.supervisor.servers.get(server)
        connection = None if hosted is None else hosted.connections.get(isolation)
        client = None if connection is None else connection.client
        asked = HOST_LEVEL if client is None else self._asked.get(client, HOST_LEVEL)
        level = call.log_level
        if level == asked == HOST_LEVEL:
            return  # the way of nearly every call
        clients: Mapping[str, object] = parts.servers.clients.all
        for attempt in parts.calls.pipeline.flying.at(server, isolation):
            other = clients.get(attempt.id)
            level = find_lowest(level, getattr(other, "log_level", HOST_LEVEL))
        if level == asked:
            return
        if isolation:
            parts.servers.clients.keep_facts(isolation, call)  # this may open the connection
        try:
            async with parts.supervisor.use(server, isolation, again=True) as client:
                told = client.revision.allows("client", "logging/setLevel")
                if told and client.capabilities.logging is not UNSET:
                    self._asked[client] = level
                    await client.set_log_level(level)
        except IsthmusError as error:  # the call itself says what is wrong
            log_warning("%s was not asked for log messages of level %s: %s", server, level, error)
