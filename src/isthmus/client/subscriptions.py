"""Subscriptions to changes on a server, as one stream of them in either era.

This is the client's half of the *Changes* seam. Modern servers tell on the stream of a
``subscriptions/listen`` request what that request asked for; legacy servers tell everybody about
lists, and those who subscribed about resources. Whoever iterates over :class:`ChangeStream` sees no
difference.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, Self, TypeAlias

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.errors import CallTimedOut, IsthmusError, copy_error
from isthmus.revisions import Era
from isthmus.runtime.peer import Peer
from isthmus.wire import (
    AcknowledgedParams,
    ListChangedParams,
    ListenParams,
    Meta,
    ResourceUpdatedParams,
    ServerCapabilities,
    SubscribeParams,
    SubscriptionFilter,
    UnsubscribeParams,
)
from isthmus.wire.meta import SUBSCRIPTION_ID
from isthmus.wire.struct import Id, UnsetType

ChangeKind: TypeAlias = Literal["tools", "prompts", "resources", "resource"]
"""What changed: one of three lists, or one resource."""

# Different changes that may wait to be read; beyond that the oldest is dropped.
MAX_PENDING_CHANGES = 10_000


class Change(msgspec.Struct, frozen=True):
    """Something on the server has changed: list it or read it anew.

    Attributes:
        kind: ``"tools"``, ``"prompts"`` or ``"resources"`` for a list, ``"resource"`` for one.
        uri: the resource, or one below it; empty for a list.
    """

    kind: ChangeKind
    uri: str = ""


class ChangeStream:
    """A stream of changes: iterate over it.

    Changes that have not been read yet are not repeated: a list that changed twice is one change.
    The iteration ends when the server ends the stream.

    Args:
        wanted: what was asked for.

    Attributes:
        granted: what the server agreed to tell; it leaves out what it does not support.
    """

    def __init__(self, wanted: SubscriptionFilter) -> None:
        self.granted = self.wanted = wanted
        self.error: IsthmusError | None = None
        self.subscribed: list[str] = []
        self.acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending: dict[Change, None] = {}
        self._reader: asyncio.Future[None] | None = None
        self._over = False

    def wants(self, change: Change) -> bool:
        """Whether this is one of the changes asked for, and agreed to."""
        return covers_change(self.granted, change)

    def put(self, change: Change) -> None:
        """Let whoever iterates see a change."""
        self._pending[change] = None
        if len(self._pending) > MAX_PENDING_CHANGES:
            del self._pending[next(iter(self._pending))]
        self._wake()

    def end(self, error: IsthmusError | None) -> None:
        """No more changes will come, and why."""
        self._over, self.error = True, error
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        """The next change.

        Raises:
            ConnectionLost: the stream broke; changes may have been missed.
        """
        while not self._pending:
            if self.error is not None:
                raise copy_error(self.error)
            if self._over:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        change = next(iter(self._pending))
        del self._pending[change]
        return change


class ChangeSubscriptions:
    """Streams of changes and subscriptions on one connection.

    Args:
        on_change: told of every change that reaches the client, once however many streams it
            comes on.
        heard: told of every notification of a change, before anybody else is.

    Attributes:
        by_hand: the resources that the program subscribed to itself.
    """

    def __init__(
        self,
        on_change: Callable[[Change], None] | None = None,
        heard: Callable[[Change], None] | None = None,
    ) -> None:
        self._on_change = on_change
        self._heard = heard
        self._all: list[ChangeStream] = []
        self._streams: dict[Id, ChangeStream] = {}
        self._subscribed: dict[str, int] = {}
        self.by_hand: set[str] = set()

    # What the server says

    def publish_change(self, change: Change, meta: Meta | UnsetType) -> None:
        """Tell those who asked for it of a change."""
        if self._heard is not None:
            self._heard(change)
        id = None if meta is UNSET else meta.get(SUBSCRIPTION_ID)
        if id is not None:
            # spec 2026-07-28 basic/patterns/subscriptions#receiving-notifications: clients MUST
            # correlate by the subscription id
            stream = self._streams.get(id)
            if stream is None:
                return
            stream.put(change)
        if id is None:
            # Up to 2025-11-25 nothing was agreed on: who asked hears, whatever the server declared.
            # Since then servers MUST name the subscription; mcp-go does not over stdio.
            for changes in (*self._all, *self._streams.values()):
                if covers_change(changes.wanted, change):
                    changes.put(change)
        if self._on_change is not None and (id is None or self._first(change) in {id, None}):
            self._on_change(change)

    def _first(self, change: Change) -> Id | None:
        """The stream that speaks for all on which a change comes: the one opened first."""
        return next((id for id, stream in self._streams.items() if stream.wants(change)), None)

    def on_list_changed(self, kind: ChangeKind, params: ListChangedParams) -> None:
        """``notifications/*/list_changed``."""
        self.publish_change(Change(kind), params.meta)

    def on_updated(self, params: ResourceUpdatedParams) -> None:
        """``notifications/resources/updated``."""
        self.publish_change(Change("resource", params.uri), params.meta)

    def on_acknowledged(self, params: AcknowledgedParams) -> None:
        """``notifications/subscriptions/acknowledged``."""
        id = None if params.meta is UNSET else params.meta.get(SUBSCRIPTION_ID)
        changes = self._streams.get(id) if isinstance(id, int | str) else None
        if changes is not None:
            changes.granted = params.notifications
            if not changes.acknowledged.done():
                changes.acknowledged.set_result(None)

    # What we ask for

    async def open(
        self, peer: Peer, wanted: SubscriptionFilter, meta: Meta | UnsetType, timeout: float
    ) -> tuple[ChangeStream, asyncio.Task[None] | None]:
        """Ask for changes; returns when the server has agreed to tell them.

        Returns:
            The changes, and the task that holds their stream where they have one.
        """
        changes = ChangeStream(wanted)
        if peer.revision.era is Era.LEGACY:
            await self._subscribe(peer, changes, meta, timeout)
            return changes, None
        params = ListenParams(notifications=wanted, meta=meta)
        task = asyncio.get_running_loop().create_task(self._hold(peer, changes, params))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.wait(
                    (task, changes.acknowledged), return_when=asyncio.FIRST_COMPLETED
                )
        except BaseException as error:
            await cancel_and_wait(task)
            if isinstance(error, TimeoutError):
                raise CallTimedOut(
                    f"no acknowledgement of subscriptions/listen after {timeout:.3g} s"
                ) from None
            raise
        if changes.error is not None:
            raise copy_error(changes.error)
        return changes, task

    async def _hold(self, peer: Peer, changes: ChangeStream, params: ListenParams) -> None:
        """Keep the stream of a ``subscriptions/listen`` request open until it ends."""
        # Read and used without a pause, so this is the id the call gets.
        id = peer.session.next_id()
        self._streams[id] = changes
        try:
            await peer.call("subscriptions/listen", params, Raw)
        except IsthmusError as error:
            changes.end(error)
        else:
            # spec 2026-07-28 basic/patterns/subscriptions#graceful-closure: an answer is the end
            changes.end(None)
        finally:
            self._streams.pop(id, None)

    async def close(
        self,
        peer: Peer | None,
        changes: ChangeStream,
        task: asyncio.Task[None] | None,
        timeout: float,
    ) -> None:
        """Stop listening, and tell the server."""
        changes.end(None)
        if task is not None:
            await cancel_and_wait(task)
            return
        self._all.remove(changes)
        for uri in changes.subscribed:
            self._subscribed[uri] -= 1
            if not self._subscribed[uri]:
                del self._subscribed[uri]
                if peer is not None and peer.lost is None:
                    await unsubscribe_quietly(peer, uri, timeout)

    async def resume(self, peer: Peer, timeout: float) -> None:
        """Subscribe to everything again: the session is another one.

        What changed in between nobody knows, so everything may have.

        Raises:
            Refused, CallTimedOut, ConnectionLost: as it went.
        """
        for uri in sorted({*self._subscribed, *self.by_hand}):
            params = SubscribeParams(uri=uri)
            await peer.call("resources/subscribe", params, Raw, timeout=timeout)
            self.publish_change(Change("resource", uri), UNSET)

    def lost(self, error: IsthmusError) -> None:
        """The connection has ended, and with it every stream."""
        for changes in self._all:
            changes.end(error)

    async def _subscribe(
        self, peer: Peer, changes: ChangeStream, meta: Meta | UnsetType, timeout: float
    ) -> None:
        self._all.append(changes)
        try:
            for uri in changes.wanted.resource_subscriptions or ():
                if uri not in self._subscribed:
                    params = SubscribeParams(uri=uri, meta=meta)
                    await peer.call("resources/subscribe", params, Raw, timeout=timeout)
                self._subscribed[uri] = self._subscribed.get(uri, 0) + 1
                changes.subscribed.append(uri)
        except BaseException:
            await self.close(peer, changes, None, timeout)
            raise


def limit_to_offered(wanted: SubscriptionFilter, offered: ServerCapabilities) -> SubscriptionFilter:
    """The part of a filter that a server of up to 2025-11-25 said it would tell of."""
    absent = {
        f"{kind}_list_changed": UNSET
        for kind in ("tools", "prompts", "resources")
        if (what := getattr(offered, kind)) is UNSET or not what.list_changed
    }
    return structs.replace(wanted, **absent)


def covers_change(filter: SubscriptionFilter, change: Change) -> bool:
    """Whether a filter lets a change through."""
    if change.kind == "resource":
        return any(is_at_or_below(change.uri, uri) for uri in filter.resource_subscriptions or ())
    return bool(getattr(filter, f"{change.kind}_list_changed"))


def is_at_or_below(uri: str, place: str) -> bool:
    """Whether a URI is a place, or lies below it."""
    return uri == place or uri.startswith(place.rstrip("/") + "/")


async def unsubscribe_quietly(peer: Peer, uri: str, timeout: float) -> None:
    """``resources/unsubscribe``, as a courtesy: its failure harms nobody."""
    try:
        await peer.call("resources/unsubscribe", UnsubscribeParams(uri=uri), Raw, timeout=timeout)
    except IsthmusError:
        return


async def cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.wait((task,))
