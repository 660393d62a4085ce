"""Following a task to its end: what is asked of its server, and when."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from isthmus.client.asked import Asked
from isthmus.errors import (
    CallTimedOut,
    ConnectionLost,
    InternalError,
    IsthmusError,
    Misbehaved,
    Refused,
    TaskCancelled,
    refused,
)
from isthmus.revisions import METHODS
from isthmus.runtime.tasks_reading import interval
from isthmus.runtime.tasks_records import FINAL
from isthmus.wire import (
    CallToolResult,
    DetailedTask,
    EmptyResult,
    GetTaskPayloadParams,
    InputRequest,
    SubscriptionFilter,
    UpdateTaskParams,
)

if TYPE_CHECKING:
    from isthmus.client.tasks import TaskRoom

__all__ = ["Answered", "follow_core", "follow_extension"]

TOLD_POLL = 15.0
"""Seconds between two questions while the server tells of changes by itself."""

_result = METHODS["tools/call"].decode_result


async def follow_core(room: "TaskRoom", id: str, *, new: bool = False) -> CallToolResult:
    """2025-11-25: wait in ``tasks/result``; questions arrive as requests meanwhile.

    Args:
        room: where the task is followed.
        id: the task.
        new: it was created just now, so that it cannot have been cancelled.

    Raises:
        TaskCancelled, Refused, ConnectionLost: as it went.
    """
    params = GetTaskPayloadParams(task_id=id)
    # What a cancelled task came to is nothing, and servers differ in how they say that.
    if not new and (await room.get(id)).status == "cancelled":
        raise cancelled(id)
    while True:
        try:
            return read(await room.connection.send("tasks/result", params, Raw, name=id))
        except (CallTimedOut, ConnectionLost):
            # Its stream may break where the connection lasts, and it may take longer than any
            # call: the task goes on, and so does whoever waits for it.
            room.connection.live()
        except (InternalError, Misbehaved) as error:
            if (await room.get(id)).status == "cancelled":
                raise cancelled(id) from error
            raise
        state = await room.get(id)
        if state.status not in FINAL and state.status != "input_required":
            poll: Any = getattr(state, "poll_interval", UNSET)
            await room.news(id, interval(poll))


async def follow_extension(room: "TaskRoom", id: str, answered: "Answered") -> CallToolResult:
    """The extension: look at it, answer what it asks, until it brings its result.

    Args:
        room: where the task is followed.
        id: the task.
        answered: which of its questions were answered.

    Raises:
        TaskCancelled, Refused, ConnectionLost, Misbehaved: as it went.
    """
    questions = Questions(room, id, answered)
    stream = Stream(room, id)
    try:
        heard: Any = None
        while True:
            task = heard if isinstance(heard, DetailedTask) else await look(room, id)
            if task is not None:
                result = outcome(task)
                if result is not None:
                    return result
                questions.put(task.input_requests or {})
            poll = UNSET if task is None else task.poll_interval_ms
            wait = TOLD_POLL if stream.granted else interval(poll)
            stream.open()
            heard = await questions.until_news(wait)
            questions.check()
    finally:
        questions.close()
        await stream.close()


async def look(room: "TaskRoom", id: str) -> DetailedTask | None:
    """How the task stands; None where there is no answer, and the connection lasts."""
    try:
        state: Any = await room.get(id)
    except (CallTimedOut, ConnectionLost):
        room.connection.live()
        return None
    task: DetailedTask = state
    return task


def outcome(task: DetailedTask) -> CallToolResult | None:
    """What a task came to; None while it goes on.

    Raises:
        TaskCancelled: somebody cancelled it.
        Refused: the error it came to.
        Misbehaved: it is over, and does not say how.
    """
    if task.status == "completed":
        return read(task.result or Raw(b"null"))
    if task.status == "failed":
        error = task.error
        if error is UNSET:
            raise Misbehaved(f"task {task.task_id} has failed, and does not say how")
        raise refused(error.code, error.message, None if error.data is UNSET else error.data)
    if task.status == "cancelled":
        raise cancelled(task.task_id, task.status_message or None)
    return None


class Answered:
    """Which questions of a task were answered, over whatever connection.

    Args:
        names: their names; those that are answered now are added.
        told: told of each whose answer has reached the server.
    """

    __slots__ = ("names", "told")

    def __init__(
        self, names: set[str], told: Callable[[str], Awaitable[None]] | None = None
    ) -> None:
        self.names = names
        self.told = told

    async def add(self, name: str) -> None:
        """An answer has reached the server."""
        self.names.add(name)
        if self.told is not None:
            await self.told(name)


class Questions:
    """The questions of one task, each answered once.

    Args:
        room: where the task is followed.
        id: the task.
        answered: which were answered before.
    """

    def __init__(self, room: "TaskRoom", id: str, answered: Answered) -> None:
        self._room = room
        self._id = id
        self._answered = answered
        self._works: dict[str, asyncio.Task[None]] = {}

    def put(self, questions: Mapping[str, InputRequest]) -> None:
        """Begin to answer those that are new."""
        for key, question in questions.items():
            # spec 2026-07-28 ext-tasks#task-update-requests: SHOULD track keys, so as not to
            # answer a question twice
            if key not in self._works and key not in self._answered.names:
                self._works[key] = asyncio.get_running_loop().create_task(
                    self._answer(key, question)
                )

    def check(self) -> None:
        """Raise what kept a question from being answered."""
        for work in self._works.values():
            if work.done() and not work.cancelled():
                try:
                    work.result()
                finally:
                    del work  # which keeps what is raised, and so would this frame

    async def until_news(self, timeout: float) -> Any:
        """Wait for news of the task, for an answer that was sent, or until time is over."""
        open = [work for work in self._works.values() if not work.done()]
        news = asyncio.get_running_loop().create_task(self._room.news(self._id, timeout))
        try:
            await asyncio.wait((news, *open), return_when=asyncio.FIRST_COMPLETED)
            return news.result() if news.done() else None
        finally:
            news.cancel()
            del news  # which keeps what is raised, and so would this frame

    def close(self) -> None:
        """Nobody needs answers any more."""
        for work in self._works.values():
            work.cancel()
        self._works.clear()

    async def _answer(self, key: str, question: InputRequest) -> None:
        connection = self._room.connection
        revision = connection.settled().revision
        asked = Asked("task", revision, self._id, key)
        answer = await self._room.answering.answer(question, revision, asked)
        params = UpdateTaskParams(
            task_id=self._id, input_responses={key: answer}, meta=connection.meta
        )
        await connection.send("tasks/update", params, EmptyResult, name=self._id)
        await self._answered.add(key)


class Stream:
    """A stream that tells of one task, where the server grants one.

    Args:
        room: where the task is followed.
        id: the task.

    Attributes:
        granted: the server tells of the task by itself.
    """

    def __init__(self, room: "TaskRoom", id: str) -> None:
        self._room = room
        self._id = id
        self._task: asyncio.Task[None] | None = None
        self.granted = False

    def open(self) -> None:
        """Ask for it, unless that was done."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._hold())

    async def _hold(self) -> None:
        room, wanted = self._room, SubscriptionFilter(task_ids=[self._id])
        connection = room.connection
        peer, timeout = connection.live(), connection.settings.timeout
        try:
            changes, task = await room.listening.open(peer, wanted, connection.meta, timeout)
        except (IsthmusError, Refused):
            return  # it is a courtesy: asking goes on without it
        try:
            self.granted = self._id in (changes.granted.task_ids or ())
            if task is not None and self.granted:
                await asyncio.wait((task,))
        finally:
            self.granted = False
            await room.listening.close(peer, changes, task, timeout)

    async def close(self) -> None:
        """Let go of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


def read(raw: Raw) -> CallToolResult:
    """The result of a task.

    Raises:
        Misbehaved: it is none.
    """
    try:
        result: CallToolResult = _result(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misbehaved(f"the result of the task is malformed: {error}") from error
    return result


def cancelled(id: str, why: str | None = None) -> TaskCancelled:
    """What those are told who wait for a task that was cancelled."""
    return TaskCancelled(f"task {id} was cancelled" + (f": {why}" if why else ""))
