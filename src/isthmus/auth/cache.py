"""Bounded dictionary and single-flight work: what is remembered up to a bound, what many want and one does."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

T = TypeVar("T")


class BoundedDict(OrderedDict[K, V]):
    """The entries that were set last; what was set longest ago is forgotten first.

    Args:
        most: how many there may be; none at all where it is 0.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.most:
            self.popitem(last=False)


class SingleFlight(Generic[T]):
    """Runs work by its key; who comes while it runs waits for the same.

    Whoever stops waiting does not stop the work: others wait for it, and a refresh token that
    was sent is used up whether or not somebody reads the answer.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        """The number of keys whose work is being done."""
        return len(self._running)

    def __contains__(self, key: Hashable) -> bool:
        """Whether the work of a key is being done."""
        return key in self._running

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work, begun now or by somebody before.

        Raises:
            Exception: whatever the work raised, for everybody who waited.
        """
        task = self._running.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(work())
            self._running[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        try:
            return await asyncio.shield(task)
        finally:
            del task  # which keeps what is raised, and so would this frame

    def _landed(self, key: Hashable, done: asyncio.Task[T]) -> None:
        self._running.pop(key, None)
        if not done.cancelled():
            done.exception()  # nobody may be left who waits for it
