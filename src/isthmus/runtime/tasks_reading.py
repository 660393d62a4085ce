"""Other people's tasks, as they are read: servers and clients leave out a ttl that is null."""

from msgspec import UNSET, UnsetType

from isthmus.wire import CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskCreated
from isthmus.wire.base import Wire

__all__ = ["Created", "Detailed", "FlatCreated", "Got", "Listed", "interval"]

POLL = 1.0
"""Seconds between two questions, where the other side does not say."""

SHORTEST_POLL = 0.05
"""Seconds between two questions at least, whatever it says."""


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


def interval(poll: int | UnsetType) -> float:
    """Seconds until the next question, as the other side would have it."""
    # spec 2025-11-25 basic/utilities/tasks#getting-tasks: SHOULD respect the interval
    return POLL if poll is UNSET else max(SHORTEST_POLL, poll / 1000)
