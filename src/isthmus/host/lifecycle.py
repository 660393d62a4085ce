"""Lifecycle of a host's servers: what the host does when one comes, changes, moves or goes.

Its starts, ends and restarts stand in the audit log; what it has is learned; where its folders are
others it is told of them, or started anew.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from isthmus.errors import AuthRefused, IsthmusError
from isthmus.host.accounts.ownership import LOCAL_PRINCIPAL, read_owner
from isthmus.host.model.errors import ConfigError
from isthmus.host.model.row import AuditRow
from isthmus.host.supervisor.identity import identify_server
from isthmus.host.supervisor.states import LIVE_STATES, ConnectionState

if TYPE_CHECKING:
    from isthmus.client.client import Client
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.audit.log import AuditLog
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.confinement.roots import RootGrants
    from isthmus.host.pipeline.servers import KnownServers
    from isthmus.host.supervisor.connection import ServerConnection
    from isthmus.host.supervisor.supervisor import Supervisor

FAILED_STATES: frozenset[ConnectionState] = frozenset(
    {"backoff", "failed", "needs_auth", "quarantined"}
)


class BackgroundTasks:
    """Tasks that go on as long as the host is open.

    Attributes:
        tasks: those that are not done.
    """

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin something; it is cancelled when the host closes."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel what is not done, and wait for its end."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class ServerLifecycle:
    """Reacts to what the supervisor and the file system tell of servers.

    Args:
        supervisor: keeps the servers.
        servers: knows their tools.
        catalog: knows their lists.
        audit: where their starts and ends are written down.
        background: runs what takes time.
        accounts: are told what becomes of those that connections show.
    """

    def __init__(  # noqa: PLR0917 - the parts that it stands between
        self,
        supervisor: "Supervisor",
        servers: "KnownServers",
        catalog: "HostCatalog",
        audit: "AuditLog",
        background: BackgroundTasks,
        accounts: "Accounts",
    ) -> None:
        self._supervisor = supervisor
        self._servers = servers
        self._catalog = catalog
        self._audit = audit
        self._background = background
        self._accounts = accounts

    def on_ready(self, server: str, client: "Client") -> None:
        """The connection that all share is open: learn what the server has."""
        self._background.start(self._learn(server, client))

    async def _learn(self, server: str, client: "Client") -> None:
        with suppress(IsthmusError):  # what is wrong with a list stands in the catalog
            await self._servers.learn(server, client)

    def on_gone(self, server: str, isolation: str = "") -> None:
        """A connection is no more."""
        self._servers.forget_connection(server, isolation)

    def on_changed(self, server: str, kind: str, isolation: str = "") -> None:
        """A list of the server is another one.

        It may say so only on the connection of a call, and not on the one that lists are read from.
        """
        owner = read_owner(isolation)
        for key in {isolation, "" if owner == LOCAL_PRINCIPAL else owner}:
            self._catalog.changed(server, kind, key)

    def on_switched(self, server: str, on: bool) -> None:
        """Somebody has switched the server on or off."""
        self._catalog.switch(server, on=on)

    def on_moved(self, connection: "ServerConnection", before: ConnectionState) -> None:
        """A connection has come into another state."""
        row = make_server_row(connection, before)
        if row is not None:
            self._audit.note(row)
        self._note_account(connection)

    def _note_account(self, connection: "ServerConnection") -> None:
        """Note what becomes of the account that a connection shows."""
        accounts, name, isolation = self._accounts, connection.entry.name, connection.isolation
        if not accounts.is_noted(connection.entry, isolation):
            return
        if connection.state == "ready":
            self._background.start(accounts.note_ready(name, isolation))
        elif isinstance(connection.failure, AuthRefused):
            self._background.start(accounts.note_refused(name, isolation))

    def drop_account(self, server: str, principal: str) -> None:
        """End the connections that show somebody's account: it is another one now, or none."""
        hosted = self._supervisor.servers.get(server)
        for isolation, connection in list(hosted.connections.items() if hosted else ()):
            if read_owner(isolation) == principal and connection.state in LIVE_STATES:
                self._background.start(connection.stop(drain=0.0))
        self._catalog.forget_failures(server)

    def on_roots_changed(self, server: str) -> None:
        """A server may be told of other folders: a confined one is started anew to get them."""
        hosted = self._supervisor.servers.get(server)
        if hosted is None:
            return
        if hosted.entry.options.sandbox is not None:
            self._background.start(self._restart(server))  # folders are bound when it is started
            return
        for connection in hosted.connections.values():
            if connection.client is not None:
                self._background.start(tell_of_roots(connection.client))

    async def _restart(self, server: str) -> None:
        with suppress(IsthmusError):
            await self._supervisor.server(server).restart()


async def tell_of_roots(client: "Client") -> None:
    """Tell a server that its roots are others now."""
    with suppress(IsthmusError):
        await client.roots_changed()


async def watch_roots(roots: "RootGrants") -> None:
    """Follow the folders that are declared as roots, where that can be done."""
    with suppress(ConfigError):  # without watchfiles, roots are as they were when it began
        await roots.watch()


def make_server_row(connection: "ServerConnection", before: ConnectionState) -> AuditRow | None:
    """The row for a connection that came into another state; None where that is no news.

    Args:
        connection: in its new state.
        before: the state that it was in.
    """
    action = _name_transition(connection, before)
    if not action:
        return None
    entry, client = connection.entry, connection.client
    failed = connection.state in FAILED_STATES
    detail = {
        "state": connection.state,
        "before": before,
        "starts": connection.starts,
        "pid": connection.pid,
        "isolation": connection.isolation,
    }
    return AuditRow(
        kind="server",
        action=action,
        server=entry.name,
        object=entry.name,
        identity=identify_server(entry),
        era="" if client is None else client.revision.name,
        transport=entry.kind if entry.command or entry.url else "memory",
        failed=failed,
        error=connection.error if failed else "",
        detail={name: value for name, value in detail.items() if value not in (None, "")},
    )


def _name_transition(connection: "ServerConnection", before: ConnectionState) -> str:
    """The change of a connection as an action of the audit log; empty where it is no news."""
    state = connection.state
    if state == "ready" and before == "connecting":
        return "server.start" if connection.starts <= 1 else "server.restart"
    if state in FAILED_STATES:
        return "server.lost" if before in LIVE_STATES else "server.fail"
    if state == "idle" and before == "draining":
        return "server.stop"
    if state == "disabled":
        return "server.disable"
    return "server.enable" if before == "disabled" else ""
