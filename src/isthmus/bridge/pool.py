"""Pool of a proxy's connections to the server behind it: one to share, and one for each who needs its own.

Lists, and calls of callers that nobody knows and that cannot be asked, share one connection. Since
2026-07-28 every call states who calls, so that all calls share it. A server of up to 2025-11-25 settles
that once for a connection, and keeps state in it: there each session of a client has its own, and
other callers, without a session, have one for each call at a time, kept for the next of the same principal.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from isthmus.bridge.upstream import (
    NO_CAPABILITIES,
    UpstreamClient,
    askable_part,
    asks_in_result,
    is_askable,
)
from isthmus.client.targets import ClientTarget
from isthmus.core.principal import owner_of
from isthmus.errors import ConnectFailed, ConnectionLost, IsthmusError, Refuse, Refused
from isthmus.revisions.codes import UNAVAILABLE_CODE
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.wire import ClientCapabilities
from isthmus.wire.jsonrpc import encode

REST_AFTER_FAILURE_S = 1.0  # in which nobody tries to connect again

Kept = tuple[str | None, bytes]
"""Whose connections they are, and what can be asked of them."""


class UpstreamPool:
    """The connections of one proxy.

    Args:
        target: the server behind.
        name: of the server behind, for messages.
        options: further arguments of its clients.
        most: how many connections there may be, beside the shared one.
        idle: seconds that an unused connection is kept.
        on_shared: told of each new shared connection.
        on_state: told why there is none, and None when there is one.
    """

    def __init__(
        self,
        target: ClientTarget,
        name: str,
        options: Mapping[str, Any],
        *,
        most: int,
        idle: float,
        on_shared: Callable[[UpstreamClient], None],
        on_state: Callable[[str | None], None],
    ) -> None:
        self.shared: UpstreamClient | None = None
        self.failure: str | None = None
        self._target = target
        self._name = name
        self._options = options
        self._most = most
        self._idle_ttl = idle
        self._on_shared = on_shared
        self._on_state = on_state
        self._opening_since = 0.0
        self._lock = asyncio.Lock()
        self._failed_at = float("-inf")
        self._sessions: dict[int, asyncio.Task[UpstreamClient]] = {}
        self._idle: dict[Kept, list[tuple[UpstreamClient, asyncio.TimerHandle]]] = {}
        self._count = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def is_opening(self) -> bool:
        """Whether the shared connection is being opened."""
        return self._lock.locked()

    @property
    def opening_for(self) -> float:
        """Seconds that the shared connection has been opening."""
        return asyncio.get_running_loop().time() - self._opening_since

    def _on_lost(self, error: ConnectionLost) -> None:
        if not self._is_closed:
            self._on_state(str(error))

    async def get_shared(self) -> UpstreamClient:
        """The shared connection; it is opened where there is none, once for all who need it.

        Raises:
            IsthmusError: the server behind cannot be reached.
        """
        shared = self.shared
        if shared is not None and not shared.is_lost:
            return shared
        async with self._lock:
            shared = self.shared
            if shared is not None and not shared.is_lost:
                return shared
            if shared is not None:
                self._close_soon(shared)
                self.shared = None
            now = asyncio.get_running_loop().time()
            if self.failure is not None and now - self._failed_at < REST_AFTER_FAILURE_S:
                raise ConnectFailed(self.failure)
            self._opening_since = now
            client = UpstreamClient(self._target, NO_CAPABILITIES, self._options)
            try:
                await client.open()
            except IsthmusError as error:
                self.failure, self._failed_at = str(error), asyncio.get_running_loop().time()
                self._on_state(self.failure)
                self._close_soon(client)
                raise
            self.shared, self.failure = client, None
            client.on_lost(self._on_lost)
            self._on_state(None)
            self._on_shared(client)
            return client

    @asynccontextmanager
    async def borrow(self, inbound: Inbound) -> AsyncIterator[UpstreamClient]:
        """The connection for one call.

        Raises:
            IsthmusError: the server behind cannot be reached.
            Refuse: there are too many connections.
        """
        shared = await self.get_shared()
        caller = inbound.caller
        if shared.is_modern:
            yield shared
        elif not asks_in_result(caller.revision):
            yield await self._get_session(inbound)
        elif inbound.principal is None and not is_askable(caller.capabilities):
            yield shared
        else:
            async with self._take(inbound) as own:
                yield own

    # A connection for a session

    async def _get_session(self, inbound: Inbound) -> UpstreamClient:
        link = inbound.link
        key = id(link)
        opening = self._sessions.get(key)
        if opening is not None and opening.done() and self._is_over(opening):
            self._end_session(key)
            opening = None
        if opening is None:
            able = askable_part(inbound.caller.capabilities)
            opening = asyncio.ensure_future(self._open_own(able, is_own=True))
            self._sessions[key] = opening
            link.on_close(lambda: self._end_session(key))
        # Whoever gives up must not take it from the others of this session.
        return await asyncio.shield(opening)

    def _is_over(self, opening: "asyncio.Task[UpstreamClient]") -> bool:
        if opening.cancelled() or opening.exception() is not None:
            return True
        return opening.result().is_lost

    def _end_session(self, key: int) -> None:
        opening = self._sessions.pop(key, None)
        if opening is None:
            return
        if not opening.done():
            opening.cancel()
        elif not opening.cancelled() and opening.exception() is None:
            self._release(opening.result())

    async def _open_own(self, able: ClientCapabilities, *, is_own: bool = False) -> UpstreamClient:
        """Open a connection for one caller.

        Raises:
            Refuse: there are too many.
            IsthmusError: the server behind cannot be reached.
        """
        if self._is_closed:
            raise Refuse(UNAVAILABLE_CODE, f"The proxy to {self._name!r} was closed")
        if self._count >= self._most and not self._drop_oldest_idle():
            raise Refuse(
                UNAVAILABLE_CODE,
                f"Too many connections to {self._name!r} are in use: try again later",
                {"retryAfterMs": 1000},
            )
        self._count += 1
        options = {key: value for key, value in self._options.items() if key != "on_change"}
        client = UpstreamClient(self._target, able, options, is_own=is_own)
        try:
            await client.open()
        except BaseException:
            self._release(client)
            raise
        return client

    # A connection for one call at a time

    @asynccontextmanager
    async def _take(self, inbound: Inbound) -> AsyncIterator[UpstreamClient]:
        able = askable_part(inbound.caller.capabilities)
        key = (owner_of(inbound.principal), encode(able))
        client = self._take_idle(key) or await self._open_own(able)
        try:
            yield client
        except Refused:
            self._put_back(key, client)  # it answered
            raise
        except BaseException:
            # What it still says would reach whoever is next.
            self._release(client)
            raise
        self._put_back(key, client)

    def _put_back(self, key: Kept, client: UpstreamClient) -> None:
        """Keep a connection for the next call of the same caller."""
        if client.is_lost or self._is_closed or not client.is_idle:
            self._release(client)
            return
        timer = asyncio.get_running_loop().call_later(self._idle_ttl, self._expire, key, client)
        self._idle.setdefault(key, []).append((client, timer))

    def _take_idle(self, key: Kept) -> UpstreamClient | None:
        kept = self._idle.get(key)
        while kept:
            client, timer = kept.pop()
            timer.cancel()
            if not kept:
                self._idle.pop(key, None)
            if not client.is_lost:
                return client
            self._release(client)
        return None

    def _expire(self, key: Kept, client: UpstreamClient) -> None:
        kept = [entry for entry in self._idle.pop(key, []) if entry[0] is not client]
        if kept:
            self._idle[key] = kept
        self._release(client)

    def _drop_oldest_idle(self) -> bool:
        for key in self._idle:
            client, timer = self._idle[key][0]
            timer.cancel()
            self._expire(key, client)
            return True
        return False

    # The end

    def _release(self, client: UpstreamClient) -> None:
        self._count -= 1
        self._close_soon(client)

    def _close_soon(self, client: UpstreamClient) -> None:
        task = asyncio.get_running_loop().create_task(self._close(client))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, client: UpstreamClient) -> None:
        try:
            await client.close()
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            log_warning("a connection to %s was not closed well: %s", self._name, error)

    async def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        for key in list(self._sessions):
            self._end_session(key)
        while self._drop_oldest_idle():
            pass
        if self.shared is not None:
            self._close_soon(self.shared)
            self.shared = None
        while self._closing:
            await asyncio.wait(list(self._closing))
        self._is_closed = False
