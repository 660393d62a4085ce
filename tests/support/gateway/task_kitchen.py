"""Server behind a gateway whose tool waits until the test lets it go on, as a task where its revision has them."""

import asyncio

from isthmus import Context, Server

TASK_REVISIONS = ("2025-11-25", "2026-07-28")


class Kitchen:
    """A server with one slow tool.

    Args:
        revision: its only revision.
        task: how the tool runs as a task; not at all in a revision without tasks.

    Attributes:
        server: the server.
        begun: set by each call that has begun.
        ready: the calls go on once it is set.
        calls: how often the tool was called.
        cancelled: set when a call was cancelled.
    """

    def __init__(self, revision: str, task: str | None = "required") -> None:
        self.server = Server("kitchen", revisions=[revision])
        self.begun = asyncio.Event()
        self.ready = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.calls = 0
        options = {"task": task} if task and revision in TASK_REVISIONS else {}

        @self.server.tool(**options)
        async def roast(dish: str, ctx: Context) -> str:
            """Roast something, which takes its time."""
            self.calls += 1
            await ctx.progress(1, 2, f"{dish} is in the oven")
            self.begun.set()
            try:
                await self.ready.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return f"{dish} is done"

        @self.server.tool
        async def burn(dish: str) -> str:
            """Fail at something."""
            raise ValueError(dish)
