"""Tasks over nodes: who works on a task, and what becomes of it when that node has ended.

Work stays where it was born. Any node reads a task's record; answers to its questions are mailed to
the node that works on it, and a cancellation is written into the record, where that node finds it.
A task whose node has ended has failed, with words that say that its outcome is not known; one whose
tool says ``retry_safe=True`` is started again by one other node. Both is a compare-and-swap of the
record, so that it happens once, whoever notices: a reader, or all other nodes at the same time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, structs

from isthmus.errors import IsthmusError, Refuse, Refused, StoreUnavailable
from isthmus.nodes.node import OUTCOME_UNKNOWN, Node
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.kv import KV
from isthmus.store.mailbox import MailRefused, MailUndelivered
from isthmus.tasks.jobs import Job, TaskBook
from isthmus.tasks.records import (
    TaskRecord,
    decode_record,
    encode_record,
    find_remaining_s,
    read_record_key,
    record_key,
)
from isthmus.tasks.task_news import TaskNews
from isthmus.tasks.task_places import TaskPlaces
from isthmus.tasks.work_index import WorkIndex
from isthmus.wire.jsonrpc import ErrorBody

MAX_RESTARTS = 3  # of one task because its node had ended

MAX_SWAP_ATTEMPTS = 32  # while others change the same record

# It is shorter than a node's lease: when the end of a node that settles tasks is seen, this has ended.
SETTLING_TTL_S = 5.0

SETTLING_RETRY_S = 2.0

ANSWER_TOPIC = "tasks/answer"
REFUSAL_TOPIC = "tasks/refuse"
STOP_TOPIC = "tasks/stop"


class TaskAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Answers to questions of a task, on their way to the node that works on it."""

    key: str
    responses: dict[str, bytes]


class TaskRefusal(msgspec.Struct, frozen=True, array_like=True):
    """The error that a client answered a question with, on its way to the node that asks."""

    key: str
    question: str
    code: int
    message: str
    data: Any = None


_encode = msgspec.msgpack.Encoder().encode
_decode_answer = msgspec.msgpack.Decoder(TaskAnswer).decode
_decode_refusal = msgspec.msgpack.Decoder(TaskRefusal).decode

Restart = Callable[[Job, bytes], Awaitable[None]]
"""Starts a task again, from its sealed call; raises what makes that impossible."""


class TaskNodes:
    """The tasks of this node among those of the others.

    Args:
        node: this process among those that serve together.
        kv: the store of the tasks.
        restart: starts a task again.

    Attributes:
        id: of this node.
        news: what is told of changes.
        places: how many tasks there may be.
    """

    def __init__(self, node: Node, kv: KV, restart: Restart) -> None:
        if node.bus is None or node.mailbox is None:
            raise StoreUnavailable("there is no store")
        self.id = node.id
        self.news = TaskNews(node.bus)
        self.places = TaskPlaces(kv)
        self._mailbox = node.mailbox
        self._node = node
        self._kv = kv
        self._restart = restart
        self._index = WorkIndex(kv, node)
        self._settling: dict[str, asyncio.Task[TaskRecord | None]] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._sweep_again = False
        self._is_open = False
        self._book: TaskBook
        self._mailbox.handle(ANSWER_TOPIC, self._take_answer)
        self._mailbox.handle(REFUSAL_TOPIC, self._take_refusal)
        self._mailbox.handle(STOP_TOPIC, self._take_stop)
        node.on_death(self._hear_death)
        node.on_return(self.recheck)

    def serve(self, book: TaskBook) -> None:
        """Take the book whose tasks these are."""
        self._book = book

    def open(self) -> None:
        """Settle tasks whose node has ended, from now on: this node has joined the others."""
        self._is_open = True

    async def join(self) -> None:
        """Join the others, and settle what nodes left that have ended."""
        self.open()
        self._start_sweep()

    async def close(self) -> None:
        """Settle nothing more, and hear nothing more: this node leaves the others."""
        self._is_open = False
        sweeping, self._sweeping = self._sweeping, None
        tasks = [task for task in (sweeping, *self._settling.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.news.close()

    # The work of this node

    async def begin(self, key: str, ttl: float | None, call: bytes | None = None) -> None:
        """Write down that this node works on a task, before its record.

        Raises:
            StoreUnavailable: it cannot be written now.
        """
        await self._index.add(key, ttl)
        if call is not None:
            await self._index.put_call(key, call, ttl)

    async def end(self, key: str, record: TaskRecord, node: str | None = None) -> None:
        """Write down that a node, by default this one, does not work on a task any more."""
        try:
            if record.retry:
                await self._index.delete_call(key)
            await self._index.remove(key, node)
        except IsthmusError as error:  # a key without work means nothing, and ends with the task
            log_warning("the end of a task is not in the index: %s", error)

    async def recheck(self) -> None:
        """See which tasks are still this node's: others may have taken it for dead."""
        for job in self._book.jobs():
            try:
                await job.reread()
            except StoreUnavailable as error:
                log_warning("a task of this node cannot be looked at now: %s", error)

    # Tasks of other nodes

    async def is_orphan(self, owner: str, record: TaskRecord) -> bool:
        """Whether nobody works on a task that is not over.

        Raises:
            StoreUnavailable: nobody can tell now.
        """
        if record.over or not record.node:
            return False
        if record.node == self.id:
            return self._is_open and self._book.job(owner, record.id) is None
        return not await self._node.is_alive(record.node)

    async def send_answers(
        self, owner: str, record: TaskRecord, responses: Mapping[str, Raw]
    ) -> None:
        """Have the node that works on a task take answers to its questions.

        Raises:
            StoreUnavailable: it does not say that it has; they may come again.
        """
        key = record_key(owner, record.id)
        plain = {name: bytes(answer) for name, answer in responses.items()}
        await self._send(owner, record, ANSWER_TOPIC, _encode(TaskAnswer(key, plain)))

    async def send_refusal(
        self, owner: str, record: TaskRecord, question: str, error: Refused | Refuse
    ) -> None:
        """Tell the node that works on a task that its client will not answer a question.

        Raises:
            StoreUnavailable: it does not say that it heard it.
        """
        code = error.code or -32603
        refusal = TaskRefusal(
            record_key(owner, record.id), question, code, error.message, error.data
        )
        await self._send(owner, record, REFUSAL_TOPIC, _encode(refusal))

    async def cancel(self, owner: str, id: str, message: str) -> bool:
        """Cancel a task that another node works on; says whether it was not over before.

        Raises:
            StoreUnavailable: it cannot be written now.
        """
        # spec 2025-11-25 basic/utilities/tasks#task-cancellation: MUST be cancelled before the
        # answer, and stay so
        key = record_key(owner, id)
        before = await self._write_cancellation(key, message)
        if before is None:
            return False
        await self.news.publish(key)
        await self.end(key, before, before.node)
        try:
            await self._mailbox.post(before.node, STOP_TOPIC, key.encode())
        except StoreUnavailable as error:  # it finds out when it next writes
            log_warning("the work on a cancelled task cannot be stopped now: %s", error)
        return True

    async def settle(self, owner: str, id: str) -> TaskRecord | None:
        """Settle a task that nobody works on: start it again here, or have it failed.

        Returns:
            The record as it is then; None where it is gone.

        Raises:
            StoreUnavailable: that cannot be done now.
        """
        key = record_key(owner, id)
        task = self._settling.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._settle(owner, id, key))
            self._settling[key] = task
            task.add_done_callback(lambda _: self._settling.pop(key, None))
        return await asyncio.shield(task)

    # Inside

    async def _write_cancellation(self, key: str, message: str) -> TaskRecord | None:
        """Write into a record that the task is cancelled; the record before, None if it was over."""
        for _ in range(MAX_SWAP_ATTEMPTS):
            entry = await self._kv.get(key)
            record = None if entry is None else decode_record(entry.value)
            if entry is None or record is None or record.over:
                return None
            cancelled = structs.replace(
                record, status="cancelled", questions={}, message=message, updated=time.time()
            )
            remaining = find_remaining_s(record)
            if await self._kv.cas(key, encode_record(cancelled), entry.version, remaining):
                return record
        raise StoreUnavailable("a task is changed too often to be cancelled")

    async def _send(self, owner: str, record: TaskRecord, topic: str, body: bytes) -> None:
        try:
            await self._mailbox.send(record.node, topic, body)
        except MailRefused:
            return  # it does not work on this task any more: there is nothing to answer
        except MailUndelivered as error:
            if await self._node.is_alive(record.node):
                raise StoreUnavailable(str(error)) from error
            await self.settle(owner, record.id)

    async def _settle(self, owner: str, id: str, key: str) -> TaskRecord | None:
        for _ in range(MAX_SWAP_ATTEMPTS):
            entry = await self._kv.get(key)
            if entry is None:
                return None
            record = decode_record(entry.value)
            if not await self.is_orphan(owner, record):
                job = self._book.job(owner, id)
                return record if job is None or not job.born.done() else job.record
            if record.retry and record.restarts < MAX_RESTARTS and self._is_open:
                call = await self._index.get_call(key)
                if call is not None:
                    await self._take_over(owner, record, entry.version, call)
                    continue
            await self._fail(key, record, entry.version)
        raise StoreUnavailable("a task is changed too often to be settled")

    async def _take_over(self, owner: str, record: TaskRecord, version: int, call: bytes) -> None:
        """Start a task again here, unless somebody else changed its record first."""
        key, number = record_key(owner, record.id), record.restarts + 1
        taken = structs.replace(
            record,
            node=self.id,
            restarts=number,
            status="working",
            questions={},
            message=f"Its process has ended; started again ({number} of {MAX_RESTARTS}).",
            updated=time.time(),
        )
        ttl = find_remaining_s(record)
        job = self._book.adopt(owner, taken)
        try:
            await self._index.add(key, ttl)
            swapped = await self._kv.cas(key, encode_record(taken), version, ttl)
        except BaseException:
            self._book.remove(job)
            job.born.cancel()
            raise
        if swapped is None:
            self._book.remove(job)
            job.born.cancel()
            await self._index.remove(key)
            return
        job.adopt(swapped, ttl)
        await self._index.remove(key, record.node)
        try:
            await self._restart(job, call)
        except Exception as error:  # noqa: BLE001 - the task is where it is told
            log_failure(f"the restart of a task of tool {record.tool!r}", error)
            await job.fail(ErrorBody(code=-32603, message=OUTCOME_UNKNOWN))
        await self.news.publish(key)

    async def _fail(self, key: str, record: TaskRecord, version: int) -> None:
        """Have a task failed whose node has ended, unless somebody else changed it first."""
        failed = structs.replace(
            record,
            status="failed",
            questions={},
            error=ErrorBody(code=-32603, message=OUTCOME_UNKNOWN),
            message=OUTCOME_UNKNOWN,
            updated=time.time(),
        )
        swapped = await self._kv.cas(key, encode_record(failed), version, find_remaining_s(record))
        if swapped is not None:
            await self.end(key, record, record.node)
            await self.news.publish(key)

    # Nodes that have ended

    async def _hear_death(self, _node: str) -> None:
        if self._is_open:
            self._start_sweep()

    def _start_sweep(self) -> None:
        """Settle the tasks of all nodes that have ended, beside what goes on."""
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep_all())
        else:
            self._sweep_again = True

    async def _sweep_all(self) -> None:
        while True:
            self._sweep_again = False
            try:
                for node, version in await self._index.list_workers():
                    if not await self._node.is_alive(node):
                        await self._sweep(node, version)
            except StoreUnavailable as error:
                log_warning("the tasks of a node that has ended cannot be settled now: %s", error)
            except Exception as error:  # noqa: BLE001 - the next one comes
                log_failure("the tasks of a node that has ended", error)
                return
            else:
                if not self._sweep_again:
                    return
                continue
            await asyncio.sleep(SETTLING_RETRY_S)

    async def _sweep(self, node: str, version: int) -> None:
        """Settle what a node left that has ended, unless another node does."""
        leases = self._node.leases
        lease = await leases.acquire(f"settling/{node}", self.id, SETTLING_TTL_S)
        if lease is None:
            return
        async for key in self._index.list_work(node):
            try:
                await self.settle(*read_record_key(key))
            except (ValueError, msgspec.DecodeError) as error:
                log_failure("what the store has in the place of a task", error)
            await self._index.remove(key, node)
            lease = await leases.renew(lease, SETTLING_TTL_S)
            if lease is None:
                return
        await self._index.forget_worker(node, version)
        await leases.release(lease)

    # Letters

    async def _take_answer(self, body: bytes) -> bytes:
        answer = _decode_answer(body)
        job = self._find_job(answer.key)
        await job.answer({name: Raw(data) for name, data in answer.responses.items()})
        return b""

    async def _take_refusal(self, body: bytes) -> bytes:
        refusal = _decode_refusal(body)
        error = Refused(refusal.code, refusal.message, refusal.data)
        await self._find_job(refusal.key).refuse(refusal.question, error)
        return b""

    async def _take_stop(self, body: bytes) -> bytes:
        await self._find_job(body.decode()).reread()
        return b""

    def _find_job(self, key: str) -> Job:
        job = self._book.job(*read_record_key(key))
        if job is None:
            raise IsthmusError("this node does not work on this task")
        return job
