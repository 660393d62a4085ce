"""Lifespan of an HTTP app: ASGI's, its routes in another application, the signals to stop and the drain.

The drain is what happens between a signal and the end, and for how long.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol

from isthmus.transports.http.reply import Receive, Send

DRAIN_TIMEOUT_S = 1.0  # seconds that calls in flight get, where nobody says more

CALL_LOOK_S = 0.1  # between looks at what is still in flight

# Seconds after a signal to stop in which requests that still come in are refused
REFUSAL_PERIOD_S = 5.0


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
        stop: called on it with each signal, and how many there have been.
        holds: the server hears of the first signal when :meth:`release` is called, or by the second.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[int], object],
        *,
        holds: bool = False,
    ) -> None:
        self._loop = loop
        self._stop = stop
        self._holds = holds
        self._held: int | None = None
        self._count = 0
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
        self._count += 1
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stop, self._count)
        if self._holds and self._count == 1 and not self._loop.is_closed():
            self._held = number
        else:
            self._own[number](number, frame)

    def release(self) -> None:
        """Tell the server of the signal that was held back."""
        held, self._held = self._held, None
        if held is not None and self._count == 1:
            self._own[held](held, None)

    def close(self) -> None:
        """Leave the signals to the server, unless somebody has taken them meanwhile."""
        for number, own in self._own.items():
            if signal.getsignal(number) == self._hear:
                signal.signal(number, own)


class AppDrain:
    """The end of an app: first a lead for balancers, then the time for calls in flight.

    Args:
        stop: stops the app, within so many seconds for calls in flight; the task that asked for it,
            which is not waited for, is the second argument.
        seconds: those, where nobody says otherwise.
        lead: seconds after a signal in which all goes on as before.

    Attributes:
        seconds: as given.
        lead: as given.
        is_hurried: a second signal came: nothing is waited for.
        refuses_until: the loop's time until which the app does not start again.
        awaits_connections: whoever runs the app says when no more requests come, by :meth:`release`.
    """

    def __init__(
        self,
        stop: "Callable[[float, asyncio.Task[Any] | None], Coroutine[Any, Any, None]]",
        seconds: float,
        lead: float,
    ) -> None:
        self.seconds = seconds
        self._is_told = False
        self.is_hurried = False
        self.refuses_until = 0.0
        self.awaits_connections = False
        self._is_held = False
        self._stop = stop
        self.lead = lead
        self._signals: StopSignals | None = None
        self.leading: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_draining(self) -> bool:
        """Whether the app was told to stop; one that stopped in another event loop may begin anew."""
        closing = self._closing
        here = closing is None or closing.get_loop() is asyncio.get_running_loop()
        return self._is_told and here

    @property
    def has_begun(self) -> bool:
        """Whether streams have been ended, so that no further ones are begun."""
        return self._closing is not None and not self._closing.done()

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hear the signals from now on: the app has started."""
        self._is_told = self.is_hurried = self._is_held = False
        self._closing = None
        self._signals = StopSignals(loop, self._hear_signal, holds=self.lead > 0)

    async def close(self, seconds: float | None, *, has_started: bool) -> None:
        """Stop the app, or wait until it has stopped that was told to before.

        Args:
            seconds: for calls in flight; the usual ones if not given.
            has_started: there is something to stop.
        """
        loop, me = asyncio.get_running_loop(), asyncio.current_task()
        closing = self._closing
        if closing is None or closing.done() or closing.get_loop() is not loop:
            if not has_started:
                return
            closing = self._begin(self.seconds if seconds is None else seconds, me)
        if closing is not me:  # which is what runs at the app's end
            await asyncio.shield(closing)

    def hurry(self) -> None:
        """Wait no longer for calls in flight."""
        self.is_hurried = True

    def hold(self) -> None:
        """Go on serving what connections that are open may bring, until :meth:`release`."""
        self._is_held = True

    def release(self) -> None:
        """No more requests come, and a signal that is heard only now waits for none."""
        self._is_held = self.awaits_connections = False

    async def wait_for_calls(
        self,
        list_tasks: "Callable[[], set[asyncio.Task[Any]]]",
        seconds: float,
        closer: "asyncio.Task[Any] | None",
    ) -> None:
        """Wait until nothing is in flight any more, as long as that may take.

        Args:
            list_tasks: gives the tasks of what is in flight now.
            seconds: the most to wait.
            closer: a task that is not waited for, since a tool may end its own server.
        """
        loop = asyncio.get_running_loop()
        left, until = seconds, loop.time() + seconds
        while not self.is_hurried:
            tasks, look = list_tasks() - {closer}, min(max(left, 0.0), CALL_LOOK_S)
            if tasks:
                await asyncio.wait(tasks, timeout=look)
            elif self._is_held:
                await asyncio.sleep(look)
            else:
                break
            left = until - loop.time()
            if left <= 0:
                break
        if self._signals is not None:
            self._signals.close()

    # The signals

    def _hear_signal(self, count: int) -> None:
        """The server that runs the app got a signal."""
        if count > 1:
            self.hurry()
        if self.has_begun:
            return
        self._is_told = True
        if count == 1 and self.lead > 0:
            loop = asyncio.get_running_loop()
            self.leading = loop.call_later(self.lead, self._end_lead)
        else:
            self._end_lead()

    def _end_lead(self) -> None:
        """Balancers have noticed: stop, and let the server that runs the app do so."""
        if not self.has_begun:
            self.refuses_until = asyncio.get_running_loop().time() + REFUSAL_PERIOD_S
            self._is_held = self.awaits_connections
            self._begin(self.seconds, None)
        if self._signals is not None:
            self._signals.release()

    def _begin(self, seconds: float, closer: "asyncio.Task[Any] | None") -> "asyncio.Task[None]":
        self._is_told = True
        if self.leading is not None:
            self.leading.cancel()
        self._closing = asyncio.get_running_loop().create_task(self._stop(seconds, closer))
        return self._closing
