"""Jobs: tasks at work in this process, and the book they are written down in.

A :class:`Job` is a task that this process works on. What its client may ask for is a
:class:`~isthmus.tasks.records.TaskRecord` in the store; the job alone changes it, each change is
compared and swapped, and none follows a final status. When the time to keep it is over, the record
goes, and work that still goes on for it is stopped.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from msgspec import Raw, structs

from isthmus.errors import Refuse
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.store.kv import KV, StoreFull
from isthmus.tasks.records import TaskRecord, decode_record, encode_record, new_task_id, record_key
from isthmus.wire import CallToolResult, InputRequest, TextContent
from isthmus.wire.jsonrpc import ErrorBody, encode
from isthmus.wire.struct import Wire

CANCEL_WAIT_S = 0.5  # that work may take to end once its task was cancelled

# A task is kept at least, whatever was asked for: else nobody could fetch its result.
MIN_TTL_S = 1.0

MAX_LISTED_TASKS = 100_000  # tasks that are listed where their number is not limited

MAX_COUNTED_OWNERS = 10_000  # owners whose tasks are counted without looking into the store

MAX_STATUS_CHARS = 200  # characters of a result or an error that become a status in words


class Job:
    """A task that this process works on.

    Args:
        book: where it is found.
        owner: whose it is.
        record: how it begins.

    Attributes:
        record: how it stands.
        born: the record is in the store.
        work: what works on it, once that has begun.
        waiter: the id of the request that waits for its result, or None.
    """

    def __init__(self, book: "TaskBook", owner: str, record: TaskRecord) -> None:
        self.record = record
        self.owner = owner
        self.work: asyncio.Task[Any] | None = None
        self.waiter: Any = None
        self.born = asyncio.get_running_loop().create_future()
        self._book = book
        self._version = 0
        self._lock = asyncio.Lock()
        self._answers: dict[str, asyncio.Future[Raw]] = {}
        self._used: set[str] = set()
        self._change: asyncio.Future[None] | None = None
        self._listeners: list[Callable[[TaskRecord], None]] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        """Whether nothing about it will change any more."""
        return self.record.over

    # Beginning

    async def create(self) -> None:
        """Write the record down.

        Raises:
            Refuse: there is no room for it.
        """
        try:
            # spec 2026-07-28 ext-tasks#task-creation: MUST be durable before it is answered with
            version = await self._book.store.cas(
                record_key(self.owner, self.record.id),
                encode_record(self.record),
                0,
                self.record.ttl,
            )
        except BaseException as error:
            self._book.remove(self)
            self.born.cancel()
            if isinstance(error, StoreFull):
                raise _too_many_error(str(error)) from error
            raise
        self._version = version or 0
        if self.record.ttl is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.record.ttl, self._expire)
        self.born.set_result(None)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin to work."""
        self.work = asyncio.get_running_loop().create_task(work)

    # What the work says

    async def ask(self, method: str, params: Raw, key: str | None) -> Raw:
        """Put a question and wait for its answer.

        Raises:
            CancelledError: the task ended first.
            Exception: the client refused to answer.
        """
        await asyncio.shield(self.born)
        key = self._name(key)
        future = self._answers[key] = asyncio.get_running_loop().create_future()
        questions = {**self.record.questions, key: InputRequest(method=method, params=params)}
        try:
            # spec 2025-11-25 basic/utilities/tasks#input-required-status: SHOULD move to
            # input_required
            if not await self._write(status="input_required", questions=questions):
                raise asyncio.CancelledError
            answer: Raw = await future
            return answer
        finally:
            del future  # which keeps what is raised, and so would this frame
            if self._answers.pop(key, None) is not None:
                await self._withdrawn(key)

    def _name(self, key: str | None) -> str:
        """A key that no question of this task has had before: a client answers each key once."""
        base, number = key or "question", 1
        name = base if key else f"{base}-1"
        while name in self._used:
            number += 1
            name = f"{base}-{number}"
        self._used.add(name)
        return name

    def tell(self, message: str) -> None:
        """Say in words how far it has come; the next change writes it down."""
        if not self.over:
            self.record = structs.replace(self.record, message=message, updated=time.time())

    async def finish(self, result: Wire) -> None:
        """It came to a result."""
        failed = isinstance(result, CallToolResult) and bool(result.is_error)
        try:
            await self._write(
                status="completed",
                questions={},
                result=Raw(encode(result)),
                is_error=failed,
                message=_first_text(result) if failed else None,
            )
        except StoreFull as full:
            message = f"There is no room for the result: {full}"
            await self.fail(ErrorBody(code=-32603, message=message))

    async def fail(self, error: ErrorBody) -> None:
        """It came to an error of the protocol."""
        said = error.message[:MAX_STATUS_CHARS]
        try:
            await self._write(status="failed", questions={}, error=error, message=said or None)
        except StoreFull:
            less = ErrorBody(code=error.code, message=said)
            await self._write(status="failed", questions={}, error=less, message=said or None)

    # What others say

    async def answer(self, responses: Mapping[str, Raw]) -> None:
        """Take answers to questions; those to none that waits are ignored."""
        # spec 2026-07-28 ext-tasks#task-update-requests: SHOULD ignore keys not outstanding
        taken = {key: self._answers.pop(key) for key in responses if key in self._answers}
        if not taken:
            return
        await self._write(status="working", questions={})
        for key, future in taken.items():
            if not future.done():
                future.set_result(responses[key])

    async def refuse(self, key: str, error: Exception) -> None:
        """The client will not answer a question: whoever asked is told."""
        future = self._answers.get(key)
        if future is not None and not future.done():
            future.set_exception(error)

    async def cancel(self, message: str) -> bool:
        """Stop it; says whether it was not over before."""
        # spec 2025-11-25 basic/utilities/tasks#task-cancellation: MUST be cancelled before the
        # answer, and stay so
        ended = await self._write(status="cancelled", questions={}, message=message)
        await self.stop()
        return ended

    def drop(self) -> None:
        """Forget it: nobody can ask for it any more."""
        if not self.over:
            self._lose()

    async def stop(self) -> None:
        """End the work, and give it a moment to go."""
        work = self.work
        if work is None or work.done() or work is asyncio.current_task():
            return
        work.cancel()
        await asyncio.wait((work,), timeout=CANCEL_WAIT_S)

    # Being watched

    def next_change(self) -> asyncio.Future[None]:
        """Done when something changes after now."""
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def watch(self, listener: Callable[[TaskRecord], None]) -> Callable[[], None]:
        """Have a function told of each new status; returns how to stop that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    # Inside

    async def _write(self, **changes: Any) -> bool:
        """Write a change down and tell everybody, unless it is over; says whether it was not."""
        await asyncio.shield(self.born)
        async with self._lock:
            before = self.record
            if before.over:
                return False
            if changes["status"] in {"working", "input_required"}:
                # two that write at a time must not lose each other's questions
                changes = self._merge_questions(changes)
            self.record = structs.replace(before, updated=time.time(), **changes)
            try:
                version = await self._book.store.cas(
                    record_key(self.owner, before.id),
                    encode_record(self.record),
                    self._version,
                    self._remaining_s(),
                )
            except StoreFull:
                self.record = before
                raise
            if version is None:  # it was forgotten, or somebody else ended it
                self._lose()
                return False
            self._version = version
        if self.over:
            self._end()
        self._announce(changed=before.status != self.record.status)
        return True

    def _merge_questions(self, changes: dict[str, Any]) -> dict[str, Any]:
        """A change of questions, as those that wait for answers are now."""
        known = {**self.record.questions, **changes["questions"]}
        left = {key: asked for key, asked in known.items() if key in self._answers}
        return {**changes, "questions": left, "status": "input_required" if left else "working"}

    async def _withdrawn(self, key: str) -> None:
        """Nobody waits for the answer to a question any more."""
        if not self.over and key in self.record.questions:
            await self._write(status="working", questions={})

    def _remaining_s(self) -> float | None:
        """Seconds until it is forgotten."""
        if self._timer is None:
            return None
        return max(0.0, self._timer.when() - asyncio.get_running_loop().time())

    def _expire(self) -> None:
        """Its time is over: forget it, and stop what still goes on."""
        # spec 2025-11-25 basic/utilities/tasks#ttl-and-resource-management: MAY be deleted then,
        # whatever its status
        self._lose()

    def _lose(self) -> None:
        self.record = structs.replace(self.record, status="cancelled", questions={})
        self._end()
        self._announce(changed=False)
        if self.work is not None and self.work is not asyncio.current_task():
            self.work.cancel()

    def _end(self) -> None:
        """It is over: let go of everything."""
        if self._timer is not None:
            self._timer.cancel()
        self._book.remove(self)
        for future in self._answers.values():
            future.cancel()

    def _announce(self, *, changed: bool) -> None:
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)
        if changed:
            for listener in tuple(self._listeners):
                listener(self.record)


class TaskLimits(Protocol):
    """Limits on the number of tasks, and on the time they are kept."""

    @property
    def tasks(self) -> int | None:
        """Tasks at a time, at work or kept for their results; None for any number."""
        ...

    @property
    def task_ttl(self) -> float | None:
        """Seconds one is kept whose requestor does not say; None for ever."""
        ...

    @property
    def max_task_ttl(self) -> float | None:
        """The longest time that a requestor may ask for; None for any."""
        ...

    @property
    def task_poll(self) -> float:
        """Seconds that requestors should wait before they ask again how one stands."""
        ...


class TaskBook:
    """Every task that one side has accepted.

    Args:
        store: keeps the records.
        limits: how many there may be, and for how long.
        each: how many of them may be one owner's; None for all.
    """

    def __init__(self, store: KV, limits: TaskLimits, each: int | None = None) -> None:
        self.store = store
        self._limits = limits
        self._each = each
        self._jobs: dict[tuple[str, str], Job] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        """The tasks at work."""
        return len(self._jobs)

    async def open(
        self, owner: str, tool: str, ttl: float | None, method: str = "tools/call"
    ) -> Job:
        """A new task, not written down yet.

        Args:
            owner: whose it is.
            tool: the tool that will run; empty where the request is no call of one.
            ttl: seconds its requestor wants it kept, or None.
            method: the request.

        Raises:
            Refuse: there are too many.
        """
        limits = self._limits
        # spec 2025-11-25 basic/utilities/tasks#resource-management: SHOULD limit tasks of one
        # requestor, and their ttl
        await self._check(f"task/{owner}/", self._each, "of yours")
        await self._check("task/", limits.tasks, "in all")
        now = time.time()
        kept = limits.task_ttl if ttl is None else max(MIN_TTL_S, ttl)
        if limits.max_task_ttl is not None:
            kept = min(kept or limits.max_task_ttl, limits.max_task_ttl)
        record = TaskRecord(
            id=new_task_id(),
            tool=tool,
            method=method,
            created=now,
            updated=now,
            ttl=kept,
            poll=limits.task_poll,
        )
        job = Job(self, owner, record)
        self._jobs[owner, record.id] = job
        return job

    async def _check(self, prefix: str, most: int | None, whose: str) -> None:
        """See to it that there is room for one task more.

        The store is only counted where those made since it was counted last could be too many.

        Raises:
            Refuse: there is not.
        """
        if most is None:
            return
        count = self._counts.get(prefix)
        if count is None or count >= most:
            unborn = sum(
                1
                for (owner, _), job in self._jobs.items()
                if not job.born.done() and f"task/{owner}/".startswith(prefix)
            )
            count = unborn + len(await self.store.scan(prefix, "", most))
        if count >= most:
            raise _too_many_error(f"{most} tasks {whose} are kept already")
        if len(self._counts) >= MAX_COUNTED_OWNERS:
            self._counts.clear()
        self._counts[prefix] = count + 1

    async def find(self, owner: str, id: str) -> TaskRecord | None:
        """The record of a task; None where its owner has none of this id."""
        job = self._jobs.get((owner, id))
        if job is not None and job.born.done():
            return job.record
        entry = await self.store.get(record_key(owner, id))
        return None if entry is None else decode_record(entry.value)

    async def all(self, owner: str) -> list[TaskRecord]:
        """Every task of one owner."""
        most = self._each or self._limits.tasks or MAX_LISTED_TASKS
        entries = await self.store.scan(f"task/{owner}/", "", most)
        records = [decode_record(entry.value) for _, entry in entries]
        jobs = self._jobs
        return [jobs[owner, r.id].record if (owner, r.id) in jobs else r for r in records]

    def job(self, owner: str, id: str) -> Job | None:
        """The work on a task, while it goes on in this process."""
        return self._jobs.get((owner, id))

    def remove(self, job: Job) -> None:
        """A task is over."""
        self._jobs.pop((job.owner, job.record.id), None)

    async def close(self) -> None:
        """Cancel every task."""
        jobs = [job for job in self._jobs.values() if job.born.done()]
        if jobs:
            await asyncio.gather(*(job.cancel("The server stopped.") for job in jobs))


def _too_many_error(why: str) -> Refuse:
    return Refuse(LIMITED_CODE, f"Too many tasks: {why}; each is forgotten when its ttl is over")


def _first_text(result: Any) -> str | None:
    """The first words of a tool's result."""
    for block in result.content:
        if isinstance(block, TextContent):
            return block.text[:MAX_STATUS_CHARS] or None
    return None
