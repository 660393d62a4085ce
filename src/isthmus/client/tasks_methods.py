"""Tasks as a program handles them: started, found again, listed."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from isthmus.client.connection import OnProgress
from isthmus.client.listing import collect
from isthmus.client.methods import Methods, raw
from isthmus.client.tasks import ToolTask
from isthmus.client.tasks_states import TaskState, state_of
from isthmus.errors import CapabilityMissing, NotInRevision
from isthmus.runtime.tasks_reading import Listed
from isthmus.wire import CallToolParams, ListTasksParams, Task

__all__ = ["TaskMethods"]


class TaskMethods(Methods):
    """What may be done with calls that run as tasks."""

    async def start_tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        ttl: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolTask:
        """Call a tool without waiting for its end, where it runs as a task.

        In 2025-11-25 it does where it says that it may; since 2026-07-28 the server decides. A
        call that is no task is awaited to its end, and the handle has its result already.

        Example::

            task = await client.start_tool("render", {"scene": "beach"})
            keep(task.id)
            result = await task.result()

        Args:
            name: the tool.
            arguments: a mapping, or a struct, dataclass or model that becomes one.
            ttl: seconds the server shall keep the task (2025-11-25); it may say otherwise.
            on_progress: told of progress, in order; may be async. Since 2026-07-28 tasks report
                none: see the message of ``status()``.
            meta: further members of ``_meta``.

        Raises:
            Refused: the server answered with an error.
            CallTimedOut: no answer in time.
            ConnectionLost: the connection ended first.
        """
        connection = self._connection
        connection.require("tools", "tools/call")
        params = CallToolParams(name=name, arguments=raw(arguments), meta=connection.about(meta))
        if self._tasks.asks_itself and not self._catalog.knows(name):
            await self.list_tools()
        if self._tasks.asks_itself and self._catalog.task(name) in {"optional", "required"}:
            return await self._tasks.start(params, on_progress, ttl)
        headers = self._catalog.headers(name, arguments)
        answer = await connection.ask("tools/call", params, None, on_progress, name, headers)
        return self._tasks.handle(name, answer)

    def task(self, id: str, *, tool: str = "", answered: Iterable[str] = ()) -> ToolTask:
        """A task that was started before, maybe over another connection.

        Args:
            id: what ``ToolTask.id`` was.
            tool: the tool, if its results are to be held against its schema.
            answered: names of its questions that were answered before, and are not answered again
                (since 2026-07-28): what ``ToolTask.on_answered`` was told.
        """
        return ToolTask(self._tasks, tool, id, answered=answered)

    async def list_tasks(self) -> list[TaskState]:
        """Every task of ours that the server knows (2025-11-25).

        Raises:
            NotInRevision: other revisions list none.
            CapabilityMissing: the server does not list tasks to us.
        """
        connection = self._connection
        if not self._tasks.core:
            raise NotInRevision(f"revision {connection.settled().revision.name} lists no tasks")
        offered = connection.settled().capabilities.tasks
        if offered is UNSET or offered.list is UNSET:
            raise CapabilityMissing("the server does not list tasks")

        async def page(cursor: Any) -> Any:
            params = ListTasksParams(cursor=cursor)
            return await connection.send("tasks/list", params, Listed)

        limits = self._limits
        found: list[Task] = await collect(
            page, lambda page: page.tasks, pages=limits.pages, most=limits.items
        )
        return [state_of(task) for task in found]
