"""Questions that this client answers as tasks (2025-11-25): at once with a task, later with more."""

import os
from collections.abc import Awaitable, Callable

from msgspec import UNSET

from isthmus.client.model.limits import Limits
from isthmus.runtime.inbound import Inbound
from isthmus.store.kv import MemoryKV
from isthmus.tasks.jobs import TaskBook
from isthmus.tasks.receiver import TaskReceiver, end_without_result
from isthmus.tasks.records import task_owner
from isthmus.tasks.shapes import CORE_SHAPE
from isthmus.wire import CreateTaskResult, TaskMetadata
from isthmus.wire.struct import Wire

__all__ = ["TaskAnswers"]


class TaskAnswers(TaskReceiver):
    """The tasks that one server has asked this client for.

    Only that server can ask about them, over the connection it asked for them on.

    Args:
        limits: how many there may be, and for how long.
    """

    def __init__(self, limits: Limits) -> None:
        secret = os.urandom(32)
        super().__init__(TaskBook(MemoryKV(), limits), lambda: secret)

    async def begin(
        self,
        method: str,
        wanted: TaskMetadata,
        inbound: Inbound,
        answer: Callable[[], Awaitable[Wire]],
    ) -> CreateTaskResult:
        """Start to answer a question, and say how its task stands at its beginning.

        Args:
            method: what is asked.
            wanted: what the server says about the task.
            inbound: the request.
            answer: finds the answer.

        Raises:
            Refuse: there are too many.
        """
        ttl = None if wanted.ttl is UNSET else wanted.ttl / 1000
        job = await self.book.open(task_owner(inbound), "", ttl, method)
        await job.create()
        record = job.record
        self.tell(job, inbound)
        stay = inbound.link.on_close(job.drop)  # nobody could fetch the answer any more

        async def work() -> None:
            try:
                result = await answer()
            except BaseException as error:  # noqa: BLE001 - the task is where it is told
                await end_without_result(job, error)
            else:
                await job.finish(result)
            finally:
                stay()

        job.start(work())
        return CORE_SHAPE.created(record)
