"""Broker of questions: puts each to the attached surfaces, and the first answer counts.

A question is put to all surfaces that are attached. The first answer counts; it is written down
before anything is done about it. Whatever goes wrong (nobody there, silence, a surface that breaks) is a no.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET, structs

from isthmus.host.approvals.decisions import Decisions
from isthmus.host.approvals.decisions import TaskQuestion as Lasting
from isthmus.host.model.errors import AuditUnavailable, Exhausted
from isthmus.host.model.events import HostEvents, HostNotice, QuestionAnswered, QuestionAsked
from isthmus.host.model.interaction import (
    Approver,
    Decision,
    Interaction,
    Verdict,
    can_answer,
    find_lack,
    is_same_question,
)
from isthmus.host.model.row import AuditRow
from isthmus.host.model.trace import Assurance, rank_assurance

if TYPE_CHECKING:
    from isthmus.host.approvals.question_exchange import QuestionExchange
    from isthmus.host.approvals.shared_questions import SharedQuestions

MAX_QUESTIONS_OF_SERVER = 16  # more are refused, so that other servers are heard
MAX_QUESTIONS_OF_PRINCIPAL = 256
MAX_KEPT_DECISIONS = 1_000  # for surfaces that answer late

RISK_RANKS = {"high": 0, "medium": 1, "low": 2}

# of actions for which silence is not a no
SILENCE_VERDICTS: dict[str, Verdict] = {"elicit.form": "cancel", "elicit.url": "cancel"}


def make_exchange(broker: "Broker", shared: "SharedQuestions") -> "QuestionExchange":
    """The exchange of questions with the other processes of a host; most hosts are one."""
    from isthmus.host.approvals.question_exchange import QuestionExchange

    return QuestionExchange(broker, shared)


class BrokerAudit(Protocol):
    """The audit log, as far as the broker needs it."""

    async def write(self, row: AuditRow) -> object:
        """Write a row; it is durable when this returns."""
        ...

    def note(self, row: AuditRow) -> object:
        """Write a row within milliseconds."""
        ...


class OpenQuestion:
    """One question that waits.

    Args:
        interaction: what is asked.
        lasting: its name beyond this process; None where it has none.
        home: the process where the call waits; empty for this one.
    """

    def __init__(
        self, interaction: Interaction, lasting: Lasting | None = None, home: str = ""
    ) -> None:
        self.home = home
        self.interaction = interaction
        self.lasting = lasting
        self.answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self.offers: dict[Approver, asyncio.Task[None]] = {}
        self.wait = 0
        self.taken = False
        self.remembered = False
        self.weak = False
        self.timer: asyncio.TimerHandle | None = None
        self.since = asyncio.get_running_loop().time()


class Broker:
    """Puts questions to the surfaces that are attached; the first answer counts.

    Args:
        audit: where decisions are written before they take effect.
        decisions: keeps those on questions that outlive the host.
        clock: says the seconds since the epoch.
        events: tells of questions and answers.
        shared: the questions of all processes of the host; None where it is one process.
    """

    def __init__(
        self,
        audit: BrokerAudit,
        decisions: Decisions | None = None,
        *,
        clock: Callable[[], float] = time.time,
        events: HostEvents | None = None,
        shared: "SharedQuestions | None" = None,
    ) -> None:
        self.events = HostEvents() if events is None else events  # empty ones are falsy
        self._audit = audit
        self._decisions = decisions
        self._clock = clock
        self._approvers: list[Approver] = []
        self._somebody = asyncio.Event()
        self._open: dict[str, OpenQuestion] = {}
        self._said: dict[str, Decision] = {}
        self.shared = None if shared is None else make_exchange(self, shared)

    async def open(self) -> None:
        """Begin to hear of the questions of other processes, where there are any.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        if self.shared is not None:
            await self.shared.open()

    async def leave(self) -> None:
        """Hear of them no more; :meth:`close` comes first."""
        if self.shared is not None:
            await self.shared.close()

    # Surfaces

    @property
    def attended(self) -> bool:
        """Whether anybody is there to be asked."""
        return bool(self._approvers) or (self.shared is not None and bool(self.shared.surfaces))

    @property
    def answers_questions(self) -> bool:
        """Whether anybody is there who can answer what servers ask, which wants more than a yes."""
        shared = self.shared
        return any(map(can_answer, self._approvers)) or bool(shared and shared.can_answer())

    @property
    def assurance(self) -> Assurance:
        """The best assurance of the attached surfaces that a person decides."""
        found = [approver.assurance for approver in self._approvers]
        if self.shared is not None:
            found += [one.assurance for one in self.shared.surfaces]
        return max(found, key=rank_assurance, default="callback")

    @property
    def own_surfaces(self) -> tuple[Assurance | None, bool]:
        """The best assurance of the surfaces of this process, if any, and whether one answers servers."""
        found = (approver.assurance for approver in self._approvers)
        return max(found, key=rank_assurance, default=None), any(map(can_answer, self._approvers))

    def notice_surfaces(self) -> None:
        """Other processes have other surfaces than before."""
        if self.attended:
            self._somebody.set()
        else:
            self._somebody.clear()
        for open in list(self._open.values()):
            self._left(open)

    async def wait_attended(self, seconds: float) -> None:
        """Wait until somebody is there to be asked, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._somebody.wait()

    def attach(self, approver: Approver) -> None:
        """Put questions to this surface, also those that wait already."""
        if approver not in self._approvers:
            self._approvers.append(approver)
            self._somebody.set()
            for open in self._open.values():
                self._offer(open, approver)
            if self.shared is not None:
                self.shared.tell_surfaces()

    def detach(self, approver: Approver) -> None:
        """Put no more questions to it; where nobody is left, what waits is denied."""
        if approver in self._approvers:
            self._approvers.remove(approver)
            if not self.attended:
                self._somebody.clear()
            if self.shared is not None:
                self.shared.tell_surfaces()
        for open in list(self._open.values()):
            offer = open.offers.pop(approver, None)
            if offer is not None:
                offer.cancel()
                self._left(open)

    # Asking

    async def ask(self, interaction: Interaction, lasting: Lasting | None = None) -> Decision:
        """Ask, and wait; silence is no.

        Args:
            interaction: what is asked; with the same ``coalesce`` as one that waits, it is that one.
            lasting: its name beyond this process. What was decided on it before is not asked again.

        Raises:
            Exhausted: too many questions wait already.
            StoreUnavailable: the other processes of the host cannot be told of it.
            AuditUnavailable: the answer was yes, and cannot be written down.
        """
        if lasting is not None and self._decisions is not None:
            known = self._decisions.find(lasting)
            if known is not None:
                return known
        open = self._same(interaction)
        if open is None and self.shared is not None:
            self._bound(interaction)
            await self.shared.post(interaction)
        open = open or self._put(interaction, lasting)
        open.wait += 1
        try:
            decision = await asyncio.shield(open.answer)
            if open.remembered:  # by another who waited for it: one answer is one grant
                return structs.replace(decision, remember="once")
            open.remembered = True
            return decision
        finally:
            open.wait -= 1
            if not open.wait and not open.taken:
                self._withdraw(open)

    def _same(self, interaction: Interaction) -> OpenQuestion | None:
        """A question that waits and is the same."""
        coalesce = interaction.coalesce
        if not coalesce:
            return None
        found = (
            o for o in self._open.values() if not o.home and o.interaction.coalesce == coalesce
        )
        return next(
            (o for o in found if not o.taken and is_same_question(o.interaction, interaction)), None
        )

    def _put(self, interaction: Interaction, lasting: Lasting | None) -> OpenQuestion:
        self._bound(interaction)
        open = self._open[interaction.id] = OpenQuestion(interaction, lasting)
        # The wall clock may jump while somebody thinks: what counts is how long that takes.
        seconds = max(interaction.deadline - interaction.opened, 0.0)
        open.timer = asyncio.get_running_loop().call_later(
            seconds, self._silence, open, "deadline", "nobody answered in time"
        )
        self.events.tell(QuestionAsked(interaction=interaction))
        for approver in self._approvers:
            self._offer(open, approver)
        if not open.offers:
            self._left(open)
        return open

    def _bound(self, interaction: Interaction) -> None:
        principal, server = interaction.attempt.principal, interaction.attempt.server
        of_server = principal.startswith("server:")
        most = MAX_QUESTIONS_OF_SERVER if of_server else MAX_QUESTIONS_OF_PRINCIPAL
        waiting = sum(
            not open.home and open.interaction.attempt.principal == principal
            for open in self._open.values()
        )
        if waiting >= most:
            who = f"server {server!r}" if of_server else principal
            raise Exhausted(f"{waiting} questions of {who} wait for an answer already")

    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, the riskiest first, then the oldest."""
        waiting = [open.interaction for open in self._open.values() if not open.taken]
        return sorted(waiting, key=lambda one: (RISK_RANKS[one.risk], one.opened, one.id))

    def find(self, id: str) -> Interaction | None:
        """A question that waits."""
        open = self._open.get(id)
        return None if open is None else open.interaction

    def said(self, id: str) -> Decision | None:
        """The decision of a moment ago, for a surface that was late; None where it is forgotten."""
        return self._said.get(id)

    def close(self) -> None:
        """The end: what waits is denied."""
        for open in list(self._open.values()):
            if open.home:
                self.drop(open.interaction.id, Decision(verdict="deny", by="host"))
            else:
                self._silence(open, "host", "the host was closed")

    # Answers

    async def decide(self, id: str, decision: Decision) -> bool:
        """Answer a question; False where somebody else was first, or nobody asks it any more.

        What was decided before, :meth:`said` tells.

        Raises:
            AuditUnavailable: it was a yes, and cannot be written down.
            StoreUnavailable: the other processes of the host cannot be told: nothing is decided.
        """
        open = self._open.get(id)
        if open is None or open.taken or not self._counts(open, decision):
            return False
        if self.shared is not None:
            return await self.shared.decide(open, decision)
        await self.take(open, decision)
        return True

    # Questions of other processes

    def find_open(self, id: str) -> OpenQuestion | None:
        """A question that waits, with its state."""
        return self._open.get(id)

    def list_open(self) -> Sequence[OpenQuestion]:
        """All questions that wait, with their states."""
        return list(self._open.values())

    def show(self, interaction: Interaction, home: str) -> None:
        """Put a question of another process to the surfaces of this one."""
        open = self._open[interaction.id] = OpenQuestion(interaction, home=home)
        self.events.tell(QuestionAsked(interaction=interaction))
        for approver in self._approvers:
            self._offer(open, approver)

    def drop(self, id: str, decision: Decision) -> None:
        """Take a question off the surfaces: it was decided, or nobody asks any more."""
        open = self._open.get(id)
        if open is not None:
            open.taken = True
            self._end(open, decision)

    def note_elsewhere(self, asked: Interaction, decision: Decision, detail: object) -> None:
        """Write down what was decided here on a question of another process."""
        self._audit.note(self._row(OpenQuestion(asked), decision, detail=detail))

    def _counts(self, open: OpenQuestion, decision: Decision) -> bool:
        """Whether a surface may say that: a yes wants as much certainty as the rule demands."""
        wanted = open.interaction.trace.obligations.assurance
        attempt = open.interaction.attempt
        lack = "" if decision.verdict != "allow" else find_lack(decision, wanted, attempt.owner)
        if not lack:
            return True
        open.weak = True
        text = (
            f"the yes of {decision.by or 'a surface'} to {attempt.action} {attempt.object!r} does "
            f"not count: {lack}"
        )
        self.events.tell(HostNotice(about="assurance", server=attempt.server, text=text))
        self._audit.note(self._row(open, decision, detail={"does_not_count": wanted}))
        return False

    async def take(self, open: OpenQuestion, decision: Decision) -> None:
        """The first answer: written down, then told to who waits."""
        open.taken = True
        remember = open.interaction.trace.obligations.remember
        if decision.remember not in remember:
            self._tell_not_remembered(open, decision)
            decision = structs.replace(decision, remember="once")
        try:
            await self._audit.write(self._row(open, decision))
            if open.lasting is not None and self._decisions is not None:
                await self._decisions.keep(open.lasting, decision)
        except BaseException as error:
            why = f"a decision cannot be written down: {error}"
            allowed = decision.verdict == "allow"
            self._end(open, decision, AuditUnavailable(why) if allowed else None)
            if allowed:
                raise AuditUnavailable(f"a decision cannot be written down: {error}") from error
            if not isinstance(error, Exception):
                raise
        else:
            self._end(open, decision)

    def _tell_not_remembered(self, open: OpenQuestion, decision: Decision) -> None:
        """A yes for longer than policy offers holds once: whoever gave it learns of that."""
        attempt, trace = open.interaction.attempt, open.interaction.trace
        if decision.verdict != "allow":
            return
        text = (
            f"the yes of {decision.by or 'a surface'} to {attempt.action} {attempt.object!r} holds once, "
            f"not for {decision.remember}: the rule {trace.rule} offers "
            f"{', '.join(trace.obligations.remember)}"
        )
        self.events.tell(HostNotice(about="remember", server=attempt.server, text=text))

    def _silence(self, open: OpenQuestion, by: str, reason: str) -> None:
        """Nobody has answered, and nobody will."""
        if open.taken:
            return
        open.taken = True
        verdict = SILENCE_VERDICTS.get(open.interaction.attempt.action, "deny")
        decision = Decision(verdict=verdict, by=by, reason=reason)
        self._audit.note(self._row(open, decision))
        self._end(open, decision)
        if self.shared is not None:
            self.shared.withdraw(open.interaction.id, decision)

    def _withdraw(self, open: OpenQuestion) -> None:
        """Take a question back that nobody waits for any more."""
        self._silence(open, "caller", "whoever asked does not wait any more")

    def _end(self, open: OpenQuestion, decision: Decision, error: Exception | None = None) -> None:
        """Take the question off every surface, and tell who waits."""
        self._open.pop(open.interaction.id, None)
        self._said[open.interaction.id] = decision
        if len(self._said) > MAX_KEPT_DECISIONS:
            del self._said[next(iter(self._said))]
        if open.timer is not None:
            open.timer.cancel()
        current = asyncio.current_task()
        for offer in open.offers.values():
            if offer is not current:
                offer.cancel()
        open.offers.clear()
        if not open.answer.done():
            if error is None:
                open.answer.set_result(decision)
            else:
                open.answer.set_exception(error)
                open.answer.exception()  # it is known, also where nobody waits any more
        self.events.tell(QuestionAnswered(id=open.interaction.id, decision=decision))

    def _row(self, open: OpenQuestion, decision: Decision, detail: object = None) -> AuditRow:
        asked, attempt = open.interaction, open.interaction.attempt
        return AuditRow(
            kind="decision",
            call=attempt.id,
            parent=attempt.parent,
            run=attempt.run,
            principal=attempt.principal,
            action=attempt.action,
            server=attempt.server,
            object=attempt.object,
            origin=attempt.origin,
            effect=decision.verdict,
            rule=asked.trace.rule,
            approver=decision.by,
            assurance=decision.assurance,
            wait=asyncio.get_running_loop().time() - open.since,
            policy=asked.trace.policy,
            detail={
                "interaction": asked.id,
                "remember": decision.remember,
                "edited": decision.edited is not UNSET,
                "reason": decision.reason,
                **(detail if isinstance(detail, dict) else {}),
            },
        )

    # One surface

    def _offer(self, open: OpenQuestion, approver: Approver) -> None:
        if can_answer(approver, open.interaction) and not (open.taken or approver in open.offers):
            open.offers[approver] = asyncio.get_running_loop().create_task(
                self._offered(open, approver)
            )

    async def _offered(self, open: OpenQuestion, approver: Approver) -> None:
        """Put a question to one surface, and take its answer if it is the first that counts."""
        try:
            said = await approver.offer(open.interaction)
            decision = structs.replace(
                said, by=said.by or approver.name, assurance=approver.assurance
            )
            await self.decide(open.interaction.id, decision)
        except AuditUnavailable:
            return  # whoever waits has been told
        except Exception as error:
            import logging  # not needed until a surface breaks

            logging.getLogger("isthmus").exception("approver %s failed", approver.name)
            text = f"the approver {approver.name} failed: {error}"
            server = open.interaction.attempt.server
            self.events.tell(HostNotice(about="approver", server=server, text=text))
        finally:
            if open.offers.get(approver) is asyncio.current_task():
                del open.offers[approver]
                self._left(open)

    def _left(self, open: OpenQuestion) -> None:
        """One surface less: where none is left, nobody will answer."""
        if open.offers or open.home or (self.shared and self.shared.can_answer(open.interaction)):
            return
        if open.weak:
            wanted = open.interaction.trace.obligations.assurance
            self._silence(
                open, "assurance", f"no surface that said yes is {wanted}, as the rule wants"
            )
        else:
            self._silence(open, "nobody", "nobody is there who could be asked")
