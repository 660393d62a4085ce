"""Jobs: tasks at work in this process, and the book they are written down in.

A :class:`Job` is a task that this process works on. What its client may ask for is a
:class:`~isthmus.tasks.records.TaskRecord` in the store; each change is compared and swapped, and none
follows a final status. When the time to keep it is over, the record goes, and work that still goes on
for it is stopped. Where several nodes share the store, another one may end a task or take it over:
the job finds that out when it next writes, or is told (:mod:`isthmus.tasks.task_nodes`).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, structs

from isthmus.errors import IsthmusError, Refuse, StoreUnavailable
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.kv import KV, StoreFull
from isthmus.tasks.records import (
    TaskRecord,
    decode_record,
    encode_record,
    new_task_id,
    record_key,
)
from isthmus.wire import CallToolResult, InputRequest, TextContent
from isthmus.wire.jsonrpc import ErrorBody, encode
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.tasks.task_nodes import TaskNodes

CANCEL_WAIT_S = 0.5  # that work may take to end once its task was cancelled

# A task is kept at least, whatever was asked for: else nobody could fetch its result.
MIN_TTL_S = 1.0

MAX_LISTED_TASKS = 100_000  # tasks that are listed where their number is not limited

MAX_COUNTED_OWNERS = 10_000  # owners whose tasks are counted without looking into the store

STORE_RETRY_S = 1.0  # from one attempt to write down the end of a task to the next

CLOSE_TIMEOUT_S = 5.0  # that all tasks together may take to be written down when the server stops

MIN_MESSAGE_INTERVAL_S = 1.0  # from one write of a status in words to the next

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
        self._message_timer: asyncio.TimerHandle | None = None
        self._refreshing: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing about it will change any more."""
        return self.record.over

    # Beginning

    @property
    def key(self) -> str:
        """The key of the record."""
        return record_key(self.owner, self.record.id)

    async def create(self, call: bytes | None = None) -> None:
        """Write the record down.

        Args:
            call: the call that it is, sealed, where another node may start it again.

        Raises:
            Refuse: there is no room for it.
            StoreUnavailable: it cannot be written now.
        """
        nodes = self._book.nodes
        try:
            if nodes is not None:
                await nodes.begin(self.key, self.record.ttl, call)
            # spec 2026-07-28 ext-tasks#task-creation: MUST be durable before it is answered with
            version = await self._book.store.cas(
                self.key, encode_record(self.record), 0, self.record.ttl
            )
        except BaseException as error:
            self._book.remove(self)
            self.born.cancel()
            if isinstance(error, StoreFull):
                raise _too_many_error(str(error)) from error
            raise
        self.adopt(version or 0, self.record.ttl)

    def adopt(self, version: int, ttl: float | None) -> None:
        """Work on the record that is in the store.

        Args:
            version: of the record.
            ttl: seconds until it is forgotten, or None.
        """
        self._version = version
        if ttl is not None:
            self._timer = asyncio.get_running_loop().call_later(ttl, self._expire)
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
        if self.record.restarts:  # what was asked before has its keys, and no answer
            base = f"{base}~{self.record.restarts + 1}"
        name = base if key else f"{base}-1"
        while name in self._used:
            number += 1
            name = f"{base}-{number}"
        self._used.add(name)
        return name

    def tell(self, message: str) -> None:
        """Say in words how far it has come; the next change writes it down."""
        if self.over:
            return
        self.record = structs.replace(self.record, message=message, updated=time.time())
        if self._book.nodes is not None and self._message_timer is None:
            # other nodes read what is in the store: it is not older than a client's patience
            self._message_timer = asyncio.get_running_loop().call_later(
                max(MIN_MESSAGE_INTERVAL_S, self.record.poll), self._write_message
            )

    async def finish(self, result: Wire) -> None:
        """It came to a result."""
        failed = isinstance(result, CallToolResult) and bool(result.is_error)
        try:
            await self._write_end(
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
            await self._write_end(status="failed", questions={}, error=error, message=said or None)
        except StoreFull:
            less = ErrorBody(code=error.code, message=said)
            await self._write_end(status="failed", questions={}, error=less, message=said or None)

    # What others say

    async def answer(self, responses: Mapping[str, Raw]) -> None:
        """Take answers to questions; those to none that waits are ignored."""
        # spec 2026-07-28 ext-tasks#task-update-requests: SHOULD ignore keys not outstanding
        taken = {key: self._answers.pop(key) for key in responses if key in self._answers}
        if not taken:
            return
        try:
            await self._write(status="working", questions={})
        except StoreUnavailable:
            if not self.over:
                self._answers.update(taken)  # whoever answers is told, and may come again
            raise
        for key, future in taken.items():
            if not future.done():
                future.set_result(responses[key])

    async def refuse(self, key: str, error: Exception) -> None:
        """The client will not answer a question: whoever asked is told."""
        future = self._answers.get(key)
        if future is not None and not future.done():
            future.set_exception(error)

    async def cancel(self, message: str) -> bool:
        """Stop it; says whether it was not over before.

        Raises:
            StoreUnavailable: that cannot be written down now, and it goes on.
        """
        # spec 2025-11-25 basic/utilities/tasks#task-cancellation: MUST be cancelled before the
        # answer, and stay so
        ended = await self._write(status="cancelled", questions={}, message=message)
        await self.stop()
        return ended

    async def reread(self) -> None:
        """See whether another node has ended it, or works on it now; then the work here ends.

        Raises:
            StoreUnavailable: that cannot be told now.
        """
        if not self.born.done() or self.born.cancelled():
            return
        async with self._lock:
            if not self.over:
                await self._find_version()

    async def end_cancelled(self) -> None:
        """Its work was cancelled."""
        await self._write_end(status="cancelled", questions={}, message="The task was cancelled.")

    async def abandon(self) -> None:
        """End the work and leave the record as it is: another node starts the task again."""
        async with self._lock:
            self.record = structs.replace(self.record, status="cancelled")
            self._end()
        await self.stop()

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
        """Write a change down and tell everybody, unless it is over; says whether it was not.

        Raises:
            StoreFull: there is no room for it.
            StoreUnavailable: it cannot be written now; nothing about the task has changed.
        """
        await asyncio.shield(self.born)
        async with self._lock:
            before = self.record
            if before.over or not await self._swap(changes):
                return False
        if self.over:
            self._end()
        changed = before.status != self.record.status
        self._announce(changed=changed)
        await self._tell_nodes(changed=changed or before.questions != self.record.questions)
        return True

    async def _swap(self, changes: dict[str, Any]) -> bool:
        """Compare and swap the record; says whether the task was still ours."""
        while True:
            before, made = self.record, changes
            if changes["status"] in {"working", "input_required"}:
                # two that write at a time must not lose each other's questions
                made = self._merge_questions(changes)
            record = structs.replace(before, updated=time.time(), **made)
            version = await self._book.store.cas(
                self.key, encode_record(record), self._version, self._remaining_s()
            )
            if version is not None:
                told = self.record.message
                if not record.over and told != before.message:  # while it was written
                    record = structs.replace(record, message=told)
                self.record, self._version = record, version
                return True
            if not await self._find_version():
                return False

    async def _find_version(self) -> bool:
        """Read the record in the store; False where it is not ours any more, and is let go."""
        entry = await self._book.store.get(self.key)
        if entry is None:  # it was forgotten
            self._lose()
            return False
        there = decode_record(entry.value)
        mine = self.record
        if there.over or (there.node, there.restarts) != (mine.node, mine.restarts):
            self._yield_to(there)
            return False
        self._version = entry.version  # a write of ours that we did not hear of
        return True

    def _yield_to(self, there: TaskRecord) -> None:
        """Another node has ended the task, or taken it over: the work here ends."""
        changed = there.status != self.record.status
        # who waits here reads what is in the store, for it is not in the book any more
        self.record = there if there.over else structs.replace(self.record, status="cancelled")
        self._end()
        self._announce(changed=changed and there.over)
        if self._book.nodes is not None:
            self._book.nodes.news.tell(self.key)
        if self.work is not None and self.work is not asyncio.current_task():
            self.work.cancel()

    async def _tell_nodes(self, *, changed: bool) -> None:
        """Tell other nodes that it changed, and, when it is over, that nobody works on it."""
        nodes = self._book.nodes
        if nodes is None:
            return
        if self.over:
            await nodes.end(self.key, self.record)
        if changed:
            await nodes.news.publish(self.key)

    def _write_message(self) -> None:
        self._message_timer = None
        if not self.over:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        """Write down what the task says of itself."""
        try:
            await self._write(status="working", questions={})
        except IsthmusError as error:
            log_warning("the status of a task cannot be written down now: %s", error)

    async def _write_end(self, **changes: Any) -> None:
        """Write the end down, however long the store cannot be reached.

        Raises:
            StoreFull: there is no room for it.
        """
        while True:
            try:
                await self._write(**changes)
            except StoreUnavailable as error:
                log_warning("the end of a task cannot be written down now: %s", error)
                await asyncio.sleep(STORE_RETRY_S)
            else:
                return

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
        for timer in (self._timer, self._message_timer):
            if timer is not None:
                timer.cancel()
        self._message_timer = None
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
        nodes: the other nodes that have the store, or None.
    """

    def __init__(
        self,
        store: KV,
        limits: TaskLimits,
        each: int | None = None,
        nodes: "TaskNodes | None" = None,
    ) -> None:
        self.store = store
        self.nodes = nodes
        self._limits = limits
        self._each = each
        self._jobs: dict[tuple[str, str], Job] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        """The tasks at work."""
        return len(self._jobs)

    async def open(
        self,
        owner: str,
        tool: str,
        ttl: float | None,
        method: str = "tools/call",
        *,
        retry: bool = False,
    ) -> Job:
        """A new task, not written down yet.

        Args:
            owner: whose it is.
            tool: the tool that will run; empty where the request is no call of one.
            ttl: seconds its requestor wants it kept, or None.
            method: the request.
            retry: another node may start it again.

        Raises:
            Refuse: there are too many.
        """
        limits = self._limits
        now = time.time()
        kept = limits.task_ttl if ttl is None else max(MIN_TTL_S, ttl)
        if limits.max_task_ttl is not None:
            kept = min(kept or limits.max_task_ttl, limits.max_task_ttl)
        # spec 2025-11-25 basic/utilities/tasks#resource-management: SHOULD limit tasks of one
        # requestor, and their ttl
        if self.nodes is None:
            await self._check(f"task/{owner}/", self._each, "of yours")
            await self._check("task/", limits.tasks, "in all")
        else:
            await self._take_places(self.nodes, owner, kept)
        record = TaskRecord(
            id=new_task_id(),
            tool=tool,
            method=method,
            created=now,
            updated=now,
            ttl=kept,
            poll=limits.task_poll,
            node="" if self.nodes is None else self.nodes.id,
            retry=retry and self.nodes is not None,
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

    async def _take_places(self, nodes: "TaskNodes", owner: str, ttl: float | None) -> None:
        """Take a place for one task more, of those that all nodes have.

        Raises:
            Refuse: there is none.
            StoreUnavailable: that cannot be told now.
        """
        each, most = self._each, self._limits.tasks
        name = f"each/{owner}"
        if each is not None and not await nodes.places.take(name, each, ttl):
            raise _too_many_error(f"{each} tasks of yours are kept already")
        if most is not None and not await nodes.places.take("all", most, ttl):
            if each is not None:
                nodes.places.give_back(name)
            raise _too_many_error(f"{most} tasks in all are kept already")

    async def find(self, owner: str, id: str) -> TaskRecord | None:
        """The record of a task; None where its owner has none of this id.

        One whose node has ended is settled first: it has failed, or works here. Where there are
        other nodes, the store is read in any case: one of them may have ended the task.

        Raises:
            StoreUnavailable: nobody can tell now.
        """
        job = self._jobs.get((owner, id))
        if job is not None and job.born.done():
            if self.nodes is not None:
                await job.reread()
            if self.nodes is None or (owner, id) in self._jobs:
                return job.record
        entry = await self.store.get(record_key(owner, id))
        record = None if entry is None else decode_record(entry.value)
        if record is None or self.nodes is None or not await self.nodes.is_orphan(owner, record):
            return record
        return await self.nodes.settle(owner, id)

    def adopt(self, owner: str, record: TaskRecord) -> Job:
        """A job for a task that another node worked on; it is not ours yet."""
        job = Job(self, owner, record)
        self._jobs[owner, record.id] = job
        return job

    async def all(self, owner: str) -> list[TaskRecord]:
        """Every task of one owner."""
        most = self._each or self._limits.tasks or MAX_LISTED_TASKS
        entries = await self.store.scan(f"task/{owner}/", "", most)
        records = [decode_record(entry.value) for _, entry in entries]
        if self.nodes is not None:
            records = [await self._settle(self.nodes, owner, record) for record in records]
        jobs = self._jobs
        return [jobs[owner, r.id].record if (owner, r.id) in jobs else r for r in records]

    async def _settle(self, nodes: "TaskNodes", owner: str, record: TaskRecord) -> TaskRecord:
        if not await nodes.is_orphan(owner, record):
            return record
        return await nodes.settle(owner, record.id) or record

    def job(self, owner: str, id: str) -> Job | None:
        """The work on a task, while it goes on in this process."""
        return self._jobs.get((owner, id))

    def remove(self, job: Job) -> None:
        """A task is over."""
        self._jobs.pop((job.owner, job.record.id), None)

    def jobs(self) -> list[Job]:
        """The tasks at work that are written down."""
        return [job for job in self._jobs.values() if job.born.done()]

    async def close(self) -> None:
        """Cancel every task, but leave to other nodes what they may start again."""
        jobs = self.jobs()
        if not jobs:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.gather(*(_close_job(job) for job in jobs))
        except TimeoutError:
            log_warning("not all tasks could be written down before the server stopped")


async def _close_job(job: Job) -> None:
    """End the work on a task because the server stops."""
    if job.record.retry:
        await job.abandon()
        return
    try:
        await job.cancel("The server stopped.")
    except StoreUnavailable as error:  # other nodes find out that this one has ended
        log_failure("the end of a task", error)
        await job.stop()


def _too_many_error(why: str) -> Refuse:
    return Refuse(LIMITED_CODE, f"Too many tasks: {why}; each is forgotten when its ttl is over")


def _first_text(result: Any) -> str | None:
    """The first words of a tool's result."""
    for block in result.content:
        if isinstance(block, TextContent):
            return block.text[:MAX_STATUS_CHARS] or None
    return None
