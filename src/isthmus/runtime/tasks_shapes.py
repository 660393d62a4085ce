"""The two shapes tasks have on the wire: the core's of 2025-11-25, and the extension's.

One record, two ways to say it. The core says ``failed`` of a tool that failed, and fetches results
and questions elsewhere; the extension keeps ``failed`` for errors of the protocol, and brings
everything along.
"""

from typing import Any, Protocol

from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.core.caller import Caller
from isthmus.core.extensions import settings_of
from isthmus.revisions import METHODS, Feature, Revision, project
from isthmus.runtime.tasks_records import Record, moment
from isthmus.wire import (
    RELATED_TASK,
    TASKS,
    CancelTaskResult,
    ClientTasksCapability,
    CreateTaskResult,
    DetailedTask,
    EmptyResult,
    GetTaskResult,
    InputRequest,
    Task,
    TaskCreated,
    TaskStatus,
    TaskStatusParams,
)
from isthmus.wire.base import Meta, Wire
from isthmus.wire.jsonrpc import encode

__all__ = ["CORE", "EXTENSION", "Shape", "question", "related", "result_of", "shape_of", "takes"]

TOLD = 200  # characters of an error that go into a status in words


class Shape(Protocol):
    """How tasks look to one caller."""

    def created(self, record: Record) -> Wire:
        """The answer to the request that has become a task."""
        ...

    def state(self, record: Record, revision: Revision) -> Wire:
        """The answer to ``tasks/get``."""
        ...

    def cancelled(self, record: Record) -> Wire:
        """The answer to ``tasks/cancel``."""
        ...

    def note(self, record: Record, revision: Revision, meta: Meta) -> tuple[str, Wire]:
        """The notification that says where a task stands."""
        ...


def shape_of(caller: Caller) -> Shape | None:
    """How tasks look to a caller, or None where it cannot have any."""
    if caller.revision.has(Feature.TASKS):
        return CORE
    # spec 2026-07-28 basic/versioning#extension-negotiation: both sides must have the extension,
    # and a client says so on every request
    declared = settings_of(caller.capabilities, TASKS) is not None
    return EXTENSION if declared and caller.revision.allows("client", "tasks/update") else None


DECLARED = {
    "elicitation/create": ("elicitation", "create"),
    "sampling/createMessage": ("sampling", "create_message"),
}
"""Where a client declares that it takes a request as a task."""


def takes(tasks: ClientTasksCapability | UnsetType, method: str) -> bool:
    """Whether a client that declares this runs a request as a task."""
    kind, name = DECLARED.get(method, ("", ""))
    requests = UNSET if tasks is UNSET else tasks.requests
    return getattr(getattr(requests, kind, UNSET), name, UNSET) is not UNSET


def related(id: str) -> Meta:
    """The ``_meta`` that says which task a message belongs to."""
    # spec 2025-11-25 basic/utilities/tasks#related-task-metadata: MUST be in every message that
    # is associated with a task
    return {RELATED_TASK: {"taskId": id}}


def question(asked: InputRequest, revision: Revision) -> Any:
    """The parameters of a question, as a revision has them."""
    return project(METHODS[asked.method].decode_params(asked.params or b"{}"), revision)


def result_of(record: Record) -> Any:
    """The result of a task that has one."""
    return METHODS[record.method].decode_result(record.result or b"{}")


class Core:
    """2025-11-25: a task lies in its own member, and its result is fetched apart."""

    def created(self, record: Record) -> CreateTaskResult:
        """The answer to the request that has become a task."""
        return CreateTaskResult(task=Task(**_core(record)))

    def state(self, record: Record, _revision: Revision) -> GetTaskResult:
        """The answer to ``tasks/get``."""
        return GetTaskResult(**_core(record))

    def cancelled(self, record: Record) -> CancelTaskResult:
        """The answer to ``tasks/cancel``: the task as it is now."""
        return CancelTaskResult(**_core(record))

    def note(self, record: Record, _revision: Revision, meta: Meta) -> tuple[str, Wire]:
        """``notifications/tasks/status``."""
        return "notifications/tasks/status", TaskStatusParams(**_core(record), meta=meta or UNSET)


class Extended:
    """Since 2026-07-28: a task lies flat in its result, with all that its status brings."""

    def created(self, record: Record) -> TaskCreated:
        """The answer to the request that has become a task."""
        return TaskCreated(**_flat(record), result_type="task")

    def state(self, record: Record, revision: Revision) -> DetailedTask:
        """The answer to ``tasks/get``."""
        return DetailedTask(**_flat(record), **_details(record, revision), result_type="complete")

    def cancelled(self, _record: Record) -> EmptyResult:
        """The answer to ``tasks/cancel``: that it was heard."""
        return EmptyResult()

    def note(self, record: Record, revision: Revision, meta: Meta) -> tuple[str, Wire]:
        """``notifications/tasks``."""
        state = DetailedTask(**_flat(record), **_details(record, revision), meta=meta or UNSET)
        return "notifications/tasks", state


CORE = Core()
EXTENSION = Extended()


def _core(record: Record) -> dict[str, Any]:
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
        "created_at": moment(record.created),
        "last_updated_at": moment(record.updated),
        "ttl": _milliseconds(record.ttl),
        "status_message": message or UNSET,
        "poll_interval": _milliseconds(record.poll),
    }


def _flat(record: Record) -> dict[str, Any]:
    """The members of the extension's task that every status has."""
    return {
        "task_id": record.id,
        "status": record.status,
        "created_at": moment(record.created),
        "last_updated_at": moment(record.updated),
        "ttl_ms": _milliseconds(record.ttl),
        "status_message": record.message or UNSET,
        "poll_interval_ms": _milliseconds(record.poll),
    }


def _details(record: Record, revision: Revision) -> dict[str, Any]:
    """The member that the status brings."""
    if record.status == "input_required":
        return {
            "input_requests": {
                key: InputRequest(
                    method=asked.method, params=Raw(encode(question(asked, revision)))
                )
                for key, asked in record.questions.items()
            }
        }
    if record.status == "failed":
        return {"error": record.error}
    return {"result": _inlined(record, revision)} if record.status == "completed" else {}


def _inlined(record: Record, revision: Revision) -> Raw | UnsetType:
    """The result as the request would have been answered, in the caller's revision."""
    result = structs.replace(result_of(record), result_type="complete")
    return Raw(encode(project(result, revision)))


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
