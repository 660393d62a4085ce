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
from isthmus.errors import CallTimedOut, ConnectionLost, Refuse, Refused
from isthmus.revisions import METHODS
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.tasks_records import Record, task_owner
from isthmus.runtime.tasks_shapes import (
    CORE,
    EXTENSION,
    Shape,
    question,
    related,
    shape_of,
)
from isthmus.runtime.tasks_telling import Teller
from isthmus.server.facilities import Facilities
from isthmus.server.running import Body
from isthmus.server.tasks_asking import Becoming, run_as_task, run_until_task
from isthmus.store.kv import MemoryKV
from isthmus.store.tasks import Job, TaskBook
from isthmus.store.tasks_desk import TaskDesk, ended
from isthmus.wire import (
    IMMEDIATE_RESPONSE,
    TASKS,
    CallToolParams,
    CreateTaskResult,
    EmptyResult,
    InputRequest,
    ListTasksParams,
    ListTasksResult,
    ServerTaskRequests,
    ServerTasksCapability,
    ToolTasks,
    UpdateTaskParams,
)
from isthmus.wire.base import Meta, Wire

if TYPE_CHECKING:
    from isthmus.runtime.middleware import Handler
    from isthmus.server.features.tools import RegisteredTool, Tools

__all__ = ["Tasks", "may_list"]

ALONE = frozenset({"memory", "stdio"})
"""Transports whose other end is the only one: whoever asks there is known."""


def may_list(inbound: Inbound) -> bool:
    """Whether the sender of a request is known, so that it may be shown a list of its tasks."""
    # spec 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control: receivers that
    # cannot identify requestors SHOULD NOT declare tasks.list
    return bool(task_owner(inbound)) or inbound.origin.transport in ALONE


class Tasks(TaskDesk):
    """The tasks of one server.

    Args:
        tools: the tools, some of which may be tasks.
        facilities: the server's.
    """

    def __init__(self, tools: "Tools", facilities: Facilities) -> None:
        limits, store = facilities.limits, facilities.task_store
        self._store = MemoryKV() if store is None else store
        super().__init__(
            TaskBook(self._store, limits, limits.tasks_each),
            lambda: facilities.cursor_secret,
            facilities.page_size,
        )
        self._tools = tools
        self._facilities = facilities

    def settle(self) -> None:
        """Take the limits that the server has now: it begins to serve."""
        limits = self._facilities.limits
        self.book = TaskBook(self._store, limits, limits.tasks_each)

    @property
    def routes(self) -> "Mapping[str, Handler]":
        """What serves each method."""
        return {**super().routes, "tasks/update": self.update}

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
        answer = shape.created(await self._begin(tool, params, inbound, shape))
        if isinstance(answer, CreateTaskResult) and tool.immediate is not None:
            return structs.replace(answer, meta={IMMEDIATE_RESPONSE: tool.immediate})
        return answer

    async def _begin(
        self, tool: "RegisteredTool", params: CallToolParams, inbound: Inbound, shape: Shape
    ) -> Record:
        """Start a task, and say how it stands at its beginning."""
        job = await self._open(params, inbound)
        await job.create()
        record = job.record
        if shape is CORE:  # since 2026-07-28 only streams hear of that
            self.tell(job, inbound)

        async def way(body: Body) -> Any:
            return await run_as_task(body, inbound, self._facilities, job, shape)

        async def work() -> None:
            try:
                result = await self._tools.drive(tool, params, way)
            except BaseException as error:  # noqa: BLE001 - the task is where it is told
                await ended(job, error)
            else:
                await job.finish(result)

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
                await ended(becoming.job, error)
                return None
            if becoming.job is not None:
                await becoming.job.finish(result)  # no questions now
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
            try:
                answer: Wire = await task
            finally:
                del task, becoming  # which keep what is raised, and so would this frame
            return answer
        return shape.created(becoming.begun.result().record)

    async def _open(self, params: CallToolParams, inbound: Inbound) -> Job:
        wanted = None if params.task is UNSET or params.task.ttl is UNSET else params.task.ttl
        ttl = None if wanted is None else wanted / 1000
        return await self.book.open(task_owner(inbound), params.name, ttl)

    # The methods

    def shape(self, inbound: Inbound) -> Shape:
        """How the caller sees tasks.

        Raises:
            Refuse: it did not declare the extension.
        """
        shape = shape_of(inbound.caller)
        if shape is None:
            # spec 2026-07-28 ext-tasks#protocol-errors: MUST be -32021
            raise refusal(TASKS, inbound.method, inbound.caller.revision)
        return shape

    async def attend(self, job: Job, inbound: Inbound) -> None:
        """Put a task's questions to whoever waits for its result, until it is over."""
        await _deliver(job, inbound)

    async def list(self, params: ListTasksParams, inbound: Inbound) -> ListTasksResult:
        """Handle ``tasks/list``.

        Raises:
            Refuse: nobody knows whose tasks to list, or the cursor is not one of ours.
        """
        if not may_list(inbound):
            raise Refuse(-32601, "Method not found: tasks are listed to those who authenticate")
        return await super().list(params, inbound)

    async def update(self, params: UpdateTaskParams, inbound: Inbound) -> EmptyResult:
        """Handle ``tasks/update``: answers to questions.

        Raises:
            Refuse: there is no such task, or an answer is not of its question's shape.
        """
        self.shape(inbound)
        record = await self.find(params.task_id, inbound)
        for key, answer in params.input_responses.items():
            asked = record.questions.get(key)
            if asked is not None:
                _check(key, asked, answer)
        job = self.book.job(task_owner(inbound), record.id)
        if job is not None:
            await job.answer(params.input_responses)
        return EmptyResult()

    # Streams of changes

    async def granted(self, ids: Any, inbound: Inbound) -> Any:
        """The tasks of these ids that a stream will be told of.

        Raises:
            Refuse: the client did not declare the extension.
        """
        self.shape(inbound)
        owner = task_owner(inbound)
        return [id for id in dict.fromkeys(ids) if await self.book.find(owner, id) is not None]

    async def follow(self, ids: Any, inbound: Inbound, meta: Meta) -> Callable[[], None]:
        """Tell a stream how tasks stand, now and whenever that changes; returns what ends it."""
        shape, owner, link = self.shape(inbound), task_owner(inbound), inbound.link
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


def _check(key: str, asked: InputRequest, answer: Raw) -> None:
    """Hold an answer against what its question's method is answered with.

    Raises:
        Refuse: it does not fit; the question still waits.
    """
    try:
        METHODS[asked.method].decode_result(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refuse(-32602, f"Invalid params: inputResponses: {key}: {error}") from error


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
