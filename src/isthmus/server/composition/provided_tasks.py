"""Tasks of a server and of its providers, whosever they are."""

from collections.abc import Callable, Sequence
from typing import Any

from isthmus.runtime.inbound import Inbound
from isthmus.server.composition.provider import ItemProvider, ProvidedTasks
from isthmus.wire import Task
from isthmus.wire.struct import Meta


class ComposedTasks:
    """The tasks of a server, and those of its providers.

    Args:
        providers: the providers of the server.
        own: the server's own tasks, or None.
    """

    def __init__(self, providers: Sequence[ItemProvider], own: Any) -> None:
        self._providers = providers
        self._own = own

    @property
    def _all(self) -> list[ProvidedTasks]:
        own = [] if self._own is None else [self._own]
        return [*own, *(one.tasks for one in self._providers if one.tasks is not None)]

    async def knows(self, id: str, inbound: Inbound) -> bool:
        """Whether there is a task of this id, and it is its caller's."""
        for tasks in self._all:
            if await tasks.knows(id, inbound):
                return True
        return False

    async def list_all(self, inbound: Inbound) -> list[Task]:
        """All tasks of a caller (2025-11-25)."""
        return [task for tasks in self._all for task in await tasks.list_all(inbound)]

    async def granted(self, ids: Sequence[str], inbound: Inbound) -> list[str]:
        """The tasks of these ids that a stream will be told of (since 2026-07-28)."""
        found: list[str] = []
        for tasks in self._all:
            found += await tasks.granted([id for id in ids if id not in found], inbound)
        return found

    async def follow(self, ids: Sequence[str], inbound: Inbound, meta: Meta) -> Callable[[], None]:
        """Tell a stream how tasks stand, now and whenever that changes; returns what ends it."""
        stops: list[Callable[[], None]] = []
        for tasks in self._all:
            theirs = await tasks.granted(ids, inbound)
            if theirs:
                stops.append(await tasks.follow(theirs, inbound, meta))

        def stop() -> None:
            for one in stops:
                one()

        return stop
