"""Shapes of tasks on the wire: the core's of 2025-11-25, and the extension's; written and read.

One record, two ways to say it. The core says ``failed`` of a tool that failed, and fetches results
and questions elsewhere; the extension keeps ``failed`` for errors of the protocol, and brings
everything along. Tasks of the other side are read leniently: some leave out a ttl that is null.
"""

from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.core.caller import Caller
from isthmus.core.extensions import find_settings
from isthmus.revisions import METHODS, Feature, Revision, project
from isthmus.tasks.records import FINAL_STATUSES, TaskRecord, format_timestamp
from isthmus.wire import (
    RELATED_TASK,
    TASKS,
    CancelTaskResult,
    ClientTasksCapability,
    CreateTaskResult,
    DetailedTask,
    EmptyResult,
    FlatTask,
    GetTaskResult,
    InputRequest,
    Task,
    TaskCreated,
    TaskStatus,
    TaskStatusParams,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Meta, Wire


class TaskShape(Protocol):
    """The shape of tasks to one caller."""

    def make_create_result(self, record: TaskRecord) -> Wire:
        """The answer to the request that has become a task."""
        ...

    def make_get_result(self, record: TaskRecord, revision: Revision) -> Wire:
        """The answer to ``tasks/get``."""
        ...

    def make_cancel_result(self, record: TaskRecord) -> Wire:
        """The answer to ``tasks/cancel``."""
        ...

    def make_notification(
        self, record: TaskRecord, revision: Revision, meta: Meta
    ) -> tuple[str, Wire]:
        """The notification that says where a task stands."""
        ...


def shape_of(caller: Caller) -> TaskShape | None:
    """The shape of tasks to a caller, or None where it cannot have any."""
    if caller.revision.has(Feature.TASKS):
        return CORE_SHAPE
    # spec 2026-07-28 basic/versioning#extension-negotiation: both sides must have the extension,
    # and a client says so on every request
    declared = find_settings(caller.capabilities, TASKS) is not None
    return (
        EXTENSION_SHAPE if declared and caller.revision.allows("client", "tasks/update") else None
    )


# Where a client declares that it takes a request as a task.
TASK_CAPABILITIES = {
    "elicitation/create": ("elicitation", "create"),
    "sampling/createMessage": ("sampling", "create_message"),
}


def accepts_as_task(tasks: ClientTasksCapability | UnsetType, method: str) -> bool:
    """Whether a client that declares this runs a request as a task."""
    kind, name = TASK_CAPABILITIES.get(method, ("", ""))
    requests = UNSET if tasks is UNSET else tasks.requests
    return getattr(getattr(requests, kind, UNSET), name, UNSET) is not UNSET


def related_task_meta(id: str) -> Meta:
    """The ``_meta`` that says which task a message belongs to."""
    # spec 2025-11-25 basic/utilities/tasks#related-task-metadata: MUST be in every message that
    # is associated with a task
    return {RELATED_TASK: {"taskId": id}}


def decode_question(asked: InputRequest, revision: Revision) -> Any:
    """The parameters of a question, as a revision has them."""
    return project(METHODS[asked.method].decode_params(asked.params or b"{}"), revision)


def decode_task_result(record: TaskRecord) -> Any:
    """The result of a task that has one."""
    return METHODS[record.method].decode_result(record.result or b"{}")


class CoreShape:
    """2025-11-25: a task lies in its own member, and its result is fetched apart."""

    def make_create_result(self, record: TaskRecord) -> CreateTaskResult:
        """The answer to the request that has become a task."""
        return CreateTaskResult(task=Task(**_core_members(record)))

    def make_get_result(self, record: TaskRecord, _revision: Revision) -> GetTaskResult:
        """The answer to ``tasks/get``."""
        return GetTaskResult(**_core_members(record))

    def make_cancel_result(self, record: TaskRecord) -> CancelTaskResult:
        """The answer to ``tasks/cancel``: the task as it is now."""
        return CancelTaskResult(**_core_members(record))

    def make_notification(
        self, record: TaskRecord, _revision: Revision, meta: Meta
    ) -> tuple[str, Wire]:
        """``notifications/tasks/status``."""
        return "notifications/tasks/status", TaskStatusParams(
            **_core_members(record), meta=meta or UNSET
        )


class ExtensionShape:
    """Since 2026-07-28: a task lies flat in its result, with all that its status brings."""

    def make_create_result(self, record: TaskRecord) -> TaskCreated:
        """The answer to the request that has become a task."""
        return TaskCreated(**_flat_members(record), result_type="task")

    def make_get_result(self, record: TaskRecord, revision: Revision) -> DetailedTask:
        """The answer to ``tasks/get``."""
        return DetailedTask(
            **_flat_members(record), **_status_members(record, revision), result_type="complete"
        )

    def make_cancel_result(self, _record: TaskRecord) -> EmptyResult:
        """The answer to ``tasks/cancel``: that it was heard."""
        return EmptyResult()

    def make_notification(
        self, record: TaskRecord, revision: Revision, meta: Meta
    ) -> tuple[str, Wire]:
        """``notifications/tasks``."""
        state = DetailedTask(
            **_flat_members(record), **_status_members(record, revision), meta=meta or UNSET
        )
        return "notifications/tasks", state


CORE_SHAPE = CoreShape()
EXTENSION_SHAPE = ExtensionShape()


def _core_members(record: TaskRecord) -> dict[str, Any]:
    """The members of a core task."""
    status: TaskStatus = record.status
    message = record.message
    if record.is_error:
        # spec 2025-11-25 basic/utilities/tasks#task-execution-errors: a tool result with isError
        # makes it failed
        status = "failed"
    return {
        "task_id": record.id,
        "status": status,
        "created_at": format_timestamp(record.created),
        "last_updated_at": format_timestamp(record.updated),
        "ttl": _to_milliseconds(record.ttl),
        "status_message": message or UNSET,
        "poll_interval": _to_milliseconds(record.poll),
    }


def _flat_members(record: TaskRecord) -> dict[str, Any]:
    """The members of the extension's task that every status has."""
    return {
        "task_id": record.id,
        "status": record.status,
        "created_at": format_timestamp(record.created),
        "last_updated_at": format_timestamp(record.updated),
        "ttl_ms": _to_milliseconds(record.ttl),
        "status_message": record.message or UNSET,
        "poll_interval_ms": _to_milliseconds(record.poll),
    }


def _status_members(record: TaskRecord, revision: Revision) -> dict[str, Any]:
    """The member that the status brings."""
    if record.status == "input_required":
        return {
            "input_requests": {
                key: InputRequest(
                    method=asked.method, params=Raw(encode(decode_question(asked, revision)))
                )
                for key, asked in record.questions.items()
            }
        }
    if record.status == "failed":
        return {"error": record.error}
    return {"result": _inline_result(record, revision)} if record.status == "completed" else {}


def _inline_result(record: TaskRecord, revision: Revision) -> Raw | UnsetType:
    """The result as the request would have been answered, in the caller's revision."""
    result = structs.replace(decode_task_result(record), result_type="complete")
    return Raw(encode(project(result, revision)))


def _to_milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


DEFAULT_POLL_S = 1.0  # between two questions, where the other side does not say

MIN_POLL_S = 0.05  # between two questions at least, whatever it says


class LenientTask(Task, frozen=True, kw_only=True):
    """A task of 2025-11-25, whose ttl may be left out."""

    ttl: int | None = None


class LenientCreateTaskResult(CreateTaskResult, frozen=True, kw_only=True):
    """The answer to a request that now runs as a task (2025-11-25)."""

    task: LenientTask


class LenientGetTaskResult(GetTaskResult, frozen=True, kw_only=True):
    """The answer to ``tasks/get`` (2025-11-25)."""

    ttl: int | None = None


class LenientListTasksResult(Wire, frozen=True, kw_only=True):
    """The answer to ``tasks/list``."""

    tasks: list[LenientTask]
    next_cursor: str | UnsetType = UNSET


class LenientTaskCreated(TaskCreated, frozen=True, kw_only=True):
    """The answer to a request that now runs as a task, in the extension."""

    ttl_ms: int | None = None


class LenientDetailedTask(DetailedTask, frozen=True, kw_only=True):
    """The answer to ``tasks/get``, in the extension."""

    ttl_ms: int | None = None


def read_poll_interval(poll: int | UnsetType) -> float:
    """Seconds until the next question, as the other side would have it."""
    # spec 2025-11-25 basic/utilities/tasks#getting-tasks: SHOULD respect the interval
    return DEFAULT_POLL_S if poll is UNSET else max(MIN_POLL_S, poll / 1000)


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a task, in one shape for every revision.

    Attributes:
        id: its name on its server.
        status: ``"working"``, ``"input_required"`` (it asks something), ``"completed"``,
            ``"failed"`` or ``"cancelled"``. A tool that failed is ``"failed"`` in 2025-11-25, and
            ``"completed"`` since: its result says so.
        message: the same in words, where the server says it.
        created_at: when it was created, as ISO 8601 has it; empty where that is not known.
        updated_at: when it changed last.
        ttl: seconds that the server keeps it from its creation; None for ever.
        poll_interval: seconds the server would like to have between two questions, or None.
    """

    id: str
    status: TaskStatus
    message: str | None = None
    created_at: str = ""
    updated_at: str = ""
    ttl: float | None = None
    poll_interval: float | None = None

    @property
    def over(self) -> bool:
        """Whether it will not change any more."""
        return self.status in FINAL_STATUSES


def to_task_state(task: Task | GetTaskResult | DetailedTask) -> TaskState:
    """A task of either shape."""
    ttl: Any
    poll: Any
    if isinstance(task, FlatTask):
        ttl, poll = task.ttl_ms, task.poll_interval_ms
    else:
        ttl, poll = task.ttl, task.poll_interval
    return TaskState(
        id=task.task_id,
        status=task.status,
        message=task.status_message or None,
        created_at=task.created_at,
        updated_at=task.last_updated_at,
        ttl=None if ttl is None else ttl / 1000,
        poll_interval=None if poll is UNSET else poll / 1000,
    )
