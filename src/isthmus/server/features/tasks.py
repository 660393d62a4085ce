"""Tasks: calls of tools that are answered at once, and whose results are fetched later.

One implementation behind two faces, the core feature of 2025-11-25 and the extension of
2026-07-28: see :mod:`isthmus.runtime.tasks_shapes` for how they differ. In the core the client says
that a call is to be a task, in the extension the server does.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.extensions import refusal
from isthmus.core.pagination import BadCursor, paginate
from isthmus.errors import CallTimedOut, ConnectionLost, Refuse, Refused
from isthmus.revisions import METHODS
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import is_over
from isthmus.runtime.tasks_records import Record, owner_of
from isthmus.runtime.tasks_shapes import (
    CORE,
    EXTENSION,
    Shape,
    question,
    related,
    result_of,
    shape_of,
)
from isthmus.runtime.tasks_telling import Teller
from isthmus.server.asking import Body
from isthmus.server.facilities import Facilities
from isthmus.server.running import report
from isthmus.server.tasks_asking import Becoming, run_as_task, run_until_task
from isthmus.store.kv import KV, MemoryKV
from isthmus.store.tasks import Job, TaskBook
from isthmus.wire import (
    TASKS,
    CallToolParams,
    CancelTaskParams,
    EmptyResult,
    GetTaskParams,
    GetTaskPayloadParams,
    InputRequest,
    ListTasksParams,
    ListTasksResult,
    ServerTaskRequests,
    ServerTasksCapability,
    Task,
    ToolTasks,
    UpdateTaskParams,
)
from isthmus.wire.base import Meta, Wire
from isthmus.wire.jsonrpc import ErrorBody

if TYPE_CHECKING:
    from isthmus.runtime.middleware import Handler
    from isthmus.server.features.tools import RegisteredTool, Tools

__all__ = ["Tasks", "may_list"]

PAGE = 100
"""Tasks in a page of a list, where the server does not say how many."""

ALONE = frozenset({"memory", "stdio"})
"""Transports whose other end is the only one: whoever asks there is known."""


def may_list(inbound: Inbound) -> bool:
    """Whether the sender of a request is known, so that it may be shown a list of its tasks."""
    # spec 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control: receivers that
    # cannot identify requestors SHOULD NOT declare tasks.list
    return bool(owner_of(inbound)) or inbound.origin.transport in ALONE


class Tasks:
    """The tasks of one server.

    Args:
        tools: the tools, some of which may be tasks.
        facilities: the server's.
        store: keeps what is known of tasks; in memory, by default.
    """

    def __init__(self, tools: "Tools", facilities: Facilities, store: KV | None = None) -> None:
        limits = facilities.limits
        self.book = TaskBook(MemoryKV() if store is None else store, limits, limits.tasks_each)
        self._tools = tools
        self._facilities = facilities

    @property
    def routes(self) -> "Mapping[str, Handler]":
        """What serves each method."""
        return {
            "tasks/get": self.get,
            "tasks/result": self.result,
            "tasks/list": self.list,
            "tasks/cancel": self.cancel,
            "tasks/update": self.update,
        }

    def capability(self, inbound: Inbound) -> ServerTasksCapability:
        """What is declared in 2025-11-25 to the sender of a request."""
        return ServerTasksCapability(
            cancel={},
            list={} if may_list(inbound) else UNSET,
            requests=ServerTaskRequests(tools=ToolTasks(call={})),
        )

    async def close(self) -> None:
        """Cancel whatever still runs."""
        await self.book.close()

    # Calls that become tasks

    async def call(
        self, tool: "RegisteredTool", params: CallToolParams, inbound: Inbound
    ) -> Wire | None:
        """Serve a ``tools/call`` as a task.

        Returns:
            The answer, or None where it is to be served as any other call.

        Raises:
            Refuse: the tool may not be a task, or must be one; or there are too many.
        """
        shape = shape_of(inbound.caller)
        if shape is CORE:
            wanted = params.task is not UNSET
            _match(tool, wanted=wanted)
        else:
            wanted = shape is not None and tool.task is not None
        if shape is None and tool.task == "required":
            # spec 2026-07-28 ext-tasks#capability-negotiation: MUST be -32021
            raise refusal(TASKS, f"tools/call of {tool.name!r}", inbound.caller.revision)
        if shape is None or not wanted:
            return None
        if shape is EXTENSION and tool.in_body and not tool.alone:
            return await self._may_become(tool, params, inbound, shape)
        return shape.created(await self._begin(tool, params, inbound, shape))

    async def _begin(
        self, tool: "RegisteredTool", params: CallToolParams, inbound: Inbound, shape: Shape
    ) -> Record:
        """Start a task, and say how it stands at its beginning."""
        job = await self._open(params, inbound)
        await job.create()
        record = job.record
        self._watch(job, inbound, shape)

        async def way(body: Body) -> Any:
            return await run_as_task(body, inbound, self._facilities, job, shape)

        async def work() -> None:
            try:
                result = await self._tools.drive(tool, params, way)
            except BaseException as error:  # noqa: BLE001 - the task is where it is told
                await _ended(job, error)
            else:
                await job.finish(result)  # type: ignore[arg-type]  # a tool's result is one

        job.start(work())
        return record

    async def _may_become(
        self, tool: "RegisteredTool", params: CallToolParams, inbound: Inbound, shape: Shape
    ) -> Wire:
        """Serve a call that is answered as any other until its body says otherwise."""
        becoming = Becoming(lambda: self._open(params, inbound), inbound, self._facilities, shape)

        async def way(body: Body) -> Any:
            return await run_until_task(body, inbound, params, becoming)

        async def work() -> Any:
            try:
                result = await self._tools.drive(tool, params, way)
            except BaseException as error:
                if becoming.job is None or not becoming.begun.done():
                    raise
                await _ended(becoming.job, error)
                return None
            if becoming.job is not None:
                await becoming.job.finish(result)  # type: ignore[arg-type]  # no questions now
            return result

        task = becoming.work = asyncio.get_running_loop().create_task(work())
        try:
            await asyncio.wait((task, becoming.begun), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not becoming.begun.done():
                task.cancel()
                await asyncio.wait((task,))
            raise
        if not becoming.begun.done():
            answer: Wire = await task
            return answer
        return shape.created(becoming.begun.result().record)

    async def _open(self, params: CallToolParams, inbound: Inbound) -> Job:
        wanted = None if params.task is UNSET or params.task.ttl is UNSET else params.task.ttl
        ttl = None if wanted is None else wanted / 1000
        return await self.book.open(owner_of(inbound), params.name, ttl)

    def _watch(self, job: Job, inbound: Inbound, shape: Shape) -> None:
        """Tell a session how its task stands; since 2026-07-28 only streams hear of that."""
        if shape is CORE:
            revision = inbound.caller.revision

            async def tell(record: Record) -> None:
                link, waiter = job.waiter or (inbound.link, None)
                await link.note(*shape.note(record, revision, {}), relates_to=waiter)

            job.watch(Teller(tell).hear)

    # The methods

    async def get(self, params: GetTaskParams, inbound: Inbound) -> Wire:
        """Handle ``tasks/get``.

        Raises:
            Refuse: there is no such task for this caller, or it did not declare the extension.
        """
        shape = _shape(inbound)
        record = await self._find(params.task_id, inbound)
        return shape.state(record, inbound.caller.revision)

    async def result(self, params: GetTaskPayloadParams, inbound: Inbound) -> Wire:
        """Handle ``tasks/result``: wait for the end, and put the task's questions meanwhile.

        Raises:
            Refuse: there is no such task, or what the task came to is an error.
        """
        owner = owner_of(inbound)
        while not (record := await self._find(params.task_id, inbound)).over:
            job = self.book.job(owner, record.id)
            if job is None:  # another process works on it
                await asyncio.sleep(record.poll)
            else:
                # spec 2025-11-25 basic/utilities/tasks#result-retrieval: MUST block until the end
                await _deliver(job, inbound)
        if record.error is not None:
            # spec 2025-11-25 basic/utilities/tasks#result-retrieval: MUST be that same error
            data = None if record.error.data is UNSET else record.error.data
            raise Refuse(record.error.code, record.error.message, data)
        if record.result is UNSET:
            raise Refuse(-32603, record.message or "The task was cancelled.")
        result = result_of(record)
        meta: Meta = {} if result.meta is UNSET else result.meta
        # spec 2025-11-25 basic/utilities/tasks#related-task-metadata: MUST be in this answer
        answer: Wire = structs.replace(result, meta={**meta, **related(record.id)})
        return answer

    async def list(self, params: ListTasksParams, inbound: Inbound) -> ListTasksResult:
        """Handle ``tasks/list``.

        Raises:
            Refuse: nobody knows whose tasks to list, or the cursor is not one of ours.
        """
        if not may_list(inbound):
            raise Refuse(-32601, "Method not found: tasks are listed to those who authenticate")
        owner = owner_of(inbound)
        try:
            page, following = paginate(
                await self.book.all(owner),
                _place,
                cursor=None if params.cursor is UNSET else params.cursor,
                size=self._facilities.page_size or PAGE,
                secret=self._facilities.cursor_secret,
                scope=f"tasks/list {owner}",
            )
        except BadCursor as error:
            # spec 2025-11-25 basic/utilities/tasks#protocol-errors: MUST be -32602
            raise Refuse(-32602, f"Invalid params: {error}") from error
        tasks: list[Task] = [CORE.created(record).task for record in page]
        return ListTasksResult(tasks=tasks, next_cursor=UNSET if following is None else following)

    async def update(self, params: UpdateTaskParams, inbound: Inbound) -> EmptyResult:
        """Handle ``tasks/update``: answers to questions.

        Raises:
            Refuse: there is no such task, or an answer is not of its question's shape.
        """
        _shape(inbound)
        record = await self._find(params.task_id, inbound)
        for key, answer in params.input_responses.items():
            asked = record.questions.get(key)
            if asked is not None:
                _check(key, asked, answer)
        job = self.book.job(owner_of(inbound), record.id)
        if job is not None:
            await job.answer(params.input_responses)
        return EmptyResult()

    async def cancel(self, params: CancelTaskParams, inbound: Inbound) -> Wire:
        """Handle ``tasks/cancel``.

        Raises:
            Refuse: there is no such task; up to 2025-11-25 also where it is over.
        """
        shape = _shape(inbound)
        record = await self._find(params.task_id, inbound)
        job = self.book.job(owner_of(inbound), record.id)
        ended = job is not None and await job.cancel("The task was cancelled by request.")
        record = record if job is None else job.record
        if not ended and shape is CORE:
            status = CORE.created(record).task.status
            # spec 2025-11-25 basic/utilities/tasks#task-cancellation: MUST be -32602
            raise Refuse(-32602, f"Cannot cancel task: already in terminal status {status!r}")
        return shape.cancelled(record)

    async def _find(self, id: str, inbound: Inbound) -> Record:
        record = await self.book.find(owner_of(inbound), id)
        if record is None:
            # spec 2025-11-25 basic/utilities/tasks#protocol-errors: MUST be -32602; one of
            # somebody else's is told apart by nothing
            raise Refuse(-32602, "Failed to retrieve task: Task not found")
        return record

    # Streams of changes

    async def granted(self, ids: Any, inbound: Inbound) -> Any:
        """The tasks of these ids that a stream will be told of.

        Raises:
            Refuse: the client did not declare the extension.
        """
        _shape(inbound)
        owner = owner_of(inbound)
        return [id for id in dict.fromkeys(ids) if await self.book.find(owner, id) is not None]

    async def follow(self, ids: Any, inbound: Inbound, meta: Meta) -> Callable[[], None]:
        """Tell a stream how tasks stand, now and whenever that changes; returns what ends it."""
        shape, owner, link = _shape(inbound), owner_of(inbound), inbound.link
        revision = inbound.caller.revision

        async def tell(record: Record) -> None:
            method, params = shape.note(record, revision, meta)
            await link.note(method, params, relates_to=inbound.id)

        stops: list[Callable[[], None]] = []
        for id in ids:
            teller = Teller(tell)
            job = self.book.job(owner, id)
            if job is not None:
                stops.append(job.watch(teller.hear))
            stops.append(teller.stop)
            record = await self.book.find(owner, id)
            if record is not None:
                teller.hear(record)

        def stop() -> None:
            for one in stops:
                one()

        return stop


def _match(tool: "RegisteredTool", *, wanted: bool) -> None:
    """Hold a call of 2025-11-25 against what its tool allows.

    Raises:
        Refuse: it does not.
    """
    # spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation: SHOULD be -32601 for a task
    # that is forbidden, and MUST be where one is required
    if wanted and tool.task is None:
        raise Refuse(-32601, f"Method not found: tool {tool.name!r} does not run as a task")
    if not wanted and tool.task == "required":
        raise Refuse(-32601, f"Method not found: tool {tool.name!r} runs as a task only")


def _shape(inbound: Inbound) -> Shape:
    """How the caller sees tasks.

    Raises:
        Refuse: it did not declare the extension.
    """
    shape = shape_of(inbound.caller)
    if shape is None:
        # spec 2026-07-28 ext-tasks#protocol-errors: MUST be -32021
        raise refusal(TASKS, inbound.method, inbound.caller.revision)
    return shape


def _place(record: Record) -> str:
    """Where a task stands in a list: in the order they were created."""
    return f"{record.created:020.6f} {record.id}"


def _check(key: str, asked: InputRequest, answer: Raw) -> None:
    """Hold an answer against what its question's method is answered with.

    Raises:
        Refuse: it does not fit; the question still waits.
    """
    try:
        METHODS[asked.method].decode_result(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refuse(-32602, f"Invalid params: inputResponses: {key}: {error}") from error


async def _ended(job: Job, error: BaseException) -> None:
    """Write down that a task came to no result."""
    if isinstance(error, Refuse):
        data = UNSET if error.data is None else error.data
        await job.fail(ErrorBody(code=error.code or -32603, message=str(error), data=data))
    elif is_over(error):
        await job.cancel("The task was cancelled.")
    else:
        report(f"the task of tool {job.record.tool!r}", error)
        await job.fail(ErrorBody(code=-32603, message="Internal error in tools/call"))


async def _deliver(job: Job, inbound: Inbound) -> None:
    """Put a task's questions to whoever waits for its result, until it is over."""
    here = (inbound.link, inbound.id)
    asking: dict[str, asyncio.Task[None]] = {}
    job.waiter = here
    try:
        while not job.over:
            change = job.next_change()
            for key, asked in job.record.questions.items():
                if key not in asking:
                    asking[key] = asyncio.create_task(_put(job, key, asked, inbound))
            for key in asking.keys() - job.record.questions.keys():
                asking.pop(key).cancel()  # answered elsewhere, or not wanted any more
            await asyncio.shield(change)
    finally:
        if job.waiter is here:
            job.waiter = None
        for task in asking.values():
            task.cancel()


async def _put(job: Job, key: str, asked: InputRequest, inbound: Inbound) -> None:
    """Send one question of a task, and give the task its answer."""
    params = question(asked, inbound.caller.revision)
    # spec 2025-11-25 basic/utilities/tasks#input-required-status: MUST say which task it is for
    params = structs.replace(params, meta={**(params.meta or {}), **related(job.record.id)})
    try:
        answer = await inbound.link.call(asked.method, params, Raw, relates_to=inbound.id)
        _check(key, asked, answer)
    except (ConnectionLost, CallTimedOut):
        return  # it waits for whoever asks for the result next
    except (Refused, Refuse) as error:
        await job.refuse(key, error)
    else:
        await job.answer({key: answer})
