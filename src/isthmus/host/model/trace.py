"""Trace: the answer of policy to an attempt, with its reason and its obligations.

It is shown in every question, and kept with every audit row.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

Effect: TypeAlias = Literal["allow", "ask", "deny"]

# how sure one can be that a person decided, the least sure first
Assurance: TypeAlias = Literal[
    "callback", "client_elicitation", "local_ui", "authenticated_web", "second_person"
]

# what a yes may hold for beyond this once, the narrowest first
Remember: TypeAlias = Literal[
    "once", "arguments", "shape", "tool_run", "session", "until", "server_read_only", "tool_always"
]

# when a person looks at what a model is asked and what it wrote
Review: TypeAlias = Literal["both", "before", "after", "none"]


ASSURANCES: tuple[Assurance, ...] = get_args(Assurance)
REMEMBER_SCOPES: tuple[Remember, ...] = get_args(Remember)
_REVIEW_TIMES = {
    "both": {"before", "after"},
    "before": {"before"},
    "after": {"after"},
    "none": set[str](),
}


def rank_assurance(assurance: Assurance) -> int:
    """Rank an assurance: the higher, the surer."""
    return ASSURANCES.index(assurance)


class Obligations(Struct, frozen=True, kw_only=True):
    """The demands of a rule besides its effect.

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


def merge_obligations(
    demands: Sequence[tuple[Effect, Obligations]], decided: Effect
) -> Obligations:
    """Merge the obligations of several rules that fit, the deciding one first.

    What concerns the person who is asked counts from rules that ask, and from the first; what must
    not be shown counts from all.

    Args:
        demands: each rule's effect and obligations; at least one.
        decided: what is to happen.
    """
    first = demands[0][1]
    if len(demands) == 1:
        return first
    asking = [first, *(o for effect, o in demands[1:] if effect == "ask" and decided == "ask")]
    redact = dict.fromkeys(pointer for _, o in demands for pointer in o.redact)
    if len(asking) == 1 and len(redact) == len(first.redact):
        return first
    timeouts = [o.timeout for o in asking if o.timeout is not None]
    return Obligations(
        assurance=max((o.assurance for o in asking), key=ASSURANCES.index),
        timeout=min(timeouts, default=None),
        max_calls=first.max_calls,
        redact=tuple(redact),
        remember=tuple(s for s in REMEMBER_SCOPES if all(s in o.remember for o in asking)),
        review=_merge_reviews([o.review for o in asking if o.review]),
    )


def _merge_reviews(reviews: Sequence[Review]) -> Review | None:
    if not reviews:
        return None
    looks = set[str]().union(*(_REVIEW_TIMES[review] for review in reviews))
    return next(review for review in get_args(Review) if _REVIEW_TIMES[review] == looks)
