"""The client: one object per connection."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import UNSET, structs

from isthmus.client.cache import Caching
from isthmus.client.connection import ClientSettings, Connection
from isthmus.client.extensions import CustomMethods, declare_extensions
from isthmus.client.features.answering import Answering
from isthmus.client.features.elicitation import Elicit
from isthmus.client.features.roots import Roots, watch_for_changes
from isthmus.client.features.sampling import Sample
from isthmus.client.model.callbacks import log_warning
from isthmus.client.model.limits import Limits, check_limits
from isthmus.client.notifications import ListRefresher, Notifications, OnChange, OnLog
from isthmus.client.requests import Custom
from isthmus.client.subscriptions import Change, ChangeStream
from isthmus.client.targets import ClientTarget, EraChoice, Target, force_era, resolve_target
from isthmus.client.tasks import TaskTracker
from isthmus.errors import CapabilityMissing, ConnectionLost, IsthmusError, UsageError
from isthmus.revisions import BY_NAME, LATEST, LEGACY, Revision
from isthmus.runtime.extension import Extension, Extensions, collect_extensions
from isthmus.runtime.pings import keep_pinging
from isthmus.wire import (
    ClientCapabilities,
    ClientTasksCapability,
    Implementation,
    LogLevel,
    RootsListChangedParams,
    SamplingCapability,
    ServerCapabilities,
    SetLevelParams,
    SubscribeParams,
    SubscriptionFilter,
    UnsubscribeParams,
)

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization

__all__ = ["Client"]

F = TypeVar("F", bound=Callable[..., Any])

UNKNOWN_SERVER = Implementation(name="", version="")

DEFAULT_LIMITS = Limits()  # the defaults: nothing in them changes

REFRESH_DELAY_S = 0.3
"""Seconds in which several changes of a list are one."""


class Client(Custom):
    """A connection to one server.

    Example::

        async with Client("https://example.com/mcp") as client:
            for tool in await client.list_tools():
                print(tool.name, "-", tool.description)
            result = await client.call_tool("book", {"date": "2026-05-01"})
            print(result.text)

    It may be used from any task, opened in one and closed in another. Whatever happens to the
    connection, each call ends once: with its result, or with one exception of
    :mod:`isthmus.errors`.

    Args:
        target: a URL, ``Command(…)``, the path of a ``.py`` script, an entry of ``mcpServers``, a
            server in this process, or a channel.
        elicit: asks the user for the server: gets the question, gives ``Accepted(value)``,
            ``Declined()`` or ``Cancelled()``. Without it the client does not offer elicitation.
        sample: has a model write for the server: gets the conversation, gives text or a
            ``CreateMessageResult``. Without it the client does not offer sampling.
        roots: where the server may work: paths, ``file://`` URIs, ``Root`` objects, or a function
            that gives them. None does not offer roots.
        watch_roots: seconds from one look at the roots to the next: those that are not there are
            left out, and a server of up to 2025-11-25 is told when that changes. None does not
            look; :meth:`set_roots` tells.
        sample_tools: the model may be given tools (since 2025-11-25).
        sample_context: the model may be given what other servers said (since 2025-11-25).
        answer_tasks: the server may have its questions answered as tasks, and fetch the answers
            when they are there (2025-11-25); the functions that answer are the same.
        on_log: told of the server's log messages.
        on_change: told of every :class:`~isthmus.client.subscriptions.Change` the server tells of.
        on_elicitation_complete: told of the id of each page that the user was sent to, once the
            server says that it was dealt with (2025-11-25).
        auto_refresh: fetch lists that were fetched before anew when they change, after so many
            seconds or 0.3; ``on_change`` is told after that, and :meth:`latest` has them.
        cache: keep answers for as long as the server allows; False keeps none.
        log_level: the least severe messages wanted; with ``on_log``, ``"info"`` by default.
        name: who we say we are.
        version: and in which version.
        revision: the one revision to speak; None finds the newest that both sides speak.
        era: ``"legacy"`` opens by ``initialize`` whatever the server offers, and ``"modern"`` tries
            nothing but 2026-07-28; ``"auto"`` finds out.
        timeout: seconds a call may be silent, without answer and progress. Progress is asked for,
            and so counts, where the call has an ``on_progress``.
        max_timeout: seconds a call may take whatever its progress.
        connect_timeout: seconds opening may take.
        probe_timeout: seconds of silence that mean the server is of before 2026-07-28; None for 2
            where it is launched and 10 over HTTP.
        max_rounds: how often in a row a server may ask while it serves one call.
        ping_every: seconds from one ping to the next; None does not ping.
        ping_misses: how many pings in a row without an answer mean that the server is gone.
        limits: what else the server may cost: :class:`isthmus.client.Limits`.
        headers: for every HTTP request, for example ``{"X-Api-Key": "…"}``.
        auth: gets the tokens that a server over HTTP wants: ``isthmus.auth.OAuth(…)`` with the
            user, or one of the grants of machines. What the user takes for it counts for none of
            the times above.
        capabilities: what the client can do beyond what follows from the arguments above.
        extensions: what it supports beside the specification: settings by identifier, or
            :class:`~isthmus.runtime.extension.Extension` objects (since 2026-07-28).

    Raises:
        UsageError: the target is of no known kind, there is no such revision, a root cannot be
            one, something is declared that nothing answers, or an extension cannot be put in
            place.
    """

    _told_of_reconnect: Callable[[Any], Any] | None = None

    def __init__(
        self,
        target: ClientTarget,
        *,
        elicit: Elicit | None = None,
        sample: Sample | None = None,
        roots: Roots | None = None,
        watch_roots: float | None = None,
        sample_tools: bool = False,
        sample_context: bool = False,
        answer_tasks: bool = False,
        on_log: OnLog | None = None,
        on_change: OnChange | None = None,
        on_elicitation_complete: Callable[[str], Awaitable[None] | None] | None = None,
        auto_refresh: bool | float = False,
        cache: bool | Caching = True,
        log_level: LogLevel | None = None,
        name: str = "isthmus",
        version: str = "0.1.0",
        revision: str | Revision | None = None,
        era: EraChoice = "auto",
        timeout: float = 60.0,
        max_timeout: float = 1800.0,
        connect_timeout: float = 30.0,
        probe_timeout: float | None = None,
        max_rounds: int = 10,
        ping_every: float | None = None,
        ping_misses: int = 3,
        headers: Mapping[str, str] | None = None,
        auth: "Authorization | None" = None,
        capabilities: ClientCapabilities | None = None,
        extensions: Extensions | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        limits, supported = check_limits(limits), collect_extensions(extensions)
        self._hearing = Notifications(on_log, on_change, limits)
        declared = add_capabilities(
            capabilities, supported, sample_tools, sample_context, answer_tasks
        )
        done, watched = self._hearing.telling(on_elicitation_complete), watch_roots is not None
        self._answering = Answering(
            elicit, sample, roots, declared, limits=limits, watched=watched, page_done=done
        )
        self._level, self._watch, self._pings = log_level, watch_roots, (ping_every, ping_misses)
        self._caching = (Caching() if cache else None) if isinstance(cache, bool) else cache
        self._attends = on_change is not None or auto_refresh is not False
        self._refreshes = REFRESH_DELAY_S if auto_refresh is True else auto_refresh
        settings = ClientSettings(
            info=Implementation(name=name, version=version),
            revision=resolve_revision(revision, era),
            timeout=timeout,
            max_timeout=max_timeout,
            connect_timeout=connect_timeout,
            probe_timeout=probe_timeout,
            max_rounds=max_rounds,
            log_level=log_level or ("info" if on_log is not None else None),
            result_bytes=limits.result_bytes,
        )
        where = force_era(era, resolve_target(target, headers, connect_timeout, auth))
        self._assemble(where, settings, limits, supported)

    def _assemble(
        self,
        where: Target,
        settings: ClientSettings,
        limits: Limits,
        supported: Sequence[Extension],
    ) -> None:
        """Put together what answers, what hears, and what they hang on."""
        answering, hearing = self._answering, self._hearing
        tasks = TaskTracker(answering, hearing.listening)
        notices = {**hearing.notices(answering.pages.done), **tasks.notices()}
        additions = CustomMethods(answering.routes, notices, hearing.tell, answering.limited)
        for extension in supported:
            additions.extend(extension)
        connection = Connection(where, additions.router(), answering, settings)
        super().__init__(connection, limits, tasks, additions)
        hearing.attach(connection)
        connection.on_lost = hearing.listening.lost
        connection.on_renewed = self._renewed
        hearing.stale = self._on_stale
        if self._refreshes is not False:
            hearing.refresher = ListRefresher(
                self._refreshes, self._refresh, hearing.tell_change, hearing.start
            )

    # Opening and closing

    async def open(self) -> None:
        """Connect; ``async with`` does it for you.

        Raises:
            ConnectFailed: no connection came about; the message says why and what to try.
            AuthError: the server wants authorization, and none was to be had.
            OutOfPhase: the client was closed before.
        """
        connection = self._connection
        if not await connection.open():
            return
        self._catalog.mirrored = connection.target.http and connection.meta is not UNSET
        if self._caching is not None:
            self._keep(self._caching)
        await self._say_log_level()
        self._look_after()

    async def _say_log_level(self) -> None:
        if self._level is not None and self.capabilities.logging is not UNSET:
            await self.set_log_level(self._level)

    async def _renewed(self) -> None:
        """Make of a new session what the one before had become."""
        self._look_after()
        try:
            await self._say_log_level()
            await self._hearing.resume(self._connection)
        except IsthmusError as error:
            log_warning("a new session is not what the one before was: %s", error)
        if self._told_of_reconnect is not None:
            self._hearing.tell(self._told_of_reconnect, self)

    def on_reconnect(self, fn: F) -> F:
        """Decorate a function told that a new session has begun, with this client: ``fn(client)``.

        That happens over HTTP up to 2025-11-25, where a server has ended the session. The log
        level and the subscriptions are as they were; what else the server kept is gone.
        """
        self._told_of_reconnect = fn
        return fn

    def on_lost(self, fn: F) -> F:
        """Decorate a function told, once, that this connection has ended for good: ``fn(error)``.

        It is called before the calls in flight end, and must not wait; whoever wants another
        connection makes a new client. Closing the client ends the connection, too.
        """
        before = self._connection.on_lost

        def lost(error: ConnectionLost) -> None:
            before(error)
            fn(error)

        self._connection.on_lost = lost
        return fn

    @property
    def stderr(self) -> list[str]:
        """The last lines that a launched server wrote to standard error, fit to be shown."""
        lines: list[str] = getattr(self._channel, "stderr", [])
        return lines

    @property
    def pid(self) -> int | None:
        """The process id of a launched server; None for any other."""
        number: int | None = getattr(self._channel, "pid", None)
        return number

    @property
    def _channel(self) -> object:
        return getattr(self._connection.peer, "channel", None)

    def _look_after(self) -> None:
        """Start what goes on beside the calls, as far as somebody wants it."""
        hearing, connection = self._hearing, self._connection
        if self._attends and connection.meta is not UNSET:
            wanted = hearing.wanted(self.capabilities)
            if wanted is not None:
                hearing.start(hearing.attend(connection, wanted))
        every, misses = self._pings
        if every is not None:
            hearing.start(keep_pinging(connection.live(), self._ping, every, misses))
        if self._watch is not None and self._answering.roots is not None:
            hearing.start(watch_for_changes(self._answering, self._watch, self.roots_changed))

    async def close(self) -> None:
        """Disconnect: calls in flight fail with ``ConnectionLost``. Safe to call twice."""
        await self._connection.close()

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

    async def _ping(self, timeout: float) -> None:
        await self.ping(timeout=timeout)

    def _on_stale(self, change: Change) -> None:
        """Something changed at the server: nothing old is used from now on."""
        if change.kind == "tools":
            self._catalog.forget()
        if self._responses is not None:
            self._responses.changed(change)

    # Who is there

    @property
    def revision(self) -> Revision:
        """The revision agreed on."""
        return self._connection.settled().revision

    @property
    def info(self) -> Implementation:
        """Who the server says it is; empty strings where it keeps that to itself."""
        return self._connection.settled().info or UNKNOWN_SERVER

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the server offers."""
        return self._connection.settled().capabilities

    @property
    def instructions(self) -> str | None:
        """How to use the server, for a model to read; None where it says nothing."""
        return self._connection.settled().instructions

    # Changes, logs, roots

    async def subscribe(self, uri: str) -> None:
        """Ask a server of up to 2025-11-25 to tell when a resource changes; see :meth:`listen`.

        Raises:
            NotInRevision: since 2026-07-28 only :meth:`listen` does that.
            CapabilityMissing: the server offers no subscriptions.
        """
        self._require_subscriptions()
        await self._connection.ask("resources/subscribe", SubscribeParams(uri=uri))
        self._hearing.listening.by_hand.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Take back :meth:`subscribe`."""
        self._hearing.listening.by_hand.discard(uri)
        await self._connection.ask("resources/unsubscribe", UnsubscribeParams(uri=uri))

    def _require_subscriptions(self) -> None:
        self._connection.require("resources", "resources/subscribe")
        resources = self.capabilities.resources
        if resources is UNSET or not resources.subscribe:
            raise CapabilityMissing("the server does not offer subscriptions to resources")

    @asynccontextmanager
    async def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> AsyncIterator[ChangeStream]:
        """Listen for changes, in either era.

        Example::

            async with client.listen(tools=True, uris=["file:///config.json"]) as changes:
                async for change in changes:
                    print(change.kind, change.uri)

        Args:
            tools: the list of tools changes.
            prompts: the list of prompts changes.
            resources: the list of resources changes.
            uris: these resources change, or what lies below them.

        Raises:
            CallTimedOut: the server did not agree in time.
        """
        uris = list(uris)
        wanted = SubscriptionFilter(
            tools_list_changed=tools or UNSET,
            prompts_list_changed=prompts or UNSET,
            resources_list_changed=resources or UNSET,
            resource_subscriptions=uris or UNSET,
        )
        if uris and self._connection.meta is UNSET:
            self._require_subscriptions()
        connection, listening = self._connection, self._hearing.listening
        timeout = connection.settings.timeout
        changes, task = await connection.using(
            lambda peer: listening.open(peer, wanted, connection.meta, timeout)
        )
        if task is None:
            changes.granted = limit_to_offered(wanted, self.capabilities)
        try:
            yield changes
        finally:
            await listening.close(connection.peer, changes, task, timeout)

    async def set_log_level(self, level: LogLevel) -> None:
        """Say which log messages are wanted from now on: these and the more severe.

        Raises:
            CapabilityMissing: the server sends none.
        """
        self._connection.require("logging", "logging/setLevel")
        self._level = level
        self._connection.state_facts(level)
        if self._connection.meta is UNSET:  # else every request says it from now on
            await self._connection.ask("logging/setLevel", SetLevelParams(level=level))

    async def set_roots(self, roots: Roots) -> None:
        """Change where the server may work, and tell a server of up to 2025-11-25 so.

        Raises:
            UsageError: the client was made without roots, so the server does not know of any; or
                a root cannot be one.
        """
        if await self._answering.move(roots):
            await self.roots_changed()

    async def roots_changed(self) -> None:
        """Tell a server of up to 2025-11-25 that a function gives other roots than before."""
        # spec 2025-11-25 client/roots#root-list-changes: clients that declared listChanged MUST
        # send it; since 2026-07-28 there is no such notification
        method = "notifications/roots/list_changed"
        if self.revision.allows("client", method):
            await self._connection.live().note(method, RootsListChangedParams())


def add_capabilities(
    base: ClientCapabilities | None,
    supported: Sequence[Extension],
    tools: bool,
    context: bool,
    tasks: bool,
) -> ClientCapabilities:
    """Capabilities with extensions, with what a model may be given, and with tasks."""
    declared = declare_extensions(base, supported)
    more: dict[str, Any] = {
        name: {} for name, wanted in (("tools", tools), ("context", context)) if wanted
    }
    if more:
        sampling = structs.replace(declared.sampling or SamplingCapability(), **more)
        declared = structs.replace(declared, sampling=sampling)
    if tasks and declared.tasks is UNSET:
        declared = structs.replace(declared, tasks=ClientTasksCapability())
    return declared


def limit_to_offered(wanted: SubscriptionFilter, offered: ServerCapabilities) -> SubscriptionFilter:
    """What a server of up to 2025-11-25 tells of those things: what it said it would."""
    absent = {
        f"{kind}_list_changed": UNSET
        for kind in ("tools", "prompts", "resources")
        if (what := getattr(offered, kind)) is UNSET or not what.list_changed
    }
    return structs.replace(wanted, **absent)


def resolve_revision(revision: str | Revision | None, era: EraChoice = "auto") -> Revision | None:
    """The revision to insist on.

    Raises:
        UsageError: there is none of this name, or it is not of this era.
    """
    if era not in {"auto", "modern", "legacy"}:
        raise UsageError(f"era= is 'auto', 'modern' or 'legacy', not {era!r}")
    if isinstance(revision, str):
        if revision not in BY_NAME:
            raise UsageError(f"there is no revision {revision!r}: {', '.join(BY_NAME)}")
        revision = BY_NAME[revision]
    if revision is not None and era != "auto" and (revision in LEGACY) is not (era == "legacy"):
        raise UsageError(f"revision {revision.name} is not of the {era} era: leave out one of both")
    return LATEST if revision is None and era == "modern" else revision
