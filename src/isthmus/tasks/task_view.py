"""Task view: a task as it looks from a node where somebody waits for it, wherever its work goes on.

The view is told of changes by :class:`~isthmus.tasks.task_news.TaskNews`, and reads the record then.
It reads it after a while in any case: news may be lost, and the node that works may have ended.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw, structs

from isthmus.errors import Refuse, Refused, StoreUnavailable
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.tasks.jobs import TaskBook
from isthmus.tasks.records import TaskRecord, record_key
from isthmus.tasks.task_nodes import TaskNodes

REREAD_INTERVAL_S = 5.0  # from one look at a record to the next where no news come


class TaskView:
    """A task, watched from this node.

    Args:
        book: where it is looked for.
        nodes: the other nodes.
        owner: whose it is.
        record: how it stands.

    Attributes:
        record: how it stood when it was read last.
        waiter: the id of the request that waits for its result, or None.
    """

    def __init__(self, book: TaskBook, nodes: TaskNodes, owner: str, record: TaskRecord) -> None:
        self.record = record
        self.owner = owner
        self.waiter: Any = None
        self._book = book
        self._nodes = nodes
        self._ended = False
        self._news = asyncio.Event()
        self._change: asyncio.Future[None] | None = None
        self._listeners: list[Callable[[TaskRecord], None]] = []
        self._stop_watching: Callable[[], None] | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more is heard of it in this view."""
        return self._ended or self.record.over

    async def open(self) -> None:
        """Begin to follow it.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        key = record_key(self.owner, self.record.id)
        self._stop_watching = await self._nodes.news.watch(key, self._news.set)
        self._news.set()  # it may have changed before
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def close(self) -> None:
        """Follow it no more."""
        if self._stop_watching is not None:
            self._stop_watching()
        if self._following is not None:
            self._following.cancel()

    def next_change(self) -> asyncio.Future[None]:
        """Done when something changes after now."""
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def watch(self, listener: Callable[[TaskRecord], None]) -> None:
        """Have a function told of each new status."""
        self._listeners.append(listener)

    async def answer(self, responses: Mapping[str, Raw]) -> None:
        """Have the node that works on it take answers to its questions.

        Raises:
            StoreUnavailable: it does not say that it has.
        """
        job = self._book.job(self.owner, self.record.id)
        if job is not None:
            await job.answer(responses)
        else:
            await self._nodes.send_answers(self.owner, self.record, responses)

    async def refuse(self, key: str, error: Refused | Refuse) -> None:
        """Tell the node that works on it that a question will not be answered.

        Raises:
            StoreUnavailable: it does not say that it heard it.
        """
        job = self._book.job(self.owner, self.record.id)
        if job is not None:
            await job.refuse(key, error)
        else:
            await self._nodes.send_refusal(self.owner, self.record, key, error)

    async def _follow(self) -> None:
        try:
            while not self.over:
                try:
                    async with asyncio.timeout(REREAD_INTERVAL_S):
                        await self._news.wait()
                except TimeoutError:
                    pass
                self._news.clear()
                await self._reread()
        except Exception as error:  # noqa: BLE001 - who waits must not wait for ever
            log_failure("a task that somebody waits for", error)
            self._ended = True
            self._announce(changed=False)

    async def _reread(self) -> None:
        try:
            record = await self._book.find(self.owner, self.record.id)
        except StoreUnavailable as error:
            log_warning("a task that somebody waits for cannot be read now: %s", error)
            return
        before = self.record
        if record is None:  # it was forgotten
            self._ended = True
            record = structs.replace(before, questions={})
        if record == before and not self._ended:
            return
        self.record = record
        self._announce(
            changed=not self._ended
            and (before.status, before.questions) != (record.status, record.questions)
        )

    def _announce(self, *, changed: bool) -> None:
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)
        if changed:
            for listener in tuple(self._listeners):
                listener(self.record)
