"""Tasks: requests whose answer is fetched later.

Two shapes of one thing: the experimental feature of 2025-11-25, and since 2026-07-28 the extension
``io.modelcontextprotocol/tasks``, whose tasks lie flat in their results and bring their questions,
results and errors along.
"""

from typing import Literal, TypeAlias

from msgspec import Raw

from isthmus.wire.jsonrpc import ErrorBody
from isthmus.wire.results import InputRequest, InputResponses, Result
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire

TASKS = "io.modelcontextprotocol/tasks"
"""The extension that tasks are since 2026-07-28."""

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""Where a task stands; the last three are final."""


class TaskMetadata(Wire, frozen=True, kw_only=True):
    """Request to run as a task, kept for ``ttl`` milliseconds from its creation.

    Attributes:
        ttl: milliseconds to keep it, from its creation.
    """

    ttl: int | UnsetType = UNSET


class RelatedTaskMetadata(Wire, frozen=True, kw_only=True):
    """The task that a message belongs to, in its ``_meta``.

    Attributes:
        task_id: id of the task.
    """

    task_id: str


class Task(Wire, frozen=True, kw_only=True):
    """The state of a task.

    Attributes:
        task_id: its name on this server.
        status: where it stands.
        created_at: an ISO 8601 moment.
        last_updated_at: an ISO 8601 moment.
        ttl: milliseconds it is kept from its creation; None for ever.
        status_message: the status in words.
        poll_interval: suggested milliseconds between questions.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None
    status_message: str | UnsetType = UNSET
    poll_interval: int | UnsetType = UNSET


class CreateTaskResult(Wire, frozen=True, kw_only=True):
    """The answer to a request that now runs as a task.

    Attributes:
        task: the new task.
        meta: further members, in ``_meta``.
    """

    task: Task
    meta: Meta | UnsetType = UNSET


class GetTaskParams(Wire, frozen=True, kw_only=True):
    """``tasks/get``: ask for the state of a task.

    Attributes:
        task_id: id of the task.
        meta: further members, in ``_meta``.
    """

    task_id: str
    meta: Meta | UnsetType = UNSET


class GetTaskResult(Task, frozen=True, kw_only=True):
    """The state of a task.

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class GetTaskPayloadParams(Wire, frozen=True, kw_only=True):
    """``tasks/result``: ask for the result of a task; it is answered when the task is over.

    Attributes:
        task_id: id of the task.
        meta: further members, in ``_meta``.
    """

    task_id: str
    meta: Meta | UnsetType = UNSET


GetTaskPayloadResult: TypeAlias = Raw
"""Whatever the original request would have been answered with."""


class ListTasksParams(Wire, frozen=True, kw_only=True):
    """``tasks/list``: one page of the known tasks.

    Attributes:
        cursor: ``next_cursor`` of the page before; absent for the first page.
        meta: further members, in ``_meta``.
    """

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListTasksResult(Wire, frozen=True, kw_only=True):
    """``tasks/list``: one page of tasks.

    Attributes:
        tasks: the tasks of this page.
        next_cursor: for the next page; absent on the last one.
        meta: further members, in ``_meta``.
    """

    tasks: list[Task]
    next_cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class CancelTaskParams(Wire, frozen=True, kw_only=True):
    """``tasks/cancel``: stop a task.

    Attributes:
        task_id: id of the task.
        meta: further members, in ``_meta``.
    """

    task_id: str
    meta: Meta | UnsetType = UNSET


class CancelTaskResult(Task, frozen=True, kw_only=True):
    """The state of the task that was cancelled.

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class TaskStatusParams(Task, frozen=True, kw_only=True):
    """``notifications/tasks/status``: a task's status has changed.

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


# The extension


class FlatTask(Result, frozen=True, kw_only=True):
    """The state of a task as the extension has it.

    Attributes:
        task_id: its name on this server.
        status: where it stands.
        created_at: an ISO 8601 moment.
        last_updated_at: an ISO 8601 moment.
        ttl_ms: milliseconds it is kept from its creation; None for ever.
        status_message: the status in words.
        poll_interval_ms: suggested milliseconds between questions.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    status_message: str | UnsetType = UNSET
    poll_interval_ms: int | UnsetType = UNSET


class TaskCreated(FlatTask, frozen=True, kw_only=True):
    """The answer to a request that now runs as a task; ``result_type`` is ``"task"``."""


class DetailedTask(FlatTask, frozen=True, kw_only=True):
    """A task with what its status brings: ``tasks/get`` answers it, ``notifications/tasks`` tells it.

    Attributes:
        input_requests: the questions that wait for answers, with ``"input_required"``.
        result: what the request would have been answered with, with ``"completed"``.
        error: the error it would have been answered with, with ``"failed"``.
    """

    input_requests: dict[str, InputRequest] | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorBody | UnsetType = UNSET


class UpdateTaskParams(Wire, frozen=True, kw_only=True):
    """``tasks/update``: answers to questions of a task, by the keys they were asked under.

    Attributes:
        task_id: id of the task.
        input_responses: answers, by the keys of the questions.
        meta: further members, in ``_meta``.
    """

    task_id: str
    input_responses: InputResponses
    meta: Meta | UnsetType = UNSET
