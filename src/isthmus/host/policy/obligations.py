"""What several rules demand together: the strictest of each."""

from collections.abc import Sequence
from typing import get_args

from isthmus.host.policy.trace import Assurance, Effect, Obligations, Remember, Review

__all__ = ["ASSURANCES", "SCOPES", "together"]

ASSURANCES: tuple[Assurance, ...] = get_args(Assurance)
SCOPES: tuple[Remember, ...] = get_args(Remember)

_LOOKS = {"both": {"before", "after"}, "before": {"before"}, "after": {"after"}, "none": set[str]()}


def together(demands: Sequence[tuple[Effect, Obligations]], decided: Effect) -> Obligations:
    """What is demanded where these rules fit, the first of which decided.

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
        remember=tuple(s for s in SCOPES if all(s in o.remember for o in asking)),
        review=_review([o.review for o in asking if o.review]),
    )


def _review(reviews: Sequence[Review]) -> Review | None:
    if not reviews:
        return None
    looks = set[str]().union(*(_LOOKS[review] for review in reviews))
    return next(review for review in get_args(Review) if _LOOKS[review] == looks)
