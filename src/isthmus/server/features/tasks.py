"""Tasks: calls of tools that are answered at once, and whose results are fetched later.

One implementation behind two faces, the core feature of 2025-11-25 and the extension of
2026-07-28: see :mod:`isthmus.tasks.shapes` for how they differ. In the core the client says
that a call is to be a task, in the extension the server does.

The body of such a call asks and tells as always. A question waits in the task until its answer
comes, whichever request brings it, so that nothing runs twice. What is said on the way becomes the
task's status in words, and up to 2025-11-25 it is sent as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.extensions import refuse_undeclared
from isthmus.core.journal import Replay
from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectionLost,
    Refuse,
    Refused,
    StoreUnavailable,
    UsageError,
)
from isthmus.revisions import METHODS
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.askers import DirectAsker, JournalAsker
from isthmus.server.asking.context import Body, Context
from isthmus.server.asking.notifications import CallNotifications
from isthmus.server.asking.requirements import drop_task
from isthmus.server.asking.rounds import (
    ask_directly,
    make_capability_refusal,
    run_and_flush,
    run_rounds,
)
from isthmus.server.guard.limits import Limiters
from isthmus.server.guard.versions import replace_version
from isthmus.server.serve.workers import Workers
from isthmus.server.settings import SharedSettings
from isthmus.store.kv import MemoryKV
from isthmus.tasks.jobs import Job, TaskBook
from isthmus.tasks.receiver import StatusNotifier, TaskReceiver, end_without_result
from isthmus.tasks.records import TaskRecord, task_owner
from isthmus.tasks.shapes import (
    CORE_SHAPE,
    EXTENSION_SHAPE,
    TaskShape,
    decode_question,
    related_task_meta,
    shape_of,
)
from isthmus.wire import (
    IMMEDIATE_RESPONSE,
    TASKS,
    CallToolParams,
    CreateTaskResult,
    EmptyResult,
    InputRequest,
    InputRequiredResult,
    ListTasksParams,
    ListTasksResult,
    ProgressParams,
    ServerTaskRequests,
    ServerTasksCapability,
    Task,
    ToolTasks,
    UpdateTaskParams,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Id, Meta, Wire

if TYPE_CHECKING:
    from isthmus.runtime.middleware import Handler
    from isthmus.server.features.tools import RegisteredTool, Tools
    from isthmus.server.options import TaskSupport
    from isthmus.tasks.task_view import TaskView

# Transports whose other end is the only one: whoever asks there is known.
SINGLE_PEER_TRANSPORTS = frozenset({"memory", "stdio"})


def may_list_tasks(inbound: Inbound) -> bool:
    """Whether the sender of a request is known, so that it may be shown a list of its tasks."""
    # spec 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control: receivers that
    # cannot identify requestors SHOULD NOT declare tasks.list
    return bool(task_owner(inbound)) or inbound.origin.transport in SINGLE_PEER_TRANSPORTS


class Tasks(TaskReceiver):
    """The tasks of one server.

    Args:
        tools: the tools, some of which may be tasks.
        settings: those of the server, shared by all its parts.
    """

    def __init__(self, tools: "Tools", settings: SharedSettings) -> None:
        limits, store = settings.limits, settings.task_store
        self._store = MemoryKV() if store is None else store
        super().__init__(
            TaskBook(self._store, limits, limits.tasks_each),
            lambda: settings.cursor_secret,
            settings.page_size,
        )
        self._tools = tools
        self._settings = settings
        settings.has_tasks = True

    def settle(self) -> None:
        """Take the limits and the store that the server has now: it begins to serve."""
        settings, limits, nodes = self._settings, self._settings.limits, None
        if settings.store is not None:
            from isthmus.tasks.task_nodes import TaskNodes  # most servers are one process

            self._store = settings.task_store or settings.store.kv
            nodes = TaskNodes(settings.node, self._store, self._restart)
            settings.on_join.append(nodes.join)
            if settings.has_joined:
                nodes.open()
        self.book = TaskBook(self._store, limits, limits.tasks_each, nodes)
        if nodes is not None:
            nodes.serve(self.book)

    @property
    def routes(self) -> "Mapping[str, Handler]":
        """Handlers by method."""
        return {**super().routes, "tasks/update": self.update}

    def capability(self, inbound: Inbound) -> ServerTasksCapability:
        """The capability declared in 2025-11-25 to the sender of a request."""
        return ServerTasksCapability(
            cancel={},
            list={} if may_list_tasks(inbound) else UNSET,
            requests=ServerTaskRequests(tools=ToolTasks(call={})),
        )

    async def knows(self, id: str, inbound: Inbound) -> bool:
        """Whether there is a task of this id, and it is its caller's."""
        return await self.book.find(task_owner(inbound), id) is not None

    async def list_all(self, inbound: Inbound) -> list[Task]:
        """All tasks of a caller, as 2025-11-25 lists them."""
        records = await self.book.all(task_owner(inbound))
        return [CORE_SHAPE.make_create_result(record).task for record in records]

    async def close(self) -> None:
        """Cancel whatever still runs, and leave the rest to the other nodes."""
        await self.book.close()
        if self.book.nodes is not None:
            await self.book.nodes.close()

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
        shape = self.choose_shape(tool.name, tool.task, params, inbound)
        if shape is None:
            return None
        if shape is EXTENSION_SHAPE and tool.in_body and not tool.alone:
            return await self._may_become(tool, params, inbound, shape)
        answer = shape.make_create_result(await self._begin(tool, params, inbound, shape))
        if isinstance(answer, CreateTaskResult) and tool.immediate is not None:
            return structs.replace(answer, meta={IMMEDIATE_RESPONSE: tool.immediate})
        return answer

    def choose_shape(
        self, name: str, mode: "TaskSupport | None", params: CallToolParams, inbound: Inbound
    ) -> TaskShape | None:
        """The shape in which a call becomes a task; None where it is to be served as any other.

        Args:
            name: of the tool.
            mode: whether its calls may or must run as tasks; None where they must not.
            params: of the call.
            inbound: the call.

        Raises:
            Refuse: the tool may not be a task, or must be one.
        """
        shape = shape_of(inbound.caller)
        if shape is CORE_SHAPE:
            wanted = params.task is not UNSET
            _check_task_mode(name, mode, wanted=wanted)
        else:
            wanted = shape is not None and mode is not None
        if shape is None and mode == "required":
            # spec 2026-07-28 ext-tasks#capability-negotiation: MUST be -32021
            raise refuse_undeclared(TASKS, f"tools/call of {name!r}", inbound.caller.revision)
        return shape if wanted else None

    async def _begin(
        self, tool: "RegisteredTool", params: CallToolParams, inbound: Inbound, shape: TaskShape
    ) -> TaskRecord:
        """Start a task, and say how it stands at its beginning."""
        job = await self.open_job(params, inbound, retry=tool.retry_safe)
        call = None
        if job.record.retry:
            from isthmus.tasks.stored_call import seal_call  # few tools may run twice

            pinned = params if tool.version is None else replace_version(params, tool.version)
            call = seal_call(pinned, inbound, self._settings.task_keys, job.key)
        await job.create(call)
        record = job.record
        if shape is CORE_SHAPE:  # since 2026-07-28 only streams hear of that
            self.tell(job, inbound)
        self._start(job, tool, params, inbound, shape)
        return record

    async def _restart(self, job: Job, call: bytes) -> None:
        """Start a task of another node again, whose process has ended.

        Raises:
            IsthmusError: it cannot be: its call does not open, or there is no such tool here.
        """
        from isthmus.tasks.stored_call import open_call  # few tools may run twice

        params, inbound = open_call(call, self._settings.task_keys, job.key)
        tool = self._tools.listing.seek(params.name, params.meta)
        shape = shape_of(inbound.caller)
        if tool is None or shape is None or not tool.retry_safe:
            raise UsageError(
                f"tool {params.name!r} is not declared retry_safe here, so its task is not run again"
            )
        self._start(job, tool, params, inbound, shape)

    def _start(
        self,
        job: Job,
        tool: "RegisteredTool",
        params: CallToolParams,
        inbound: Inbound,
        shape: TaskShape,
    ) -> None:
        """Begin the work on a task."""

        async def way(body: Body) -> Any:
            return await run_as_task(body, inbound, self._settings, job, shape)

        async def work() -> None:
            try:
                result = await self._tools.drive(tool, params, way)
            except BaseException as error:  # noqa: BLE001 - the task is where it is told
                await end_without_result(job, error)
            else:
                await job.finish(result)

        job.start(work())

    async def _may_become(
        self, tool: "RegisteredTool", params: CallToolParams, inbound: Inbound, shape: TaskShape
    ) -> Wire:
        """Serve a call that is answered as any other until its body says otherwise."""
        becoming = BecomingTask(
            lambda: self.open_job(params, inbound), inbound, self._settings, shape
        )

        async def way(body: Body) -> Any:
            return await run_until_task(body, inbound, params, becoming)

        async def work() -> Any:
            try:
                result = await self._tools.drive(tool, params, way)
            except BaseException as error:
                if becoming.job is None or not becoming.begun.done():
                    raise
                await end_without_result(becoming.job, error)
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
        return shape.make_create_result(becoming.begun.result().record)

    async def begin(
        self,
        params: CallToolParams,
        inbound: Inbound,
        shape: TaskShape,
        start: Callable[[Job], Awaitable[Wire]],
    ) -> Wire:
        """Start a task whose work is none of this server's tools.

        Args:
            params: of the call that becomes the task.
            inbound: the call.
            shape: how its caller sees tasks.
            start: gives what the task comes to.

        Returns:
            The answer to the call.

        Raises:
            Refuse: there are too many.
        """
        job = await self.open_job(params, inbound)
        await job.create()
        record = job.record
        if shape is CORE_SHAPE:  # since 2026-07-28 only streams hear of that
            self.tell(job, inbound)

        async def work() -> None:
            try:
                result = await start(job)
            except BaseException as error:  # noqa: BLE001 - the task is where it is told
                await end_without_result(job, error)
            else:
                await job.finish(result)

        job.start(work())
        return shape.make_create_result(record)

    async def open_job(
        self, params: CallToolParams, inbound: Inbound, *, retry: bool = False
    ) -> Job:
        """A new task of the sender of a request, not written down yet.

        Raises:
            Refuse: there are too many.
        """
        wanted = None if params.task is UNSET or params.task.ttl is UNSET else params.task.ttl
        ttl = None if wanted is None else wanted / 1000
        return await self.book.open(task_owner(inbound), params.name, ttl, retry=retry)

    # The methods

    def shape(self, inbound: Inbound) -> TaskShape:
        """The shape in which the caller sees tasks.

        Raises:
            Refuse: it did not declare the extension.
        """
        shape = shape_of(inbound.caller)
        if shape is None:
            # spec 2026-07-28 ext-tasks#protocol-errors: MUST be -32021
            raise refuse_undeclared(TASKS, inbound.method, inbound.caller.revision)
        return shape

    async def attend(self, job: "Job | TaskView", inbound: Inbound) -> None:
        """Put a task's questions to whoever waits for its result, until it is over."""
        await _deliver_questions(job, inbound)

    async def list(self, params: ListTasksParams, inbound: Inbound) -> ListTasksResult:
        """Handle ``tasks/list``.

        Raises:
            Refuse: nobody knows whose tasks to list, or the cursor is not one of ours.
        """
        if not may_list_tasks(inbound):
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
                _check_answer(key, asked, answer)
        owner = task_owner(inbound)
        job = self.book.job(owner, record.id)
        if job is not None:
            await job.answer(params.input_responses)
        elif self.book.nodes is not None and not record.over:
            await self.book.nodes.send_answers(owner, record, params.input_responses)
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

        async def tell(record: TaskRecord) -> None:
            method, params = shape.make_notification(record, revision, meta)
            await link.note(method, params, relates_to=inbound.id)

        stops: list[Callable[[], None]] = []
        for id in ids:
            teller = StatusNotifier(tell)
            stops.append(teller.stop)
            if (stop_one := await self._watch(owner, id, teller)) is not None:
                stops.append(stop_one)

        def stop() -> None:
            for one in stops:
                one()

        return stop

    async def _watch(
        self, owner: str, id: str, teller: StatusNotifier
    ) -> Callable[[], None] | None:
        """Have a listener told how a task stands, now and whenever that changes; what ends it."""
        job, nodes, stop = self.book.job(owner, id), self.book.nodes, None
        if job is not None and nodes is None:
            stop = job.watch(teller.hear)
        record = await self.book.find(owner, id)
        if record is None:
            return stop
        teller.hear(record)
        if nodes is None or record.over:
            return stop
        from isthmus.tasks.task_view import TaskView  # most servers are one process

        view = TaskView(self.book, nodes, owner, record)
        view.watch(teller.hear)
        await view.open()
        return view.close


def _check_task_mode(name: str, mode: "TaskSupport | None", *, wanted: bool) -> None:
    """Hold a call of 2025-11-25 against what its tool allows.

    Raises:
        Refuse: it does not.
    """
    # spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation: SHOULD be -32601 for a task
    # that is forbidden, and MUST be where one is required
    if wanted and mode is None:
        raise Refuse(-32601, f"Method not found: tool {name!r} does not run as a task")
    if not wanted and mode == "required":
        raise Refuse(-32601, f"Method not found: tool {name!r} runs as a task only")


def _check_answer(key: str, asked: InputRequest, answer: Raw) -> None:
    """Hold an answer against what its question's method is answered with.

    Raises:
        Refuse: it does not fit; the question still waits.
    """
    try:
        METHODS[asked.method].decode_result(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refuse(-32602, f"Invalid params: inputResponses: {key}: {error}") from error


async def _deliver_questions(job: "Job | TaskView", inbound: Inbound) -> None:
    """Put a task's questions to whoever waits for its result, until it is over."""
    here = (inbound.link, inbound.id)
    asking: dict[str, asyncio.Task[None]] = {}
    job.waiter = here
    try:
        while not job.over:
            change = job.next_change()
            for key, asked in job.record.questions.items():
                if key not in asking:
                    asking[key] = asyncio.create_task(_send_question(job, key, asked, inbound))
            for key in asking.keys() - job.record.questions.keys():
                asking.pop(key).cancel()  # answered elsewhere, or not wanted any more
            await asyncio.shield(change)
    finally:
        if job.waiter is here:
            job.waiter = None
        for task in asking.values():
            task.cancel()


async def _send_question(
    job: "Job | TaskView", key: str, asked: InputRequest, inbound: Inbound
) -> None:
    """Send one question of a task, and give the task its answer."""
    params = decode_question(asked, inbound.caller.revision)
    # spec 2025-11-25 basic/utilities/tasks#input-required-status: MUST say which task it is for
    params = structs.replace(
        params, meta={**(params.meta or {}), **related_task_meta(job.record.id)}
    )
    try:
        try:
            answer = await inbound.link.call(asked.method, params, Raw, relates_to=inbound.id)
            _check_answer(key, asked, answer)
        except (Refused, Refuse) as error:
            await job.refuse(key, error)
        else:
            await job.answer({key: answer})
    except (ConnectionLost, CallTimedOut):
        return  # it waits for whoever asks for the result next
    except StoreUnavailable as error:
        log_warning("the answer to a question of a task is lost: %s", error)


async def run_as_task(
    body: Body, inbound: Inbound, settings: SharedSettings, job: Job, shape: TaskShape
) -> Any:
    """Run the body of a call that is a task from its beginning.

    Raises:
        Refuse: since 2026-07-28, the client lacks what the body needs.
        Exception: whatever the body raised.
    """
    inside, notes = enter_task(inbound, job, shape, settings.limiters)

    async def within(context: Context) -> Any:
        return await body(TaskContext.of(context, BegunTask(job)))

    asker = TaskAsker(job, inside, settings.workers)
    try:
        return await run_and_flush(ask_directly(within, inside, settings, notes, asker), notes)
    except CapabilityMissing as lack:
        if shape is CORE_SHAPE:
            raise
        raise make_capability_refusal(lack) from lack


async def run_until_task(
    body: Body, inbound: Inbound, params: CallToolParams, becoming: "BecomingTask"
) -> Any:
    """Run the body of a call that may say itself when it becomes a task (since 2026-07-28).

    Raises:
        UsageError: it returned questions as a task, where it has to await them.
        Exception: whatever the body raised.
    """

    async def within(context: Context) -> Any:
        value = await body(TaskContext.of(context, becoming))
        if becoming.job is not None and isinstance(value, InputRequiredResult):
            raise UsageError(
                "a task awaits its questions: do not return any after ctx.start_task()"
            )
        return value

    return await run_rounds(within, inbound, params, params.name, becoming.settings)


class TaskStart(Protocol):
    """The answer to ``ctx.start_task``."""

    async def begin(self, context: "TaskContext", message: str | None) -> bool:
        """Let the call be a task; says whether it is."""
        ...


class BegunTask:
    """A call that is a task already.

    Args:
        job: the task.
    """

    def __init__(self, job: Job) -> None:
        self._job = job

    async def begin(self, _context: "TaskContext", message: str | None) -> bool:
        """True, and the status in words."""
        if message is not None:
            self._job.tell(message)
        return True


class BecomingTask:
    """A call that is no task yet.

    Args:
        open: makes the task.
        inbound: the call.
        settings: those of the server, shared by all its parts.
        shape: how its caller sees tasks.

    Attributes:
        settings: those of the server, shared by all its parts.
        job: the task it has become, or None.
        begun: done when it is one, and written down.
        work: what runs the body.
    """

    def __init__(
        self,
        open: Callable[[], Awaitable[Job]],
        inbound: Inbound,
        settings: SharedSettings,
        shape: TaskShape,
    ) -> None:
        self.job: Job | None = None
        self.begun: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self.work: asyncio.Task[Any] | None = None
        self._open = open
        self._inbound = inbound
        self.settings = settings
        self._shape = shape
        self._lock = asyncio.Lock()

    async def begin(self, context: "TaskContext", message: str | None) -> bool:
        """Let the call be a task from now on.

        Raises:
            Refuse: there are too many.
        """
        async with self._lock:
            if self.job is None:
                await self._begin(context)
        if message is not None and self.job is not None:
            self.job.tell(message)
        return True

    async def _begin(self, context: "TaskContext") -> None:
        await context.calm()
        job = await self._open()
        # spec 2026-07-28 ext-tasks#task-creation: questions SHOULD be settled before the task is
        # answered with; one that a sibling put meanwhile ends this round
        await context.calm()
        job.work = self.work
        self.job = job
        inside, notes = enter_task(self._inbound, job, self._shape, self.settings.limiters)
        asker = TaskAsker(job, inside, self.settings.workers)
        await context.go_on(inside, asker, notes)
        await job.create()
        self.begun.set_result(job)


class TaskContext(Context):
    """The context of a call that is a task, or may become one."""

    __slots__ = ("_start",)

    _start: TaskStart

    @classmethod
    def of(cls, context: Context, start: TaskStart) -> Self:
        """The same context, that can start a task."""
        made = cls.__new__(cls)
        for name in Context.__slots__:
            setattr(made, name, getattr(context, name))
        made._start = start  # noqa: SLF001 - of its own class
        return made

    async def start_task(self, message: str | None = None) -> bool:
        """Go on as a task; see ``Context``."""
        return await self._start.begin(self, message)

    async def calm(self) -> None:
        """Wait until no question of the call is open; where one is, the round ends first."""
        if isinstance(self._asker, JournalAsker):
            await self._asker.calm()

    async def go_on(self, inbound: Inbound, asker: DirectAsker, notes: CallNotifications) -> None:
        """Ask and tell another way from now on, when all is said that was said before."""
        before = self._notes
        self._inbound, self._asker, self._notes = inbound, asker, notes
        await before.finish()


class TaskAsker(DirectAsker):
    """Puts questions into a task.

    Args:
        job: the task.
        inbound: the call it came from.
        workers: the threads for plain functions.
        before: the body's run before this one, where it runs again.
    """

    __slots__ = ("_job",)

    def __init__(
        self, job: Job, inbound: Inbound, workers: Workers, before: Replay | None = None
    ) -> None:
        super().__init__(inbound, workers, before)
        self._job = job

    async def put(self, method: str, params: Wire, key: str | None) -> Raw:
        """Wait until some request brings the answer; no question in a task is another task."""
        return await self._job.ask(method, Raw(encode(drop_task(params))), key)

    def rerun(self, before: Replay) -> "TaskAsker":
        """An asker like this one, for a run after those in ``before``."""
        return TaskAsker(self._job, self._inbound, self._workers, before)


class TaskLink:
    """The way for what a task says before its end.

    Args:
        job: the task.
        inbound: the call it came from.
        shape: how its caller sees tasks.
    """

    def __init__(self, job: Job, inbound: Inbound, shape: TaskShape) -> None:
        self._job = job
        self._inbound = inbound
        self._sends = shape is CORE_SHAPE

    async def note(self, method: str, params: Any = None, *, relates_to: Id | None = None) -> None:  # noqa: ARG002 - the call is answered, nothing relates to it any more
        """Send a notification, where the revision has them for tasks, and keep its words."""
        job, token = self._job, self._inbound.progress_token
        if isinstance(params, ProgressParams) and params.message is not UNSET:
            job.tell(params.message)
        # spec 2026-07-28 ext-tasks#task-status-notifications: neither progress nor messages are
        # supported on tasks
        silent = not self._sends or job.over
        if silent or (isinstance(params, ProgressParams) and token is None):
            return
        link, waiter = job.waiter or (self._inbound.link, None)
        await link.note(method, _with_meta(params, job.record.id), relates_to=waiter)


def _with_meta(params: Any, id: str) -> Any:
    """A notification's parameters, saying which task it belongs to."""
    if isinstance(params, Mapping) or params is None:
        plain = dict(params or {})
        return {**plain, "_meta": {**plain.get("_meta", {}), **related_task_meta(id)}}
    return structs.replace(params, meta={**(params.meta or {}), **related_task_meta(id)})


def enter_task(
    inbound: Inbound, job: Job, shape: TaskShape, limiters: Limiters
) -> tuple[Inbound, CallNotifications]:
    """The call as its task sees it, and what the task says.

    A task hears of progress whether or not its client wants to: it becomes its status in words.
    """
    token = job.record.id if inbound.progress_token is None else inbound.progress_token
    notes = CallNotifications(inbound, limiters, TaskLink(job, inbound, shape))
    return structs.replace(inbound, progress_token=token), notes
