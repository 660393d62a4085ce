"""Task news: who waits for a task at one node hears of its changes at another.

One channel of the bus has the news of all tasks. News say that something changed, and not what:
whoever hears them reads the record. A node listens from the moment at which somebody there waits.
"""

import asyncio
from collections.abc import Callable

from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_warning
from isthmus.store.bus import Bus, Unsubscribe

TASKS_CHANNEL = "tasks"


class TaskNews:
    """News of tasks, to and from the other nodes.

    Args:
        bus: carries them.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._watchers: dict[str, dict[object, Callable[[], None]]] = {}
        self._lock = asyncio.Lock()
        self._undo: list[Unsubscribe] = []

    async def watch(self, key: str, listener: Callable[[], None]) -> Unsubscribe:
        """Have a function called whenever a task may have changed.

        Args:
            key: of its record.
            listener: what to call.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        async with self._lock:
            if not self._undo:
                self._undo.append(await self._bus.subscribe(TASKS_CHANNEL, self._hear))
                self._undo.append(self._bus.on_gap(self._hear_gap))
        mark = object()
        self._watchers.setdefault(key, {})[mark] = listener

        def stop() -> None:
            watchers = self._watchers.get(key, {})
            watchers.pop(mark, None)
            if not watchers:
                self._watchers.pop(key, None)

        return stop

    async def publish(self, key: str) -> None:
        """Tell all nodes, this one first, that a task has changed."""
        self.tell(key)
        try:
            await self._bus.publish(TASKS_CHANNEL, key.encode())
        except IsthmusError as error:  # who waits reads the record after a while
            log_warning("other nodes cannot be told of a task now: %s", error)

    def tell(self, key: str) -> None:
        """Tell those who wait at this node that a task may have changed."""
        for listener in tuple(self._watchers.get(key, {}).values()):
            listener()

    def close(self) -> None:
        """Hear nothing more."""
        undo, self._undo = self._undo, []
        for unsubscribe in undo:
            unsubscribe()

    def _hear(self, message: bytes) -> None:
        self.tell(message.decode(errors="replace"))

    def _hear_gap(self) -> None:
        for key in tuple(self._watchers):
            self.tell(key)
