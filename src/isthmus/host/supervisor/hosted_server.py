"""Hosted server: one server of the configuration, with a connection per isolation key."""

import asyncio
from collections import deque
from reprlib import Repr

from isthmus.core.redaction.lines import redact_command, redact_log
from isthmus.core.redaction.texts import redact_text
from isthmus.core.redaction.values import Redactor
from isthmus.core.text import clean_text
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import ServerUnavailable
from isthmus.host.model.view import ServerStatus
from isthmus.host.supervisor.connection import DRAIN_S, ConnectionHooks, ServerConnection
from isthmus.host.supervisor.identity import identify_server
from isthmus.host.supervisor.states import LIVE_STATES, ConnectionState
from isthmus.transports.command import Command
from isthmus.transports.http.client.address import redact_url
from isthmus.wire import LogMessageParams

MAX_CONNECTIONS = 256  # of one server, for different users or sessions
MAX_LOG_LINES = 200
MAX_LOG_CHARS = 500
MAX_NAME_CHARS = 100
# the beginning of any JSON, in a time that does not grow with the rest
BRIEF_REPR = Repr()
BRIEF_REPR.maxlevel = 10
BRIEF_REPR.maxdict = BRIEF_REPR.maxlist = BRIEF_REPR.maxstring = BRIEF_REPR.maxlong = MAX_LOG_CHARS

# a server with several connections has the first of these states
STATE_PRECEDENCE: tuple[ConnectionState, ...] = (
    "failed", "quarantined", "needs_auth", "backoff", "degraded", "draining", "connecting", "ready",
    "idle", "disabled",
)  # fmt: skip


class HostedServer:
    """One server: its entry, and a connection per isolation key.

    Args:
        entry: what the configuration says about it.
        hooks: what connections are made with.

    Attributes:
        connections: the connections by isolation key; those that are stopped make room.
        before: is over when the server that stood under this name before has ended, or has had its
            time to: until then this one waits.
    """

    def __init__(
        self, entry: ServerEntry, hooks: ConnectionHooks, before: asyncio.Task[None] | None = None
    ) -> None:
        self.entry = entry
        self.connections: dict[str, ServerConnection] = {}
        self.before = before
        self._hooks = hooks
        self._log: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self._enabled = entry.options.enabled and entry.trusted
        self._removed = False
        self._get_connection("")

    def _get_connection(self, isolation: str) -> ServerConnection:
        connection = self.connections.get(isolation)
        if connection is None:
            if len(self.connections) >= MAX_CONNECTIONS:
                self._make_room()
            connection = self.connections[isolation] = ServerConnection(
                self.entry, isolation, self._hooks
            )
            if not self._enabled:
                connection.enable(on=False)
        return connection

    def _make_room(self) -> None:
        for key, connection in list(self.connections.items()):
            if key and connection.state in {"idle", "disabled"} and not connection.in_flight:
                del self.connections[key]
                return
        raise ServerUnavailable(
            f"{self.entry.name} has {MAX_CONNECTIONS} connections for different users or sessions, and "
            "none of them is free",
            server=self.entry.name,
            state=self.state,
        )

    async def connection(self, isolation: str) -> ServerConnection:
        """The connection for an isolation key, as soon as the server before this one is gone.

        Raises:
            ServerUnavailable: there are too many, or it was removed by then.
        """
        if self.before is not None and not self.before.done():
            await asyncio.wait([self.before])
        if self._removed and isolation not in self.connections:  # a new one would never be closed
            raise self.connections[""].make_unavailable()
        return self._get_connection(isolation)

    # Status

    @property
    def state(self) -> ConnectionState:
        """The state: of several connections the one that tells most."""
        states = {one.state for one in self.connections.values()}
        return next(state for state in STATE_PRECEDENCE if state in states)

    @property
    def error(self) -> str:
        """The last error; empty if there was none."""
        if not self.entry.trusted and not self._enabled:
            return f"{self.entry.source} may not start anything until its folder is trusted"
        return next((one.error for one in self.connections.values() if one.error), "")

    @property
    def stderr(self) -> list[str]:
        """The last lines it wrote to standard error, fit to be shown."""
        return [text for one in self.connections.values() for text in one.stderr][-MAX_LOG_LINES:]

    @property
    def log(self) -> list[str]:
        """Its last log messages, a line each, and what it wrote to standard error after them."""
        return [redact_text(redact_log(line), chance=False) for line in (*self._log, *self.stderr)]

    @property
    def in_flight(self) -> int:
        """The number of calls in flight."""
        return sum(one.in_flight for one in self.connections.values())

    @property
    def identity(self) -> str:
        """The identity that grants are bound to: the program as it is now, or the origin."""
        return identify_server(self.entry)

    def status(self) -> ServerStatus:
        """The status for people: nothing in it is secret."""
        state = self.state
        connection = next(one for one in self.connections.values() if one.state == state)
        client = connection.client
        up = client is not None and connection.state in LIVE_STATES
        return ServerStatus(
            name=self.entry.name,
            state=state,
            error=self.error if state not in LIVE_STATES else "",
            where=describe_place(self.entry),
            revision=client.revision.name if client is not None and up else "",
            said=clean_text(
                f"{client.info.name[:MAX_NAME_CHARS]} {client.info.version[:MAX_NAME_CHARS]}".strip()
            )
            if client and up
            else "",
            in_flight=self.in_flight,
            restarts=max(0, connection.starts - 1),
            since=connection.since,
            retry_at=self._hooks.wall() + connection.wait_s if state == "backoff" else None,
            pid=connection.pid,
            connections=sum(one.state in LIVE_STATES for one in self.connections.values()),
            trust=self.entry.options.trust,
            source=self.entry.source,
        )

    def keep_log(self, message: LogMessageParams) -> None:
        """Keep a log message of the server, up to :data:`MAX_LOG_LINES`."""
        said = message.data if isinstance(message.data, str) else BRIEF_REPR.repr(message.data)
        about = "" if not isinstance(message.logger, str) else f" {message.logger[:MAX_NAME_CHARS]}"
        self._log.append(
            clean_text(f"{message.level}{about}: {said[:MAX_LOG_CHARS]}").replace("\n", " ")
        )

    # Starts and stops

    async def start(self) -> None:
        """Start the server, whatever went wrong before, and wait for success or failure.

        Raises:
            ServerUnavailable: it did not come up; the message says why.
        """
        connection = await self.connection("")
        connection.start()
        if await connection.wait_until_settled() not in LIVE_STATES:
            raise connection.make_unavailable()

    async def stop(self, *, drain: float = DRAIN_S) -> None:
        """Close the connections once calls in flight have ended; the next use starts the server."""
        await self._each([one.stop(drain=drain) for one in self.connections.values()])

    drain = stop

    async def restart(self, *, drain: float = DRAIN_S) -> None:
        """Stop the server and start it again; calls that come meanwhile wait.

        Raises:
            ServerUnavailable: it did not come up again.
        """
        up = [o for o in self.connections.values() if o.state in LIVE_STATES or not o.isolation]
        await self._each([one.stop(drain=drain, again=True) for one in up])
        await self.start()

    async def disable(self, *, drain: float = DRAIN_S) -> None:
        """Stop the server, and start it for nobody."""
        self._enabled = False
        self._hooks.on_switched(self.entry, False)
        for connection in self.connections.values():
            connection.enable(on=False)  # so that no call starts it again meanwhile
        await self.stop(drain=drain)
        for connection in self.connections.values():
            connection.enable(on=self._enabled)

    async def enable(self) -> None:
        """Allow starts again."""
        self._enabled = True
        self._hooks.on_switched(self.entry, True)
        for connection in self.connections.values():
            connection.enable(on=True)

    async def remove(self, *, drain: float = DRAIN_S) -> None:
        """Stop the server for good."""
        self._removed = True
        await self._each([one.remove(drain=drain) for one in self.connections.values()])

    async def _each(self, work: list[object]) -> None:
        await asyncio.gather(*work)  # type: ignore[call-overload]  # coroutines that give nothing


def describe_place(entry: ServerEntry) -> str:
    """Describe where a server is: its command line or its URL, with no secret in either."""
    if not entry.command:
        return Redactor().text(redact_url(entry.url)) if entry.url else "in this process"
    return str(Command(*Redactor().redact(redact_command(entry.command))))
