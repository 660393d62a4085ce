"""Tasks of a server: calls of tools whose results are fetched later, and how they are followed.

Two ways to the same result. In 2025-11-25 a client asks for a call to be a task, and then waits in
``tasks/result``, where the server puts its questions. In the extension of 2026-07-28 the server
decides; the client looks at the task now and then, or is told of it on a stream, answers the
questions it finds there, and finds the result there too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.client.connection import Connection, wrap_progress
from isthmus.client.features.answering import Answering
from isthmus.client.model.limits import OnProgress
from isthmus.client.model.questions import QuestionOrigin
from isthmus.client.model.results import ToolResult
from isthmus.client.subscriptions import ChangeSubscriptions
from isthmus.client.tool_catalog import ToolCatalog
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
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.outbound import ProgressCallback
from isthmus.runtime.router import NoticeHandler
from isthmus.tasks.records import FINAL_STATUSES
from isthmus.tasks.shapes import (
    LenientDetailedTask,
    LenientGetTaskResult,
    TaskState,
    read_poll_interval,
    to_task_state,
)
from isthmus.wire import (
    IMMEDIATE_RESPONSE,
    CallToolParams,
    CallToolResult,
    CancelTaskParams,
    CreateTaskResult,
    DetailedTask,
    EmptyResult,
    GetTaskParams,
    GetTaskPayloadParams,
    GetTaskResult,
    InputRequest,
    ProgressParams,
    SubscriptionFilter,
    TaskCreated,
    TaskMetadata,
    TaskStatusParams,
    UpdateTaskParams,
)

CANCEL_WAIT_S = 0.5  # that the cancellation of a task may hold up whoever stops waiting for it

MAX_HEARD_TASKS = 1_000  # whose last state is kept though nobody asked for it yet

STREAM_POLL_S = 15.0  # between two questions while the server tells of changes by itself

_decode_call_result = METHODS["tools/call"].decode_result


class AnsweredQuestions:
    """Questions of a task that were answered, over whatever connection.

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


class ToolTask:
    """A call of a tool that runs as a task, or has been answered at once.

    Example::

        task = await client.start_tool("render", {"scene": "beach"})
        print(task.id)                     # keep it: client.task(id) finds it again
        print((await task.status()).message)
        result = await task.result()

    Args:
        tracker: where the tasks of the connection are followed.
        tool: the tool's name, or an empty string where that is not known.
        id: the task's name on its server; None for a call that was answered at once.
        done: the answer to such a call.
        token: what its progress is reported under.
        immediate_response: what the server says a model may be told meanwhile.
        answered: names of its questions that were answered before, and are not answered again.

    Attributes:
        id: the task's name on its server; None for a call that was answered at once.
        tool: the tool's name.
        immediate_response: what a model may be told as the tool's result while the task runs, where
            the server says so (2025-11-25); else None.
        on_answered: told of the name of each question whose answer has reached the server, and
            awaited (since 2026-07-28); None tells nobody.
        on_state: told of each state of the task that is seen while it is waited for; None tells nobody.
    """

    on_answered: Callable[[str], Awaitable[None]] | None = None
    on_state: Callable[[TaskState], None] | None = None

    def __init__(
        self,
        tracker: "TaskTracker",
        tool: str,
        id: str | None,
        done: CallToolResult | None = None,
        *,
        token: str | None = None,
        immediate_response: str | None = None,
        answered: Iterable[str] = (),
    ) -> None:
        self.id = id
        self.tool = tool
        self.immediate_response = immediate_response
        self._tracker = tracker
        self._done = done
        self._token = token
        self._new = False
        self._answered = set(answered)

    def __repr__(self) -> str:
        return f"ToolTask({self.tool!r}, id={self.id!r})"

    async def status(self) -> TaskState:
        """The task's present state, fetched from the server (``tasks/get``).

        Raises:
            InvalidParams: the server knows no such task; it may have been forgotten.
        """
        if self.id is None:
            return TaskState(id="", status="completed")
        return to_task_state(await self._tracker.get(self.id))

    async def result(self, *, timeout: float | None = None) -> ToolResult:
        """Wait for the end, answering what the task asks on the way.

        It may be called again, also after it timed out: the task goes on whether or not anybody
        waits for it.

        Args:
            timeout: seconds to wait; None for the client's ``max_timeout``.

        Raises:
            TaskCancelled: somebody cancelled it.
            Refused: it came to an error; or the server knows no such task.
            CallTimedOut: it is not over in time.
            ConnectionLost: the connection ended first.
        """
        if self._done is None and self.id is not None:
            new, self._new = self._new, False
            answered = AnsweredQuestions(self._answered, self.on_answered)
            with self._tracker.watch(self.id, self.on_state):
                self._done = await self._tracker.wait(self.id, timeout, answered, new=new)
            self._tracker.forget_token(self._token)
        done: Any = self._done
        self._tracker.tools.check(self.tool, done)
        return ToolResult(self.tool, done)

    async def cancel(self) -> None:
        """Stop the task at the server (``tasks/cancel``); nothing happens where it is over.

        Raises:
            Refused: the server knows no such task, or does not cancel.
        """
        if self.id is not None and self._done is None:
            self._new = False
            await self._tracker.cancel(self.id)


OnTask: TypeAlias = Callable[[ToolTask], Awaitable[None]]
"""Told of the task that a call has become."""


class TaskTracker:
    """The tasks of one connection.

    Args:
        connection: carries the calls.
        answering: answers what tasks ask.
        subscriptions: the connection's streams of changes.
        tools: what is known of the server's tools.
    """

    def __init__(
        self,
        connection: Connection,
        answering: Answering,
        subscriptions: ChangeSubscriptions,
        tools: ToolCatalog,
    ) -> None:
        self.connection = connection
        self.answering = answering
        self.subscriptions = subscriptions
        self.tools = tools
        self._heard: dict[str, DetailedTask | TaskStatusParams] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._progress: dict[int | str, ProgressCallback] = {}
        self._watchers: dict[str, Callable[[TaskState], None]] = {}
        self._tokens = 0
        self._asks_itself: bool | None = None
        connection.on_unclaimed_task = self._cancel_unclaimed

    @property
    def asks_itself(self) -> bool:
        """Whether it is the client that says which calls are tasks (2025-11-25)."""
        if self._asks_itself is None:
            offered = self.connection.require_agreement().capabilities.tasks
            requests = UNSET if offered is UNSET else offered.requests
            tools = UNSET if requests is UNSET else requests.tools
            # spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation: MUST NOT without it
            self._asks_itself = tools is not UNSET and tools.call is not UNSET
        return self._asks_itself

    @property
    def core(self) -> bool:
        """Whether tasks are the core feature of the revision, and not its extension."""
        return self.connection.require_agreement().revision.allows("client", "tasks/result")

    # What the server says

    def notices(self) -> dict[str, NoticeHandler]:
        """Handlers of the notifications."""
        return {
            "notifications/tasks/status": self._on_state,
            "notifications/tasks": self._on_state,
            "notifications/progress": self._on_progress,
        }

    def _on_state(self, params: DetailedTask | TaskStatusParams, _inbound: Inbound) -> None:
        self._heard.pop(params.task_id, None)
        self._heard[params.task_id] = params
        self._tell_watcher(params)
        if len(self._heard) > MAX_HEARD_TASKS:
            del self._heard[next(iter(self._heard))]
        waiting = self._waiting.pop(params.task_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    @contextmanager
    def watch(self, id: str, told: Callable[[TaskState], None] | None) -> Iterator[None]:
        """Tell a function of each state of a task that is seen, until the block is left."""
        if told is None:
            yield
            return
        self._watchers[id] = told
        try:
            yield
        finally:
            self._watchers.pop(id, None)

    def _tell_watcher(self, task: Any) -> None:
        told = self._watchers.get(task.task_id)
        if told is not None:
            told(to_task_state(task))

    def _on_progress(self, params: ProgressParams, _inbound: Inbound) -> None:
        told = self._progress.get(params.progress_token)
        if told is not None:
            told(params)

    def _token(self, told: ProgressCallback) -> str:
        """A progress token that outlives its call, for as long as its task lasts."""
        self._tokens += 1
        token = f"task-{self._tokens}"
        self._progress[token] = told
        return token

    def forget_token(self, token: str | None) -> None:
        """Nobody wants to hear of progress under a token any more."""
        if token is not None:
            self._progress.pop(token, None)

    async def news(self, id: str, timeout: float) -> DetailedTask | TaskStatusParams | None:
        """Wait for news of a task; None where the server says nothing before time is over."""
        if id not in self._heard:
            waiting = self._waiting.get(id)
            if waiting is None or waiting.done():
                waiting = self._waiting[id] = asyncio.get_running_loop().create_future()
            await asyncio.wait((waiting,), timeout=timeout)
        return self._heard.pop(id, None)

    # What is asked of the server

    async def get(self, id: str) -> GetTaskResult | DetailedTask:
        """``tasks/get``."""
        shape: Any = LenientGetTaskResult if self.core else LenientDetailedTask
        params = GetTaskParams(task_id=id, meta=self.connection.meta)
        state: GetTaskResult | DetailedTask = await self.connection.send(
            "tasks/get", params, shape, name=id
        )
        self._tell_watcher(state)
        return state

    async def cancel(self, id: str) -> None:
        """``tasks/cancel``."""
        params = CancelTaskParams(task_id=id, meta=self.connection.meta)
        await self.connection.send("tasks/cancel", params, msgspec.Raw, name=id)

    async def wait(
        self, id: str, timeout: float | None, answered: AnsweredQuestions, *, new: bool = False
    ) -> CallToolResult:
        """Wait for the end of a task, answering its questions.

        Args:
            id: the task.
            timeout: seconds to wait; None for the client's ``max_timeout``.
            answered: which of its questions were answered.
            new: it was created just now.
        """
        limit = self.connection.settings.max_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit) as deadline:
                with self.connection.clocks.include_timeout(deadline):
                    if self.core:
                        return await follow_core(self, id, new=new)
                    return await follow_extension(self, id, answered)
        except CallTimedOut:
            raise
        except TimeoutError:
            raise CallTimedOut(f"task {id} is not over after {limit:g} s") from None
        finally:
            self._heard.pop(id, None)
            waiting = self._waiting.pop(id, None)
            if waiting is not None:
                waiting.cancel()

    async def wait_or_cancel(
        self, task: ToolTask, timeout: float | None, on_task: OnTask | None = None
    ) -> ToolResult:
        """As ``task.result()``, for who waits for nothing else: the task ends with the waiting."""
        try:
            if on_task is not None and task.id is not None:
                await on_task(task)
            return await task.result(timeout=timeout)
        except (Refused, TaskCancelled, ConnectionLost):
            raise  # it is over, or out of reach
        except BaseException:
            await self._withdraw(task)
            raise

    async def _withdraw(self, task: ToolTask) -> None:
        """Cancel a task that nobody waits for any more, as far as that goes."""
        peer = self.connection.peer
        if peer is None or peer.lost is not None or task.id is None:
            return
        done = asyncio.get_running_loop().create_future()

        async def cancel() -> None:
            try:
                await self._cancel_quietly(task)
            finally:
                if not done.done():
                    done.set_result(None)

        peer.start(cancel())
        await asyncio.wait((done,), timeout=CANCEL_WAIT_S)

    def handle(
        self,
        tool: str,
        answer: CallToolResult | TaskCreated | CreateTaskResult,
        token: str | None = None,
    ) -> ToolTask:
        """The handle of what a call has become."""
        if isinstance(answer, CreateTaskResult):
            said = (answer.meta or {}).get(IMMEDIATE_RESPONSE)
            task = ToolTask(
                self,
                tool,
                answer.task.task_id,
                token=token,
                immediate_response=said if isinstance(said, str) else None,
            )
            task._new = True  # noqa: SLF001 - it is made here, and only here is that known
            return task
        self.forget_token(token)
        if isinstance(answer, TaskCreated):
            return ToolTask(self, tool, answer.task_id)
        return ToolTask(self, tool, None, answer)

    async def start(
        self,
        params: CallToolParams,
        on_progress: OnProgress | None = None,
        ttl: float | None = None,
    ) -> ToolTask:
        """Send a call that is to be a task (2025-11-25)."""
        wanted = UNSET if ttl is None else round(ttl * 1000)
        params = structs.replace(params, task=TaskMetadata(ttl=wanted))
        token = None
        if on_progress is not None:
            # spec 2025-11-25 basic/utilities/tasks#task-progress-notifications: the token stays
            # valid throughout the task, so that it cannot be the id of a call that is over
            token = self._token(wrap_progress(self.connection.live(), on_progress))
            meta: Any = params.meta or {}
            params = structs.replace(params, meta={**meta, "progressToken": token})
        asking = asyncio.ensure_future(
            self.connection.ask("tools/call", params, None, None, params.name)
        )
        try:
            # spec 2025-11-25 basic/utilities/cancellation#behavior-requirements: a request that is
            # a task is cancelled by tasks/cancel, which takes the id that its answer brings
            answer = await asyncio.shield(asking)
        except BaseException:
            self.forget_token(token)
            asking.add_done_callback(self._cancel_unwanted)
            raise
        finally:
            del asking  # which keeps what is raised, and so would this frame
        return self.handle(params.name, answer, token)

    def _cancel_unwanted(self, asking: "asyncio.Future[Any]") -> None:
        """A task has come about that nobody waits for any more."""
        if asking.cancelled() or asking.exception() is not None:
            return
        if isinstance(answer := asking.result(), CreateTaskResult):
            self._cancel_unclaimed(answer)

    def _cancel_unclaimed(self, answer: TaskCreated | CreateTaskResult) -> None:
        peer = self.connection.peer
        if peer is not None and peer.lost is None:
            peer.start(self._cancel_quietly(self.handle("", answer)))

    async def _cancel_quietly(self, task: ToolTask) -> None:
        try:
            await task.cancel()
        except IsthmusError:
            return  # it is over, or will be forgotten

    async def call(
        self,
        params: CallToolParams,
        on_progress: OnProgress | None,
        timeout: float | None,
        on_task: OnTask | None = None,
    ) -> ToolResult:
        """A call that is a task from its beginning to its end (2025-11-25)."""
        return await self.wait_or_cancel(await self.start(params, on_progress), timeout, on_task)


async def follow_core(tracker: TaskTracker, id: str, *, new: bool = False) -> CallToolResult:
    """2025-11-25: wait in ``tasks/result``; questions arrive as requests meanwhile.

    Args:
        tracker: where the task is followed.
        id: the task.
        new: it was created just now, so that it cannot have been cancelled.

    Raises:
        TaskCancelled, Refused, ConnectionLost: as it went.
    """
    params = GetTaskPayloadParams(task_id=id)
    # What a cancelled task came to is nothing, and servers differ in how they say that.
    if not new and (await tracker.get(id)).status == "cancelled":
        raise make_cancelled_error(id)
    while True:
        try:
            return read_call_result(
                await tracker.connection.send("tasks/result", params, Raw, name=id)
            )
        except (CallTimedOut, ConnectionLost):
            # Its stream may break where the connection lasts, and it may take longer than any
            # call: the task goes on, and so does whoever waits for it.
            tracker.connection.live()
        except (InternalError, Misbehaved) as error:
            if (await tracker.get(id)).status == "cancelled":
                raise make_cancelled_error(id) from error
            raise
        state = await tracker.get(id)
        if state.status not in FINAL_STATUSES and state.status != "input_required":
            poll: Any = getattr(state, "poll_interval", UNSET)
            await tracker.news(id, read_poll_interval(poll))


async def follow_extension(
    tracker: TaskTracker, id: str, answered: AnsweredQuestions
) -> CallToolResult:
    """The extension: look at it, answer what it asks, until it brings its result.

    Args:
        tracker: where the task is followed.
        id: the task.
        answered: which of its questions were answered.

    Raises:
        TaskCancelled, Refused, ConnectionLost, Misbehaved: as it went.
    """
    questions = TaskQuestions(tracker, id, answered)
    stream = TaskStream(tracker, id)
    try:
        heard: Any = None
        while True:
            task = heard if isinstance(heard, DetailedTask) else await fetch_detailed(tracker, id)
            if task is not None:
                result = read_outcome(task)
                if result is not None:
                    return result
                questions.put(task.input_requests or {})
            poll = UNSET if task is None else task.poll_interval_ms
            wait = STREAM_POLL_S if stream.granted else read_poll_interval(poll)
            stream.open()
            heard = await questions.until_news(wait)
            questions.check()
    finally:
        questions.close()
        await stream.close()


async def fetch_detailed(tracker: TaskTracker, id: str) -> DetailedTask | None:
    """The state of the task; None where there is no answer, and the connection lasts."""
    try:
        state: Any = await tracker.get(id)
    except (CallTimedOut, ConnectionLost):
        tracker.connection.live()
        return None
    task: DetailedTask = state
    return task


def read_outcome(task: DetailedTask) -> CallToolResult | None:
    """The result of a task; None while it goes on.

    Raises:
        TaskCancelled: somebody cancelled it.
        Refused: the error it came to.
        Misbehaved: it is over, and does not say how.
    """
    if task.status == "completed":
        return read_call_result(task.result or Raw(b"null"))
    if task.status == "failed":
        error = task.error
        if error is UNSET:
            raise Misbehaved(f"task {task.task_id} has failed, and does not say how")
        raise refused(error.code, error.message, None if error.data is UNSET else error.data)
    if task.status == "cancelled":
        raise make_cancelled_error(task.task_id, task.status_message or None)
    return None


class TaskQuestions:
    """The questions of one task, each answered once.

    Args:
        tracker: where the task is followed.
        id: the task.
        answered: which were answered before.
    """

    def __init__(self, tracker: TaskTracker, id: str, answered: AnsweredQuestions) -> None:
        self._tracker = tracker
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
        news = asyncio.get_running_loop().create_task(self._tracker.news(self._id, timeout))
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
        connection = self._tracker.connection
        revision = connection.require_agreement().revision
        asked = QuestionOrigin("task", revision, self._id, key)
        answer = await self._tracker.answering.answer(question, revision, asked)
        params = UpdateTaskParams(
            task_id=self._id, input_responses={key: answer}, meta=connection.meta
        )
        await connection.send("tasks/update", params, EmptyResult, name=self._id)
        await self._answered.add(key)


class TaskStream:
    """A stream that tells of one task, where the server grants one.

    Args:
        tracker: where the task is followed.
        id: the task.

    Attributes:
        granted: the server tells of the task by itself.
    """

    def __init__(self, tracker: TaskTracker, id: str) -> None:
        self._tracker = tracker
        self._id = id
        self._task: asyncio.Task[None] | None = None
        self.granted = False

    def open(self) -> None:
        """Ask for it, unless that was done."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._hold())

    async def _hold(self) -> None:
        tracker, wanted = self._tracker, SubscriptionFilter(task_ids=[self._id])
        connection = tracker.connection
        peer, timeout = connection.live(), connection.settings.timeout
        try:
            changes, task = await tracker.subscriptions.open(peer, wanted, connection.meta, timeout)
        except (IsthmusError, Refused):
            return  # it is a courtesy: asking goes on without it
        try:
            self.granted = self._id in (changes.granted.task_ids or ())
            if task is not None and self.granted:
                await asyncio.wait((task,))
        finally:
            self.granted = False
            await tracker.subscriptions.close(peer, changes, task, timeout)

    async def close(self) -> None:
        """Let go of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


def read_call_result(raw: Raw) -> CallToolResult:
    """The result of a task.

    Raises:
        Misbehaved: it is none.
    """
    try:
        result: CallToolResult = _decode_call_result(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misbehaved(f"the result of the task is malformed: {error}") from error
    return result


def make_cancelled_error(id: str, why: str | None = None) -> TaskCancelled:
    """The error for those who wait for a task that was cancelled."""
    return TaskCancelled(f"task {id} was cancelled" + (f": {why}" if why else ""))
