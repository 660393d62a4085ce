"""How a task stands, in one shape for every revision."""

from typing import Any

import msgspec
from msgspec import UNSET

from isthmus.wire import (
    CreateTaskResult,
    DetailedTask,
    FlatTask,
    GetTaskResult,
    Task,
    TaskCreated,
    TaskStatus,
    UnsetType,
)
from isthmus.wire.base import Wire

__all__ = ["FINAL", "Created", "Detailed", "FlatCreated", "Got", "Listed", "TaskState", "state_of"]

FINAL = frozenset({"completed", "failed", "cancelled"})
"""The statuses that last."""


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


# As they are read. Servers leave out a ttl that is null, which it is to them anyway.


class Their(Task, frozen=True, kw_only=True):
    """A task of 2025-11-25, whose ttl may be left out."""

    ttl: int | None = None


class Created(CreateTaskResult, frozen=True, kw_only=True):
    """The answer to a request that now runs as a task (2025-11-25)."""

    task: Their


class Got(GetTaskResult, frozen=True, kw_only=True):
    """The answer to ``tasks/get`` (2025-11-25)."""

    ttl: int | None = None


class Listed(Wire, frozen=True, kw_only=True):
    """The answer to ``tasks/list``."""

    tasks: list[Their]
    next_cursor: str | UnsetType = UNSET


class FlatCreated(TaskCreated, frozen=True, kw_only=True):
    """The answer to a request that now runs as a task, in the extension."""

    ttl_ms: int | None = None


class Detailed(DetailedTask, frozen=True, kw_only=True):
    """The answer to ``tasks/get``, in the extension."""

    ttl_ms: int | None = None


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
