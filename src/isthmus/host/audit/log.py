"""The audit log: an intent is written before anything happens, and nothing happens that is not written.

Rows go in order, into one chain that several processes share. An intent is committed when
:meth:`AuditLog.intent` returns; a note is committed within milliseconds, together with others.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from isthmus.core.redaction.values import Redactor
from isthmus.errors import UsageError, copy_error
from isthmus.host.audit.hash_chain import ChainVerdict, verify_chain
from isthmus.host.audit.head_file import HeadUpdate
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.queries import read_last_lines
from isthmus.host.audit.row_columns import RowSnapshot, take_snapshot
from isthmus.host.audit.row_queue import QueueDrain, QueuedRow, RowQueue
from isthmus.host.audit.writer import AuditWriter, BodyMode
from isthmus.host.model.errors import AuditUnavailable, ConfigError
from isthmus.host.model.row import AuditRow
from isthmus.host.model.view import AuditLine
from isthmus.host.state.database import HostState
from isthmus.runtime.sorted_ids import new_id
from isthmus.store.sqlite import Durability
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
RETRY_S = 1.0
DAY_S = 24 * 3600.0
DURATION_MEMBERS = ("retain", "bodiesLife")


class AuditLog:
    """The audit log of a host, in its state.

    Args:
        state: where it is kept.
        durability: what a commit outlives; None for what the state says.
        bodies: what is kept of arguments and results besides their digests.
        bodies_life: seconds after which bodies are gone.
        retain: seconds that rows are kept, in whole segments; None for ever. Of a state in memory
            about the last 50,000 rows are kept.
        redactor: takes out what is secret.
        node: what this process is called in the log; a name of its own by default.
        clock: says the seconds since the epoch; the state's by default.

    Attributes:
        node: what this process is called in the log.
        redactor: takes out what is secret.
        trouble: why nothing can be written at the moment; empty where it can.

    Example::

        log = AuditLog(HostState("state"))
        await log.intent(Row(kind="intent", call=id, action="tool.call", server="files"))
        log.note(Row(kind="outcome", call=id, seconds=0.02))
        await log.close()
    """

    def __init__(
        self,
        state: HostState,
        *,
        durability: Durability | None = None,
        bodies: BodyMode = "hash",
        bodies_life: float = 30 * DAY_S,
        retain: float | None = None,
        redactor: Redactor | None = None,
        node: str = "",
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._state = state
        if durability is not None:
            state.database.durability = durability
        self.redactor = redactor or Redactor()
        self.node = node or f"{socket.gethostname()}:{os.getpid()}:{new_id()[-6:]}"
        self.trouble = ""
        self._clock = clock or state.clock
        self._waiting = RowQueue()
        self._writer = AuditWriter(
            state, self._waiting, self.redactor, self.node, self._clock,
            bodies=bodies, bodies_life=bodies_life, retain=retain,
        )  # fmt: skip
        self._posted = False
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._retrying: asyncio.TimerHandle | None = None
        self._last_head: HeadUpdate | None = None

    async def open(self) -> int:
        """Announce this process, and write an outcome for calls that processes now gone left open.

        The first row does it by itself where nobody did.

        Returns:
            How many calls were without an outcome.

        Raises:
            AuditUnavailable: the log cannot be written.
        """
        held: list[HeadUpdate | None] = [None]

        def begin(db: "sqlite3.Connection") -> int:
            count, held[0] = self._writer.ready(db)
            return count

        def ended(error: BaseException | None) -> None:
            self._on_end(error, held[0])

        return await self._await_store(self._state.database.write(begin, ended))

    async def intent(self, row: AuditRow) -> None:
        """Write an intent: an attempt that is about to be made; it is committed when this returns.

        A log in memory ends with this process whatever was committed: there it is noted.

        Where this is cancelled it may have been written: an outcome belongs to it then, too.

        Raises:
            AuditUnavailable: it could not be written, so it must not happen.
        """
        if self._state.folder is None and self._writer.begun and not self.trouble:
            self.note(row)
        else:
            await self._commit(row)

    async def write(self, row: AuditRow) -> None:
        """Write any row; it is committed when this returns.

        Raises:
            AuditUnavailable: it could not be written.
        """
        await self._commit(row)

    def note(self, row: AuditRow) -> None:
        """Write a row within milliseconds, after those before it; nobody waits for it.

        While the store is not there, notes wait, and no intent gets through before them.
        """
        self._waiting.put(QueuedRow(self._take(row)))
        self._post()

    async def flush(self) -> None:
        """Wait until every note has been committed.

        Raises:
            AuditUnavailable: it could not be written.
        """
        await self._drain(None)

    async def tail(self, count: int = 50) -> list[AuditLine]:
        """The last rows, the oldest first, with all that was noted before.

        Raises:
            AuditUnavailable: the log cannot be read or written.
        """
        return await self.read(lambda db: read_last_lines(db, count))

    async def read(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        """Look something up in the log, with all that was noted before.

        Raises:
            AuditUnavailable: the log cannot be read or written.
            UsageError: what is looked for cannot be.
        """
        await self.flush()
        return await self._await_store(self._state.read(work))

    async def verify(self, anchor: str = "") -> ChainVerdict:
        """Verify the whole log; see :func:`isthmus.host.audit.hash_chain.verify_chain`.

        Raises:
            AuditUnavailable: the log cannot be read or written.
        """
        await self.flush()
        keys = AuditKeys(self._state.key())
        head = self._writer.head_file(keys)
        return await self._await_store(
            self._state.read(lambda db: verify_chain(db, keys, head, anchor))
        )

    async def close(self) -> None:
        """Write the queue, sign the end of the chain, and remove the presence; safe to call twice.

        Raises:
            AuditUnavailable: it could not be written.
        """
        if self._closed:
            return
        self._closed = True
        if self._retrying is not None:
            self._retrying.cancel()
        try:
            if self._writer.begun or self._waiting:
                await self._drain(None)
                await self._await_store(
                    self._state.database.write(self._sign_end, self._on_last_end)
                )
        finally:
            self._writer.presence.end()

    def _take(self, row: AuditRow) -> RowSnapshot:
        return take_snapshot(row, self._clock(), self.redactor)

    async def _commit(self, row: AuditRow) -> None:
        entry = QueuedRow(self._take(row), awaited=True)
        self._waiting.put(entry)
        try:
            await self._drain(entry)
        except asyncio.CancelledError:
            entry.dropped = True
            raise

    async def _drain(self, entry: QueuedRow | None) -> None:
        drain = QueueDrain(self._waiting, self._writer.append, self._on_end, entry)
        # of many who wait at once, the first one's drain takes the rows of all
        await self._await_store(
            self._state.database.write(drain.write_all, drain.on_end, lambda: not self._waiting)
        )
        if entry is not None and entry.error is not None:  # in another's drain
            raise make_unavailable(entry.error) from copy_error(entry.error)

    @staticmethod
    async def _await_store(done: Coroutine[None, None, T]) -> T:
        try:
            return await done
        except Exception as error:
            # a file that is none of ours is both: nothing is done without a log
            if isinstance(error, UsageError) and not isinstance(error, StoreUnavailable):
                raise
            raise make_unavailable(error) from error

    def _post(self) -> None:
        if self._posted:
            return
        self._posted = True
        with suppress(RuntimeError):  # a note may come from another thread
            self._loop = asyncio.get_running_loop()
        drain = QueueDrain(self._waiting, self._writer.append, self._on_end)

        def work(db: "sqlite3.Connection") -> None:
            self._posted = False
            drain.write_some(db)

        self._state.database.post(work, drain.on_end)

    # Callbacks in the store's thread

    def _sign_end(self, db: "sqlite3.Connection") -> None:
        self._last_head = self._writer.end(db)

    def _on_last_end(self, error: BaseException | None) -> None:
        self._on_end(error, self._last_head)

    def _on_end(self, error: BaseException | None, head: HeadUpdate | None) -> None:
        """A transaction has ended; the head follows a commit before anybody is told of it."""
        self._writer.settle_lost(committed=error is None)
        if error is None and head is not None:
            self._writer.advance_head(head)
        self.trouble = "" if error is None else str(error)
        if error is not None:
            self._posted = False
            self._writer.begun = False  # what it did first is undone, too
        if self._waiting and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._schedule_post, error is not None)

    # Retries in the event loop

    def _schedule_post(self, later: bool) -> None:
        if self._closed or self._retrying is not None:
            return
        if later:
            self._retrying = (
                self._loop.call_later(RETRY_S, self._post_again) if self._loop else None
            )
        else:
            self._post_again()

    def _post_again(self) -> None:
        self._retrying = None
        if self._waiting:
            self._post()


def make_unavailable(error: BaseException) -> AuditUnavailable:
    """The error for what cannot be done, since its row cannot be written."""
    return AuditUnavailable(f"the audit log cannot be written, so nothing is done: {error}")


class AuditSettings(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The member ``host.audit`` of a configuration.

    Attributes:
        durability: ``normal``: what was written outlives the process; ``full``: the machine's
            power, too, at some hundred microseconds for each call.
        bodies: what is kept of arguments and results besides their digests: ``hash`` nothing,
            ``redacted`` what redaction leaves of them, ``full`` all of it; encrypted.
        bodies_life: seconds after which that is gone.
        retain: seconds that rows are kept; None for ever.
        redact: JSON pointers into arguments, results and details to what is never kept.
    """

    durability: Durability = "normal"
    bodies: BodyMode = "hash"
    bodies_life: float = 30 * DAY_S
    retain: float | None = None
    redact: tuple[str, ...] = ()


def parse_audit_settings(member: Mapping[str, Any]) -> AuditSettings:
    """Parse the member ``host.audit`` of a configuration.

    Args:
        member: the member as it stands in the file; durations as ``"90d"``, or in seconds.

    Raises:
        ConfigError: it says what cannot be.
    """
    from isthmus.host.config.forms import parse_duration

    value = dict(member)
    try:
        value |= {name: parse_duration(value[name]) for name in DURATION_MEMBERS if name in value}
        return msgspec.convert(value, AuditSettings)
    except (msgspec.ValidationError, ValueError) as error:
        known = ", ".join(AuditSettings.__struct_encode_fields__)
        raise ConfigError(f"host.audit: {error}; it knows {known}") from None


def make_audit_log(
    state: HostState, member: Mapping[str, Any] | None = None, **more: Any
) -> AuditLog:
    """Make the audit log of a state with the settings of a configuration.

    Raises:
        ConfigError: the member says what cannot be.
    """
    settings = parse_audit_settings(member or {})
    return AuditLog(
        state,
        durability=settings.durability,
        bodies=settings.bodies,
        bodies_life=settings.bodies_life,
        retain=settings.retain,
        redactor=Redactor(settings.redact),
        **more,
    )
