"""Notifications that a client gets from its server: log messages, changes, pages that are done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

from msgspec import UNSET

from isthmus.client.connection import Connection
from isthmus.client.model.callbacks import CallbackQueue
from isthmus.client.model.limits import Limits
from isthmus.client.model.questions import RequestGate
from isthmus.client.subscriptions import (
    Change,
    ChangeKind,
    ChangeStream,
    ChangeSubscriptions,
    limit_to_offered,
)
from isthmus.errors import CapabilityMissing, IsthmusError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import NoticeHandler
from isthmus.store.meter import Rate
from isthmus.wire import (
    ElicitationCompleteParams,
    LogMessageParams,
    ServerCapabilities,
    SubscribeParams,
    SubscriptionFilter,
    UnsubscribeParams,
)

OnLog: TypeAlias = Callable[[LogMessageParams], Awaitable[None] | None]
OnChange: TypeAlias = Callable[[Change], Awaitable[None] | None]

# Until a stream of changes that has ended is opened again; twice as long each time.
FIRST_RECONNECT_S = 1.0

MAX_RECONNECT_S = 60.0

READ_PAUSE_S = 0.1  # in which nothing is read from a launched server that says more than it may

# Notices of changes that a server may send without being let wait; none of them is dropped.
CHANGE_NOTICE_RATE = Rate(6000, 60.0)

MAX_RECONNECTS = 10  # how often in a row a stream is opened again that never opens


class ListRefresher:
    """Fetches lists anew some time after they changed, and tells of the change after that.

    Args:
        delay: seconds in which further changes join.
        fetch: how to fetch each kind of list.
        told: told of each change, whether or not the list could be fetched.
        start: runs a coroutine beside the conversation.
    """

    def __init__(
        self,
        delay: float,
        fetch: Callable[[ChangeKind], Awaitable[None]],
        told: Callable[[Change], None],
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._delay = delay
        self._fetch = fetch
        self._told = told
        self._start = start
        self._pending: dict[Change, None] = {}
        self._busy = False

    def changed(self, change: Change) -> None:
        """A list has changed."""
        self._pending[change] = None
        if not self._busy:
            self._busy = True
            self._start(self._later())

    async def _later(self) -> None:
        try:
            while self._pending:
                await asyncio.sleep(self._delay)
                pending, self._pending = self._pending, {}
                for change in pending:
                    await self._refresh(change)
        finally:
            self._busy = False

    async def _refresh(self, change: Change) -> None:
        try:
            await self._fetch(change.kind)
        except IsthmusError as error:
            log_warning("the list of %s changed, and could not be fetched: %s", change.kind, error)
        self._told(change)


class Notifications:
    """Tells a program what its client hears.

    Args:
        on_log: told of log messages.
        on_change: told of changes.
        limits: how much of it.

    Attributes:
        subscriptions: the streams of changes.
        refresher: fetches lists anew that have changed, where the program wants that.
    """

    def __init__(
        self,
        on_log: OnLog | None,
        on_change: OnChange | None,
        limits: Limits,
    ) -> None:
        self.subscriptions = ChangeSubscriptions(self._on_change, self._on_stale)
        self.refresher: ListRefresher | None = None
        self._connection: Connection | None = None
        self._forget: Callable[[Change], None] | None = None
        self._limits = limits
        self._tellers: dict[Callable[[Any], Any], CallbackQueue] = {}
        self._logs = RequestGate("log messages", limits.log_messages)
        self._notices = RequestGate("notices of changes", CHANGE_NOTICE_RATE)
        self._lost_logs = 0
        self._told_of_log = on_log
        self._changes = None if on_change is None else self._teller(on_change, once=True)

    def attach(self, connection: Connection, on_stale: Callable[[Change], None]) -> None:
        """Hear what comes over this connection, and tell first what a change has made stale."""
        self._connection = connection
        self._forget = on_stale

    @property
    def attends(self) -> bool:
        """Whether anybody wants to hear of changes."""
        return self._changes is not None or self.refresher is not None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something for as long as the connection lasts."""
        peer = self._connection and self._connection.peer
        if not peer or peer.lost is not None:
            work.close()
        else:
            peer.start(work)

    def tell(self, told: Callable[[Any], Any], what: object) -> None:
        """Tell a function of something; while it is busy, it waits, up to a bound."""
        teller = self._tellers.get(told)
        if teller is None:
            teller = self._tellers[told] = self._teller(told)
        teller(what)

    def bind_callback(self, told: Callable[[Any], Any] | None) -> Callable[[Any], None] | None:
        """A callback that tells a function in order, where there is one."""
        return None if told is None else partial(self.tell, told)

    def _teller(self, told: Callable[[Any], Any], *, once: bool = False) -> CallbackQueue:
        return CallbackQueue(told, self.start, waiting=self._limits.waiting, once=once)

    # What the server says

    def notices(
        self, page_done: Callable[[ElicitationCompleteParams], None]
    ) -> dict[str, NoticeHandler]:
        """Handlers of the notifications.

        Args:
            page_done: told that a page elsewhere was dealt with.
        """
        subscriptions = self.subscriptions

        def listed(kind: ChangeKind) -> NoticeHandler:
            def changed(params: Any, _inbound: Inbound) -> None:
                self._slow_down()
                subscriptions.on_list_changed(kind, params)

            return changed

        def on_updated(params: Any, _inbound: Inbound) -> None:
            self._slow_down()
            subscriptions.on_updated(params)

        return {
            "notifications/message": self._on_log,
            "notifications/tools/list_changed": listed("tools"),
            "notifications/prompts/list_changed": listed("prompts"),
            "notifications/resources/list_changed": listed("resources"),
            "notifications/resources/updated": on_updated,
            "notifications/subscriptions/acknowledged": lambda p, _: subscriptions.on_acknowledged(
                p
            ),
            "notifications/elicitation/complete": lambda p, _: page_done(p),
        }

    def _on_log(self, params: LogMessageParams, _inbound: Inbound) -> None:
        if self._told_of_log is None:
            return
        if self._logs.passes():
            self.tell(self._told_of_log, params)
            return
        if not self._lost_logs:
            log_warning(
                "the server logs more than %s: the rest is dropped (Limits.log_messages)",
                self._limits.log_messages,
            )
        self._lost_logs += 1
        self._rest()  # reading what is dropped costs as much as reading what is wanted

    def _slow_down(self) -> None:
        """Let a server wait at its own end that tells of changes without a pause: all are heard."""
        if not self._notices.passes():
            self._rest()

    def _rest(self) -> None:
        """Read nothing for a moment, where the transport can do that."""
        peer = self._connection and self._connection.peer
        rest = getattr(peer and peer.channel, "rest", None)
        if rest is not None:
            rest(READ_PAUSE_S)

    def _on_stale(self, change: Change) -> None:
        if self._forget is not None:
            self._forget(change)

    def _on_change(self, change: Change) -> None:
        if self.refresher is not None and change.kind != "resource":
            self.refresher.changed(change)
        else:
            self.tell_change(change)

    def tell_change(self, change: Change) -> None:
        """Tell the program of a change."""
        if self._changes is not None:
            self._changes(change)

    # Where a server tells only those who ask

    def make_list_filter(self, offered: ServerCapabilities) -> SubscriptionFilter | None:
        """The lists whose changes the server tells of; None where there are none."""
        kinds: Mapping[str, Any] = {
            f"{kind}_list_changed": True
            for kind in ("tools", "prompts", "resources")
            if (what := getattr(offered, kind)) is not UNSET and what.list_changed
        }
        return SubscriptionFilter(**kinds) if kinds else None

    async def subscribe(self, connection: Connection, uri: str) -> None:
        """``resources/subscribe``, up to 2025-11-25.

        Raises:
            CapabilityMissing: the server offers no subscriptions.
        """
        require_subscriptions(connection)
        await connection.ask("resources/subscribe", SubscribeParams(uri=uri))
        self.subscriptions.by_hand.add(uri)

    async def unsubscribe(self, connection: Connection, uri: str) -> None:
        """``resources/unsubscribe``."""
        self.subscriptions.by_hand.discard(uri)
        await connection.ask("resources/unsubscribe", UnsubscribeParams(uri=uri))

    @asynccontextmanager
    async def listen(
        self, connection: Connection, wanted: SubscriptionFilter
    ) -> AsyncIterator[ChangeStream]:
        """A stream of changes, in either era, until the block is left.

        Raises:
            CapabilityMissing: the server offers no subscriptions.
            CallTimedOut: the server did not agree in time.
        """
        if wanted.resource_subscriptions and connection.meta is UNSET:
            require_subscriptions(connection)
        subscriptions, timeout = self.subscriptions, connection.settings.timeout
        meta = connection.find_passed_meta
        changes, task = await connection.run_with_peer(
            lambda peer: subscriptions.open(peer, wanted, meta(), timeout)
        )
        if task is None:
            changes.granted = limit_to_offered(wanted, connection.require_agreement().capabilities)
        try:
            yield changes
        finally:
            await subscriptions.close(connection.peer, changes, task, timeout)

    async def attend(self, connection: Connection, wanted: SubscriptionFilter) -> None:
        """Hear of every list that changes, until the connection ends."""
        import random  # costs start-up time

        wait, failed, missed = FIRST_RECONNECT_S, 0, False
        while failed < MAX_RECONNECTS:
            timeout = connection.settings.timeout
            try:
                peer = connection.live()
                changes, task = await self.subscriptions.open(
                    peer, wanted, connection.meta, timeout
                )
            except IsthmusError as error:
                if not missed:
                    log_warning(
                        "%s: its changes will not be heard of: %s", connection.target.name, error
                    )
                    return
                failed += 1
            else:
                wait, failed = FIRST_RECONNECT_S, 0
                if missed:
                    self._catch_up(wanted)
                if task is not None:
                    await asyncio.wait((task,))
                    changes.end(None)
            if peer.lost is not None:
                return
            # spec 2026-07-28 basic/patterns/subscriptions#graceful-closure: the client MAY
            # reconnect; not all clients at the same moment
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
            wait, missed = min(2 * wait, MAX_RECONNECT_S), True

    async def resume(self, connection: Connection) -> None:
        """Subscribe again, in a new session, to what the one before had subscribed to.

        Raises:
            Refused, CallTimedOut, ConnectionLost: as it went.
        """
        await self.subscriptions.resume(connection.live(), connection.settings.timeout)
        wanted = self.make_list_filter(connection.require_agreement().capabilities)
        if wanted is not None:
            self._catch_up(wanted)

    def _catch_up(self, wanted: SubscriptionFilter) -> None:
        """Nobody knows what changed while nobody listened."""
        kinds: tuple[ChangeKind, ...] = ("tools", "prompts", "resources")
        for kind in kinds:
            if getattr(wanted, f"{kind}_list_changed"):
                self.subscriptions.publish_change(Change(kind), UNSET)


def require_subscriptions(connection: Connection) -> None:
    """Check that the server offers subscriptions to resources.

    Raises:
        CapabilityMissing: it does not; nothing was sent.
    """
    connection.require("resources", "resources/subscribe")
    resources = connection.require_agreement().capabilities.resources
    if resources is UNSET or not resources.subscribe:
        raise CapabilityMissing("the server does not offer subscriptions to resources")
