"""Settings of tools that may run as tasks, under the names of ``fastmcp.utilities.tasks``."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Self

from isthmus.errors import UsageError

TaskMode = Literal["forbidden", "optional", "required"]

TASKS_EXTENSION_ID = "io.modelcontextprotocol/tasks"

DEFAULT_POLL_INTERVAL = timedelta(seconds=5)
DEFAULT_POLL_INTERVAL_MS = 5000
DEFAULT_TTL_MS = 60_000

LOCAL_QUEUE = "memory://"


@dataclass
class TaskMeta:
    """Wish of a client that a call runs as a task.

    Attributes:
        ttl: milliseconds that it wants the task to be kept.
        fn_key: nothing here.
    """

    ttl: int | None = None
    fn_key: str | None = None


@dataclass
class TaskConfig:
    """Whether calls of a tool run as tasks.

    Attributes:
        mode: never, where the client has tasks, or always.
        poll_interval: not heeded: ``Limits(task_poll=…)`` of the server is.
    """

    mode: TaskMode = "optional"
    poll_interval: timedelta = DEFAULT_POLL_INTERVAL

    @classmethod
    def from_bool(cls, value: bool) -> Self:
        """The settings that ``task=True`` and ``task=False`` stand for."""
        return cls("optional" if value else "forbidden")

    def supports_tasks(self) -> bool:
        """Whether a call may be a task."""
        return self.mode != "forbidden"

    def validate_function(self, fn: Callable[..., Any], name: str) -> None:
        """See that a function can run as a task.

        Raises:
            ValueError: it is not async.
        """
        inner = fn
        if not (inspect.isroutine(fn) or isinstance(fn, functools.partial)):
            inner = fn.__call__  # type: ignore[operator]  # an object that can be called
        while isinstance(inner, functools.partial):
            inner = inner.func
        if self.supports_tasks() and not inspect.iscoroutinefunction(inspect.unwrap(inner)):
            raise ValueError(
                f"'{name}' uses a sync function but has task execution enabled. Background tasks require async functions."
            )


class TasksExtension:
    """Extension by which fastmcp 4 runs tasks: ``mcp.add_extension(TasksExtension())``.

    Args:
        url: the queue; in this process by default.
        **_: what is about the workers of a queue.

    Raises:
        UsageError: the queue is elsewhere.
    """

    identifier = TASKS_EXTENSION_ID

    def __init__(self, url: str | None = None, **_: Any) -> None:
        check_queue(url, "TasksExtension(url=…)")


def read_task_config(task: Any) -> TaskConfig:
    """The settings that ``task=`` of a component stands for."""
    if isinstance(task, TaskConfig):
        return task
    return TaskConfig.from_bool(bool(task))


def drop_task(options: dict[str, Any], what: str) -> None:
    """Take ``task=`` out of the options of what is no tool: clients may always use it without a task.

    Raises:
        UsageError: they may not.
    """
    if read_task_config(options.pop("task", None)).mode == "required":
        raise UsageError(
            f"{what} that runs only as a task is not offered by isthmus.compat.fastmcp, where calls of tools are tasks: use "
            'TaskConfig(mode="optional"); see docs/guide/tasks.md'
        )


def check_queue(url: str | None, named: str) -> None:
    """See that tasks are to run in this process.

    Raises:
        UsageError: they are to run in workers of a queue.
    """
    if url and not url.startswith(LOCAL_QUEUE):
        raise UsageError(
            f"{named} has tasks run in workers of a queue, which isthmus has in another way: leave it out, and start the "
            "server by isthmus run --compat … --store URL; see docs/guide/tasks-of-several-processes.md"
        )
