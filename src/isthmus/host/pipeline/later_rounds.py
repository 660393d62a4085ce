"""Later rounds of calls: those that go on with answers, and are judged by the proof of an earlier round.

A rule that denies does so in every round. What was approved once is not asked about again, as long as the
rule that asks, the tool and its server are the same. A client may send a sealed state as often as it likes:
where a person has approved one call, or a rule counts calls, the first that comes with a proof is that call.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from isthmus.core.journal import UNUSABLE_STATE
from isthmus.errors import Refuse
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Decision
from isthmus.host.model.round_proof import PROOF_LIFE_S, RoundProof
from isthmus.host.model.trace import Trace, rank_assurance
from isthmus.host.pipeline.acts.act import ActOutcome
from isthmus.host.pipeline.passage import Passage
from isthmus.runtime.failures import log_warning
from isthmus.runtime.sorted_ids import new_id
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.client.model.relay import RoundRelayed
    from isthmus.host.state.shared_state import SharedState

MAX_USED_PROOFS = 20_000  # of one process, where there is no store
USED_PREFIX = "used-proof/"


class UsedProofs:
    """The proofs that have counted, in this process or at all processes of the host.

    Args:
        shared: what the processes share; None for one process.
        clock: says the seconds since the epoch.
    """

    def __init__(self, shared: "SharedState | None", clock: Callable[[], float]) -> None:
        self._shared = shared
        self._clock = clock
        self._used: dict[str, float] = {}

    async def use(self, proof: RoundProof) -> bool:
        """Use a proof; False where it was used before, or nobody can tell."""
        if not proof.is_once:
            return True
        shared = self._shared
        if shared is None:
            return self._use_here(proof)
        try:
            key = f"{USED_PREFIX}{proof.id}"
            return await shared.cas(key, b"", 0, PROOF_LIFE_S) is not None
        except StoreUnavailable as error:
            log_warning("a later round of a call is judged anew: %s", error)
            return False

    def _use_here(self, proof: RoundProof) -> bool:
        if proof.id in self._used:
            return False
        if len(self._used) >= MAX_USED_PROOFS:
            now = self._clock()
            self._used = {id: until for id, until in self._used.items() if until > now}
        if len(self._used) >= MAX_USED_PROOFS:
            return False
        self._used[proof.id] = proof.until
        return True


class LaterRounds:
    """Judges later rounds by the proofs of earlier ones.

    Args:
        shared: what the processes of the host share; None for one process.
        clock: says the seconds since the epoch.
    """

    def __init__(self, shared: "SharedState | None", clock: Callable[[], float]) -> None:
        self._used = UsedProofs(shared, clock)
        self._clock = clock

    async def judge(self, passage: Passage, judge: Callable[[Passage], Trace]) -> bool:
        """Judge a later round; False where its proof counts no more, and it is judged as one that begins.

        Args:
            passage: of the round, with its proof and what is known of the tool by now.
            judge: has policy decide.

        Raises:
            Denied: no.
            Refuse: another server has the name of the one that has begun it.
        """
        proof, facts = passage.proof, passage.facts
        if proof is None:
            return False
        if proof.identity != facts.identity:  # its state is for nobody else to read
            raise Refuse(-32602, UNUSABLE_STATE)
        fits = proof.is_about(passage.attempt, facts, self._clock())
        if fits and await self._used.use(proof):
            passage.counted = proof.counted
            passage.facts = add_approver(leave_out_counts(facts, proof.counted), proof)
            if proof.covers(judge(passage)):
                if proof.by:
                    said = Decision(verdict="allow", by=proof.by, assurance=proof.assurance)
                    passage.decision = said
                return True
        passage.proof, passage.counted, passage.facts = None, (), facts
        return False


def end_round(passage: Passage, relayed: "RoundRelayed", now: float) -> ActOutcome:
    """The outcome of a round that ended with questions, which gets the proof that it was let through."""
    relayed.proof = make_proof(passage, now)
    return ActOutcome(
        detail={"asked": [question.method for question in relayed.questions.values()]}
    )


def make_proof(passage: Passage, now: float) -> RoundProof:
    """A proof for the next round that this one was let through."""
    before, decision, facts, trace = passage.proof, passage.decision, passage.facts, passage.trace
    return RoundProof(
        id=new_id(),
        call=passage.attempt.id if before is None else before.call,
        until=now + PROOF_LIFE_S if before is None else before.until,
        principal=passage.attempt.principal,
        identity=facts.identity,
        fingerprint=facts.fingerprint,
        rule=trace.rule,
        policy=trace.policy,
        grant=trace.grant,
        by="" if decision is None else decision.by or "somebody",
        assurance="callback" if decision is None else decision.assurance,
        has_used_up=passage.used_up or (before is not None and before.has_used_up),
        counted=passage.counted if trace.obligations.max_calls is not None else (),
    )


def leave_out_counts(facts: Facts, counted: Sequence[str]) -> Facts:
    """The facts of an attempt that rules have counted, as if they had not."""
    own = {rule: facts.calls.get(rule, 1) - 1 for rule in counted}
    return structs.replace(facts, calls={**facts.calls, **own})


def add_approver(facts: Facts, proof: RoundProof) -> Facts:
    """The facts of a later round of a call that a person has approved, who may have gone."""
    if not proof.was_asked:
        return facts
    surest = max(facts.assurance, proof.assurance, key=rank_assurance)
    return structs.replace(facts, attended=True, assurance=surest)
