"""The client: one object per connection."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from msgspec import UNSET

from isthmus.client.answering import Answering, Elicit, Roots, Sample
from isthmus.client.connection import Connection, OnProgress, Settings, tell, with_facts
from isthmus.client.extensions import Additions, declaring
from isthmus.client.listening import Change, Changes, Kind, Listening
from isthmus.client.methods import Methods
from isthmus.client.targets import ClientTarget, resolve
from isthmus.core.extensions import settings_of
from isthmus.core.opening import states_facts
from isthmus.errors import CapabilityMissing, IsthmusError, UsageError
from isthmus.revisions import BY_NAME, Revision
from isthmus.runtime.extension import Extensions, gathered
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import NoticeHandler
from isthmus.wire import (
    ClientCapabilities,
    DiscoverParams,
    Implementation,
    LogLevel,
    LogMessageParams,
    PingParams,
    RootsListChangedParams,
    ServerCapabilities,
    SetLevelParams,
    SubscribeParams,
    SubscriptionFilter,
    UnsubscribeParams,
)
from isthmus.wire.base import Wire

__all__ = ["Client"]

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

OnLog: TypeAlias = Callable[[LogMessageParams], Awaitable[None] | None]
OnChange: TypeAlias = Callable[[Change], Awaitable[None] | None]

NOBODY = Implementation(name="", version="")


class Client(Methods):
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
        on_log: told of the server's log messages.
        on_change: told of every :class:`~isthmus.client.listening.Change` the server tells of.
        log_level: the least severe messages wanted; with ``on_log``, ``"info"`` by default.
        name: who we say we are.
        version: and in which version.
        revision: the one revision to speak; None finds the newest that both sides speak.
        timeout: seconds a call may be silent, without answer and progress.
        max_timeout: seconds a call may take whatever its progress.
        connect_timeout: seconds opening may take.
        probe_timeout: seconds of silence that mean the server is of before 2026-07-28; None for 2
            where it is launched and 10 over HTTP.
        max_rounds: how often in a row a server may ask while it serves one call.
        headers: for every HTTP request, for example ``{"Authorization": "Bearer …"}``.
        capabilities: what the client can do beyond what follows from the arguments above.
        extensions: what it supports beside the specification: settings by identifier, or
            :class:`~isthmus.runtime.extension.Extension` objects (since 2026-07-28).

    Raises:
        UsageError: the target is of no known kind, there is no such revision, or an extension
            cannot be put in place.
    """

    def __init__(
        self,
        target: ClientTarget,
        *,
        elicit: Elicit | None = None,
        sample: Sample | None = None,
        roots: Roots | None = None,
        on_log: OnLog | None = None,
        on_change: OnChange | None = None,
        log_level: LogLevel | None = None,
        name: str = "isthmus",
        version: str = "0.1.0",
        revision: str | Revision | None = None,
        timeout: float = 60.0,
        max_timeout: float = 1800.0,
        connect_timeout: float = 30.0,
        probe_timeout: float | None = None,
        max_rounds: int = 10,
        headers: Mapping[str, str] | None = None,
        capabilities: ClientCapabilities | None = None,
        extensions: Extensions | None = None,
    ) -> None:
        supported = gathered(extensions)
        self._answering = Answering(elicit, sample, roots, declaring(capabilities, supported))
        self._listening = Listening(self._on_change)
        self._told_of_change = on_change
        self._told_of_log = on_log
        self._log_level = log_level
        settings = Settings(
            info=Implementation(name=name, version=version),
            revision=pinned(revision),
            timeout=timeout,
            max_timeout=max_timeout,
            connect_timeout=connect_timeout,
            probe_timeout=probe_timeout,
            max_rounds=max_rounds,
            log_level=log_level or ("info" if on_log is not None else None),
        )
        where = resolve(target, headers=headers, connect_timeout=connect_timeout)
        self._additions = Additions(self._answering.routes, self._notices(), self._tell)
        for extension in supported:
            self._additions.extend(extension)
        router = self._additions.router()
        super().__init__(Connection(where, router, self._answering, settings))

    # Opening and closing

    async def open(self) -> None:
        """Connect; ``async with`` does it for you.

        Raises:
            ConnectFailed: no connection came about; the message says why and what to try.
            OutOfPhase: the client was closed before.
        """
        connection = self._connection
        if not await connection.open():
            return
        peer = connection.live()
        peer.on_close(self._lost)
        self._catalog.mirrored = connection.target.http and connection.meta is not UNSET
        if self._log_level is not None and self.capabilities.logging is not UNSET:
            await self.set_log_level(self._log_level)
        if self._told_of_change is not None:
            peer.start(self._attend())

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

    def _lost(self) -> None:
        peer = self._connection.peer
        if peer is not None and peer.lost is not None:
            self._listening.lost(peer.lost)

    # Who is there

    @property
    def revision(self) -> Revision:
        """The revision agreed on."""
        return self._connection.settled().revision

    @property
    def info(self) -> Implementation:
        """Who the server says it is; empty strings where it keeps that to itself."""
        return self._connection.settled().info or NOBODY

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

    async def unsubscribe(self, uri: str) -> None:
        """Take back :meth:`subscribe`."""
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
    ) -> AsyncIterator[Changes]:
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
        peer, timeout = self._connection.live(), self._connection.settings.timeout
        changes, task = await self._listening.open(peer, wanted, self._connection.meta, timeout)
        try:
            yield changes
        finally:
            await self._listening.close(peer, changes, task, timeout)

    async def set_log_level(self, level: LogLevel) -> None:
        """Say which log messages are wanted from now on: these and the more severe.

        Raises:
            CapabilityMissing: the server sends none.
        """
        self._connection.require("logging", "logging/setLevel")
        self._connection.state_facts(level)
        if self._connection.meta is UNSET:  # else every request says it from now on
            await self._connection.ask("logging/setLevel", SetLevelParams(level=level))

    async def set_roots(self, roots: Roots) -> None:
        """Change where the server may work, and tell a server of up to 2025-11-25 so.

        Raises:
            UsageError: the client was made without roots, so the server does not know of any.
        """
        if self._answering.roots is None:
            raise UsageError("this client offers no roots: make it with roots=[] to add some later")
        self._answering.roots = roots
        method = "notifications/roots/list_changed"
        if self.revision.allows("client", method):
            await self._connection.live().note(method, RootsListChangedParams())

    async def _attend(self) -> None:
        """Hear of every list that changes, where a server tells only those who ask."""
        offered = self.capabilities
        wanted: dict[str, Any] = {
            f"{kind}_list_changed": True
            for kind in ("tools", "prompts", "resources")
            if (what := getattr(offered, kind)) is not UNSET and what.list_changed
        }
        connection = self._connection
        if connection.meta is UNSET or not wanted:
            return
        try:
            await self._listening.open(
                connection.live(),
                SubscriptionFilter(**wanted),
                connection.meta,
                connection.settings.timeout,
            )
        except IsthmusError as error:
            import logging  # not needed until something fails

            logging.getLogger("isthmus").warning("changes will not be heard of: %s", error)

    def _notices(self) -> dict[str, NoticeHandler]:
        def listed(kind: Kind) -> NoticeHandler:
            return lambda params, _inbound: self._listening.list_changed(kind, params)

        return {
            "notifications/message": self._on_log,
            "notifications/tools/list_changed": listed("tools"),
            "notifications/prompts/list_changed": listed("prompts"),
            "notifications/resources/list_changed": listed("resources"),
            "notifications/resources/updated": lambda p, _: self._listening.updated(p),
            "notifications/subscriptions/acknowledged": lambda p, _: self._listening.acknowledged(
                p
            ),
        }

    def _on_log(self, params: LogMessageParams, _inbound: Inbound) -> None:
        self._tell(self._told_of_log, params)

    def _on_change(self, change: Change) -> None:
        if change.kind == "tools":
            self._catalog.forget()
        self._tell(self._told_of_change, change)

    def _tell(self, told: Callable[[Any], Any] | None, what: object) -> None:
        peer = self._connection.peer
        if told is not None and peer is not None:
            tell(peer, told, what)

    # The rest

    async def ping(self, *, timeout: float | None = None) -> None:
        """See whether the server answers: ``ping``, or since 2026-07-28 ``server/discover``."""
        if states_facts(self.revision):
            params = DiscoverParams(meta=self._connection.meta)
            await self._connection.ask("server/discover", params, timeout=timeout)
        else:
            await self._connection.ask("ping", PingParams(), timeout=timeout)

    async def request(
        self,
        method: str,
        params: Wire | Mapping[str, Any] | None = None,
        result: type[R] = dict,  # type: ignore[assignment]  # R is dict where nothing is given
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> R:
        """Send a request of your own.

        Args:
            method: any method; one of the specification's must be in the revision.
            params: a struct or plain data; what the revision wants in ``_meta`` is added.
            result: what to read the answer into.
            timeout: seconds without answer or progress; None for the client's.
            on_progress: told of progress.
        """
        return await self._connection.send(
            method,
            with_facts(params, self._connection.meta),
            result,
            timeout=timeout,
            on_progress=on_progress,
        )

    async def notify(self, method: str, params: Wire | Mapping[str, Any] | None = None) -> None:
        """Send a notification of your own.

        Args:
            method: any notification; one of the specification's must be in the revision.
            params: a struct or plain data.
        """
        await self._connection.live().note(method, params)

    def on_notification(self, name: str, /, *, params: Any = dict) -> Callable[[F], F]:
        """Decorate a function told of a notification of the server's own: ``fn(params)``.

        Args:
            name: the notification's method.
            params: what its params decode to; what does not fit is ignored.

        Raises:
            UsageError: the name is taken, or the specification's: see ``on_log`` and ``on_change``.
        """
        return self._additions.on_notification(name, params)

    def method(self, name: str, /, *, params: Any = dict, result: Any = None) -> Callable[[F], F]:
        """Decorate what serves a request of a server's own, up to 2025-11-25: ``fn(params)``.

        Since 2026-07-28 servers send no requests.

        Args:
            name: the method.
            params: what its params decode to.
            result: the type of what the function returns; None where it returns nothing.

        Raises:
            UsageError: the name is taken, or the specification's.
        """
        return self._additions.method(name, params, result)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings the server declared for an extension, or None where it has it not."""
        return settings_of(self.capabilities, identifier)

    def require_extension(self, identifier: str) -> Mapping[str, Any]:
        """The settings the server declared for an extension.

        Raises:
            CapabilityMissing: it did not declare it.
        """
        settings = self.extension(identifier)
        if settings is None:
            raise CapabilityMissing(
                f"the server does not offer the extension {identifier}",
                {"extensions": {identifier: {}}},
            )
        return settings


def pinned(revision: str | Revision | None) -> Revision | None:
    """The revision to insist on.

    Raises:
        UsageError: there is none of this name.
    """
    if revision is None or isinstance(revision, Revision):
        return revision
    if revision not in BY_NAME:
        raise UsageError(f"there is no revision {revision!r}: {', '.join(BY_NAME)}")
    return BY_NAME[revision]
