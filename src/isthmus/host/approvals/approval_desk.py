"""Approval desk: calls of a gateway's clients that a person has to approve, whether or not the client waits.

A question lives on when the client leaves, and when the host ends. What a person decides is used by one
call that is there for its result, and by no other: nothing is dispatched for nobody.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from isthmus.errors import IsthmusError
from isthmus.host.approvals.approval_rows import (
    WAITING_STATES,
    ApprovalChange,
    ApprovalRow,
    ApprovalState,
    ApprovalStorage,
    digest_binding,
)
from isthmus.host.approvals.broker import Broker
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.calling_client import CallingClient, CallingClients
from isthmus.host.model.errors import ApprovalPending, Denied, HostError, OutcomeUnknown
from isthmus.host.model.facts import Facts
from isthmus.host.model.gateway_options import ApprovalOptions
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.store.bus import Unsubscribe

NOT_DECIDED = frozenset({"nobody", "host"})  # by whom a question ends without a person
MAX_QUICK_FAILURES, QUICK_FAILURE_S = 8, 1.0
LOOK_INTERVAL_S = 1.0
HOST_CLOSED = Decision(
    verdict="deny", by="host", reason="the host was closed: the question is put again when it opens"
)


class GivenApproval(NamedTuple):
    """An approval that a call has got: the row, and what was decided."""

    id: str
    decision: Decision


class OpenApproval:
    """One row as this process knows it.

    Args:
        row: as it is by now.
    """

    def __init__(self, row: ApprovalRow) -> None:
        self.row = row
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asking: asyncio.Task[None] | None = None
        self.releasing: asyncio.Task[None] | None = None
        self._decided = asyncio.Event()

    @property
    def id(self) -> str:
        """The name of the question."""
        return self.row.id

    @property
    def expires(self) -> float:
        """When it counts no more, in seconds since the epoch."""
        return self.row.expires

    @property
    def words(self) -> str:
        """The call in words."""
        return self.row.interaction.attempt.words

    @property
    def is_decided(self) -> bool:
        """Whether a person has decided, or the question has ended."""
        return self._decided.is_set()

    async def wait_decided(self) -> None:
        """Wait until a person has decided, or the question has ended."""
        await self._decided.wait()

    def follow(self, row: ApprovalRow) -> None:
        """Take the row as it is by now."""
        self.row = row
        if row.state != "pending":
            self._decided.set()

    def fail(self, error: IsthmusError) -> None:
        """Nobody can be asked, or what they said does not count."""
        if not self.failure.done():
            self.failure.set_exception(error)
            self.failure.exception()  # it is known, also where nobody waits any more
        self._decided.set()


class ApprovalDesk:
    """Has people asked about calls of a gateway's clients.

    Args:
        broker: puts the questions.
        storage: keeps the rows.
        clients: the clients that calls are made for.
        options: how long an approval waits, and whether it does when its client has left.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self,
        broker: Broker,
        storage: ApprovalStorage,
        clients: CallingClients,
        options: ApprovalOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._broker = broker
        self._storage = storage
        self._clients = clients
        self._options = options or ApprovalOptions()
        self._clock = clock
        self._open: dict[str, OpenApproval] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe: Unsubscribe | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_open = False

    async def open(self, options: ApprovalOptions | None = None) -> None:
        """Read what waits, and put its questions again; nothing happens where it is open.

        A gateway opens it; a host without one has nothing to do with approvals that an earlier gateway left.

        Args:
            options: in place of those of the configuration.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        self._options = options or self._options
        if self._is_open:
            return
        self._is_open = True
        try:
            await self._load()
        except BaseException:
            self._is_open = False
            raise
        self._forget_expired()

    async def _load(self) -> None:
        storage = self._storage
        if storage.is_shared:
            self._unsubscribe = await storage.listen(self._hear)
            await self._look()
            self._looking = self._start(self._keep_looking())
            return
        for row in await storage.load():
            self._ask_people(self._follow(row))

    def set_options(self, options: ApprovalOptions) -> None:
        """Set how long approvals wait that are asked for from now on."""
        self._options = options

    async def close(self) -> None:
        """Put no questions any more; what waits is there for the next start."""
        if not self._is_open:
            return
        self._is_open = False
        if self._unsubscribe is not None:
            self._unsubscribe()
        for open in self._open.values():
            if open.asking is not None:
                self._broker.drop(open.id, HOST_CLOSED)
                open.asking.cancel()
            if open.row.state == "pending":
                open.fail(Denied(HOST_CLOSED.reason, by="host", verdict="cancel"))
        asking = [open.asking for open in self._open.values() if open.asking is not None]
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.gather(*asking, *self._tasks, return_exceptions=True)
        await self._storage.close()

    # For pages

    def find(self, id: str) -> ApprovalRow | None:
        """An approval that has not expired; None where there is none of this name."""
        open = self._open.get(id)
        if open is None or open.row.expires <= self._clock():
            return None
        return open.row

    def list(self) -> Sequence[ApprovalRow]:
        """All approvals that have not expired, the oldest first."""
        now = self._clock()
        rows = [open.row for open in self._open.values() if open.row.expires > now]
        return sorted(rows, key=lambda row: row.id)

    # For the pipeline

    def handles(self, attempt: Attempt) -> bool:
        """Whether an attempt is made for a client of a gateway."""
        return attempt.origin == "gateway" and self._clients.find(attempt.id) is not None

    async def ask(self, asked: Interaction, attempt: Attempt, facts: Facts) -> GivenApproval:
        """Have a person asked, or find what they have decided on the same call before.

        Args:
            asked: the question as people see it.
            attempt: the call, with its whole arguments.
            facts: the circumstances.

        Raises:
            ApprovalPending: nobody has decided yet, and the client waits no longer.
            Denied: its client would not have a person asked.
            Exhausted: too many questions wait already.
            StoreUnavailable, AuditUnavailable: it cannot be kept, so nothing may be done.
        """
        await self.open()
        client = self._clients.find(attempt.id)
        secret = self._storage.get_secret()
        key = digest_binding(secret, attempt, facts.identity, facts.fingerprint, asked.trace)
        if client is None or key is None:  # it can be bound to nothing, so it is for this call only
            return GivenApproval("", await self._broker.ask(asked))
        open = await self._attach_whole(asked, key, attempt.id)
        try:
            decision = await self._wait(open, client, attempt)
        except ApprovalPending:
            self._release(open, attempt.id)
            raise
        except asyncio.CancelledError:
            self._release(open, attempt.id, withdraws=self._options.on_leave == "cancel")
            raise
        except BaseException as error:
            self._release(open, attempt.id, withdraws=isinstance(error, Denied))
            raise
        if decision.verdict != "allow":  # it is told once
            self._change_soon(open, make_ending(attempt.id, "over", self._clock()))
        return GivenApproval(open.id, decision)

    async def _wait(self, open: OpenApproval, client: CallingClient, attempt: Attempt) -> Decision:
        """Wait for the decision for as long as the client does."""
        page = "" if open.is_decided else await client.wait_approval(open)
        if open.failure.done():
            open.failure.result()
        if open.row.decision is None:
            raise self._make_pending(open, attempt, page)
        return open.row.decision

    async def use(self, id: str, call: str) -> bool:
        """Use an approval for a call that is about to be dispatched; durable when this returns.

        Returns:
            False where it was used before, or has expired.

        Raises:
            StoreUnavailable: it is not known to be used.
        """
        node, now = self._storage.node, self._clock()

        def change(row: ApprovalRow) -> ApprovalRow | None:
            if row.state != "decided" or row.claim != call or row.expires <= now:
                return None
            return structs.replace(row, state="used", node=node, changed=now)

        row, used = await self._storage.change(id, change)
        if row is not None:
            self._follow(row)
        return used

    def leave(self, id: str, call: str, error: BaseException | None = None) -> None:
        """The call is over; an approval that it has not used waits for the same call to come again."""
        open = self._open.get(id)
        if open is None:
            return
        if open.row.state == "used":
            unknown = isinstance(error, OutcomeUnknown | asyncio.CancelledError)
            state: ApprovalState = "unknown" if unknown else "over"
            self._change_soon(open, make_ending(call, state, self._clock()))
        else:
            self._release(open, call)

    def tell_edited(self, attempt: Attempt) -> None:
        """Have a client told of the arguments that a person put in place of its own."""
        client = self._clients.find(attempt.id)
        if client is not None:
            client.tell_edited(attempt.arguments)

    def _make_pending(self, open: OpenApproval, attempt: Attempt, page: str) -> ApprovalPending:
        until = time.strftime("%H:%M:%S UTC", time.gmtime(open.expires))
        where = f" at {page}" if page else ", at any surface of the gateway's host"
        return ApprovalPending(
            f"{attempt.action} {attempt.object!r} of server {attempt.server!r} waits for a person's "
            f"approval{where}. Nothing was done. Once it is approved, call it again with the same "
            f"arguments, until {until}: it is then done, without asking again",
            approval=open.id,
            page=page,
            until=open.expires,
            rule=open.row.interaction.trace.rule,
        )

    # Rows

    async def _attach_whole(self, asked: Interaction, key: str, call: str) -> OpenApproval:
        """The row for a call, which is given back where the call is cancelled meanwhile."""
        attaching = asyncio.get_running_loop().create_task(self._attach(asked, key, call))
        try:
            return await asyncio.shield(attaching)
        except asyncio.CancelledError:
            cancels = self._options.on_leave == "cancel"

            def release(task: "asyncio.Task[OpenApproval]") -> None:
                if not task.cancelled() and task.exception() is None:
                    self._release(task.result(), call, withdraws=cancels)

            attaching.add_done_callback(release)
            raise

    async def _attach(self, asked: Interaction, key: str, call: str) -> OpenApproval:
        """The row for a call: one that waits for the same call, or a new one."""
        if self._storage.is_shared:
            await self._look()
        self._forget_expired()
        found = [open.row for open in self._open.values() if open.row.key == key]
        for row in sorted(found, key=lambda row: (row.state != "decided", row.id)):
            open = self._open.get(row.id)
            waits = open is not None and open.row.state in WAITING_STATES
            if open is not None and waits and await self._claim(open, call):
                return open
        return await self._begin(asked, key, call)

    async def _claim(self, open: OpenApproval, call: str) -> bool:
        """Have a call wait for a row; False where another one does."""
        if open.releasing is not None:
            await asyncio.wait([open.releasing])
        elsewhere, storage, now = open.row.claimed_at, self._storage, self._clock()
        is_left = bool(elsewhere) and await storage.is_gone(elsewhere)

        def change(row: ApprovalRow) -> ApprovalRow | None:
            free = not row.claim or (is_left and row.claimed_at == elsewhere)
            if not free or row.state not in WAITING_STATES or row.expires <= now:
                return None
            return structs.replace(row, claim=call, claimed_at=storage.node)

        row, claimed = await storage.change(open.id, change)
        if row is None:
            self._open.pop(open.id, None)
        else:
            self._follow(row)
        return claimed

    async def _begin(self, asked: Interaction, key: str, call: str) -> OpenApproval:
        """Keep a new row, and put its question."""
        now, limit = self._clock(), asked.trace.obligations.timeout
        seconds = self._options.expiry if limit is None else min(limit, self._options.expiry)
        shown = structs.replace(asked, coalesce="", opened=now, deadline=now + seconds)
        node = self._storage.node
        row = ApprovalRow(
            id=asked.id,
            key=key,
            interaction=shown,
            expires=now + seconds,
            node=node,
            claim=call,
            claimed_at=node,
            changed=now,
        )
        await self._storage.add(row)
        open = self._follow(row)
        self._ask_people(open)
        return open

    def _follow(self, row: ApprovalRow) -> OpenApproval:
        open = self._open.get(row.id)
        if open is None:
            open = self._open[row.id] = OpenApproval(row)
        open.follow(row)
        if row.state == "withdrawn":
            del self._open[row.id]
        return open

    def _release(self, open: OpenApproval, call: str, *, withdraws: bool = False) -> None:
        """The call waits no longer.

        Args:
            open: for this row.
            call: its id.
            withdraws: nobody is to be asked any more, rather than for the call to come again.
        """

        def change(row: ApprovalRow) -> ApprovalRow | None:
            if row.claim != call or row.state not in WAITING_STATES:
                return None
            if withdraws and row.state == "pending":
                return structs.replace(row, state="withdrawn", claim="", claimed_at="")
            return structs.replace(row, claim="", claimed_at="")

        self._change_soon(open, change)

    def _change_soon(self, open: OpenApproval, change: ApprovalChange) -> None:
        """Change a row; whoever wants it waits for that."""
        if not self._is_open:  # the next process sees that this one has ended
            return
        before = open.releasing

        async def work() -> None:
            if before is not None:
                await asyncio.wait([before])
            row, _ = await self._storage.change(open.id, change)
            if row is None:
                return
            self._follow(row)
            if row.state == "withdrawn":
                if open.asking is not None:
                    open.asking.cancel()
                await self._storage.forget([row.id])

        open.releasing = self._start(work())

    def _forget_expired(self) -> None:
        now = self._clock()
        gone = [
            id
            for id, open in self._open.items()
            if open.row.expires <= now
            and (not open.row.claim or open.row.state not in WAITING_STATES)
        ]
        for id in gone:
            open = self._open.pop(id)
            if open.asking is not None:
                open.asking.cancel()
        if gone:
            self._start(self._storage.forget(gone))

    # Questions

    def _ask_people(self, open: OpenApproval) -> None:
        """Put the question of a row that waits."""
        if open.row.state != "pending" or open.asking is not None or not self._is_open:
            return
        if self._broker.find(open.id) is not None:  # as a question of a process that has ended
            self._broker.drop(open.id, HOST_CLOSED)
        task = open.asking = asyncio.get_running_loop().create_task(
            self._ask_until_decided(open), name="isthmus approval"
        )
        task.add_done_callback(lambda _: setattr(open, "asking", None))

    async def _ask_until_decided(self, open: OpenApproval) -> None:
        """Put a question until somebody decides it, or its time is over."""
        try:
            decision = await self._put(open)
            await self._settle(open, decision)
        except IsthmusError as error:  # nobody can be asked, or no decision can be written down
            open.fail(error)
            self._open.pop(open.id, None)
            self._start(self._storage.forget([open.id]))
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            log_failure("the question of an approval", error)
            open.fail(HostError(f"a person cannot be asked: {error}"))

    async def _put(self, open: OpenApproval) -> Decision:
        broker, loop = self._broker, asyncio.get_running_loop()
        tries = 0
        while True:
            seconds = open.row.expires - self._clock()
            if seconds > 0 and not broker.attended:
                await broker.wait_attended(seconds)
                seconds = open.row.expires - self._clock()
            if seconds <= 0 or not broker.attended:
                return Decision(verdict="deny", by="deadline", reason="nobody answered in time")
            times, since = {"opened": self._clock(), "deadline": open.row.expires}, loop.time()
            decision = await broker.ask(structs.replace(open.row.interaction, **times))
            if decision.verdict == "allow" or decision.by not in NOT_DECIDED:
                return decision
            # the surfaces have gone, or the process that put it; or all surfaces fail at once
            tries = tries + 1 if loop.time() - since < QUICK_FAILURE_S else 0
            if tries == MAX_QUICK_FAILURES:
                return decision

    async def _settle(self, open: OpenApproval, decision: Decision) -> None:
        """Keep what was decided; durable when this returns."""
        now, expiry = self._clock(), self._options.expiry
        silent = decision.by == "deadline" and decision.verdict != "allow"

        def change(row: ApprovalRow) -> ApprovalRow | None:
            if row.state != "pending":
                return None
            # nobody has to be told of a silence who was not there for it
            state: ApprovalState = "over" if silent and not row.claim else "decided"
            return structs.replace(
                row, state=state, decision=decision, expires=now + expiry, changed=now
            )

        row, _ = await self._storage.change(open.id, change)
        if row is not None:
            self._follow(row)

    # Rows of other processes

    def _hear(self, id: str) -> None:
        self._start(self._look_at(id))

    async def _look_at(self, id: str) -> None:
        row = await self._storage.read(id)
        if row is not None:
            await self._take_note(row)

    async def _keep_looking(self) -> None:
        failing = False
        while self._is_open:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                await self._look()
                self._forget_expired()
                failing = False
            except StoreUnavailable as error:
                if not failing:
                    log_warning("approvals of other processes cannot be read: %s", error)
                failing = True

    async def _look(self) -> None:
        for row in await self._storage.load():
            await self._take_note(row)

    async def _take_note(self, row: ApprovalRow) -> None:
        """Follow a row; one whose process has ended is ours from now on."""
        node = self._storage.node
        if row.state in {"pending", "used"} and await self._storage.is_gone(row.node):
            gone = row.node

            def change(now: ApprovalRow) -> ApprovalRow | None:
                if now.node != gone or now.state != row.state:
                    return None
                state: ApprovalState = "pending" if now.state == "pending" else "unknown"
                return structs.replace(now, node=node, state=state)

            changed, _ = await self._storage.change(row.id, change)
            if changed is None:
                return
            row = changed
        open = self._follow(row)
        if row.node == node:
            self._ask_people(open)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except IsthmusError as error:  # the row is released, or ended, when it expires
            log_warning("an approval cannot be changed: %s", error)


def make_ending(call: str, state: ApprovalState, now: float) -> ApprovalChange:
    """Make the change that ends a row for the call that has it."""

    def change(row: ApprovalRow) -> ApprovalRow | None:
        if row.claim != call or row.state not in {"decided", "used"}:
            return None
        return structs.replace(row, state=state, changed=now)

    return change
