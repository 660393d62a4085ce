"""Server connection for one isolation key: it is opened, probed, restarted and closed here."""

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
from isthmus.host.model.errors import (
    AccountRequired,
    ConfigError,
    ConnectRequired,
    Denied,
    ServerUnavailable,
)
from isthmus.host.supervisor.states import (
    LIVE_STATES,
    ConnectionSignal,
    ConnectionState,
    RestartBackoff,
    next_state,
)

DRAIN_S = 30.0
PROBE_INTERVAL_S = 30.0  # without a call

# of an answer; also the interval for a server that has left something unanswered
PROBE_TIMEOUT_S = 5.0
MAX_MISSED_PROBES = 3  # in a row: the connection counts as lost then

# a call waits so long for the next attempt, and fails where it is further off
MAX_CALL_WAIT_S = 2.0
NEVER = float("inf")
MAX_ERROR_CHARS = 2_000


class ConnectionHooks(Struct, frozen=True, kw_only=True):
    """Factories, clocks and callbacks that all connections of a supervisor use.

    Attributes:
        client_for: makes the client, which is not open yet.
        consented: whether the user has agreed that this is started; may ask them.
        clock: gives seconds that never go back.
        random: gives numbers from 0 up to, but not including, 1.
        on_moved: told of each new state, with the one before.
        on_ready: told of each new client, open, before anybody calls through it.
        on_gone: told of the end of that one.
        on_switched: told of an entry that somebody has switched on or off.
        wall: gives seconds since the epoch, for people.
    """

    client_for: Callable[[ServerEntry, str], Client]
    consented: Callable[[ServerEntry], bool | Awaitable[bool]]
    clock: Callable[[], float]
    random: Callable[[], float]
    on_moved: Callable[["ServerConnection", ConnectionState], None]
    on_ready: Callable[["ServerConnection", Client], None]
    on_gone: Callable[["ServerConnection"], None]
    on_switched: Callable[[ServerEntry, bool], None] = lambda _entry, _on: None
    wall: Callable[[], float] = time.time


def make_connect_error(error: AccountRequired) -> ConnectRequired:
    """The error of a call that only a person can help, by connecting an account."""
    return ConnectRequired(
        str(error), server=error.server, reason=error.reason, scopes=error.scopes
    )


class ServerConnection:
    """A connection to a server, with its state.

    Args:
        entry: the server.
        isolation: whose connection it is; empty for the one that all share.
        hooks: what it is made with.

    Attributes:
        state: where it stands.
        client: the client, while calls can go out.
        in_flight: what goes on there just now, and keeps it from being closed.
        error: what went wrong last; empty if nothing did.
        failure: the same as it was raised, or None.
        retry_at: when the next attempt is made, by the clock, while it waits for that.
        starts: how often it was connected.
        since: when it came into its state, in seconds since the epoch.
    """

    def __init__(self, entry: ServerEntry, isolation: str, hooks: ConnectionHooks) -> None:
        self.entry = entry
        self.isolation = isolation
        self.state: ConnectionState = "idle"
        self.client: Client | None = None
        self.in_flight = 0
        self.error = ""
        self.failure: Exception | None = None
        self.retry_at = 0.0
        self.starts = 0
        self.since = hooks.wall()
        self._hooks = hooks
        self._backoff = RestartBackoff(hooks.random)
        self._keeper: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._start_again = False
        self._removed = self._off = False
        self._drain = DRAIN_S
        self._awaits_calls = False
        self._used_at = 0.0
        self._probed_at = 0.0
        self._misses = 0
        self._last_stderr: list[str] = []

    # Uses by calls

    async def wait_until_ready(self) -> Client:
        """Wait for the open client, starting the server where needed.

        Raises:
            ServerUnavailable: there is none to be had; the message has the state and the cause.
        """
        tried = False
        while self.client is None or self.state not in LIVE_STATES:
            state = self.state
            if state == "draining" and self._may_start:
                self._start_again = True
            elif not tried and self._can_start(state):
                self._begin("use")
                tried = True
            elif state == "connecting":
                tried = True
            elif tried or not (state == "backoff" and self.wait_s <= MAX_CALL_WAIT_S):
                raise self.make_unavailable()
            await self._wait_for_change()
        return self.client

    def _can_start(self, state: ConnectionState) -> bool:
        by_hand = self.entry.options.start == "manual"
        return self._may_start and not by_hand and next_state(state, "use") is not None

    @property
    def _may_start(self) -> bool:
        return not (self._removed or self._off)

    def release(self) -> None:
        """Count a call out that has ended."""
        self.in_flight -= 1
        self._used_at = self._hooks.clock()
        if not self.in_flight and self._awaits_calls:
            self._wake()

    def probe_soon(self) -> None:
        """Probe soon: a call was left without an answer, although the connection is up."""
        self._probed_at = self._hooks.clock() - PROBE_TIMEOUT_S
        self._follow("missed")

    def drop_unauthorized(self, client: Client | None, error: AuthRequired) -> None:
        """Drop the client, whose tokens are refused; the next use tries others."""
        if client is not None and self.client is client and not self.in_flight:
            self._last_stderr = client.stderr
            self.client = None
            self._fail(error)

    @property
    def wait_s(self) -> float:
        """Seconds until the next attempt."""
        return max(0.0, self.retry_at - self._hooks.clock())

    def make_unavailable(self, cause: str = "") -> ServerUnavailable:
        """Make the error of a call that cannot go out, or broke.

        Args:
            cause: what went wrong; what did last by default.
        """
        state, name = self.state, self.entry.name
        what = UNAVAILABLE_TEXTS[state].format(name=name, wait=f"{self.wait_s:.1f}")
        if state == "idle" and self.entry.options.start == "manual":
            what = f"{name} is started by hand: isthmus servers start {name}"
        if state == "disabled" and not self.entry.trusted:
            what = f"{name} starts once its workspace is trusted: isthmus config trust"
        failure = self.failure
        if state == "needs_auth" and isinstance(failure, AccountRequired):
            return make_connect_error(failure)
        cause = cause or self.error
        return ServerUnavailable(f"{what}: {cause}" if cause else what, server=name, state=state)

    # Starts and stops

    def start(self) -> None:
        """Start the server, if it is not on its way; earlier failures no longer count."""
        if not self._may_start:
            return
        if self.state == "draining":
            self._start_again = True
            return
        self._backoff.reset()
        if self.state == "backoff":
            self.retry_at = self._hooks.clock()
            self._wake()
        elif next_state(self.state, "start"):
            self._begin("start")

    async def stop(self, *, drain: float = DRAIN_S, again: bool = False) -> None:
        """Close the connection once the calls in flight have ended.

        Args:
            drain: seconds that it has for that.
            again: start it anew after that.
        """
        keeper, self._start_again = self._keeper, again
        self._drain = min(drain, self._drain) if self.state == "draining" else drain
        if keeper is None:
            self._follow("stop")
            if again:
                self.start()
            return
        if self.state in LIVE_STATES:
            self._follow("stop")
        elif self.state == "draining":
            self._wake()
        else:
            keeper.cancel()
        await asyncio.wait([keeper])

    async def remove(self, *, drain: float = DRAIN_S) -> None:
        """As :meth:`stop`, for good."""
        self._removed = True
        await self.stop(drain=drain)

    async def wait_until_settled(self) -> ConnectionState:
        """Wait until a start has succeeded or failed."""
        while self.state in {"connecting", "draining"}:
            await self._wait_for_change()
        return self.state

    @property
    def stderr(self) -> list[str]:
        """The last lines that the server wrote to standard error."""
        return self._last_stderr if self.client is None else self.client.stderr

    @property
    def pid(self) -> int | None:
        """The server's process; None where it is none of ours."""
        return None if self.client is None else self.client.pid

    def enable(self, *, on: bool) -> None:
        """Allow or forbid starts; a connection that is up is to be stopped, and then told again."""
        self._off = not on
        self._follow("enable" if on else "disable")

    # Connecting and watching

    def _follow(self, signal: ConnectionSignal) -> None:
        """Follow a signal, where the state knows it."""
        before, state = self.state, next_state(self.state, signal)
        if state is None:
            return
        self.state = state
        self.since = self._hooks.wall()
        self._wake()
        self._hooks.on_moved(self, before)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _wait_for_change(self, patience: float | None = None) -> None:
        """Wait until something changes, or so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._changed.wait()

    def _begin(self, signal: ConnectionSignal) -> None:
        self._follow(signal)
        # one that has failed may still be closing its connection
        self._keeper = asyncio.get_running_loop().create_task(
            self._run(self._keeper), name=f"isthmus-{self.entry.name}"
        )
        self._keeper.add_done_callback(self._on_keeper_end)

    async def _run(self, before: asyncio.Task[None] | None) -> None:
        """Connect, watch, and connect again, until the connection is stopped or fails for good."""
        if before is not None:
            await asyncio.wait([before])
        while self._keeper is asyncio.current_task() and await self._run_once():
            pass

    def _on_keeper_end(self, keeper: asyncio.Task[None]) -> None:
        """Settle the state once the keeper has ended, which may not even have begun."""
        if self._keeper is not keeper:
            return  # another one is in its place
        self._keeper = None
        if keeper.cancelled():
            self._follow("stop")
            self._follow("drained")
        elif keeper.exception() is not None:  # a callback of the host's; it is not tried again
            self.error = f"the host failed: {keeper.exception()!r}"
            self._follow("looped")
            self._follow("drained")
        again, self._start_again = self._start_again and self._may_start, False
        if again:
            self._backoff.reset()
            self._begin("start")
        self._wake()

    async def _run_once(self) -> bool:
        """Run one connection from its beginning to its end; whether another one is to follow."""
        client = await self._open()
        if client is not None:
            try:
                self._on_open(client)
                await self._watch(client)
            finally:
                await self._close(client)
        self._follow("drained")
        while self.state == "backoff" and self.wait_s:
            await self._wait_for_change(self.wait_s)
        self._follow("retry")
        return self.state == "connecting"

    async def _open(self) -> Client | None:
        """Open a client; None, in another state, where that failed."""
        client: Client | None = None
        try:
            await self._check_consent()
            client = self._hooks.client_for(self.entry, self.isolation)
            client.on_lost(lambda error, client=client: self._on_lost(client, error))
            await client.open()
        except BaseException as error:
            if client is not None:
                self._last_stderr = client.stderr
                await client.close()
            if not isinstance(error, Exception):
                raise
            self._fail(error)
            return None
        return client

    async def _check_consent(self) -> None:
        """Check that the user has agreed that the server is started.

        Raises:
            Denied: they have not.
        """
        agreed = self._hooks.consented(self.entry)
        if not (agreed if isinstance(agreed, bool) else await agreed):
            raise Denied(f"the user has not agreed to start {self.entry.name} as it is now")

    def _on_open(self, client: Client) -> None:
        now = self._hooks.clock()
        self._hooks.on_ready(self, client)
        self.client, self.error, self.failure, self._misses = client, "", None, 0
        self._used_at = self._probed_at = now
        self.starts += 1
        self._backoff.note_open(now)
        self._follow("opened")

    def _on_lost(self, client: Client, error: ConnectionLost) -> None:
        """Follow a connection that has ended by itself."""
        if self.client is client:
            self._last_stderr = client.stderr
            self.client = None
            if self.state != "draining":
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Change to the state that an error leads to."""
        self.failure = error.with_traceback(None)
        self.error = redact_text(
            redact_log(clean_text(str(error)[:MAX_ERROR_CHARS] or type(error).__name__)),
            chance=False,
        )
        if isinstance(error, AuthRequired | ScopeShortfall):
            self._follow("unauthorized")
        elif isinstance(error, Denied):
            self._follow("unapproved")
        elif isinstance(error, ConfigError | UsageError):  # another attempt would end like this one
            self._follow("looped")
        else:
            # a network that is down for a minute is no crash, however often one tries
            crash = bool(self.entry.command or not self.entry.url or self.state in LIVE_STATES)
            wait = self._backoff.next_wait(self._hooks.clock(), crash=crash)
            self.retry_at = self._hooks.clock() + (wait or 0.0)
            self._follow("looped" if wait is None else "lost")

    async def _watch(self, client: Client) -> None:
        """Watch the connection until it is to be closed: probe it, and stop it when it is idle."""
        while self.client is client:
            if self.state == "draining":
                await self._drain_calls()
                return
            now, idle = self._hooks.clock(), self._idle_at()
            if now >= idle:
                self._follow("stop")
                continue
            probe = self._probe_at()
            if now >= probe:
                await self._probe(client)
                continue
            soonest = min(idle, probe)
            self._awaits_calls = soonest == NEVER
            await self._wait_for_change(None if soonest == NEVER else soonest - now)

    def _idle_at(self) -> float:
        """The time at which the connection counts as idle."""
        options = self.entry.options
        if options.start != "lazy" or options.idle_stop is None or self.in_flight:
            return NEVER
        if self.client is not None and self.client.is_held:  # a person is asked on its behalf
            self._used_at = self._hooks.clock()
        return self._used_at + options.idle_stop

    def _probe_at(self) -> float:
        """The time of the next probe; a server that serves a call may have no time for one."""
        if self.in_flight:
            return NEVER
        if self.state == "degraded":
            return self._probed_at + PROBE_TIMEOUT_S
        return max(self._probed_at, self._used_at) + PROBE_INTERVAL_S

    async def _probe(self, client: Client) -> None:
        """Probe the server; after several probes without an answer the connection is lost."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                await probe_server(client)
        except (ConnectionLost, TimeoutError) as error:
            self._on_miss(client, error)
        except (IsthmusError, OSError):  # it said no, so it is there
            self._on_answer()
        else:
            self._on_answer()
        self._probed_at = self._hooks.clock()

    def _on_answer(self) -> None:
        self._misses = 0
        self._follow("answered")

    def _on_miss(self, client: Client, error: Exception) -> None:
        self._misses += 1
        self._follow("missed")
        if self._misses >= MAX_MISSED_PROBES:
            # spec 2025-11-25 basic/utilities/ping#error-handling: multiple failed pings may be
            # taken for a lost connection, and it may be opened anew
            why = f"it has left {MAX_MISSED_PROBES} probes without an answer: {error}".rstrip(": ")
            self._on_lost(client, ConnectionLost(why))

    async def _drain_calls(self) -> None:
        """Wait for calls in flight, as long as there is time."""
        self._awaits_calls = True
        until = self._hooks.clock() + self._drain
        while self.in_flight and self.client is not None:
            until = min(until, self._hooks.clock() + self._drain)
            left = until - self._hooks.clock()
            if left <= 0:
                return
            await self._wait_for_change(left)

    async def _close(self, client: Client) -> None:
        """Close the client, whatever the server does."""
        if self.client is client:
            self._last_stderr = client.stderr
            self.client = None
        self._hooks.on_gone(self)
        await client.close()


async def probe_server(client: Client) -> None:
    """Ask a server whether it answers, past any cached answer."""
    try:
        # spec 2026-07-28 server/utilities/caching#freshness-calculation: while it is fresh the
        # answer is the one that was kept
        await client.discover()
    except NotInRevision:
        await client.ping()


# for somebody who wanted to call
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
