"""How a body asks and tells while it runs as a task: it does what it always does.

A question waits in the task until its answer comes, whichever request brings it, so that nothing
runs twice. What is said on the way becomes the task's status in words, and up to 2025-11-25 it is
sent as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self

from msgspec import UNSET, Raw, structs

from isthmus.core.journal import Replay
from isthmus.errors import CapabilityMissing, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.tasks_shapes import CORE, Shape, related
from isthmus.server.askers import DirectAsker, JournalAsker
from isthmus.server.asking import ask_directly, required, run_rounds, told
from isthmus.server.context import Context
from isthmus.server.facilities import Facilities
from isthmus.server.needs import plain
from isthmus.server.notes import Notes
from isthmus.server.running import Body
from isthmus.server.workers import Workers
from isthmus.store.tasks import Job
from isthmus.wire import CallToolParams, InputRequiredResult, ProgressParams
from isthmus.wire.base import Id, Wire
from isthmus.wire.jsonrpc import encode

__all__ = ["Becoming", "run_as_task", "run_until_task"]


async def run_as_task(
    body: Body, inbound: Inbound, facilities: Facilities, job: Job, shape: Shape
) -> Any:
    """Run the body of a call that is a task from its beginning.

    Raises:
        Refuse: since 2026-07-28, the client lacks what the body needs.
        Exception: whatever the body raised.
    """
    inside, notes = _inside(inbound, job, shape)

    async def within(context: Context) -> Any:
        return await body(TaskContext.of(context, Begun(job)))

    asker = TaskAsker(job, inside, facilities.workers)
    try:
        return await told(ask_directly(within, inside, facilities, notes, asker), notes)
    except CapabilityMissing as lack:
        if shape is CORE:
            raise
        raise required(lack) from lack


async def run_until_task(
    body: Body, inbound: Inbound, params: CallToolParams, becoming: "Becoming"
) -> Any:
    """Run the body of a call that may say itself when it becomes a task (since 2026-07-28).

    Raises:
        UsageError: it returned questions as a task, where it has to await them.
        Exception: whatever the body raised.
    """

    async def within(context: Context) -> Any:
        value = await body(TaskContext.of(context, becoming))
        if becoming.job is not None and isinstance(value, InputRequiredResult):
            raise UsageError("a task awaits its questions: after ctx.start_task(), return none")
        return value

    return await run_rounds(within, inbound, params, params.name, becoming.facilities)


class Start(Protocol):
    """What ``ctx.start_task`` comes to."""

    async def begin(self, context: "TaskContext", message: str | None) -> bool:
        """Let the call be a task; says whether it is."""
        ...


class Begun:
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


class Becoming:
    """A call that is no task yet.

    Args:
        open: makes the task.
        inbound: the call.
        facilities: the server's.
        shape: how its caller sees tasks.

    Attributes:
        facilities: the server's.
        job: the task it has become, or None.
        begun: done when it is one, and written down.
        work: what runs the body.
    """

    def __init__(
        self,
        open: Callable[[], Awaitable[Job]],
        inbound: Inbound,
        facilities: Facilities,
        shape: Shape,
    ) -> None:
        self.job: Job | None = None
        self.begun: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self.work: asyncio.Task[Any] | None = None
        self._open = open
        self._inbound = inbound
        self.facilities = facilities
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
        inside, notes = _inside(self._inbound, job, self._shape)
        asker = TaskAsker(job, inside, self.facilities.workers)
        await context.go_on(inside, asker, notes)
        await job.create()
        self.begun.set_result(job)


class TaskContext(Context):
    """The context of a call that is a task, or may become one."""

    __slots__ = ("_start",)

    _start: Start

    @classmethod
    def of(cls, context: Context, start: Start) -> Self:
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

    async def go_on(self, inbound: Inbound, asker: DirectAsker, notes: Notes) -> None:
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
        return await self._job.ask(method, Raw(encode(plain(params))), key)

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

    def __init__(self, job: Job, inbound: Inbound, shape: Shape) -> None:
        self._job = job
        self._inbound = inbound
        self._sends = shape is CORE

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
        return {**plain, "_meta": {**plain.get("_meta", {}), **related(id)}}
    return structs.replace(params, meta={**(params.meta or {}), **related(id)})


def _inside(inbound: Inbound, job: Job, shape: Shape) -> tuple[Inbound, Notes]:
    """The call as its task sees it, and what the task says.

    A task hears of progress whether or not its client wants to: it becomes its status in words.
    """
    token = job.record.id if inbound.progress_token is None else inbound.progress_token
    notes = Notes(structs.replace(inbound, link=TaskLink(job, inbound, shape)))
    return structs.replace(inbound, progress_token=token), notes
