"""Round proof: that an earlier round of a call was let through, for whoever has to decide about the next one.

A call that asks since 2026-07-28 ends with its questions and is made again with the answers. Where nothing
is kept meanwhile, the proof travels with the sealed state of the call.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from isthmus.host.model.trace import Assurance, Trace, rank_assurance

if TYPE_CHECKING:
    from isthmus.host.model.attempt import Attempt
    from isthmus.host.model.facts import Facts

PROOF_LIFE_S = 3_600.0


class RoundProof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proof that a round was let through.

    Attributes:
        id: its name, which counts once where ``is_once``.
        call: the attempt that was judged without a proof: the first round, or the last that had none.
        until: when it counts no more, in seconds since the epoch.
        principal: who made the call.
        identity: the identity of the server, and ``fingerprint`` the definition of the tool.
        rule, policy: the rule that let it through, and the version of its policy.
        grant: the grant that did; empty for none.
        by: who approved it; empty where nobody was asked.
        assurance: how sure one can be of them.
        has_used_up: it was the last use of the grant.
        counted: the rules that have counted it.
        answered: what its client has answered since, by the keys of the questions, for the audit log.
    """

    id: str
    call: str
    until: float
    principal: str
    identity: str
    fingerprint: str
    rule: str
    policy: str
    grant: str = ""
    by: str = ""
    assurance: Assurance = "callback"
    has_used_up: bool = False
    counted: tuple[str, ...] = ()
    answered: dict[str, str] = {}

    @property
    def was_asked(self) -> bool:
        """Whether a person, or a grant of theirs, let it through where the rule asks."""
        return bool(self.by) or self.has_used_up

    @property
    def is_once(self) -> bool:
        """Whether it counts once: what it proves was said for one call, or was counted."""
        return self.was_asked or bool(self.grant) or bool(self.counted)

    def is_about(self, attempt: "Attempt", facts: "Facts", now: float) -> bool:
        """Whether it is about an attempt as things are now, and not too old."""
        return (
            now < self.until
            and self.principal == attempt.principal
            and self.identity == facts.identity
            and self.fingerprint == facts.fingerprint
        )

    def covers(self, trace: Trace) -> bool:
        """Whether what policy says now is what it said then, so that nobody has to be asked again."""
        if (trace.policy, trace.rule) != (self.policy, self.rule):
            return False
        if trace.effect != "ask":
            return trace.grant == self.grant
        surely = rank_assurance(self.assurance) >= rank_assurance(trace.obligations.assurance)
        return self.has_used_up or (bool(self.by) and surely)
