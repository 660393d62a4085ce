"""Tasks of a host: calls that became tasks are known until they are over, also by the next process."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, structs

from isthmus.client.model.results import ToolResult
from isthmus.client.tasks import OnTask, ToolTask
from isthmus.host.approvals.decisions import Decisions, make_connection_key
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.calling_client import CallingClients
from isthmus.host.model.errors import Unknown
from isthmus.host.state.database import HostState, decode_row

if TYPE_CHECKING:
    import sqlite3

MAX_TASK_AGE_S = 30 * 86400.0  # then it is forgotten: nobody came for it

# their end was written down just before their host was killed; the others go on
DELETE_ENDED = """
    DELETE FROM task_handle WHERE EXISTS (
        SELECT 1 FROM event WHERE kind = 'outcome'
        AND call_id = json_extract(CAST(attempt AS TEXT), '$.id') AND coalesce(error_class, '')
        NOT IN ('cancelled', 'ConnectionLost', 'ServerUnavailable', 'outcome-unknown')
    )
"""

# decisions on questions of tasks that nobody follows any more
DELETE_UNASKED = """
    DELETE FROM decision WHERE NOT EXISTS (
        SELECT 1 FROM task_handle AS open
        WHERE open.identity = decision.identity AND open.task = decision.task
    )
"""

# no process that is there follows them: calls of those that are gone are ours
SELECT_OURS = """
    SELECT identity, task, attempt, answered FROM task_handle
    WHERE NOT EXISTS (
        SELECT 1 FROM open_call WHERE node != ?
        AND call_id = json_extract(CAST(attempt AS TEXT), '$.id')
    )
    ORDER BY at_us
"""

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Attempt)
_names = msgspec.json.Decoder(tuple[str, ...])


class TaskHandle(Struct, frozen=True, kw_only=True):
    """One call that became a task.

    Attributes:
        identity: which server, on whose connection, and ``task`` the task's name there.
        attempt: the call; its id is the one in the audit log.
        answered: names of the task's questions whose answers have reached the server.
    """

    identity: str
    task: str
    attempt: Attempt
    answered: tuple[str, ...] = ()


class HostTasks:
    """The tasks of a host.

    Args:
        state: where they are kept.
        decisions: what was decided on their questions; forgotten when they are over.
        clock: says the seconds since the epoch.
        node: what this process is called in the audit log.
    """

    def __init__(
        self,
        state: HostState,
        decisions: Decisions,
        clock: Callable[[], float] = time.time,
        node: str = "",
    ) -> None:
        self._state = state
        self._decisions = decisions
        self._clock = clock
        self._node = node
        self._handles: dict[str, TaskHandle] = {}
        self._following: dict[str, asyncio.Future[ToolResult]] = {}

    async def load(self) -> None:
        """Read which there are; what is too old is forgotten, what another process follows is not ours."""
        oldest = int((self._clock() - MAX_TASK_AGE_S) * 1e6)
        node = self._node

        def work(db: "sqlite3.Connection") -> list[tuple[str, str, bytes, str]]:
            db.execute("DELETE FROM task_handle WHERE at_us < ?", (oldest,))
            db.execute(DELETE_ENDED)
            db.execute(DELETE_UNASKED)
            return db.execute(SELECT_OURS, (node,)).fetchall()

        for identity, task, attempt, answered in await self._state.write(work):
            call = decode_row(_decoder, attempt, "a task")
            names = decode_row(_names, answered, "a task")
            if call is not None and names is not None:
                self._handles[call.id] = TaskHandle(
                    identity=identity, task=task, attempt=call, answered=names
                )

    @property
    def open(self) -> Mapping[str, TaskHandle]:
        """Those that are not over, by the id of the call."""
        return self._handles

    def parent(self, server: str, isolation: str, identity: str, task: str) -> Attempt | None:
        """The call that became this task of a server, on this connection."""
        identity = make_connection_key(server, isolation, identity)
        found = (h for h in self._handles.values() if (h.identity, h.task) == (identity, task))
        handle = next(found, None)
        return None if handle is None else handle.attempt

    # While a call is under way

    def keeper(self, attempt: Attempt, identity: str, clients: CallingClients) -> OnTask:
        """Make the function that keeps a call once it has become a task, before the task is waited for.

        Args:
            attempt: the call.
            identity: of its server.
            clients: whoever the call is made for is told of the task once it is kept.
        """

        async def keep(task: ToolTask) -> None:
            where = make_connection_key(attempt.server, attempt.isolation, identity)
            handle = TaskHandle(identity=where, task=task.id or "", attempt=attempt)
            row = where, handle.task, int(self._clock() * 1e6), _encode(attempt)
            await self._state.write(
                lambda db: db.execute(
                    "INSERT OR REPLACE INTO task_handle (identity, task, at_us, attempt) "
                    "VALUES (?, ?, ?, ?)",
                    row,
                )
            )
            self._handles[attempt.id] = handle
            self.follow(task, attempt.id)
            caller = clients.find(attempt.id)
            if caller is not None:
                await caller.follow_task(task)

        return keep

    def follow(self, task: ToolTask, call: str) -> None:
        """Keep which questions of a task are answered."""

        async def answered(name: str) -> None:
            handle = self._handles.get(call)
            if handle is None:
                return
            handle = self._handles[call] = structs.replace(
                handle, answered=(*handle.answered, name)
            )
            row = _encode(handle.answered).decode(), handle.identity, handle.task
            await self._state.write(
                lambda db: db.execute(
                    "UPDATE task_handle SET answered = ? WHERE identity = ? AND task = ?", row
                )
            )

        task.on_answered = answered

    def over(self, call: str) -> None:
        """A call is over; nothing happens for one that was no task."""
        handle = self._handles.pop(call, None)
        if handle is None:
            return
        key = handle.identity, handle.task
        self._decisions.forget(*key)
        self._state.post(
            lambda db: db.execute("DELETE FROM task_handle WHERE identity = ? AND task = ?", key)
        )

    # After a restart

    def resume(self, go_on: Callable[[TaskHandle], "asyncio.Future[ToolResult]"]) -> None:
        """Go on with those that an earlier process left.

        Args:
            go_on: goes on with a task, through the pipeline.
        """
        for call, handle in list(self._handles.items()):
            if call not in self._following:
                work = self._following[call] = go_on(handle)
                work.add_done_callback(retrieve_silently)

    async def result(self, call: str) -> ToolResult:
        """The result of a call that an earlier process made.

        Args:
            call: the id of the attempt.

        Raises:
            Unknown: no such call is followed.
            IsthmusError: what it came to.
        """
        work = self._following.get(call)
        if work is None:
            known = ", ".join(self._following) or "none"
            raise Unknown(f"no call {call!r} is followed; there are: {known}")
        return await asyncio.shield(work)

    async def close(self) -> None:
        """Follow nothing any more; what is not over stays known."""
        works = list(self._following.values())
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


def retrieve_silently(work: "asyncio.Future[ToolResult]") -> None:
    """Take the outcome of a task: it stands in the audit log, whether or not anybody asks here."""
    if not work.cancelled():
        work.exception()
