"""Calls that people make from the page of a tool: begun by a form, shown when they end."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from isthmus.client.model.results import ToolResult
from isthmus.core.encoding import is_same_json
from isthmus.errors import IsthmusError
from isthmus.host.model.attempt import asked_by
from isthmus.host.model.interaction import Interaction
from isthmus.host.remote.view import HostView
from isthmus.runtime.sorted_ids import new_id

MAX_TRIES = 100  # that are kept, of all people together
MAX_TRIES_AT_ONCE = 16
FIRST_WAIT_S = 1.0  # for calls that end at once, so that their page comes with the result


class ToolTry(Struct):
    """One call made from a page.

    Attributes:
        id: names it in addresses; nobody can guess it.
        session: whose browser made it; others do not see it.
        server, tool: what was called, and ``name`` its name here.
        principal: as whom.
        arguments: what with.
        begun: when, in seconds since the epoch.
        seconds: how long it took; None while it is under way.
        result: what it gave.
        error: why it gave none.
    """

    id: str
    session: str
    server: str
    tool: str
    name: str
    principal: str
    arguments: Mapping[str, Any]
    begun: float
    seconds: float | None = None
    result: ToolResult | None = None
    error: str = ""


class TooManyTries(Exception):
    """So many calls from pages are under way that no further one is begun."""


class ToolTries:
    """The calls made from pages; they go through the host's pipeline like any other."""

    def __init__(self) -> None:
        self._tries: dict[str, ToolTry] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def find(self, id: str, session: str) -> ToolTry | None:
        """A call by its id; None where it is somebody else's, or is kept no longer."""
        found = self._tries.get(id)
        return found if found is not None and found.session == session else None

    async def begin(self, view: HostView, made: ToolTry) -> None:
        """Make a call; returns when it has ended, or after a moment.

        Raises:
            TooManyTries: others have to end first.
        """
        if len(self._tasks) >= MAX_TRIES_AT_ONCE:
            raise TooManyTries
        self._tries[made.id] = made
        while len(self._tries) > MAX_TRIES:
            self._forget_oldest()
        task = asyncio.get_running_loop().create_task(self._call(view, made))
        self._tasks[made.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(made.id, None))
        await asyncio.wait((task,), timeout=FIRST_WAIT_S)

    def stop(self, id: str) -> bool:
        """End a call that is under way; False where it is over."""
        task = self._tasks.get(id)
        return task is not None and task.cancel()

    async def close(self) -> None:
        """End all that are under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _forget_oldest(self) -> None:
        oldest = next(iter(self._tries))
        del self._tries[oldest]
        self.stop(oldest)

    async def _call(self, view: HostView, made: ToolTry) -> None:
        begun = time.perf_counter()
        try:
            with asked_by("a person at the console"):
                made.result = await view.call(made.name, made.arguments, principal=made.principal)
        except IsthmusError as error:
            made.error = str(error)
        except asyncio.CancelledError:
            made.error = "it was stopped"
            raise
        finally:
            made.seconds = time.perf_counter() - begun


def make_try(
    *,
    session: str,
    server: str,
    tool: str,
    name: str,
    principal: str,
    arguments: Mapping[str, Any],
) -> ToolTry:
    """A call that is about to be made."""
    return ToolTry(
        id=new_id(),
        session=session,
        server=server,
        tool=tool,
        name=name,
        principal=principal,
        arguments=arguments,
        begun=time.time(),
    )


def find_waiting(made: ToolTry, pending: Sequence[Interaction]) -> Interaction | None:
    """The question that a call waits for; None where none is seen."""
    if made.seconds is not None:
        return None
    for one in pending:
        attempt = one.attempt
        if (attempt.server, attempt.object, attempt.principal) == (
            made.server,
            made.tool,
            made.principal,
        ) and is_same_json(attempt.arguments, made.arguments):
            return one
    return None
