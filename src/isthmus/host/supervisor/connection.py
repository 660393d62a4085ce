"""One connection to a server, for one isolation key: what starts it, keeps it and ends it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from isthmus.client.client import Client
from isthmus.core.redaction.lines import redact_log
from isthmus.core.redaction.texts import redact_text
from isthmus.core.text import clean_text
from isthmus.errors import (
    AuthRequired,
    ConnectionLost,
    IsthmusError,
    NotInRevision,
    ScopeShortfall,
    UsageError,
)
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import ConfigError, Denied, ServerUnavailable
from isthmus.host.supervisor.states import (
    LIVE_STATES,
    ConnectionSignal,
    ConnectionState,
    RestartBackoff,
    next_state,
)

__all__ = ["DRAIN_S", "ConnectionHooks", "ServerConnection"]

DRAIN_S = 30.0
"""Seconds that calls in flight have to end in, when their connection is to be closed."""

PROBE_INTERVAL_S = 30.0
"""Seconds without a call after which a server is asked whether it is there."""

PROBE_TIMEOUT_S = 5.0
"""The same for one that has left something without an answer, and how long an answer may take."""

MAX_MISSED_PROBES = 3
"""So many probes without an answer in a row, and the connection counts as lost."""

MAX_CALL_WAIT_S = 2.0
"""Seconds until the next attempt that a call waits for; where it is longer, the call fails."""

NEVER = float("inf")

MAX_ERROR_CHARS = 2_000
"""Characters kept of an error."""


class ConnectionHooks(Struct, frozen=True, kw_only=True):
    """What all lines of a supervisor use.

    Attributes:
        client_for: makes the client, which is not open yet.
        consented: whether the user has agreed that this is started; may ask them.
        clock: gives seconds that never go back.
        random: gives numbers from 0 up to, but not including, 1.
        moved: told of each new state, with the one before.
        ready: told of each new client, open, before anybody calls through it.
        gone: told of the end of that one.
        switched: told of an entry that somebody has switched on or off.
        wall: gives seconds since the epoch, for people.
    """

    client_for: Callable[[ServerEntry, str], Client]
    consented: Callable[[ServerEntry], bool | Awaitable[bool]]
    clock: Callable[[], float]
    random: Callable[[], float]
    moved: Callable[["ServerConnection", ConnectionState], None]
    ready: Callable[["ServerConnection", Client], None]
    gone: Callable[["ServerConnection"], None]
    switched: Callable[[ServerEntry, bool], None] = lambda _entry, _on: None
    wall: Callable[[], float] = time.time


class ServerConnection:
    """The connection, with its state; :meth:`use` hands it out.

    Args:
        entry: the server.
        isolation: whose connection it is; empty for the one that all share.
        workshop: what it is made with.

    Attributes:
        state: where it stands.
        client: the client, while calls can go out.
        in_flight: what goes on there just now, and keeps it from being closed.
        error: what went wrong last; empty if nothing did.
        retry_at: when the next attempt is made, by the clock, while it waits for that.
        starts: how often it was connected.
        since: when it came into its state, in seconds since the epoch.
    """

    def __init__(self, entry: ServerEntry, isolation: str, workshop: ConnectionHooks) -> None:
        self.entry = entry
        self.isolation = isolation
        self.state: ConnectionState = "idle"
        self.client: Client | None = None
        self.in_flight = 0
        self.error = ""
        self.retry_at = 0.0
        self.starts = 0
        self.since = workshop.wall()
        self._shop = workshop
        self._patience = RestartBackoff(workshop.random)
        self._keeper: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._again = False
        self._removed = self._off = False
        self._drain = DRAIN_S
        self._awaits_calls = False
        self._used = 0.0
        self._looked = 0.0
        self._misses = 0
        self._words: list[str] = []

    # For calls

    async def ready(self) -> Client:
        """The client, open, as soon as there is one.

        Raises:
            ServerUnavailable: there is none to be had; the message has the state and the cause.
        """
        tried = False
        while self.client is None or self.state not in LIVE_STATES:
            state = self.state
            if state == "draining" and self._welcome:
                self._again = True
            elif not tried and self._startable(state):
                self._begin("use")
                tried = True
            elif state == "connecting":
                tried = True
            elif tried or not (state == "backoff" and self.waits <= MAX_CALL_WAIT_S):
                raise self.unavailable()
            await self._turn()
        return self.client

    def _startable(self, state: ConnectionState) -> bool:
        by_hand = self.entry.options.start == "manual"
        return self._welcome and not by_hand and next_state(state, "use") is not None

    @property
    def _welcome(self) -> bool:
        """Whether it may be started at all."""
        return not (self._removed or self._off)

    def left(self) -> None:
        """Something that went on there is over."""
        self.in_flight -= 1
        self._used = self._shop.clock()
        if not self.in_flight and self._awaits_calls:
            self._wake()

    def doubt(self) -> None:
        """A call was left without an answer, although the connection is up: look at it soon."""
        self._looked = self._shop.clock() - PROBE_TIMEOUT_S
        self._go("missed")

    def unauthorized(self, client: Client | None, error: AuthRequired) -> None:
        """Its tokens are taken no more; the next use finds out whether there are others."""
        if client is not None and self.client is client and not self.in_flight:
            self._words = client.stderr
            self.client = None
            self._fail(error)

    @property
    def waits(self) -> float:
        """Seconds until the next attempt."""
        return max(0.0, self.retry_at - self._shop.clock())

    def unavailable(self, cause: str = "") -> ServerUnavailable:
        """Why no call can go out, or did.

        Args:
            cause: what went wrong; what did last by default.
        """
        state, name = self.state, self.entry.name
        what = UNAVAILABLE_TEXTS[state].format(name=name, wait=f"{self.waits:.1f}")
        if state == "idle" and self.entry.options.start == "manual":
            what = f"{name} is started by hand: isthmus servers start {name}"
        if state == "disabled" and not self.entry.trusted:
            what = f"{name} starts once its workspace is trusted: isthmus config trust"
        cause = cause or self.error
        return ServerUnavailable(f"{what}: {cause}" if cause else what, server=name, state=state)

    # For whoever decides about servers

    def start(self) -> None:
        """Start it, if it is not on its way; what went wrong before does not count any more."""
        if not self._welcome:
            return
        if self.state == "draining":
            self._again = True
            return
        self._patience.asked()
        if self.state == "backoff":
            self.retry_at = self._shop.clock()
            self._wake()
        elif next_state(self.state, "start"):
            self._begin("start")

    async def stop(self, *, drain: float = DRAIN_S, again: bool = False) -> None:
        """Close the connection, when what is in flight has ended.

        Args:
            drain: seconds that it has for that.
            again: start it anew after that.
        """
        keeper, self._again = self._keeper, again
        self._drain = min(drain, self._drain) if self.state == "draining" else drain
        if keeper is None:
            self._go("stop")
            if again:
                self.start()
            return
        if self.state in LIVE_STATES:
            self._go("stop")
        elif self.state == "draining":
            self._wake()
        else:
            keeper.cancel()
        await asyncio.wait([keeper])

    async def remove(self, *, drain: float = DRAIN_S) -> None:
        """As :meth:`stop`, for good."""
        self._removed = True
        await self.stop(drain=drain)

    async def settled(self) -> ConnectionState:
        """Wait until a start has come to something."""
        while self.state in {"connecting", "draining"}:
            await self._turn()
        return self.state

    @property
    def stderr(self) -> list[str]:
        """The last lines that the server wrote to standard error."""
        return self._words if self.client is None else self.client.stderr

    @property
    def pid(self) -> int | None:
        """The server's process; None where it is none of ours."""
        return None if self.client is None else self.client.pid

    def enable(self, *, on: bool) -> None:
        """Let it be started, or not; one that is up is to be stopped, and then told once more."""
        self._off = not on
        self._go("enable" if on else "disable")

    # Its life

    def _go(self, signal: ConnectionSignal) -> None:
        """Follow a signal, where it means something just now."""
        before, state = self.state, next_state(self.state, signal)
        if state is None:
            return
        self.state = state
        self.since = self._shop.wall()
        self._wake()
        self._shop.moved(self, before)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _turn(self, patience: float | None = None) -> None:
        """Wait until something is otherwise, or so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._news.wait()

    def _begin(self, signal: ConnectionSignal) -> None:
        self._go(signal)
        # one that has failed may still be closing its connection
        self._keeper = asyncio.get_running_loop().create_task(
            self._keep(self._keeper), name=f"isthmus-{self.entry.name}"
        )
        self._keeper.add_done_callback(self._kept)

    async def _keep(self, before: asyncio.Task[None] | None) -> None:
        """Connect, look after it, connect again; until it is stopped, or is of no use."""
        if before is not None:
            await asyncio.wait([before])
        while self._keeper is asyncio.current_task() and await self._connection():
            pass

    def _kept(self, keeper: asyncio.Task[None]) -> None:
        """The keeper is done; one that was stopped early may not have begun."""
        if self._keeper is not keeper:
            return  # another one is in its place
        self._keeper = None
        if keeper.cancelled():
            self._go("stop")
            self._go("drained")
        elif keeper.exception() is not None:  # a callback of the host's; it is not tried again
            self.error = f"the host failed: {keeper.exception()!r}"
            self._go("looped")
            self._go("drained")
        again, self._again = self._again and self._welcome, False
        if again:
            self._patience.asked()
            self._begin("start")
        self._wake()

    async def _connection(self) -> bool:
        """One connection from its beginning to its end; whether another one is to follow."""
        client = await self._open()
        if client is not None:
            try:
                self._opened(client)
                await self._attend(client)
            finally:
                await self._end(client)
        self._go("drained")
        while self.state == "backoff" and self.waits:
            await self._turn(self.waits)
        self._go("retry")
        return self.state == "connecting"

    async def _open(self) -> Client | None:
        """The client, open; None, in another state, where that failed."""
        client: Client | None = None
        try:
            await self._agreed()
            client = self._shop.client_for(self.entry, self.isolation)
            client.on_lost(lambda error, client=client: self._lost(client, error))
            await client.open()
        except BaseException as error:
            if client is not None:
                self._words = client.stderr
                await client.close()
            if not isinstance(error, Exception):
                raise
            self._fail(error)
            return None
        return client

    async def _agreed(self) -> None:
        """Go on if the user has agreed that the server is started.

        Raises:
            Denied: they have not.
        """
        agreed = self._shop.consented(self.entry)
        if not (agreed if isinstance(agreed, bool) else await agreed):
            raise Denied(f"nobody has agreed that {self.entry.name} is started as it is now")

    def _opened(self, client: Client) -> None:
        now = self._shop.clock()
        self._shop.ready(self, client)
        self.client, self.error, self._misses = client, "", 0
        self._used = self._looked = now
        self.starts += 1
        self._patience.opened(now)
        self._go("opened")

    def _lost(self, client: Client, error: ConnectionLost) -> None:
        """The connection has ended by itself."""
        if self.client is client:
            self._words = client.stderr
            self.client = None
            if self.state != "draining":
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Go where an error leads."""
        self.error = redact_text(
            redact_log(clean_text(str(error)[:MAX_ERROR_CHARS] or type(error).__name__)),
            chance=False,
        )
        if isinstance(error, AuthRequired | ScopeShortfall):
            self._go("unauthorized")
        elif isinstance(error, Denied):
            self._go("unapproved")
        elif isinstance(error, ConfigError | UsageError):  # another attempt would end like this one
            self._go("looped")
        else:
            # a network that is down for a minute is no crash, however often one tries
            crash = bool(self.entry.command or not self.entry.url or self.state in LIVE_STATES)
            wait = self._patience.lost(self._shop.clock(), crash=crash)
            self.retry_at = self._shop.clock() + (wait or 0.0)
            self._go("looped" if wait is None else "lost")

    async def _attend(self, client: Client) -> None:
        """See that it is there, and whether anybody needs it; returns when it is to be ended."""
        while self.client is client:
            if self.state == "draining":
                await self._drained()
                return
            now, idle = self._shop.clock(), self._idle_at()
            if now >= idle:
                self._go("stop")
                continue
            probe = self._probe_at()
            if now >= probe:
                await self._probe(client)
                continue
            soonest = min(idle, probe)
            self._awaits_calls = soonest == NEVER
            await self._turn(None if soonest == NEVER else soonest - now)

    def _idle_at(self) -> float:
        """When it counts as unused."""
        options = self.entry.options
        if options.start != "lazy" or options.idle_stop is None or self.in_flight:
            return NEVER
        if self.client is not None and self.client.is_held:  # a person is asked on its behalf
            self._used = self._shop.clock()
        return self._used + options.idle_stop

    def _probe_at(self) -> float:
        """When to look whether it is there; one that serves a call may have no time to say so."""
        if self.in_flight:
            return NEVER
        if self.state == "degraded":
            return self._looked + PROBE_TIMEOUT_S
        return max(self._looked, self._used) + PROBE_INTERVAL_S

    async def _probe(self, client: Client) -> None:
        """Ask the server whether it is there; too many times without an answer, and it is not."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                await probe_server(client)
        except (ConnectionLost, TimeoutError) as error:
            self._missed(client, error)
        except (IsthmusError, OSError):  # it said no, so it is there
            self._answered()
        else:
            self._answered()
        self._looked = self._shop.clock()

    def _answered(self) -> None:
        self._misses = 0
        self._go("answered")

    def _missed(self, client: Client, error: Exception) -> None:
        self._misses += 1
        self._go("missed")
        if self._misses >= MAX_MISSED_PROBES:
            # spec 2025-11-25 basic/utilities/ping#error-handling: multiple failed pings may be
            # taken for a lost connection, and it may be opened anew
            why = f"it has left {MAX_MISSED_PROBES} probes without an answer: {error}".rstrip(": ")
            self._lost(client, ConnectionLost(why))

    async def _drained(self) -> None:
        """Wait for what is in flight, as long as there is time."""
        self._awaits_calls = True
        until = self._shop.clock() + self._drain
        while self.in_flight and self.client is not None:
            until = min(until, self._shop.clock() + self._drain)
            left = until - self._shop.clock()
            if left <= 0:
                return
            await self._turn(left)

    async def _end(self, client: Client) -> None:
        """Close the client, whatever the server does."""
        if self.client is client:
            self._words = client.stderr
            self.client = None
        self._shop.gone(self)
        await client.close()


async def probe_server(client: Client) -> None:
    """See whether a server answers, without asking it what it has said for a time to come."""
    try:
        # spec 2026-07-28 server/utilities/caching#freshness-calculation: while it is fresh the
        # answer is the one that was kept
        await client.discover()
    except NotInRevision:
        await client.ping()


UNAVAILABLE_TEXTS: dict[ConnectionState, str] = {
    "disabled": "{name} is switched off: isthmus servers enable {name}",
    "idle": "{name} is not running",
    "connecting": "{name} is not connected yet",
    "ready": "{name} is not there",
    "degraded": "{name} is not there",
    "backoff": "{name} cannot be reached; the next attempt is in {wait} s",
    "needs_auth": "{name} wants a login",
    "quarantined": "{name} was not started",
    "failed": "{name} cannot be kept running, and is not started again until asked: "
    "isthmus servers restart {name}",
    "draining": "{name} is being stopped",
}
"""What a state means for somebody who wanted to call."""
