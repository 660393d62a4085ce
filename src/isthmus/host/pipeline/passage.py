"""Passage: one attempt on its way through the pipeline, and the audit rows that it leaves."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.core.redaction.values import Redactor
from isthmus.errors import Refused
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import ConnectRequired, Denied, OutcomeUnknown
from isthmus.host.model.facts import Facts, record_facts
from isthmus.host.model.round_proof import RoundProof
from isthmus.host.model.row import AuditRow, RowKind
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import ActOutcome

if TYPE_CHECKING:
    from isthmus.host.model.interaction import Decision
    from isthmus.host.pipeline.runs import Run
    from isthmus.host.pipeline.servers import ResolvedServer

NO_FACTS = Facts()
NO_TRACE = Trace(effect="deny", rule="")


class Passage:
    """One attempt on its way: what is known of it so far.

    Args:
        attempt: as somebody wanted it.
        proof: that an earlier round of it was let through; None in the first one.

    Attributes:
        attempt: as it is by now.
        server: the server that it goes to, looked up once; None where it goes to none.
        facts, trace: what policy saw, and said.
        decision: what a person said; None where nobody was asked.
        run: the run it belongs to.
        waited: a person was asked.
        judged: the policy that decided, and how much was let through by then.
        counted: the rules that count it by now.
        used_up: it was the last use of the grant that let it through.
        approval: the name of the approval that the call of a gateway's client has; empty for none.
        proof: that an earlier round was let through; None where there was none, or it counts no more.
        continues: the same, whether it counts or not.
        intended: it stands in the audit log that it is about to be done.
    """

    __slots__ = (
        "approval", "attempt", "began", "continues", "counted", "decision", "facts", "intended", "judged",
        "proof", "run", "server", "trace", "used_up", "waited",
    )  # fmt: skip

    def __init__(self, attempt: Attempt, proof: RoundProof | None = None) -> None:
        self.proof = self.continues = proof
        self.attempt = attempt
        self.server: ResolvedServer | None = None
        self.facts = NO_FACTS
        self.trace = NO_TRACE
        self.decision: Decision | None = None
        self.run: Run | None = None
        self.waited = False
        self.judged: tuple[object, int] = (None, 0)
        self.counted: tuple[str, ...] = ()
        self.used_up = False
        self.intended = False
        self.approval = ""
        self.began = time.perf_counter()

    @property
    def is_proven(self) -> bool:
        """Whether it was let through in an earlier round, as policy still has it."""
        return self.proof is not None and self.proof.covers(self.trace)

    def seconds(self) -> float:
        """The seconds since it began."""
        return time.perf_counter() - self.began

    def redact_attempt(self) -> Attempt:
        """The attempt as it may be shown and kept: without what a rule says nobody is to see."""
        pointers = self.trace.obligations.redact
        if not pointers:
            return self.attempt

        hidden = Redactor(secrets=tuple).strip(self.attempt.arguments, pointers)
        return structs.replace(self.attempt, arguments=hidden)

    def intent(self) -> AuditRow:
        """The row of what is about to be done."""
        circumstances = record_facts(self.facts)
        detail: dict[str, Any] = {"facts": circumstances} if circumstances else {}
        if self.approval:
            detail["approval"] = self.approval
        if self.continues is not None:
            detail["continues"] = self.continues.call
            detail["answered"] = dict(self.continues.answered)
        return self.row("intent", arguments=self.redact_attempt().arguments, detail=detail or None)

    def outcome(self, outcome: ActOutcome) -> AuditRow:
        """The row of the outcome."""
        return self.row(
            "outcome",
            result=outcome.result,
            failed=outcome.failed,
            seconds=self.seconds(),
            tokens_in=outcome.tokens_in,
            tokens_out=outcome.tokens_out,
            cost=outcome.cost,
            model=outcome.model,
            detail=outcome.detail,
        )

    def failure(self, error: BaseException) -> AuditRow:
        """That nothing came of it, and why."""
        if isinstance(error, ConnectRequired):
            error.principal = self.attempt.principal
        unknown = isinstance(error, OutcomeUnknown)
        cancelled = isinstance(error, asyncio.CancelledError)
        name = "cancelled" if cancelled else type(error).__name__
        return self.row(
            "outcome",
            # what was to be done stands in the intent, where there is one
            arguments=None if self.intended else self.redact_attempt().arguments,
            failed=True,
            error="outcome-unknown" if unknown else name,
            code=error.code if isinstance(error, Refused) else None,
            seconds=self.seconds(),
            detail={
                "reason": str(error)[:500],
                **({} if self.intended else {"facts": record_facts(self.facts)}),
                **({"by": error.by} if isinstance(error, Denied) else {}),
            },
        )

    def row(self, kind: RowKind, **more: Any) -> AuditRow:
        """A row about it."""
        attempt, facts, trace, decision = self.attempt, self.facts, self.trace, self.decision
        said = trace.effect if decision is None else decision.verdict
        return AuditRow(
            kind=kind,
            call=attempt.id,
            parent=attempt.parent,
            run=attempt.run,
            principal=attempt.principal,
            action=attempt.action,
            server=attempt.server,
            identity=facts.identity,
            object=attempt.object,
            fingerprint=facts.fingerprint,
            era=facts.era,
            transport=facts.transport,
            origin=attempt.origin,
            effect=said if trace.rule else "",
            rule=trace.rule,
            grant=trace.grant,
            approver="" if decision is None else decision.by,
            assurance="" if decision is None else decision.assurance,
            labels=tuple(sorted(facts.labels)) if facts.labels else (),
            policy=trace.policy,
            **more,
        )
