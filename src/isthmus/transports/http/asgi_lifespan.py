"""ASGI lifespan of an HTTP app, its routes in another application, and the signals that stop it."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from isthmus.transports.http.reply import Receive, Send


class AppLifespan(Protocol):
    """An app that starts and stops."""

    async def start(self) -> None:
        """Get ready."""
        ...

    async def close(self) -> None:
        """Stop."""
        ...


def attach_routes(app: Any, outer: Any, prefix: str, pages: Mapping[str, Any]) -> None:
    """Put an app into a Starlette or FastAPI application, with and without a slash.

    Args:
        app: the app.
        outer: the application.
        prefix: where the app shall be.
        pages: what shall be served at the very paths of the whole origin.
    """
    from starlette.routing import Mount, Route, WebSocketRoute  # it is there

    taken = {getattr(route, "path", None) for route in outer.router.routes}
    for path, page in pages.items():
        if path not in taken:  # another server's, which came first
            outer.router.routes.append(Route(path, RoutedApp(page)))
    outer.router.routes.append(Route(prefix, app))
    outer.router.routes.append(WebSocketRoute(prefix, app))
    outer.router.routes.append(Mount(prefix, app))


class RoutedApp:
    """An ASGI callable that a route takes for one, though it is a function.

    Args:
        page: the callable.
    """

    def __init__(self, page: Any) -> None:
        self._page = page

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve it."""
        await self._page(scope, receive, send)


async def serve_lifespan(app: AppLifespan, receive: Receive, send: Send) -> None:
    """Answer an ASGI server that tells when it starts and stops."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await app.start()
            except Exception as error:  # noqa: BLE001 - the author's hook may raise anything
                import traceback  # nobody else would show where it was raised

                shown = "".join(traceback.format_exception(error.__cause__ or error)).rstrip()
                told = f"{error}\n{shown}"
                await send({"type": "lifespan.startup.failed", "message": told})
                return
            await send({"type": "lifespan.startup.complete"})
        else:
            await app.close()
            await send({"type": "lifespan.shutdown.complete"})
            return


class StopSignals:
    """The signals by which an ASGI server is told to stop, heard by the app as well.

    uvicorn tells its app about the end when the last response is complete: a stream of changes never
    is. So the app hears of it at the same time as its server, whose own handler runs as before.
    Only a server that handles SIGTERM itself, in the main thread, is listened in on.

    Args:
        loop: the event loop that the app lives on.
        stop: called on it with the first signal.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> None:
        self._loop = loop
        self._stop = stop
        self._own: dict[int, Any] = {}
        if not callable(signal.getsignal(signal.SIGTERM)):
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            own: Any = signal.getsignal(number)
            while isinstance(before := getattr(own, "__self__", None), StopSignals):
                if not before._loop.is_closed():  # noqa: SLF001 - of this class
                    break
                own = before._own[number]  # noqa: SLF001 - its app was never closed
            if callable(own):
                self._own[number] = own
                try:
                    signal.signal(number, self._hear)
                except ValueError:  # not the main thread: no signal arrives here
                    self._own = {}
                    return

    def _hear(self, number: int, frame: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stop)
        self._own[number](number, frame)

    def close(self) -> None:
        """Leave the signals to the server, unless somebody has taken them meanwhile."""
        for number, own in self._own.items():
            if signal.getsignal(number) == self._hear:
                signal.signal(number, own)
