"""What a rule must not say, so that nothing it says can be turned round.

A hint of a server may make things stricter where it is missing, and never laxer: so a rule that
allows may only rest on harmless hints, and every other on harmful ones. In the same way what a run
has taken over can forbid, and not allow.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from isthmus.host.policy.patterns import Globs
from isthmus.host.policy.rule import ACTIONS, HINTS, ORIGINS, TIGHTENING, LayerName, Rule, When

__all__ = ["near", "problems"]


def near(word: str, words: tuple[str, ...]) -> str:
    """What to write in place of a word that is not there."""
    found = get_close_matches(word, words, n=1)
    return f"did you mean {found[0]!r}?" if found else f"there are {', '.join(words)}"


def problems(rule: Rule, layer: LayerName) -> Iterator[str]:
    """What is wrong with a rule where it stands: what, and how to mend it."""
    yield from _words(rule.when, "when")
    yield from _polarity(rule)
    if rule.unless is not None:
        yield from _words(rule.unless, "unless")
        if not rule.unless.named():
            yield "unless is empty, and so would always fit: name a circumstance, or leave it out"
        if rule.effect == "deny":
            yield (
                "a rule that denies has no unless, since nothing is stricter: narrow its when, or "
                "begin a predicate with not"
            )
    if layer in TIGHTENING:
        yield from _loosening(rule, layer)


def _words(when: When, where: str) -> Iterator[str]:
    for action in when.action:
        if not any(Globs([action]).fits(known) for known in ACTIONS):
            yield f"{where}.action has {action!r}, which is no action; {near(action, ACTIONS)}"
    for origin in when.origin:
        if origin not in ORIGINS:
            yield f"{where}.origin has {origin!r}, which is no origin; {near(origin, ORIGINS)}"


def _polarity(rule: Rule) -> Iterator[str]:
    allows = rule.effect == "allow"
    for name, value in rule.when.annotations:
        if (value == HINTS[name][0]) != allows:
            yield _hint("when", rule.effect, name, value)
    for name, value in rule.unless.annotations if rule.unless else ():
        if value == HINTS[name][0]:
            yield _hint("unless", rule.effect, name, value)
    if allows and rule.when.labels:
        yield (
            "a rule that allows cannot wait for labels: what a run has read makes nothing safer. "
            "Put them into unless, or into a rule that asks or denies"
        )


def _hint(where: str, effect: str, name: str, value: bool) -> str:
    spelled = f"{name} = {str(value).lower()}"
    if where == "when" and effect == "allow":
        return (
            f"a rule that allows cannot rest on {spelled}, which is also what a tool counts as that "
            f"nobody knows: write {name} = {str(not value).lower()}, or leave it out"
        )
    return (
        f"{where}.annotations of a rule that {effect}s has {spelled}: a server that leaves it out "
        f"would get by. Write {name} = {str(not value).lower()}, or allow the harmless ones in a "
        "rule of their own"
    )


def _loosening(rule: Rule, layer: LayerName) -> Iterator[str]:
    if rule.effect == "allow":
        yield (
            f"the {layer} layer can ask and deny, and not allow: put the rule into the user's own "
            "policy, or take it out"
        )
    if rule.obligations.review not in {None, "both"}:
        yield f"the {layer} layer cannot leave out a review: write review = 'both', or nothing"
