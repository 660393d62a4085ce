"""Bus over Redis: publish and subscribe, over a connection of its own that is opened again.

Redis forgets a message that nobody hears. While the connection is down, and until every channel is
subscribed to again, messages are lost: then those who asked for it are told of a gap.
"""

import asyncio
import random
from collections.abc import Callable

from isthmus.runtime.failures import log_failure, log_info, log_warning
from isthmus.store.bus import Hear, Unsubscribe
from isthmus.store.redis.client import RedisClient
from isthmus.store.redis.connection import RedisConnection, RedisReplyError, connect
from isthmus.store.store import StoreUnavailable

PING_INTERVAL_S = 1.0  # at which a connection that is silent is tried

MIN_RETRY_DELAY_S = 0.05

MAX_RETRY_DELAY_S = 1.0


class RedisBus:
    """A bus over Redis.

    Args:
        client: the server, over whose connection is published.
        prefix: what the names of all our channels begin with.
    """

    def __init__(self, client: RedisClient, prefix: str) -> None:
        self._client = client
        self._prefix = f"{prefix}c/".encode()
        self._channels: dict[bytes, dict[object, Hear]] = {}
        self._gaps: dict[object, Callable[[], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: RedisConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._ping: asyncio.TimerHandle | None = None
        self._lock = asyncio.Lock()
        self._missed = False

    async def publish(self, channel: str, message: bytes) -> bool:
        """As of a Bus.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        self._client.check_size("a message", message)
        count = await self._client.call("PUBLISH", self._prefix + channel.encode(), message)
        return bool(count)

    async def subscribe(self, channel: str, hear: Hear) -> Unsubscribe:
        """As of a Bus.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        name, key = self._prefix + channel.encode(), object()

        def unsubscribe() -> None:
            listeners = self._channels.get(name, {})
            if listeners.pop(key, None) is not None and not listeners:
                del self._channels[name]
                self._drop_channel(name)

        self._begin()
        self._channels.setdefault(name, {})[key] = hear
        try:
            connection = await self._open()
            # also where another listens already: whoever came before may still wait for the answer
            await self._ask(connection, name)
        except BaseException:
            unsubscribe()
            raise
        return unsubscribe

    def on_gap(self, callback: Callable[[], None]) -> Unsubscribe:
        """As of a Bus."""
        key = object()
        self._gaps[key] = callback
        return lambda: self._gaps.pop(key, None) and None

    async def close(self) -> None:
        """End the connection, and forget who listens."""
        self._begin()
        self._channels.clear()
        if self._ping is not None:
            self._ping.cancel()
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait((opening,))
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end("it was closed here")
        self._lock, self._missed = asyncio.Lock(), False

    # Inside

    def _begin(self) -> None:
        """Forget what belongs to a loop that has ended, where another one runs now."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._connection, self._opening, self._ping = loop, None, None, None
            self._channels.clear()
            self._lock, self._missed = asyncio.Lock(), False

    async def _open(self) -> RedisConnection:
        """The connection, on which all is subscribed to that somebody listens to."""
        async with self._lock:
            if self._connection is not None:
                return self._connection
            made = await connect(self._client.address, self._lose, self._hear)
            try:
                await self._ask(made, *self._channels)
            except BaseException:
                made.end("it was not opened")
                raise
            self._connection = made
            self._ping = asyncio.get_running_loop().call_later(PING_INTERVAL_S, self._try)
        if self._missed:
            self._missed = False
            self._report_gap()
        return made

    async def _ask(self, connection: RedisConnection, *names: bytes) -> None:
        """Subscribe; each name has an answer of its own."""
        try:
            await asyncio.gather(*[connection.send(("SUBSCRIBE", name)) for name in names])
        except RedisReplyError as error:
            raise StoreUnavailable(f"{self._client.name} lets nobody subscribe: {error}") from None

    def _drop_channel(self, name: bytes) -> None:
        if self._connection is not None and not self._connection.lost:
            self._connection.send(("UNSUBSCRIBE", name)).add_done_callback(_take_result)

    def _try(self) -> None:
        """See that the connection lives: it is silent where nobody publishes."""
        if self._connection is not None:
            self._connection.send(("PING",)).add_done_callback(_take_result)
            self._ping = asyncio.get_running_loop().call_later(PING_INTERVAL_S, self._try)

    def _lose(self, lost: RedisConnection, reason: str) -> None:
        if self._connection is not lost:
            return
        self._connection = None
        self._missed = True
        if self._ping is not None:
            self._ping.cancel()
        if self._channels and self._opening is None:
            log_warning("%s: messages are missed: %s", self._client.name, reason)
            self._opening = asyncio.get_running_loop().create_task(self._reopen())

    async def _reopen(self) -> None:
        """Open the connection again, as soon as that can be."""
        delay = MIN_RETRY_DELAY_S
        try:
            while self._channels:
                try:
                    await self._open()
                except StoreUnavailable:
                    await asyncio.sleep(delay * (0.5 + random.random()))  # noqa: S311 - no secret
                    delay = min(2 * delay, MAX_RETRY_DELAY_S)
                else:
                    log_info("%s: messages are heard again", self._client.name)
                    return
        finally:
            self._opening = None

    def _report_gap(self) -> None:
        for callback in tuple(self._gaps.values()):
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - the next one has its own to do
                log_failure("what follows a gap of the bus", error)

    def _hear(self, name: bytes, message: bytes) -> None:
        for key in tuple(self._channels.get(name, ())):
            hear = self._channels.get(name, {}).get(key)
            if hear is None:  # the one before ended this subscription
                continue
            try:
                hear(message)
            except Exception as error:  # noqa: BLE001 - one listener's fault is not another's
                log_failure(f"a listener of {name!r}", error)


def _take_result(future: "asyncio.Future[object]") -> None:
    """Look at a result that nobody waits for, so that nothing complains of it."""
    if not future.cancelled():
        future.exception()
