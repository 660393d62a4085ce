"""Exchange of questions between the broker of this process and those of the host's other processes.

What a person sees is a copy; what counts is the record in the store. A message on the bus only says
that a record is to be looked at, and every second all records are looked at without one.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from isthmus.errors import IsthmusError
from isthmus.host.approvals.shared_questions import QuestionRecord, RemoteSurfaces, SharedQuestions
from isthmus.host.model.interaction import Decision, Interaction, can_answer
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.host.approvals.broker import Broker, OpenQuestion

LOOK_INTERVAL_S = 1.0
SURFACE_RENEWAL_S = 2.0

HOME_GONE = Decision(
    verdict="deny", by="host", reason="the process in which this call waited has ended"
)
RECORD_GONE = Decision(verdict="deny", by="host", reason="the store has lost this question")


class QuestionExchange:
    """Shows questions of other processes here, and has those of this one decided there.

    Args:
        broker: of this process.
        records: the questions of all processes.

    Attributes:
        surfaces: those of each other process at which somebody can be asked.
    """

    def __init__(self, broker: "Broker", records: SharedQuestions) -> None:
        self.surfaces: list[RemoteSurfaces] = []
        self._broker = broker
        self._records = records
        self._posting: set[str] = set()
        self._taking: set[str] = set()
        self._deciding: set[str] = set()
        self._opened = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._must_look = asyncio.Event()
        self._surfaces_told_at = float("-inf")

    async def open(self) -> None:
        """Begin to hear of questions of other processes.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        self._opened = True
        await self._records.open(self._hear, self._must_look.set, self._take_told)
        await self._tell_surfaces()
        await self._look()
        await self._records.tell_look()
        self._looking = asyncio.get_running_loop().create_task(
            self._keep_looking(), name="isthmus questions"
        )

    async def close(self) -> None:
        """Hear nothing more; what was to be withdrawn is withdrawn first."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait((looking, *self._tasks))
        if self._opened:
            await self._records.close()

    # Questions of this process

    async def post(self, interaction: Interaction) -> None:
        """Put a question to all processes.

        Raises:
            StoreUnavailable: they cannot see it.
        """
        id = interaction.id
        self._posting.add(id)
        try:
            await self._records.post(interaction)
        except BaseException:
            self._posting.discard(id)
            self.withdraw(id, Decision(verdict="deny", by="caller"))
            raise
        # The caller opens it in this very turn, before anybody else looks.
        asyncio.get_running_loop().call_soon(self._posting.discard, id)

    def withdraw(self, id: str, decision: Decision) -> None:
        """Take a question of this process back, soon."""
        self._start(self._withdraw(id, decision))

    async def _withdraw(self, id: str, decision: Decision) -> None:
        await self._records.withdraw(id, decision)

    async def decide(self, open: "OpenQuestion", decision: Decision) -> bool:
        """Decide a question at this process, whoever asks it; False where it was decided before.

        Raises:
            StoreUnavailable: it is not known to be decided.
            AuditUnavailable: it was a yes, and cannot be written down.
        """
        id = open.interaction.id
        self._deciding.add(id)
        try:
            return await self._decide(open, decision)
        finally:
            self._deciding.discard(id)

    async def _decide(self, open: "OpenQuestion", decision: Decision) -> bool:
        id = open.interaction.id
        record, is_ours = await self._records.settle(id, decision)
        if self._broker.find_open(id) is not open or open.taken:  # by silence, meanwhile
            return False
        if record is None:
            self._broker.drop(id, RECORD_GONE)
            return False
        if not is_ours:
            self._deciding.discard(id)
            await self._reconcile(id, record)
            return False
        if not open.home:
            await self._broker.take(open, decision)
            return True
        self._broker.note_elsewhere(open.interaction, decision, {"waits_at": open.home})
        counts = await self._records.tell_home(record) or decision
        self._broker.drop(id, counts)
        return counts.verdict == decision.verdict and counts.by == decision.by

    async def _take_told(self, id: str) -> Decision | None:
        """Another process has decided a question of this one; what counts."""
        await self._look_at(id)
        return self._broker.said(id)

    async def _take(self, open: "OpenQuestion", record: QuestionRecord) -> None:
        """Go on with a question of this process that was decided at another one."""
        id, decision = open.interaction.id, record.decision
        if open.taken or id in self._taking or decision is None:
            return
        self._taking.add(id)
        try:
            taken = await self._records.take(id)
        finally:
            self._taking.discard(id)
        if self._broker.find_open(id) is not open or open.taken:  # by silence, meanwhile
            return
        if taken:
            await self._broker.take(open, decision)
        else:  # this process was taken for dead
            self._broker.drop(id, HOME_GONE)

    # Looking

    def _hear(self, id: str) -> None:
        if id:
            self._start(self._look_at(id))
        else:
            self._must_look.set()

    async def _look_at(self, id: str) -> None:
        record = await self._records.read(id)
        if record is not None:
            await self._reconcile(id, record)

    async def _keep_looking(self) -> None:
        failing = False
        while True:
            try:
                async with asyncio.timeout(LOOK_INTERVAL_S):
                    await self._must_look.wait()
            except TimeoutError:
                pass
            self._must_look.clear()
            try:
                await self._look()
                failing = False
            except StoreUnavailable as error:
                if not failing:
                    log_warning("questions of other processes cannot be read: %s", error)
                failing = True
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                log_failure("a look at the questions of other processes", error)

    async def _look(self) -> None:
        """See who can be asked elsewhere, and which questions wait where."""
        now = asyncio.get_running_loop().time()
        if now - self._surfaces_told_at >= SURFACE_RENEWAL_S:
            await self._tell_surfaces()
        known = self._broker.list_open()
        records = await self._records.scan()
        for id, record in records.items():
            await self._reconcile(id, record)
        for open in known:
            if open.interaction.id not in records and not open.taken:
                self._broker.drop(open.interaction.id, RECORD_GONE)
        surfaces = await self._records.read_surfaces()
        if surfaces != self.surfaces:
            self.surfaces = surfaces
            self._broker.notice_surfaces()

    async def _reconcile(self, id: str, record: QuestionRecord) -> None:
        """Have the broker's copy of a question follow the record."""
        open = self._broker.find_open(id)
        if record.node == self._records.node:
            await self._reconcile_own(id, record, open)
        elif open is None or id not in self._deciding:  # else whoever decides it here does that
            await self._reconcile_other(id, record)

    async def _reconcile_own(
        self, id: str, record: QuestionRecord, open: "OpenQuestion | None"
    ) -> None:
        """Follow the record of a question that is asked here."""
        if record.state in {"waiting", "decided"} and open is None:
            if id not in self._posting:  # whoever asked it has gone
                await self._records.withdraw(id, Decision(verdict="deny", by="caller"))
        elif open is not None and record.state == "decided":
            await self._take(open, record)
        elif open is not None and record.state == "withdrawn":
            self._broker.drop(id, record.decision or HOME_GONE)
        elif open is not None and record.decision is not None and self._is_idle(open):
            # It was taken here, and the store's word on that was lost.
            await self._broker.take(open, record.decision)

    def _is_idle(self, open: "OpenQuestion") -> bool:
        """Whether nobody is just about to go on with a question of this process."""
        id = open.interaction.id
        return not (open.taken or id in self._taking or id in self._deciding)

    async def _reconcile_other(self, id: str, record: QuestionRecord) -> None:
        """Follow the record of a question that is asked at another process."""
        if record.state in {"withdrawn", "taken"}:
            self._broker.drop(id, record.decision or HOME_GONE)
        elif not await self._records.is_alive(record.node):
            await self._end_orphan(id, record)
        elif record.state == "decided":
            self._broker.drop(id, record.decision or HOME_GONE)
        elif self._broker.find_open(id) is None:
            self._broker.show(record.interaction, record.node)

    async def _end_orphan(self, id: str, record: QuestionRecord) -> None:
        """Withdraw a question whose process has ended; one of the others writes it down."""
        if await self._records.withdraw(id, HOME_GONE):
            detail = {"waited_at": record.node, "was": record.state}
            self._broker.note_elsewhere(record.interaction, HOME_GONE, detail)
        self._broker.drop(id, HOME_GONE)

    # Surfaces

    def can_answer(self, asked: Interaction | None = None) -> bool:
        """Whether another process has a surface for a question; without one, for what servers ask."""
        return any(can_answer(one, asked) for one in self.surfaces)

    def tell_surfaces(self) -> None:
        """Tell the others, soon, who can be asked here."""
        if self._looking is not None:
            self._start(self._tell_surfaces_now())

    async def _tell_surfaces_now(self) -> None:
        await self._tell_surfaces()
        await self._records.tell_look()

    async def _tell_surfaces(self) -> None:
        self._surfaces_told_at = asyncio.get_running_loop().time()
        best, answers = self._broker.own_surfaces
        here = None if best is None else RemoteSurfaces(best, only_decides=not answers)
        await self._records.tell_surfaces(here)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except IsthmusError as error:  # the next look at everything does it
            log_warning("a question of several processes: %s", error)
