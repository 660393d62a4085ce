"""Subscriptions: sessions and streams hear of changed lists and resources.

Up to 2025-11-25 every open session hears of changed lists, by bare notifications, and of the
resources it subscribed to. Since 2026-07-28 a client opens a stream (``subscriptions/listen``)
and hears on it what it asked for, and nothing else.

Whoever wants to know of a resource is found by its URI, so that an update costs nothing for those
who did not subscribe to it (ADR 0074). A listener costs a record. A task runs for it only while there is something to tell, and a slow
one holds up nobody else: what waits for it is a set, so it is never longer than what it wants.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET, UnsetType, structs

from isthmus.core.principal import owner_of
from isthmus.errors import Refuse
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.runtime.inbound import Inbound
from isthmus.server.guard.limits import Limits, identify_caller
from isthmus.wire import (
    AcknowledgedParams,
    CancelledParams,
    ElicitationCompleteParams,
    EmptyResult,
    InitializedParams,
    ListChangedParams,
    ListenParams,
    ListenResult,
    ResourceUpdatedParams,
    SubscribeParams,
    SubscriptionFilter,
    UnsubscribeParams,
)
from isthmus.wire.meta import SUBSCRIPTION_ID
from isthmus.wire.struct import Id, Meta, Wire

if TYPE_CHECKING:
    from isthmus.nodes.node import Node
    from isthmus.server.change_broadcast import Change, ChangeBroadcast

LIST_CHANGE_DELAY_S = 0.05  # changes of a list within it become one notification

TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ELICITATION_COMPLETE = "notifications/elicitation/complete"

Topic: TypeAlias = tuple[str, str]
"""A notification, and the resource's URI or the elicitation's id that it is about."""


NO_TOPICS: frozenset[Topic] = frozenset()


class ChangeListener:
    """A session or a stream that hears of changes.

    Args:
        link: the way to it.
        lists: the notifications of changed lists that it wants.
        stream: the id of the request that opened its stream, or None for a session.

    Attributes:
        owner: whose stream it is, or None.
        topics: what else it wants to hear of: resources, and the elicitations whose pages its user
            was sent to.
    """

    def __init__(self, link: Any, lists: Iterable[str], stream: Id | None = None) -> None:
        self.owner: str | None = None
        self.topics: set[Topic] | frozenset[Topic] = NO_TOPICS  # most never have any
        self._link = link
        self._lists = frozenset(lists)
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[tuple[str, str | None], None] = {}
        self._teller: asyncio.Task[None] | None = None
        self._held = stream is not None
        self._ended = self._loop.create_future()

    def hear(self, method: str, what: str | None = None) -> None:
        """Something changed; callable from any thread.

        Args:
            method: the notification that says so.
            what: the resource's URI or the elicitation's id, where it is about one.
        """
        if not self._wants(method, what):
            return
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._take(method, what)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, method, what)

    def belongs_to(self, link: Any, owner: str | None) -> bool:
        """Whether it is the session or connection of a link, or a stream of this owner."""
        return self._link is link or (self._stream is not None and owner is not None
                                      and self.owner == owner)  # fmt: skip

    def hear_gap(self) -> None:
        """Changes may have been missed: all lists and resources that it wants may have changed."""
        for method in self._lists:
            self.hear(method)
        for method, what in tuple(self.topics):
            if method == RESOURCE_UPDATED:
                self.hear(method, what)

    def _wants(self, method: str, what: str | None) -> bool:
        return method in self._lists if what is None else (method, what) in self.topics

    def release(self) -> None:
        """Tell from now on, beginning with what happened meanwhile."""
        self._held = False
        self._start()

    def on_end(self, stop: Callable[[], None]) -> None:
        """Stop something else that is told on this stream, when the stream ends."""
        self._ended.add_done_callback(lambda _: stop())

    def end(self) -> None:
        """There is nothing more to hear."""
        if not self._ended.done():
            self._ended.set_result(None)

    async def until_ended(self) -> None:
        """Wait for :meth:`end`, and until all that happened before it is told."""
        await self._ended
        if self._teller is not None:
            await self._teller

    def _take(self, method: str, what: str | None) -> None:
        if not self._ended.done() and self._is_told_here(method):
            self._waiting[method, what] = None
            self._start()

    def _is_told_here(self, method: str) -> bool:
        """Whether this node tells it: of the nodes that hold a session, one tells of changes.

        The elicitation's page is known where its question was asked, and nowhere else.
        """
        if self._stream is not None or method == ELICITATION_COMPLETE:
            return True
        return getattr(getattr(self._link, "channel", None), "tells_changes", True)

    def _start(self) -> None:
        if self._waiting and self._teller is None and not self._held:
            self._teller = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            if all(what is None for _, what in self._waiting):
                await asyncio.sleep(LIST_CHANGE_DELAY_S)
            while self._waiting:
                method, what = next(iter(self._waiting))
                del self._waiting[method, what]
                await self._link.note(method, self._params(method, what), relates_to=self._stream)
        finally:
            self._teller = None

    def _params(self, method: str, what: str | None) -> Wire:
        # spec 2026-07-28 basic/patterns/subscriptions#receiving-notifications: every one carries
        # the id of the request that opened its stream
        meta: Meta | UnsetType = UNSET if self._stream is None else {SUBSCRIPTION_ID: self._stream}
        if what is None:
            return ListChangedParams(meta=meta)
        if method == ELICITATION_COMPLETE:
            return ElicitationCompleteParams(elicitation_id=what, meta=meta)
        return ResourceUpdatedParams(uri=what, meta=meta)


class TopicIndex:
    """The listeners of each topic; from any thread."""

    def __init__(self) -> None:
        self._listeners: dict[Topic, dict[ChangeListener, None]] = {}
        self._lock = Lock()  # so that nobody joins a topic while its last listener leaves

    def find(self, topic: Topic) -> tuple[ChangeListener, ...]:
        """The listeners of a topic, in the order in which they joined it."""
        return tuple(self._listeners.get(topic, ()))

    def join(self, listener: ChangeListener, *topics: Topic) -> None:
        """Let a listener hear of topics."""
        with self._lock:
            for topic in topics:
                if isinstance(listener.topics, frozenset):
                    listener.topics = set()
                listener.topics.add(topic)
                self._listeners.setdefault(topic, {})[listener] = None

    def leave(self, listener: ChangeListener, *topics: Topic) -> None:
        """Let it hear of them no longer, if it did."""
        with self._lock:
            mine = listener.topics
            if isinstance(mine, frozenset):
                return
            for topic in mine.intersection(topics):
                mine.discard(topic)
                others = self._listeners[topic]
                del others[listener]
                if not others:
                    del self._listeners[topic]


class Subscriptions:
    """The sessions and streams that hear of changes on one server.

    Args:
        limits: how much one caller may subscribe to.

    Attributes:
        tasks: what tells how tasks stand, on a server that has some.
        is_hidden: whether rules of visibility hide a resource; None where there are none.
        sift: selects the resources whose updates a stream may be told of, where that is restricted.
        watchers: called with each change, ``(notification, uri or None)``, from any thread; with
            an empty notification where any of them may have been missed.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.tasks: Any = None
        self.watchers: list[Callable[[str, str | None], None]] = []
        self.limits = limits or Limits()
        self._offered: set[str] = set()  # the lists that ever changed have had something in them
        self._open: Counter[str] = Counter()
        self._sessions: dict[Any, ChangeListener] = {}
        self._streams: set[ChangeListener] = set()
        self._topics = TopicIndex()
        self._broadcast: ChangeBroadcast | None = None
        self.is_hidden: Callable[[str], bool] | None = None
        self.sift: Callable[[Sequence[str], Inbound], Awaitable[Sequence[str]]] | None = None
        self._echoes: list[Callable[[Change], None]] = []
        self._outer: list[Callable[[Inbound, str], None]] = []
        self._guests: dict[Any, ChangeListener] = {}

    # The other nodes

    async def join(self, node: "Node") -> None:
        """Tell other nodes of changes from now on, and hear of theirs.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        if node.bus is None or self._broadcast is not None:
            return
        from isthmus.server.change_broadcast import ChangeBroadcast  # most servers are one process

        broadcast = ChangeBroadcast(node.bus, node.id, self)
        await broadcast.open()
        self._broadcast = broadcast

    async def leave(self) -> None:
        """Tell other nodes nothing any more."""
        broadcast, self._broadcast = self._broadcast, None
        if broadcast is not None:
            await broadcast.close()

    def hear_change(self, method: str, what: str | None) -> None:
        """Tell the listeners here of a change, wherever it happened."""
        for watch in self.watchers:
            watch(method, what)
        if what is None:
            for listener in (*self._sessions.values(), *self._streams):
                listener.hear(method)
            return
        topic = (method, what)
        for listener in self._topics.find(topic):
            listener.hear(method, what)
            if method == ELICITATION_COMPLETE:
                self._topics.leave(listener, topic)

    def hear_gap(self) -> None:
        """Tell all listeners here that everything may have changed."""
        for watch in self.watchers:
            watch("", None)
        for listener in (*self._sessions.values(), *self._streams):
            listener.hear_gap()

    # What happened

    def announce_tools(self) -> None:
        """Tell that the list of tools changed."""
        self._announce_list(TOOLS_CHANGED)

    def announce_prompts(self) -> None:
        """Tell that the list of prompts changed."""
        self._announce_list(PROMPTS_CHANGED)

    def announce_resources(self) -> None:
        """Tell that the list of resources or of their templates changed."""
        self._announce_list(RESOURCES_CHANGED)

    def announce_update(self, uri: str) -> None:
        """Tell those who subscribed to a resource that it changed, unless it is hidden."""
        if self.is_hidden is not None and self.is_hidden(uri):
            return
        self.announce(RESOURCE_UPDATED, uri)

    def announce_page_done(self, elicitation_id: str) -> None:
        """Tell the session that was sent to a page that it was dealt with, and nobody else."""
        self.announce(ELICITATION_COMPLETE, elicitation_id)

    def close(self) -> None:
        """The server stops: end every stream, in good order."""
        for listener in tuple(self._streams):
            listener.end()

    def offer_all(self) -> None:
        """Any list may change from now on, also one that has had nothing in it."""
        self._offered |= {TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED}

    def echo(self, hear: "Callable[[Change], None]", tell: Callable[[Inbound, str], None]) -> None:
        """Have a server in which this one is mounted told of what is announced here.

        Args:
            hear: told of what is for everybody.
            tell: told of what is for the sender of a request.
        """
        self._echoes.append(hear)
        self._outer.append(tell)

    def _announce_list(self, method: str) -> None:
        self._offered.add(method)
        self.announce(method, None)

    def announce_to(self, inbound: Inbound, method: str) -> None:
        """Tell of a changed list those on this node who are the sender of a request."""
        owner = owner_of(inbound.principal)
        for listener in (*self._sessions.values(), *self._streams):
            if listener.belongs_to(inbound.link, owner):
                listener.hear(method)
        for tell in self._outer:
            tell(inbound, method)

    def announce_update_to(self, inbound: Inbound, uri: str) -> None:
        """Tell of a changed resource those who are the sender of a request, and subscribed to it here."""
        owner = owner_of(inbound.principal)
        for listener in self._topics.find((RESOURCE_UPDATED, uri)):
            if listener.belongs_to(inbound.link, owner):
                listener.hear(RESOURCE_UPDATED, uri)

    def announce(self, method: str, what: str | None) -> None:
        """Tell the listeners of all nodes; callable from any thread."""
        self.hear_change(method, what)
        for hear in self._echoes:
            hear((method, what))
        if self._broadcast is not None:
            self._broadcast.publish(method, what)

    # Up to 2025-11-25: sessions

    def add_session(self, _params: InitializedParams, inbound: Inbound) -> None:
        """Act on ``notifications/initialized``: this session hears of changes from now on."""
        self._get_session(inbound.link)

    async def subscribe(self, params: SubscribeParams, inbound: Inbound) -> EmptyResult:
        """Handle ``resources/subscribe``.

        Raises:
            Refuse: the session has subscribed to as many as it may.
        """
        listener, topic = self._get_session(inbound.link), (RESOURCE_UPDATED, params.uri)
        if topic not in listener.topics:
            resources = [one for one in listener.topics if one[0] == RESOURCE_UPDATED]
            self._check_count([*resources, topic])
        # Also where it is known here: another node may have ended it just now.
        await inbound.remember(lambda record: _add_subscription(record, params.uri))
        self._topics.join(listener, topic)
        return EmptyResult()

    async def unsubscribe(self, params: UnsubscribeParams, inbound: Inbound) -> EmptyResult:
        """Handle ``resources/unsubscribe``; what was never subscribed to is no mistake."""
        listener, topic = self._get_session(inbound.link), (RESOURCE_UPDATED, params.uri)
        await inbound.remember(lambda record: _drop_subscription(record, params.uri))
        self._topics.leave(listener, topic)
        return EmptyResult()

    def restore_session(self, link: Any, resources: Sequence[str], *, stale: bool) -> None:
        """Go on with a session that was opened elsewhere: it hears of changes from now on.

        Args:
            link: the way to its client.
            resources: the URIs it has subscribed to, there and here.
            stale: what changed until now was told to nobody.
        """
        listener = self._get_session(link)
        wanted = {(RESOURCE_UPDATED, uri) for uri in resources}
        gone = [one for one in listener.topics if one[0] == RESOURCE_UPDATED and one not in wanted]
        self._topics.leave(listener, *gone)
        self._topics.join(listener, *wanted)
        if stale:
            listener.hear_gap()

    def add_page(self, link: Any, elicitation_id: str) -> None:
        """A session's user was sent to a page, and may want to know when it was dealt with."""
        listener = self._sessions.get(link) or self._get_guest(link)
        self._topics.join(listener, (ELICITATION_COMPLETE, elicitation_id))

    def _check_count(self, resources: Collection[Any]) -> None:
        """See to it that these are not too many to hear about.

        Raises:
            Refuse: they are.
        """
        most = self.limits.subscriptions
        if most is not None and len(resources) > most:
            raise Refuse(
                LIMITED_CODE,
                f"Too many resources are subscribed to: {most} at most; unsubscribe from some",
                {"limit": "subscriptions", "most": most},
            )

    @contextmanager
    def _count_stream(self, inbound: Inbound) -> Iterator[None]:
        """Count a stream as its caller's for as long as it is open.

        Raises:
            Refuse: the caller has as many open as it may.
        """
        most, caller = self.limits.streams, identify_caller(inbound)
        if most is not None and self._open[caller] >= most:
            raise Refuse(
                LIMITED_CODE,
                f"Too many streams of changes are open: {most} at most; end one of them",
                {"limit": "streams", "most": most},
            )
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            self._open += Counter()  # only those that have some are kept

    def _get_session(self, link: Any) -> ChangeListener:
        listener = self._sessions.get(link)
        if listener is None:
            # spec 2025-11-25 server/tools#list-changed-notification: of servers that declared it,
            # which this one did of what it offered by now
            listener = self._sessions[link] = ChangeListener(link, self._offered)
            link.on_close(lambda: self._remove_session(link))
        return listener

    def _get_guest(self, link: Any) -> ChangeListener:
        """A session of a server in which this one is mounted; that one tells it of lists."""
        listener = self._guests.get(link)
        if listener is None:
            listener = self._guests[link] = ChangeListener(link, ())
            link.on_close(lambda: self._remove_session(link))
        return listener

    def _remove_session(self, link: Any) -> None:
        for listeners in (self._sessions, self._guests):
            self._remove_listener(listeners.pop(link, None))

    def _remove_listener(self, listener: ChangeListener | None) -> None:
        if listener is not None:
            listener.end()
            self._topics.leave(listener, *listener.topics)

    # Since 2026-07-28: streams

    async def listen(self, params: ListenParams, inbound: Inbound) -> ListenResult:
        """Handle ``subscriptions/listen``: tells until the client cancels or the server stops.

        Raises:
            Refuse: it is more than the caller may listen to.
        """
        granted = self._select_granted(params.notifications)
        self._check_count(granted.resource_subscriptions or ())
        ids = params.notifications.task_ids
        if ids and self.tasks is not None:
            self._check_count(ids)
            granted = structs.replace(granted, task_ids=await self.tasks.granted(ids, inbound))
        with self._count_stream(inbound):
            return await self._serve_stream(granted, inbound)

    async def _serve_stream(self, granted: SubscriptionFilter, inbound: Inbound) -> ListenResult:
        meta = {SUBSCRIPTION_ID: inbound.id}
        listener = ChangeListener(inbound.link, _select_list_methods(granted), inbound.id)
        listener.owner = owner_of(inbound.principal)
        forget = inbound.link.on_close(listener.end)
        self._streams.add(listener)
        uris: Sequence[str] = granted.resource_subscriptions or ()
        if self.sift is not None:
            uris = await self.sift(uris, inbound)
        self._topics.join(listener, *((RESOURCE_UPDATED, uri) for uri in uris))
        try:
            # spec 2026-07-28 basic/patterns/subscriptions#acknowledgment: MUST be the first
            await inbound.link.note(
                "notifications/subscriptions/acknowledged",
                AcknowledgedParams(notifications=granted, meta=meta),
                relates_to=inbound.id,
            )
            listener.release()
            if granted.task_ids:
                listener.on_end(await self.tasks.follow(granted.task_ids, inbound, meta))
            await listener.until_ended()
            # spec 2026-07-28 basic/patterns/cancellation: a server that tears a stream down MUST
            # send notifications/cancelled for it; the answer below is a SHOULD beside that
            await inbound.link.note(
                "notifications/cancelled",
                CancelledParams(request_id=inbound.id, reason="the server ends it", meta=meta),
                relates_to=inbound.id,
            )
        finally:
            listener.end()
            self._streams.discard(listener)
            self._topics.leave(listener, *listener.topics)
            forget()
        # spec 2026-07-28 basic/patterns/subscriptions#graceful-closure: SHOULD answer at the end
        return ListenResult(meta=meta)

    def _select_granted(self, wanted: SubscriptionFilter) -> SubscriptionFilter:
        """The part of a filter that the server can serve."""

        def select(flag: bool | UnsetType, method: str) -> bool | UnsetType:
            return True if flag is True and method in self._offered else UNSET

        uris = wanted.resource_subscriptions
        return SubscriptionFilter(
            tools_list_changed=select(wanted.tools_list_changed, TOOLS_CHANGED),
            prompts_list_changed=select(wanted.prompts_list_changed, PROMPTS_CHANGED),
            resources_list_changed=select(wanted.resources_list_changed, RESOURCES_CHANGED),
            resource_subscriptions=uris if uris and RESOURCES_CHANGED in self._offered else UNSET,
        )


def _add_subscription(record: Any, uri: str) -> Any:
    if uri in record.subscriptions:
        return record
    return structs.replace(record, subscriptions=(*record.subscriptions, uri))


def _drop_subscription(record: Any, uri: str) -> Any:
    rest = tuple(one for one in record.subscriptions if one != uri)
    return structs.replace(record, subscriptions=rest)


def _select_list_methods(granted: SubscriptionFilter) -> list[str]:
    flags = (
        (granted.tools_list_changed, TOOLS_CHANGED),
        (granted.prompts_list_changed, PROMPTS_CHANGED),
        (granted.resources_list_changed, RESOURCES_CHANGED),
    )
    return [method for flag, method in flags if flag is True]
