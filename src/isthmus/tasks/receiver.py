"""Receiver of tasks: answers what a requestor asks about the tasks that this side has accepted.

A server's tasks are calls of tools, a client's are questions it was asked (2025-11-25). What may be
asked about them is the same: how they stand, and what they came to.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from isthmus.core.pagination import BadCursor, paginate
from isthmus.errors import Refuse, StoreUnavailable
from isthmus.runtime.failures import log_request_failure, make_store_error
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import is_cancellation
from isthmus.store.kv import MemoryKV
from isthmus.tasks.jobs import Job, TaskBook, TaskLimits
from isthmus.tasks.records import TaskRecord, task_owner
from isthmus.tasks.shapes import CORE_SHAPE, TaskShape, decode_task_result, related_task_meta
from isthmus.wire import (
    CancelTaskParams,
    CreateTaskResult,
    GetTaskParams,
    GetTaskPayloadParams,
    ListTasksParams,
    ListTasksResult,
    Task,
    TaskMetadata,
)
from isthmus.wire.jsonrpc import ErrorBody
from isthmus.wire.struct import Meta, Wire

if TYPE_CHECKING:
    from isthmus.runtime.middleware import Handler
    from isthmus.tasks.task_nodes import TaskNodes
    from isthmus.tasks.task_view import TaskView

DEFAULT_PAGE_SIZE = 100  # tasks in a page of a list, where nobody says how many


class TaskReceiver:
    """Serves requests about tasks.

    Args:
        book: the tasks.
        secret: gives what cursors are sealed with.
        page_size: the most tasks in a page of a list.
    """

    def __init__(
        self, book: TaskBook, secret: Callable[[], bytes], page_size: int | None = None
    ) -> None:
        self.book = book
        self._secret = secret
        self._page_size = page_size or DEFAULT_PAGE_SIZE

    @property
    def routes(self) -> "Mapping[str, Handler]":
        """Handlers by method."""
        return {
            "tasks/get": self.get,
            "tasks/result": self.result,
            "tasks/list": self.list,
            "tasks/cancel": self.cancel,
        }

    def shape(self, inbound: Inbound) -> TaskShape:  # noqa: ARG002 - a server has two of them
        """The shape in which the caller sees tasks."""
        return CORE_SHAPE

    async def attend(self, job: "Job | TaskView", inbound: Inbound) -> None:  # noqa: ARG002 - a server's ask
        """Wait for the end of a task, for somebody who waits for its result."""
        while not job.over:
            await asyncio.shield(job.next_change())

    def tell(self, job: Job, inbound: Inbound) -> None:
        """Tell whoever asked for a task how it stands, whenever that changes."""
        job.watch(self.make_notifier(job, inbound).hear)

    def make_notifier(self, job: "Job | TaskView", inbound: Inbound) -> "StatusNotifier":
        """What tells the sender of a request how a task stands."""
        revision = inbound.caller.revision

        async def tell(record: TaskRecord) -> None:
            link, waiter = job.waiter or (inbound.link, None)
            await link.note(*CORE_SHAPE.make_notification(record, revision, {}), relates_to=waiter)

        return StatusNotifier(tell)

    async def get(self, params: GetTaskParams, inbound: Inbound) -> Wire:
        """Handle ``tasks/get``.

        Raises:
            Refuse: there is no such task for this caller.
        """
        shape = self.shape(inbound)
        record = await self.find(params.task_id, inbound)
        return shape.make_get_result(record, inbound.caller.revision)

    async def result(self, params: GetTaskPayloadParams, inbound: Inbound) -> Wire:
        """Handle ``tasks/result``: wait for the end.

        Raises:
            Refuse: there is no such task, or what the task came to is an error.
        """
        owner = task_owner(inbound)
        while not (record := await self.find(params.task_id, inbound)).over:
            job = self.book.job(owner, record.id)
            # spec 2025-11-25 basic/utilities/tasks#result-retrieval: MUST block until the end
            if job is not None:
                await self.attend(job, inbound)
            elif self.book.nodes is not None:
                await self._attend_elsewhere(self.book.nodes, owner, record, inbound)
            else:  # another process works on it, and nobody tells how it stands
                await asyncio.sleep(record.poll)
        if record.error is not None:
            # spec 2025-11-25 basic/utilities/tasks#result-retrieval: MUST be that same error
            data = None if record.error.data is UNSET else record.error.data
            raise Refuse(record.error.code, record.error.message, data)
        if record.result is UNSET:
            raise Refuse(-32603, record.message or "The task was cancelled.")
        result = decode_task_result(record)
        meta: Meta = {} if result.meta is UNSET else result.meta
        # spec 2025-11-25 basic/utilities/tasks#related-task-metadata: MUST be in this answer
        answer: Wire = structs.replace(result, meta={**meta, **related_task_meta(record.id)})
        return answer

    async def _attend_elsewhere(
        self, nodes: "TaskNodes", owner: str, record: TaskRecord, inbound: Inbound
    ) -> None:
        """Wait for the end of a task that another node works on."""
        from isthmus.tasks.task_view import TaskView  # most servers are one process

        view = TaskView(self.book, nodes, owner, record)
        teller = self.make_notifier(view, inbound)
        view.watch(teller.hear)
        try:
            await view.open()
            await self.attend(view, inbound)
        finally:
            teller.stop()
            view.close()

    async def list(self, params: ListTasksParams, inbound: Inbound) -> ListTasksResult:
        """Handle ``tasks/list``.

        Raises:
            Refuse: the cursor is not one of ours.
        """
        owner = task_owner(inbound)
        try:
            page, following = paginate(
                await self.book.all(owner),
                _list_position,
                cursor=None if params.cursor is UNSET else params.cursor,
                size=self._page_size,
                secret=self._secret(),
                scope=f"tasks/list {owner}",
            )
        except BadCursor as error:
            # spec 2025-11-25 basic/utilities/tasks#protocol-errors: MUST be -32602
            raise Refuse(-32602, f"Invalid params: {error}") from error
        tasks: list[Task] = [CORE_SHAPE.make_create_result(record).task for record in page]
        return ListTasksResult(tasks=tasks, next_cursor=UNSET if following is None else following)

    async def cancel(self, params: CancelTaskParams, inbound: Inbound) -> Wire:
        """Handle ``tasks/cancel``.

        Raises:
            Refuse: there is no such task; up to 2025-11-25 also where it is over.
        """
        shape = self.shape(inbound)
        record = await self.find(params.task_id, inbound)
        owner, why = task_owner(inbound), "The task was cancelled by request."
        job, stopped = self.book.job(owner, record.id), False
        if job is not None:
            stopped = await job.cancel(why)
            record = job.record
        elif self.book.nodes is not None and not record.over:
            stopped = await self.book.nodes.cancel(owner, record.id, why)
            record = await self.find(params.task_id, inbound)
        if not stopped and shape is CORE_SHAPE:
            status = CORE_SHAPE.make_create_result(record).task.status
            # spec 2025-11-25 basic/utilities/tasks#task-cancellation: MUST be -32602
            raise Refuse(-32602, f"Cannot cancel task: already in terminal status {status!r}")
        return shape.make_cancel_result(record)

    async def find(self, id: str, inbound: Inbound) -> TaskRecord:
        """A task by its id.

        Raises:
            Refuse: there is no such task for this caller.
        """
        record = await self.book.find(task_owner(inbound), id)
        if record is None:
            # spec 2025-11-25 basic/utilities/tasks#protocol-errors: MUST be -32602; one of
            # somebody else's is told apart by nothing
            raise Refuse(-32602, "Failed to retrieve task: Task not found")
        return record


class TaskAnswers(TaskReceiver):
    """The tasks that one server has asked this client for.

    Only that server can ask about them, over the connection it asked for them on.

    Args:
        limits: how many there may be, and for how long.
    """

    def __init__(self, limits: TaskLimits) -> None:
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
        return CORE_SHAPE.make_create_result(record)


def _list_position(record: TaskRecord) -> str:
    """The place of a task in a list: in the order they were created."""
    return f"{record.created:020.6f} {record.id}"


async def end_without_result(job: Job, error: BaseException) -> None:
    """Write down that a task came to no result."""
    record = job.record
    if isinstance(error, Refuse):
        data = UNSET if error.data is None else error.data
        await job.fail(ErrorBody(code=error.code or -32603, message=str(error), data=data))
        return
    if is_cancellation(error):
        await job.end_cancelled()
        return
    what = f"the task of tool {record.tool!r}" if record.tool else f"a task of {record.method}"
    if isinstance(error, StoreUnavailable):
        await job.fail(make_store_error(what, error))
    else:
        log_request_failure(what, error)
        await job.fail(ErrorBody(code=-32603, message=f"Internal error in {record.method}"))


class StatusNotifier:
    """Tells one listener of one task.

    A status that was overtaken before it could be told is not told: what is next is always how the
    task stands. After the final one there is nothing more to tell.

    Args:
        tell: sends the notification.
    """

    def __init__(self, tell: Callable[[TaskRecord], Awaitable[None]]) -> None:
        self._tell = tell
        self._next: TaskRecord | None = None
        self._running: asyncio.Task[None] | None = None
        self._over = False

    def hear(self, record: TaskRecord) -> None:
        """Take the state of the task now."""
        if self._over:
            return
        self._over = record.over
        self._next = record
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Nobody listens any more."""
        self._over, self._next = True, None

    async def _run(self) -> None:
        try:
            while self._next is not None:
                record, self._next = self._next, None
                await self._tell(record)
        finally:
            self._running = None
