"""How a task stands, in one shape for every revision."""

from typing import Any

import msgspec
from msgspec import UNSET

from isthmus.runtime.tasks_records import FINAL
from isthmus.wire import DetailedTask, FlatTask, GetTaskResult, Task, TaskStatus

__all__ = ["TaskState", "state_of"]


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """How a task stands.

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
        return self.status in FINAL


def state_of(task: Task | GetTaskResult | DetailedTask) -> TaskState:
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
