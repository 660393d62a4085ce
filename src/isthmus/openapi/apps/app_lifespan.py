"""Lifespan of an application in the same process: it is started once, by whoever comes first.

An application that serves over HTTP and offers its operations as tools has two who could start it:
the ASGI server, and the MCP server. An application of Starlette's kind says that it is running
already; others are started by the MCP server.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from isthmus.runtime.failures import log_failure

if TYPE_CHECKING:
    from isthmus.openapi.apps.asgi_sender import AsgiApp

STOP_TIMEOUT_S = 10.0


class WatchedLifespan:
    """The lifespan of an application of Starlette's kind, and how often it is open.

    Args:
        router: has ``lifespan_context``, which is called with the application.

    Attributes:
        open_count: how often it is open now.
        state: what it gave for the state of requests.
    """

    def __init__(self, router: Any) -> None:
        self.open_count = 0
        self.state: dict[str, Any] = {}
        self._inner = router.lifespan_context

    @asynccontextmanager
    async def __call__(self, app: Any) -> AsyncIterator[Any]:
        """Open what the author wrote."""
        self.open_count += 1  # from the beginning: what it starts may be a server of these tools
        try:
            async with self._inner(app) as state:
                self.state = dict(state or {})
                yield state
        finally:
            self.open_count -= 1


def watch_lifespan(app: Any) -> WatchedLifespan | None:
    """Watch the lifespan of an application; None where it cannot be seen from outside."""
    router = getattr(app, "router", None)
    context = getattr(router, "lifespan_context", None)
    if context is None or router is None:
        return None
    if isinstance(context, WatchedLifespan):
        return context
    watched = WatchedLifespan(router)
    router.lifespan_context = watched
    return watched


class AppLifespanRun:
    """Runs the lifespan of an application (ASGI), unless it runs already.

    Args:
        app: the application.

    Attributes:
        state: what requests find as the state of their scope.
    """

    def __init__(self, app: "AsgiApp") -> None:
        self._app = app
        self._watched = watch_lifespan(app)
        self._own_state: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[str] = asyncio.Queue()
        self._started: asyncio.Future[None] | None = None

    @property
    def state(self) -> dict[str, Any]:
        """A copy of the lifespan's state, for one request (ASGI: lifespan state)."""
        if self._watched is not None and self._watched.open_count:
            return dict(self._watched.state)
        return dict(self._own_state)

    async def open(self) -> None:
        """Start the application.

        Raises:
            RuntimeError: it said that it cannot start.
        """
        if self._task is not None or (self._watched is not None and self._watched.open_count):
            return
        loop = asyncio.get_running_loop()
        self._events = asyncio.Queue()
        self._own_state = {}
        started = self._started = loop.create_future()
        self._task = loop.create_task(self._run(started))
        try:
            await asyncio.shield(started)
        except Exception:
            self._task = None
            raise

    async def close(self) -> None:
        """Stop the application if it was started here."""
        task, self._task = self._task, None
        if task is None or task.done():
            return
        self._events.put_nowait("lifespan.shutdown")
        _, late = await asyncio.wait({task}, timeout=STOP_TIMEOUT_S)
        for one in late:
            one.cancel()
            with suppress(asyncio.CancelledError):
                await one

    async def _run(self, started: "asyncio.Future[None]") -> None:
        self._events.put_nowait("lifespan.startup")

        async def receive() -> dict[str, Any]:
            return {"type": await self._events.get()}

        async def send(message: Any) -> None:
            kind = message["type"]
            if kind == "lifespan.startup.complete" and not started.done():
                started.set_result(None)
            elif kind == "lifespan.startup.failed" and not started.done():
                reason = message.get("message", "").strip().splitlines() or ["it failed to start"]
                started.set_exception(RuntimeError(f"the app cannot start: {reason[-1]}"))

        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self._own_state,
        }
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - ASGI: an application without a lifespan raises
            if started.done() and started.exception() is None:
                log_failure("the end of the app", error)
        finally:
            if not started.done():
                started.set_result(None)
