"""What policy answered, and why: shown in every question, and kept with every audit row."""

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ["Assurance", "Effect", "Match", "Obligations", "Remember", "Review", "Trace"]

Effect: TypeAlias = Literal["allow", "ask", "deny"]

Assurance: TypeAlias = Literal[
    "callback", "client_elicitation", "local_ui", "authenticated_web", "second_person"
]
"""How sure one can be that a person decided, the least sure first."""

Remember: TypeAlias = Literal[
    "once", "arguments", "shape", "tool_run", "session", "until", "server_read_only", "tool_always"
]
"""What a yes may hold for beyond this once, the narrowest first."""

Review: TypeAlias = Literal["both", "before", "after", "none"]
"""When a person looks at what a model is asked and what it wrote."""


class Obligations(Struct, frozen=True, kw_only=True):
    """What a rule demands besides its effect.

    Attributes:
        assurance: how sure one must be that a person decided.
        timeout: seconds a person has to answer; None for the host's own limit.
        max_calls: how many attempts of a run the rule lets through; None for any number. What is in
            no run counts together, for each principal.
        redact: JSON pointers into arguments and results of what is never shown or kept.
        remember: what the answer may be remembered for.
        review: when a person looks at a sampling; None for both times.
    """

    assurance: Assurance = "callback"
    timeout: float | None = None
    max_calls: int | None = None
    redact: tuple[str, ...] = ()
    remember: tuple[Remember, ...] = (
        "once",
        "arguments",
        "shape",
        "tool_run",
        "session",
        "until",
        "server_read_only",
        "tool_always",
    )
    review: Review | None = None


class Match(Struct, frozen=True):
    """One rule that fits an attempt.

    Attributes:
        rule: its id.
        layer: where it stands: ``managed``, ``user``, ``workspace``, ``session`` or ``default``.
        effect: what it would have.
    """

    rule: str
    layer: str
    effect: Effect


class Trace(Struct, frozen=True, kw_only=True):
    """The answer of policy to one attempt.

    Attributes:
        effect: what is to happen.
        rule: the id of the rule that decided.
        grant: the id of the grant that made an ``ask`` an ``allow``; empty where there is none.
        reason: why, in a sentence for a person.
        matches: every rule that fits, the deciding one first.
        obligations: what else is demanded.
        policy: the version of the policy, which is a digest of its rules.
        chain: what a guard of data flow saw on the way: what the run has consumed, and from where.
    """

    effect: Effect
    rule: str
    grant: str = ""
    reason: str = ""
    matches: tuple[Match, ...] = ()
    obligations: Obligations = Obligations()
    policy: str = ""
    chain: tuple[str, ...] = ()
