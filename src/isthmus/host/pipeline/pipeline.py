"""Pipeline: the one way to a server, through policy, consent, limits and the audit log."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

from msgspec import UNSET, structs

from isthmus.client.model.questions import QUESTION_ORIGIN
from isthmus.client.model.relay import RoundRelayed
from isthmus.errors import PeerError, Rejected
from isthmus.host.approvals.approval_rows import is_bound_alike
from isthmus.host.approvals.broker import Broker
from isthmus.host.approvals.decisions import TaskQuestion, make_connection_key
from isthmus.host.approvals.grant_matching import digest_arguments
from isthmus.host.approvals.hidden_values import restore_hidden
from isthmus.host.model.attempt import Action, Attempt
from isthmus.host.model.errors import Denied, HostError, OutcomeUnknown, UserDeclined
from isthmus.host.model.events import AttemptBegan, HostEvents
from isthmus.host.model.facts import Facts, rate_risk
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import ASSURANCES, Assurance, Trace, rank_assurance
from isthmus.host.pipeline import attempt_events
from isthmus.host.pipeline.acts.act import Act, ActOutcome
from isthmus.host.pipeline.approved_calls import ApprovedCalls, make_denial
from isthmus.host.pipeline.attempts_in_flight import AttemptsInFlight
from isthmus.host.pipeline.later_rounds import add_approver, end_round, leave_out_counts
from isthmus.host.pipeline.limits import CallLimits, ServerSlots
from isthmus.host.pipeline.passage import Passage
from isthmus.host.pipeline.policy_in_force import PolicyInForce
from isthmus.host.pipeline.runs import Runs, find_counted_rules
from isthmus.host.policy.policy import Policy
from isthmus.runtime.sorted_ids import new_id
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.host.approvals.grants import Grants
    from isthmus.host.model.round_proof import RoundProof
    from isthmus.host.model.row import AuditRow
    from isthmus.host.pipeline.later_rounds import LaterRounds
    from isthmus.host.pipeline.shared_rules import SharedRules

__all__ = ["CURRENT_ATTEMPT", "SERVER_ACTIONS", "Act", "ActOutcome", "Pipeline"]

T = TypeVar("T")

# the attempt that is being dispatched here
CURRENT_ATTEMPT: ContextVar[Attempt | None] = ContextVar("isthmus_attempt", default=None)

# they go to a server of the configuration, within its limits
SERVER_ACTIONS: frozenset[Action] = frozenset({
    "tool.call", "resource.read", "resource.subscribe", "prompt.get", "completion", "task.cancel",
})  # fmt: skip

MAX_EDIT_ROUNDS = 5  # a person may edit an attempt so often that it is asked anew


Mode: TypeAlias = Literal["enforce", "shadow", "dry-run"]


class PipelineAudit(Protocol):
    """The audit log."""

    async def intent(self, row: "AuditRow") -> object:
        """Write what is about to be done; it is durable when this returns."""
        ...

    async def write(self, row: "AuditRow") -> object:
        """Write a row; it is durable when this returns."""
        ...

    def note(self, row: "AuditRow") -> object:
        """Write a row within milliseconds, in order."""
        ...


class Pipeline(PolicyInForce):
    """Takes attempts through policy, consent, limits and the audit log to their server.

    Args:
        policy: decides; may be another one at any time.
        shadow: a policy that is tried beside it; None for none.
        mode: whether anything is done at all.
        broker: asks.
        grants: what was said yes to for longer than once; None where nothing is remembered.
        audit: where everything is written down.
        runs: what belongs together.
        limits: how much each server may be given.
        events: tells what goes on.
        shared: the rules that the processes of the host have in common; None for one process.
        patience: seconds that a person has to answer, by server.
        clock: says the seconds since the epoch.
        consents: asks about the calls of a gateway's clients; None where there is no gateway.
        rounds: judges later rounds of calls by the proofs of earlier ones; None where none count.

    Attributes:
        flying: what is under way at each server.
        stopped: the attempts that a person has stopped.
        limits: how much each server is given.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        shadow: Policy | None = None,
        mode: Mode = "enforce",
        broker: Broker,
        audit: PipelineAudit,
        runs: Runs,
        limits: CallLimits,
        grants: "Grants | None" = None,
        events: HostEvents | None = None,
        patience: Callable[[str], float] = lambda _server: 600.0,
        clock: Callable[[], float] = time.time,
        shared: "SharedRules | None" = None,
        consents: ApprovedCalls | None = None,
        rounds: "LaterRounds | None" = None,
    ) -> None:
        super().__init__(policy)
        self.shadow = shadow
        self.mode: Mode = mode
        self.flying = AttemptsInFlight()
        self.stopped = attempt_events.StoppedAttempts()
        self.broker = broker
        self.audit = audit
        self.runs = runs
        self.grants = grants
        self.events = events or broker.events
        self.limits = limits
        self._patience = patience
        self._clock = clock
        self._shared = shared
        self._consents = consents
        self._rounds = rounds

    # Rules that processes share

    async def join_rules(self) -> None:
        """Agree on the policy with the other processes of the host.

        Raises:
            StoreUnavailable: the store cannot be used.
        """
        if self._shared is not None:
            self.policy = await self._shared.join(self.policy)

    async def keep_rules(self) -> None:
        """Keep up with what other processes change, until the end."""
        if self._shared is not None:
            await self._shared.keep_up(self._refresh_rules)

    async def _refresh_rules(self) -> None:
        """See that the policy is the one in force at all processes of the host.

        Raises:
            StoreUnavailable: nobody can tell, so nothing may be done.
        """
        if self._shared is None:
            return
        while not self._shared.is_sure(self.policy):
            before = self.policy
            agreed = await self._shared.agree(before)
            if self.policy is before:  # a file may have been read meanwhile
                self.policy = agreed
                return

    async def run(self, attempt: Attempt, act: Act[T], proof: "RoundProof | None" = None) -> T:
        """Do something, if it may be done.

        Args:
            attempt: what somebody wants.
            act: how it is done.
            proof: that an earlier round of it was let through, where it goes on.

        Raises:
            HostError: it was not done, or nobody knows; see :mod:`isthmus.host.model.errors`.
            IsthmusError: the server refused, failed or was lost.
            RoundRelayed: what the server asks is answered in a later round.
        """
        passage = Passage(attempt, None if self._rounds is None else proof)
        try:
            return await self._through(passage, act)
        except RoundRelayed as relayed:
            self._record_outcome(passage, end_round(passage, relayed, self._clock()))
            raise
        except Rejected as error:
            declined = UserDeclined(
                f"{attempt.action} {passage.attempt.object!r} of {passage.attempt.server!r} ended, "
                "since the user declined what the server asked for in its course",
                what="sampling.request",
            )
            self._record_failure(passage, declined)
            try:
                raise declined from error
            finally:
                del declined  # it keeps this frame, and must not be kept by it
        except asyncio.CancelledError as error:
            stopped = self.stopped.find_error(passage)
            self._record_failure(passage, stopped or error)
            if stopped is None:
                raise
            try:
                raise stopped from None
            finally:
                del stopped  # as above
        except OutcomeUnknown as error:
            error.call = passage.attempt.id
            self._record_failure(passage, error)
            raise
        except BaseException as error:
            self._record_failure(passage, error)
            raise

    async def explain(self, attempt: Attempt, act: Act[T]) -> Trace:
        """Explain what policy says to an attempt; nothing is done, and nothing written.

        Raises:
            Unknown, BadArguments: it could not be done at all.
        """
        attempt = await act.resolve(attempt)
        act.check(attempt)
        return self.find_policy(attempt).decide(attempt, self._facts(attempt, act), self.grants)

    async def _through(self, passage: Passage, act: Act[T]) -> T:
        try:
            attempt = passage.attempt = await act.resolve(passage.attempt)
        except HostError:
            passage.attempt = act.meant or passage.attempt
            raise
        passage.server = act.server
        passage.facts = self._facts(attempt, act)
        act.check(attempt)
        if self._shared is not None:
            await self._refresh_rules()
        if self.grants is not None:
            with suppress(StoreUnavailable):  # then no grant counts, and a person is asked
                await self.grants.fresh()
        rounds = self._rounds if passage.proof is not None else None
        if rounds is None or not await rounds.judge(passage, self._judge):
            self._judge(passage)
        if not self._is_dry_run:
            await self._get_allowed(passage, act)
        if self._is_dry_run:  # or became so while somebody was asked
            return self._end_dry(passage, act)
        if passage.attempt.action not in SERVER_ACTIONS:
            return await self._do(passage, act)
        slots = await self._enter(passage, act)
        attempt = passage.attempt
        if self.mode == "dry-run":  # since it waited
            self.limits.leave(attempt, slots)
            return self._end_dry(passage, act)
        self.flying.add(attempt)
        try:
            return await self._do(passage, act)
        except BaseException:
            self.flying.void_questions(attempt)
            raise
        finally:
            self.flying.remove(attempt)
            self.limits.leave(attempt, slots)

    @property
    def _is_dry_run(self) -> bool:
        return self.mode == "dry-run"

    async def _enter(self, passage: Passage, act: Act[T]) -> ServerSlots | None:
        """Wait for a place at the server; whoever had to wait is judged as things are by then.

        Raises:
            Denied: by now it may not be done.
            Exhausted: it comes too soon, too many wait, or its run has ended.
        """
        again = False
        while True:
            attempt = passage.attempt
            # where processes count together, others may take the last place while that is done
            waits = self._shared is not None or self.limits.must_wait(attempt)
            slots = await self.limits.enter(attempt, again=again)
            if not waits:
                return slots
            try:
                if await self._may_still(passage, act):
                    return slots
            except BaseException:
                self.limits.leave(attempt, slots)
                raise
            self.limits.leave(attempt, slots)  # nobody waits for a person's answer
            await self._consent(passage, act)
            again = True

    async def _may_still(self, passage: Passage, act: Act[T]) -> bool:
        """Judge once more what was let through, and counted; False where a person has to be asked.

        Raises:
            Denied: by now it may not be done.
            Exhausted: its run has ended.
        """
        grants, before = self.grants, passage.trace
        if grants is not None:
            with suppress(StoreUnavailable):  # then no grant counts, and a person is asked
                await grants.fresh()
        if passage.run is not None:
            passage.run.check_open()
        facts = self._facts(passage.attempt, act)
        facts = leave_out_counts(facts, passage.counted)
        decision = passage.decision if passage.waited else None
        if decision is not None:  # whoever said yes may have gone
            facts = structs.replace(facts, attended=True, assurance=decision.assurance)
        elif passage.proof is not None:
            facts = add_approver(facts, passage.proof)
        passage.facts = facts
        trace = self._judge(passage, again=True)
        if decision is not None:
            return rank_assurance(decision.assurance) >= rank_assurance(trace.obligations.assurance)
        if passage.is_proven:
            return True
        if act.asks(passage.attempt, trace):
            # by this very attempt: nobody took the grant back, and the rule that took it still asks
            same = (trace.rule, trace.obligations) == (before.rule, before.obligations)
            return passage.used_up and same
        if trace.grant and trace.grant != before.grant and grants is not None:
            return await grants.use(trace.grant)
        return True

    # Policy

    def _facts(self, attempt: Attempt, act: Act[T]) -> Facts:
        """The facts that policy looks at: those of the act, and those that all acts share."""
        facts, broker = act.facts(attempt), self.broker
        run = self.runs.find(attempt.run) if attempt.run else None
        return structs.replace(
            facts,
            labels=facts.labels if run is None else facts.labels | run.labels,
            chain=facts.chain if run is None else (*facts.chain, *run.chain),
            now=self._clock(),
            attended=act.begun or act.by_client or broker.attended,
            assurance=self._find_assurance(act) if act.begun or act.by_client else broker.assurance,
            calls=self.runs.outside(attempt.principal) if run is None else run.counts,
        )

    def _find_assurance(self, act: Act[T]) -> Assurance:
        """The best assurance of those who could decide about an act."""
        if act.begun:
            return ASSURANCES[-1]
        found = self.broker.assurance
        return max(found, "client_elicitation", key=rank_assurance) if act.by_client else found

    def _judge(self, passage: Passage, *, again: bool = False) -> Trace:
        """Have policy decide.

        Args:
            passage: to what.
            again: the same was judged before.

        Raises:
            Denied: no.
        """
        attempt, facts = passage.attempt, passage.facts
        passage.run = self.runs.find(attempt.run) if attempt.run else None
        passage.judged = self._policy, self._so_far(passage)
        policy = self.find_policy(attempt) if attempt.profile else self._policy
        trace = passage.trace = policy.decide(attempt, facts, self.grants)
        if self.events and not again:
            self.events.tell(attempt_events.make_judged(passage))
        if self.shadow is not None and not again:
            self._compare(passage, self.shadow.decide(attempt, facts, self.grants))
        if trace.effect == "deny":
            raise Denied(
                f"{attempt.action} {attempt.object!r} of server {attempt.server!r} is denied: "
                f"{trace.reason or trace.rule}",
                rule=trace.rule,
                reason=trace.reason,
            )
        return trace

    def _compare(self, passage: Passage, shadow: Trace) -> None:
        """Write down where the policy that is tried beside would have it otherwise."""
        if shadow.effect != passage.trace.effect:
            detail = {
                "shadow": shadow.effect,
                "rule": shadow.rule,
                "reason": shadow.reason,
                "policy": shadow.policy,
            }
            self.audit.note(passage.row("policy", detail=detail))

    def _end_dry(self, passage: Passage, act: Act[T]) -> T:
        result = act.make_dry_result(passage.attempt, passage.trace)
        self.audit.note(passage.row("outcome", detail={"dry_run": True}, failed=False))
        return result

    def _so_far(self, passage: Passage) -> int:
        """The number of attempts that were let through so far in the same run."""
        run = passage.run
        return self.runs.let_through if run is None else run.calls

    async def _get_allowed(self, passage: Passage, act: Act[T]) -> None:
        """Have policy, and a person where it wants one, let an attempt through; it counts then.

        Raises:
            Denied: they do not.
            Exhausted: the run has used up what it has.
        """
        grants = self.grants
        while True:
            grant = passage.trace.grant
            proven = passage.proof is not None and passage.is_proven
            if grant and grants is not None and not (passage.waited or proven):
                if not await grants.use(grant):
                    self._judge(passage)  # it was revoked, or used up, just now
                    continue
                passage.used_up = not grants.holds(grant)
            if not (passage.waited or proven) and act.asks(passage.attempt, passage.trace):
                await self._consent(passage, act)
            if self._lets_through(passage, act):
                break
        if passage.proof is not None and passage.is_proven:
            return
        if self._shared is not None:
            await self._count_everywhere(passage, act, self._shared)
        decision, demanded = passage.decision, passage.trace.obligations
        # what no rule lets last was said for this once, whatever a surface made of it
        if decision is not None and decision.remember in demanded.remember and grants:
            given = await grants.remember(
                passage.attempt, passage.facts, decision, uses=demanded.max_calls
            )
            if given is not None:
                more = {"scope": given.scope, "until": given.until, "uses": given.uses}
                row = passage.row("grant", detail=more)
                self.audit.note(structs.replace(row, grant=given.id))

    async def _count_everywhere(self, passage: Passage, act: Act[T], shared: "SharedRules") -> None:
        """Count an attempt of no run at all processes of the host; it may be one too many by then.

        Raises:
            Denied: by now it may not be done.
            StoreUnavailable: nobody can tell how many there were.
        """
        if passage.run is not None or passage.trace.obligations.max_calls is None:
            return
        who = passage.attempt.principal
        self.runs.learn_counts(who, await shared.count(who, passage.counted))
        if not await self._may_still(passage, act):
            await self._consent(passage, act)

    def _lets_through(self, passage: Passage, act: Act[T]) -> bool:
        """Count an attempt; False where it has to be asked about after all.

        Without waiting, so that of many at once no more are let through than may be. What has
        changed since it was decided on counts: the rules, and what else was let through.

        Raises:
            Denied: by now it may not be done.
            Exhausted: the run has used up what it has.
        """
        decision = passage.decision if passage.waited else None
        if passage.judged != (self._policy, self._so_far(passage)):
            facts, proof = self._facts(passage.attempt, act), passage.proof
            if decision is not None:  # whoever said yes may have gone
                facts = structs.replace(facts, attended=True, assurance=decision.assurance)
            elif proof is not None:
                facts = add_approver(leave_out_counts(facts, proof.counted), proof)
            passage.facts, before = facts, passage.trace
            trace = self._judge(passage, again=True)
            asked = decision is not None and (not passage.approval or is_bound_alike(before, trace))
            if not (asked or passage.is_proven) and act.asks(passage.attempt, trace):
                passage.waited = False
                return False
        if passage.proof is not None and passage.is_proven:  # it was counted in its first round
            return True
        if passage.run is not None:
            passage.run.begin()
        passage.counted = tuple(find_counted_rules(passage.trace))
        self.runs.count(passage.run, passage.attempt.principal, passage.counted)
        return True

    # Consent

    async def _consent(self, passage: Passage, act: Act[T]) -> None:
        """Ask a person; the passage has what they made of it.

        Raises:
            Denied: they said no, or nothing.
        """
        for _ in range(MAX_EDIT_ROUNDS):
            asked, consents = self._interaction(passage, act), self._consents
            if consents is not None and consents.handles(passage.attempt):
                decision = await consents.ask(asked, passage)
            else:
                decision = await self.broker.ask(asked, self._name_lasting(passage))
            passage.decision = decision
            passage.waited = True
            if decision.verdict != "allow":
                raise make_denial(passage.attempt, passage.trace, decision)
            if passage.trace.obligations.redact and decision.edited is not UNSET:
                whole = restore_hidden(
                    decision.edited,
                    dict(passage.attempt.arguments),
                    passage.redact_attempt().arguments,
                )
                decision = passage.decision = structs.replace(decision, edited=whole)
            edited = act.apply_edit(passage.attempt, decision)
            if edited is passage.attempt:
                break
            passage.attempt = edited
            if consents is not None:
                consents.tell_edited(passage)
            passage.facts = self._facts(edited, act)
            act.check(edited)
            trace = self._judge(passage)
            if rank_assurance(decision.assurance) >= rank_assurance(trace.obligations.assurance):
                break
        else:
            raise make_denial(passage.attempt, passage.trace, Decision(verdict="deny", by="edits"))

    def _interaction(self, passage: Passage, act: Act[T]) -> Interaction:
        attempt, trace, now = passage.redact_attempt(), passage.trace, self._clock()
        timeout = trace.obligations.timeout
        return Interaction(
            id=new_id(),
            attempt=attempt,
            payload=act.payload(attempt, trace),
            trace=trace,
            risk=rate_risk(attempt, passage.facts),
            opened=now,
            deadline=now + (self._find_patience(passage) if timeout is None else timeout),
            coalesce=act.coalesce(attempt),
        )

    def _find_patience(self, passage: Passage) -> float:
        """Seconds that a person has to answer."""
        if passage.server is None:
            return self._patience(passage.attempt.server)
        return passage.server.hosted.entry.options.timeouts.interaction

    @staticmethod
    def _name_lasting(passage: Passage) -> TaskQuestion | None:
        """The name of what a task asks, which is asked again after a restart."""
        asked = QUESTION_ORIGIN.get()
        if asked is None or not asked.task:
            return None
        attempt = passage.attempt
        # What is asked is part of its name: an answer is none to another question of that name.
        asks = digest_arguments((attempt.object, attempt.arguments))
        if asks is None:
            return None
        where = make_connection_key(attempt.server, attempt.isolation, passage.facts.identity)
        return TaskQuestion(where, asked.task, f"{attempt.action} {asked.key} {asks}")

    # Dispatch

    async def _do(self, passage: Passage, act: Act[T]) -> T:
        attempt = passage.attempt
        await self.audit.intent(passage.intent())
        passage.intended = True
        await act.recheck(attempt, waited=passage.waited)
        if passage.approval and self._consents is not None:
            await self._consents.use(passage)
        # whatever took its time so far, the rules that hold now decide
        if self._shared is not None:
            await self._refresh_rules()
        grant, grants = passage.trace.grant, self.grants
        doubtful = (
            grant and grants is not None and not passage.used_up and not grants.is_sure(grant)
        )
        changed = passage.judged[0] is not self._policy
        if (changed or doubtful) and not await self._may_still(passage, act):
            raise Denied(
                f"{attempt.action} {attempt.object!r} of server {attempt.server!r} has to be asked "
                "about by rules or grants that were changed while it was on its way: call again",
                rule=passage.trace.rule,
                by="policy",
            )
        if self.events:
            self.events.tell(AttemptBegan(attempt=passage.redact_attempt()))
        self.flying.begin(attempt)
        token = CURRENT_ATTEMPT.set(attempt)
        try:
            result = await act.dispatch(attempt)
        finally:
            CURRENT_ATTEMPT.reset(token)
            self.flying.end(attempt)
        pointers = passage.trace.obligations.redact
        if pointers:  # of the whole: what is cut off, and kept, has to be without it, too
            result = act.redact(result, pointers)
        result = await act.review(attempt, result)
        self._record_outcome(passage, act.outcome(result))
        return result

    def _record_outcome(self, passage: Passage, outcome: ActOutcome) -> None:
        run = passage.run
        if run is not None:
            self._take_over(passage)
            run.spend(outcome)
        self.audit.note(passage.outcome(outcome))
        if passage.approval and self._consents is not None:
            self._consents.leave(passage)
        if self.events:
            self.events.tell(attempt_events.make_ended(passage, outcome))

    @staticmethod
    def _take_over(passage: Passage) -> None:
        """The run has read what a server said."""
        if passage.run is not None and passage.attempt.action in SERVER_ACTIONS:
            passage.run.taken.take(passage.attempt, passage.facts)

    def _record_failure(self, passage: Passage, error: BaseException) -> None:
        """It is over without a result: written down whatever the reason."""
        if isinstance(error, PeerError) and passage.intended:
            self._take_over(passage)  # the words of an error are words of the server
        self.audit.note(passage.failure(error))
        if passage.approval and self._consents is not None:
            self._consents.leave(passage, error)
        if self.events:
            self.events.tell(attempt_events.make_failed(passage, error))
