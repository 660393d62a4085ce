"""Supervisor of all servers: it hands out their clients, and follows the configuration."""

import asyncio
import random as randomness
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec import structs

from isthmus.client.client import Client
from isthmus.errors import AuthRequired, CallTimedOut, ConnectionLost, OutOfPhase
from isthmus.host.model.entries import ConfigDiff, HostConfig, ServerEntry, diff_configs
from isthmus.host.model.errors import AccountRequired, OutcomeUnknown, Unknown
from isthmus.host.model.events import HostEvent, HostNotice, ServerMoved
from isthmus.host.supervisor.connection import (
    DRAIN_S,
    ConnectionHooks,
    ServerConnection,
    make_connect_error,
)
from isthmus.host.supervisor.hosted_server import HostedServer
from isthmus.host.supervisor.states import ConnectionState

R = TypeVar("R")


class Supervisor:
    """Keeps a connection per server and isolation key, and hands out its client.

    Example::

        async with Supervisor(config, client_for) as supervisor:
            async with supervisor.use("files") as client:
                await client.call_tool("read_file", {"path": "notes.txt"})

    Args:
        config: which servers there are.
        client_for: makes the client for an entry and an isolation key; it is not open yet.
        consented: whether the user has agreed that a server is started as it is now; may ask them.
        on_event: told of what happens to servers, for people.
        on_ready: told of a server's name and its new client, which is open; for the connection that
            all share.
        on_gone: told of the name and the isolation key of a client that is no more; the server may
            come back.
        on_removed: told of the name of a server that is no more, or is another one now.
        on_changed: told of a name, what has changed there (``tools``, ``prompts``, ``resources``),
            and on whose connection that was said.
        on_switched: told of a name, and whether the server was switched on or off by somebody.
        on_moved: told of a connection that came into another state, and the state before.
        clock: gives seconds that never go back; the event loop's by default.
        random: gives numbers from 0 up to, but not including, 1.
    """

    def __init__(
        self,
        config: HostConfig,
        client_for: Callable[[ServerEntry, str], Client],
        *,
        consented: Callable[[ServerEntry], bool | Awaitable[bool]] = lambda _entry: True,
        on_event: Callable[[HostEvent], None] = lambda _event: None,
        on_ready: Callable[[str, Client], None] = lambda _name, _client: None,
        on_gone: Callable[[str, str], None] = lambda _name, _isolation: None,
        on_removed: Callable[[str], None] = lambda _name: None,
        on_changed: Callable[[str, str, str], None] = lambda _name, _kind, _isolation: None,
        on_switched: Callable[[str, bool], None] = lambda _name, _on: None,
        on_moved: Callable[[ServerConnection, ConnectionState], None] = lambda _line, _before: None,
        clock: Callable[[], float] | None = None,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.config = config
        self.on_ready = on_ready
        self.on_gone = on_gone
        self.on_removed = on_removed
        self.on_changed = on_changed
        self.on_switched = on_switched
        self.on_moved = on_moved
        self._on_event = on_event
        self._hooks = ConnectionHooks(
            client_for=client_for,
            consented=consented,
            clock=clock or (lambda: asyncio.get_running_loop().time()),
            random=random,
            on_moved=self._on_moved,
            on_ready=self._on_ready,
            on_gone=self._on_gone,
            on_switched=self._on_switched,
        )
        self._servers: dict[str, HostedServer] = {}
        self._drain = float("inf")
        self._old: set[HostedServer] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        for name, entry in config.servers.items():
            self._servers[name] = HostedServer(entry, self._hooks)

    @property
    def servers(self) -> Mapping[str, HostedServer]:
        """The servers by name."""
        return self._servers

    def server(self, name: str) -> HostedServer:
        """A server by its name.

        Raises:
            Unknown: there is none of this name.
        """
        server = self._servers.get(name)
        if server is None:
            broken = self.config.broken.get(name)
            known = ", ".join(self._servers) or "none"
            raise Unknown(broken or f"there is no server {name!r}; there are: {known}")
        return server

    # Opening and closing

    async def open(self) -> None:
        """Start the servers with ``start = "eager"``; does not wait for them."""
        for server in self._servers.values():
            self._begin(server)

    def _begin(self, server: HostedServer) -> None:
        options = server.entry.options
        if options.start == "eager" and options.enabled and server.entry.trusted:
            self._run_aside(self._start_server(server))

    @staticmethod
    async def _start_server(server: HostedServer) -> None:
        connection = await server.connection("")
        connection.start()

    async def close(self, *, drain: float = 0.0) -> None:
        """End every connection; calls in flight end with ``OutcomeUnknown``. Safe to call twice."""
        self._drain = drain
        everybody = [*self._servers.values(), *self._old]
        work = [server.remove(drain=drain) for server in everybody]
        await asyncio.gather(*work, *self._leaving, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _run_aside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    def find_connection(self, name: str, isolation: str, client: Client) -> ServerConnection | None:
        """The connection that a client serves, also at a server that only ends its calls by now."""
        for server in (self._servers.get(name), *self._old):
            connection = None if server is None else server.connections.get(isolation)
            if connection is not None and connection.client is client:
                return connection
        return None

    # Uses by calls

    def use(self, name: str, isolation: str = "", *, again: bool = False) -> "ConnectionUse":
        """The client of a server, started where need be: ``async with supervisor.use(…) as client``.

        As long as it is used the connection is not closed for being idle, and a drain waits for it.

        Args:
            name: the server.
            isolation: whose connection; empty for the one that all share.
            again: what is done with it may be done again: a connection that breaks is
                ``ConnectionLost`` then, and not ``OutcomeUnknown``.

        Raises:
            Unknown: there is no such server.
            ServerUnavailable: it cannot be reached; nothing was sent.
            OutcomeUnknown: the connection broke while it was used. Nothing is sent again.
        """
        return ConnectionUse(self, name, isolation, again=again)

    async def run_repeatable(
        self, name: str, isolation: str, work: Callable[[Client], Awaitable[R]]
    ) -> R:
        """Do what may be done twice, such as a list or a read: once more, if a connection breaks.

        Raises:
            ServerUnavailable: it cannot be reached.
            ConnectionLost: the new connection broke, too.
        """
        try:
            async with self.use(name, isolation, again=True) as client:
                return await work(client)
        except ConnectionLost:
            async with self.use(name, isolation, again=True) as client:
                return await work(client)

    # Events

    def changed(self, name: str, kind: str, isolation: str = "") -> None:
        """Announce that a list of a server has changed."""
        if name in self._servers:
            self.on_changed(name, kind, isolation)

    def _on_switched(self, entry: ServerEntry, on: bool) -> None:
        server = self._servers.get(entry.name)
        if server is not None and server.entry is entry:
            self.on_switched(entry.name, on)

    def _on_moved(self, connection: ServerConnection, before: ConnectionState) -> None:
        self.on_moved(connection, before)
        name, state, error = connection.entry.name, connection.state, connection.error
        self._on_event(ServerMoved(server=name, state=state, error=error))

    def _on_ready(self, connection: ServerConnection, client: Client) -> None:
        if not connection.isolation:
            self.on_ready(connection.entry.name, client)

    def _on_gone(self, connection: ServerConnection) -> None:
        server = self._servers.get(connection.entry.name)
        now = None if server is None else server.connections.get(connection.isolation)
        # else another one has come meanwhile
        if now is None or now is connection or now.client is None:
            self.on_gone(connection.entry.name, connection.isolation)

    # Reloading

    async def reload(self, config: HostConfig) -> ConfigDiff:
        """Follow another configuration: stop the servers it lacks, start its new ones.

        A server whose entry is now broken stays as it was. What is in flight at one that goes ends
        as it would have: it has as long as a call may take in all (``timeouts.total``), and this
        does not wait for it.

        Returns:
            What is different.
        """
        async with self._reloading:
            diff = diff_configs(self.config, config)
            kept = {
                name: entry for name, entry in self.config.servers.items() if name in config.broken
            }
            self.config = structs.replace(config, servers={**kept, **config.servers})
            for name in (*diff.removed, *diff.changed):
                old = self._servers.pop(name)
                self._old.add(old)
                leaving = self._run_aside(self._remove_old(old))
                self.on_removed(name)
                if name in diff.changed:
                    before = self._run_aside(wait_for_end(leaving, DRAIN_S))
                    new = HostedServer(config.servers[name], self._hooks, before)
                    self._servers[name] = new
            for name in diff.added:
                self._servers[name] = HostedServer(config.servers[name], self._hooks)
            for name in (*diff.added, *diff.changed):
                self._begin(self._servers[name])
            if diff:
                self._on_event(HostNotice(about="config", text=str(diff)))
            for name in diff.broken:
                self._on_event(HostNotice(about="config", server=name, text=config.broken[name]))
            return diff

    async def _remove_old(self, old: HostedServer) -> None:
        try:
            await old.remove(drain=min(self._drain, old.entry.options.timeouts.total))
        finally:
            self._old.discard(old)


async def wait_for_end(task: asyncio.Task[None], seconds: float) -> None:
    """Wait for the end of a task, and no longer than so many seconds."""
    await asyncio.wait([task], timeout=seconds)


class ConnectionUse:
    """One use of a server's connection; see :meth:`Supervisor.use`."""

    __slots__ = ("_again", "_connection", "_isolation", "_name", "_supervisor", "client")

    def __init__(self, supervisor: Supervisor, name: str, isolation: str, *, again: bool) -> None:
        self._supervisor = supervisor
        self._name = name
        self._isolation = isolation
        self._again = again
        self._connection: ServerConnection | None = None
        self.client: Client | None = None

    async def __aenter__(self) -> Client:
        server = self._supervisor.server(self._name)
        connection = server.connections.get(self._isolation)
        if connection is None or server.before is not None:
            connection = await server.connection(self._isolation)
        connection.in_flight += 1
        try:
            self.client = client = await connection.wait_until_ready()
        except BaseException:
            connection.release()
            raise
        self._connection = connection
        return client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        connection = self._connection
        if connection is None:
            return
        connection.release()
        if error is None:
            return
        if isinstance(error, ConnectionLost | CallTimedOut) and connection.client is self.client:
            connection.probe_soon()  # is it slow, or not there any more?
        if isinstance(error, ConnectionLost):
            if error.sent and not self._again:
                raise OutcomeUnknown(
                    f"{self._name} was asked, and the connection broke before it answered: nobody "
                    f"can tell whether it was done, and it is not sent again. {error}"
                ) from error
            if not error.sent and not self._again:
                raise connection.make_unavailable(str(error)) from error
        elif isinstance(error, AuthRequired):
            connection.drop_unauthorized(self.client, error)
            if isinstance(error, AccountRequired):
                raise make_connect_error(error) from error
        elif isinstance(error, OutOfPhase) and connection.client is not self.client:
            raise connection.make_unavailable() from error  # it ended before anything was sent
