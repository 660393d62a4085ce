"""Attendance: a console is a surface of its host while operators have pages open."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.host.model.trace import Assurance

if TYPE_CHECKING:
    from isthmus.host.remote.view import HostView

WATCH_GRACE_S = 900.0  # from the last look to the end of the recording
SURFACE_NAME = "console"
ABSENCE_S = (
    30.0  # from the last page to the end of attendance: a browser that goes from page to page stays
)


class ConsoleWatch:
    """Has calls recorded while somebody looks at a console, and for a time after the last look.

    Args:
        view: the host.
        is_open: whether a page is open just now.
        grace: seconds without a look or an open page after which nothing is recorded any more.
    """

    def __init__(
        self, view: "HostView", is_open: Callable[[], bool], grace: float = WATCH_GRACE_S
    ) -> None:
        self._view = view
        self._is_open = is_open
        self._grace = grace
        self._looked = asyncio.Event()
        self._started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Somebody looks: calls are recorded from now on."""
        self._looked.set()
        if self._task is None or self._task.done():
            self._started.clear()
            self._task = asyncio.ensure_future(self._watch())
        await self._started.wait()

    async def _watch(self) -> None:
        try:
            with suppress(IsthmusError):  # the host is gone: its pages say so
                while self._looked.is_set():  # also by a look while the recording ends
                    async with self._view.watch():
                        self._started.set()
                        while await self._is_looked_at():
                            self._looked.clear()
        finally:
            self._started.set()

    async def _is_looked_at(self) -> bool:
        """Wait for the next look; False where there has been none for long, and no page is open."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._looked.wait()
                return True
        return self._is_open()

    async def close(self) -> None:
        """Record nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class AttendedSurface:
    """The open pages of logins of one assurance, and the task that attends for them."""

    def __init__(self) -> None:
        self.pages = 0
        self.moved = asyncio.Event()
        self.attached = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class ConsoleAttendance:
    """The open pages of operators, as one surface of the host for each assurance of their logins.

    Args:
        view: the host.
        absence: seconds that the surface stays after its last page.
    """

    def __init__(self, view: "HostView", absence: float = ABSENCE_S) -> None:
        self._view = view
        self._absence = absence
        self._surfaces: dict[Assurance, AttendedSurface] = {}

    @asynccontextmanager
    async def open_page(self, assurance: Assurance) -> AsyncIterator[None]:
        """One more page, as long as it is open.

        Args:
            assurance: of the login that it was opened with.
        """
        surface = self._surfaces.get(assurance)
        if surface is None:
            surface = self._surfaces[assurance] = AttendedSurface()
            surface.task = asyncio.ensure_future(self._attend(surface, assurance))
        surface.pages += 1
        surface.moved.set()
        try:
            await surface.attached.wait()
            yield
        finally:
            surface.pages -= 1
            surface.moved.set()

    async def _attend(self, surface: AttendedSurface, assurance: Assurance) -> None:
        try:
            with suppress(IsthmusError):  # the host is gone: its pages say so
                async with self._view.attend(SURFACE_NAME, assurance):
                    surface.attached.set()
                    while await self._is_wanted(surface):
                        surface.moved.clear()
                    # before the host is told: the next page attends anew
                    del self._surfaces[assurance]
        finally:
            surface.attached.set()
            if self._surfaces.get(assurance) is surface:
                del self._surfaces[assurance]

    async def _is_wanted(self, surface: AttendedSurface) -> bool:
        """Wait until a page is opened or closed; False once there has been none for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if surface.pages else self._absence):
                await surface.moved.wait()
                return True
        return surface.pages > 0

    async def close(self) -> None:
        """Attend no longer."""
        tasks = [one.task for one in self._surfaces.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
