"""Tasks of a gateway's clients: calls that run as tasks of the server in front, whatever is behind it.

The gateway gives every task itself. What the call becomes at the server behind - a call as any other, a
task of 2025-11-25 or one of the extension - is nobody's business: the task in front says how that stands,
puts its questions, and brings its result.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, structs

from isthmus.errors import Refuse, Refused
from isthmus.server.asking.requirements import drop_task
from isthmus.server.features.tasks import Tasks, enter_task
from isthmus.tasks.receiver import end_without_result
from isthmus.tasks.shapes import CORE_SHAPE, EXTENSION_SHAPE, TaskShape, TaskState, shape_of
from isthmus.wire import Tool, ToolExecution
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.gateway.calls import GatewayCall
    from isthmus.runtime.inbound import Inbound
    from isthmus.server.asking.notifications import CallNotifications
    from isthmus.tasks.jobs import Job

OFFERED_EXECUTION = ToolExecution(task_support="optional")


def offer_as_tasks(tools: Sequence[Wire], inbound: "Inbound") -> Sequence[Wire]:
    """Tools as they are listed to a caller: where its revision has it, each may be called as a task."""
    if shape_of(inbound.caller) is not CORE_SHAPE:
        return tools
    # One that runs as a task only at its server is awaited here for whoever does not want a task.
    return [
        structs.replace(tool, execution=OFFERED_EXECUTION) if isinstance(tool, Tool) else tool
        for tool in tools
    ]


class CallTask:
    """The task that one call is, or may become.

    Args:
        tasks: those of the server in front.
        params: of the call.
        shape: how the caller sees tasks.

    Attributes:
        job: the task, once the call is one.
        created: the answer to the call, once it has become a task on the way.
        notes: says what the task says before its end.
        words: what was last said before the call became a task.
    """

    def __init__(self, tasks: Tasks, params: Any, shape: TaskShape) -> None:
        self.job: Job | None = None
        self.created: Wire | None = None
        self.notes: CallNotifications | None = None
        self.words = ""
        self._tasks = tasks
        self._params = params
        self._shape = shape

    def enter(self, job: "Job", call: "GatewayCall", limiters: Any) -> None:
        """Let a call ask and tell through its task from now on."""
        inside, self.notes = enter_task(call.inbound, job, self._shape, limiters)
        call.inbound = inside
        self.job = job

    async def begin(self, call: "GatewayCall", limiters: Any) -> None:
        """Let a call that is under way be a task from now on.

        Raises:
            Refuse: there are too many.
        """
        job = await self._tasks.open_job(self._params, call.inbound)
        job.work = call.work
        await job.create()
        self.created = self._shape.make_create_result(job.record)
        self.enter(job, call, limiters)

    async def ask(self, method: str, params: Any) -> Raw:
        """Put a question into the task, and wait until some request brings the answer.

        Raises:
            Refuse: the client will not answer.
        """
        assert self.job is not None  # noqa: S101 - the call is a task
        try:
            return await self.job.ask(method, Raw(encode(drop_task(params))), None)
        except Refused as no:
            raise Refuse(no.code, no.message, no.data) from no

    def hear(self, state: TaskState) -> None:
        """Say in words what the task at the server behind says of itself."""
        if self.job is not None and state.message and not state.over:
            self.job.tell(state.message)

    async def run(self, work: Awaitable[Wire]) -> Wire | None:
        """Run a call that may become a task, which then has what it came to."""
        try:
            result = await work
        except BaseException as error:
            if self.job is None:
                raise
            await end_without_result(self.job, error)
            return None
        if self.job is not None:
            await self.job.finish(result)
        return result


class GatewayTasks:
    """The tasks that calls at one endpoint of a gateway become.

    Args:
        tasks: those of the server in front.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def wants_task(self, method: str, params: Any, inbound: "Inbound") -> bool:
        """Whether a client asks for a call to be a task (2025-11-25)."""
        return (
            method == "tools/call"
            and params.task is not UNSET
            and shape_of(inbound.caller) is CORE_SHAPE
        )

    def may_become(self, method: str, params: Any, inbound: "Inbound") -> CallTask | None:
        """The task that a call may become on its way (since 2026-07-28); None where it stays a call."""
        if method != "tools/call" or shape_of(inbound.caller) is not EXTENSION_SHAPE:
            return None
        return CallTask(self._tasks, params, EXTENSION_SHAPE)

    async def begin(
        self,
        params: Any,
        call: "GatewayCall",
        limiters: Any,
        make: Callable[["GatewayCall"], Awaitable[Wire]],
    ) -> Wire:
        """Make a call that is a task from its beginning.

        Args:
            params: of the call.
            call: the call.
            limiters: those of the server in front.
            make: makes it.

        Returns:
            The answer, which names the task.

        Raises:
            Refuse: there are too many.
        """

        async def start(job: "Job") -> Wire:
            task = CallTask(self._tasks, params, CORE_SHAPE)
            task.enter(job, call, limiters)
            call.task = task
            call.work = job.work
            return await make(call)

        return await self._tasks.begin(params, call.inbound, CORE_SHAPE, start)
