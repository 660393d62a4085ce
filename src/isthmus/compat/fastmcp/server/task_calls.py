"""Calls of a façade's tools that run as tasks of isthmus' server."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from isthmus.compat.fastmcp.server.context import Context
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.rounds import run_once
from isthmus.server.features.tasks import Tasks, run_as_task
from isthmus.server.settings import SharedSettings
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.compat.fastmcp.server.server import FastMCP
    from isthmus.tasks.jobs import Job


class TaskCalls:
    """Calls that become tasks.

    Args:
        facade: the server written for fastmcp.
        tasks: those of isthmus' server.
        settings: those of isthmus' server.
    """

    def __init__(self, facade: "FastMCP", tasks: Tasks, settings: SharedSettings) -> None:
        self._facade = facade
        self._tasks = tasks
        self._settings = settings

    async def begin(
        self,
        run: Callable[[Any, str | None], Coroutine[Any, Any, Wire]],
        params: Any,
        inbound: Inbound,
    ) -> Wire | None:
        """Begin a task for a call.

        Args:
            run: serves the call, in a context of isthmus and as the task of an id.
            params: those of the call.
            inbound: the call.

        Returns:
            The answer; None where the call is to be served as any other.

        Raises:
            Refuse: the tool never runs as a task, or only so; or there are too many.
        """
        tool = await self._find_tool(params.name, inbound)
        if tool is None:
            return None
        mode = tool.task_config.mode
        shape = self._tasks.choose_shape(
            params.name, None if mode == "forbidden" else mode, params, inbound
        )
        if shape is None:
            return None

        async def start(job: "Job") -> Wire:
            async def body(own: Any) -> Wire:
                return await run(own, job.record.id)

            result: Wire = await run_as_task(body, inbound, self._settings, job, shape)
            return result

        return await self._tasks.begin(params, inbound, shape, start)

    async def _find_tool(self, name: str, inbound: Inbound) -> Any:
        """A tool that the caller may use; None for none: a refusal is the answer to a call, and no task."""
        facade = self._facade

        async def find(own: Any) -> Any:
            async with Context(facade, own, inbound.link):
                tool = await facade.get_tool(name)
                if tool is None:
                    return None
                guards = [one for one in facade.middleware if hasattr(one, "guards_components")]
                return tool if all([await one.admits(tool) for one in guards]) else None

        return await run_once(find, inbound, self._settings)
