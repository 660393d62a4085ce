"""Policy replay: another policy decides past attempts of the audit log, and the differences are counted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct, structs

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts, restore_facts
from isthmus.host.model.trace import Assurance, Effect, Remember
from isthmus.host.model.view import AuditLine
from isthmus.host.policy.policy import Policy

MAX_COUNTED_RUNS = 10_000
NOT_A_PERSON = {"", "policy"}


class PastAttempt(Protocol):
    """An attempt of the past, as :func:`isthmus.host.audit.queries.read_attempts` gives it."""

    attempt: Attempt
    line: AuditLine


class DecisionChange(Struct, frozen=True):
    """A decision that would change.

    Attributes:
        before: what was decided; after: what would be.
        action, server, object: about what.
        rule: the rule that would decide.
    """

    before: Effect
    after: Effect
    action: str
    server: str
    object: str
    rule: str


class ReplayResult(Struct, frozen=True):
    """The result of a replay.

    Attributes:
        rows: how many attempts were decided anew.
        skipped: how many could not be, since no policy had decided them.
        differences: what would be another way, with how often, the most frequent first.
    """

    rows: int
    skipped: int
    differences: tuple[tuple[DecisionChange, int], ...]

    def newly(self, effect: Effect) -> int:
        """Count the attempts that would newly be allowed, asked or denied."""
        return sum(count for difference, count in self.differences if difference.after == effect)


class ReplayedGrant:
    """A past grant, which is taken to be granted still."""

    def __init__(self, id: str) -> None:
        self.id = id

    def find(
        self,
        attempt: Attempt,  # noqa: ARG002 - as Granted has it
        facts: Facts,  # noqa: ARG002 - as above
        *,
        remember: tuple[Remember, ...] | None = None,
        assurance: Assurance = "callback",  # noqa: ARG002 - as above
    ) -> "ReplayedGrant | None":
        """The grant, unless nothing may be remembered any more."""
        return None if remember == ("once",) else self


def replay_policy(policy: Policy, past: Iterable[PastAttempt]) -> ReplayResult:
    """Decide past attempts anew.

    Arguments are those that the audit log kept: where something secret was taken out of them, a
    predicate about it sees what stands in its place.
    """
    found: Counter[DecisionChange] = Counter()
    counts: dict[str, dict[str, int]] = {}
    rows = skipped = 0
    for one in past:
        line, attempt = one.line, one.attempt
        before = read_past_effect(line)
        if before is None:
            skipped += 1
            continue
        rows += 1
        facts = restore_facts(line)
        calls = counts.get(attempt.run)
        if calls:
            facts = structs.replace(facts, calls=calls)
        trace = policy.decide(attempt, facts, ReplayedGrant(line.grant) if line.grant else None)
        if attempt.run and trace.effect != "deny":
            if calls is None:
                if len(counts) >= MAX_COUNTED_RUNS:
                    counts.clear()
                calls = counts[attempt.run] = {}
            calls[trace.rule] = calls.get(trace.rule, 0) + 1
        if trace.effect != before:
            about = attempt.action, attempt.server, attempt.object
            found[DecisionChange(before, trace.effect, *about, trace.rule)] += 1
    return ReplayResult(rows, skipped, tuple(found.most_common()))


def read_past_effect(line: AuditLine) -> Effect | None:
    """The past answer of policy: where a person answered, it had asked."""
    detail: Mapping[str, Any] = line.detail if isinstance(line.detail, Mapping) else {}
    asked = line.approver or str(detail.get("by", ""))
    if line.effect not in {"allow", "ask", "deny", "cancel"}:
        return None
    if asked not in NOT_A_PERSON or line.effect in {"ask", "cancel"}:
        return "ask"
    return "allow" if line.effect == "allow" else "deny"
