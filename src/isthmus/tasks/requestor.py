"""Requestor of tasks on a server: questions that a client answers as tasks (2025-11-25).

Such a question is answered at once, with a task; what the user or the model says is fetched when
that is over. So it does not hang on one message that must arrive while somebody thinks.
"""

import asyncio
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.errors import (
    CallTimedOut,
    ConnectionLost,
    IsthmusError,
    OutOfPhase,
    Refused,
    TaskCancelled,
)
from isthmus.runtime.inbound import Inbound, Link
from isthmus.tasks.shapes import LenientCreateTaskResult, LenientGetTaskResult, read_poll_interval
from isthmus.wire import (
    CancelTaskParams,
    GetTaskParams,
    GetTaskPayloadParams,
    Task,
    TaskMetadata,
    TaskStatusParams,
)

CANCEL_WAIT_S = 0.5  # that the cancellation of a task may hold up whoever stops waiting for it

# Tasks that may be heard of before the client has said which one a question has become.
MAX_HEARD_TASKS = 100

_decode_created = msgspec.json.Decoder(LenientCreateTaskResult).decode


class TaskRequestor:
    """The questions of one server that its clients have made tasks of."""

    def __init__(self) -> None:
        self._open: dict[Link, list[RequestedTask]] = {}

    def hear(self, params: TaskStatusParams, inbound: Inbound) -> None:
        """Take ``notifications/tasks/status``."""
        for question in self._open.get(inbound.link, ()):
            question.hear(params)

    async def ask(self, method: str, params: Any, inbound: Inbound, patience: float | None) -> Raw:
        """Put a question that is to be a task, and fetch its answer.

        Args:
            method: what to ask.
            params: its parameters.
            inbound: the call it belongs to.
            patience: seconds until it is given up, or None.

        Raises:
            CallTimedOut: the answer takes too long; the task was cancelled.
            TaskCancelled: the client has cancelled it.
            Refused, ConnectionLost, Misbehaved: as it went.
        """
        ttl = UNSET if patience is None else round(patience * 1000)
        question = RequestedTask(method, inbound, patience)
        questions = self._open.setdefault(inbound.link, [])
        questions.append(question)
        try:
            async with asyncio.timeout(patience):
                return await question.ask(structs.replace(params, task=TaskMetadata(ttl=ttl)))
        except CallTimedOut:
            raise
        except TimeoutError:
            raise CallTimedOut(f"no answer to {method} after {patience:g} s") from None
        finally:
            questions.remove(question)
            if not questions:
                self._open.pop(inbound.link, None)


class RequestedTask:
    """One question, and the task that it has become.

    Args:
        method: what is asked.
        inbound: the call it belongs to.
        patience: seconds that the client may take to say which task it is, or None.
    """

    def __init__(self, method: str, inbound: Inbound, patience: float | None) -> None:
        self._method = method
        self._inbound = inbound
        self._patience = patience
        self._id: str | None = None
        self._heard: dict[str, TaskStatusParams] = {}
        self._news: asyncio.Future[None] | None = None

    def hear(self, params: TaskStatusParams) -> None:
        """Take the status of some task of the client; which one is ours may not be known yet."""
        if self._id not in {None, params.task_id} or len(self._heard) >= MAX_HEARD_TASKS:
            return
        self._heard[params.task_id] = params
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def ask(self, params: Any) -> Raw:
        """Put it, wait for the end of its task, and fetch the answer."""
        raw = await self._send_question(params)
        try:
            task = _decode_created(raw).task
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return raw  # the answer itself, or nothing that anybody understands
        self._id = id = task.task_id
        self._heard = {key: told for key, told in self._heard.items() if key == id}
        try:
            return await self._fetch_result(await self._wait_until_over(task))
        except (Refused, TaskCancelled, ConnectionLost):
            raise  # it is over, or out of reach
        except BaseException:
            await self._withdraw(id)
            raise

    async def _send_question(self, params: Any) -> Raw:
        """The client's first answer; where nobody waits for it any more, it ends what it began."""
        asking = asyncio.ensure_future(
            self._call(self._method, params, Raw, timeout=self._patience)
        )
        try:
            # spec 2025-11-25 basic/utilities/cancellation#behavior-requirements: a request that is
            # a task is cancelled by tasks/cancel, which takes the id that its answer brings
            answer: Raw = await asyncio.shield(asking)
        except BaseException:
            asking.add_done_callback(self._cancel_unwanted)
            raise
        finally:
            del asking  # which keeps what is raised, and so would this frame
        return answer

    async def _wait_until_over(self, task: Task) -> Task:
        """The task when it is over, or waits for us to fetch what it asks."""
        # spec 2025-11-25 basic/utilities/tasks#input-required-status: SHOULD call tasks/result then
        while task.status == "working":
            # spec 2025-11-25 basic/utilities/tasks#task-status-notification: MUST NOT rely on them
            task = await self._wait_for_status(
                read_poll_interval(task.poll_interval)
            ) or await self._call(
                "tasks/get", GetTaskParams(task_id=task.task_id), LenientGetTaskResult
            )
        return task

    async def _fetch_result(self, task: Task) -> Raw:
        """Fetch what the task came to."""
        if task.status == "cancelled":
            why = f": {task.status_message}" if task.status_message else ""
            raise TaskCancelled(f"the client cancelled its task for {self._method}{why}")
        params = GetTaskPayloadParams(task_id=task.task_id)
        answer: Raw = await self._call("tasks/result", params, Raw)
        return answer

    async def _wait_for_status(self, timeout: float) -> Task | None:
        """Wait for news of the task; None where the client says nothing before time is over."""
        if self._id not in self._heard:
            self._news = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._news,), timeout=timeout)
        return self._heard.pop(self._id or "", None)

    async def _call(
        self, method: str, params: Any, result: type[Any], timeout: float | None = None
    ) -> Any:
        inbound = self._inbound
        return await inbound.link.call(
            method, params, result, relates_to=inbound.id, timeout=timeout
        )

    # When nobody waits any more

    def _cancel_unwanted(self, asking: "asyncio.Future[Raw]") -> None:
        """A task may have come about that nobody waits for."""
        if asking.cancelled() or asking.exception() is not None:
            return
        try:
            task = _decode_created(asking.result()).task
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        self._leave(task.task_id)

    async def _withdraw(self, id: str) -> None:
        """Have the client stop, and give it a moment to say so."""
        leaving = self._leave(id)
        if leaving is not None:
            await asyncio.wait((leaving,), timeout=CANCEL_WAIT_S)

    def _leave(self, id: str) -> "asyncio.Task[None] | None":
        tasks = self._inbound.caller.capabilities.tasks
        if tasks is UNSET or tasks.cancel is UNSET:
            return None  # it ends at its ttl
        leaving = asyncio.get_running_loop().create_task(self._cancel(id))
        _CANCELLATIONS.add(leaving)
        leaving.add_done_callback(_CANCELLATIONS.discard)
        return leaving

    async def _cancel(self, id: str) -> None:
        params = CancelTaskParams(task_id=id)
        try:
            try:
                await self._call("tasks/cancel", params, Raw, timeout=CANCEL_TIMEOUT_S)
            except OutOfPhase:  # the call was withdrawn, and nothing more is said about that
                await self._inbound.link.call("tasks/cancel", params, Raw, timeout=CANCEL_TIMEOUT_S)
        except (IsthmusError, Refused):
            return  # it is over, or will be forgotten


CANCEL_TIMEOUT_S = 10.0  # that a client may take to say that it has cancelled a task

# What is being cancelled, held on to while nobody may be waiting for it.
_CANCELLATIONS: set[asyncio.Task[None]] = set()
