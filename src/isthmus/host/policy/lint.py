"""Policy lint: findings about rules that never count, are too broad, or name unknown things."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.host.policy.flow_labels import PRIVATE, UNTRUSTED
from isthmus.host.policy.patterns import Globs, covers_glob
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule import (
    ACTIONS_BY_KEY,
    CONDITION_KINDS,
    LAYERS,
    LayerName,
    PolicyRule,
    RuleCondition,
)

FindingCode = Literal["never", "unreachable", "broad", "unknown", "duplicate", "label"]

LayeredRule: TypeAlias = tuple[LayerName, PolicyRule]

WELL_KNOWN_LABELS = frozenset({PRIVATE, UNTRUSTED})
TARGET_KEYS = ("server", "tool", "uri", "prompt", "object")


class PolicyFinding(Struct, frozen=True):
    """One doubtful thing in a policy.

    Attributes:
        code: of which sort.
        rule: the rule's id; ``server NAME`` for what the configuration says of a server.
        layer: where it stands; ``configuration`` there.
        line: where it begins in its file; 0 where it comes from none.
        text: what is doubtful, and what to do.
    """

    code: FindingCode
    rule: str
    layer: str
    line: int
    text: str


def lint_policy(
    policy: Policy,
    servers: Mapping[str, Collection[str]] | None = None,
    labels: Mapping[str, Collection[str]] | None = None,
) -> list[PolicyFinding]:
    """List everything that is doubtful in a policy.

    Args:
        policy: what is looked at.
        servers: the servers that there are, with their tools; an empty collection where those are
            not known. None: nobody knows.
        labels: the labels that the configuration gives the data of each server. None: nobody knows.
    """
    placed = [(c.layer, c.rule) for c in policy.rules]
    found: list[PolicyFinding] = []
    for number, (layer, rule) in enumerate(placed):
        others = [other for at, other in enumerate(placed) if at != number]
        texts = (
            *(("duplicate", text) for text in _find_duplicates(rule, placed[:number])),
            *(("never", text) for text in _find_impossible(rule)),
            *(("unreachable", text) for text in _find_shadowed(layer, rule, others)),
            *(("broad", text) for text in _find_broad(rule)),
            *(("unknown", text) for text in _find_unknown(rule, servers)),
            *(("label", text) for text in _find_useless_labels(rule, labels)),
        )
        found.extend(PolicyFinding(code, rule.id, layer, rule.line, text) for code, text in texts)  # type: ignore[arg-type] # the codes above
    return [*found, *_find_mistyped_labels(policy, labels or {})]


def _find_duplicates(rule: PolicyRule, before: Sequence[LayeredRule]) -> Iterator[str]:
    for layer, other in before:
        if other.id == rule.id:
            yield (
                f"a rule of the {layer} layer is called the same, so that traces do not tell them "
                "apart and their calls are counted together: rename one"
            )
            return


def _find_impossible(rule: PolicyRule) -> Iterator[str]:
    """Find circumstances that cannot come together."""
    when = rule.when
    for key, actions in ACTIONS_BY_KEY.items():
        if key == "object" or not getattr(when, key) or not when.action:
            continue
        if not any(Globs(when.action).fits(action) for action in actions):
            yield (
                f"it never fits: {key} is only known for {' and '.join(actions)}, and the actions "
                f"are {', '.join(when.action)}. Write object, or other actions"
            )
    named = [key for key in ("tool", "uri", "prompt") if getattr(when, key)]
    if len(named) > 1:
        yield f"it never fits: nothing is {' and '.join(named)} at once. Make a rule of each"
    if rule.effect == "ask" and when.unattended:
        yield "it never asks: where nobody is there, what would ask denies. Write deny"


def _find_shadowed(
    layer: LayerName, rule: PolicyRule, others: Sequence[LayeredRule]
) -> Iterator[str]:
    for other_layer, other in others:
        if not _covers(other, rule):
            continue
        if _decides(other_layer, other, layer, rule):
            yield (
                f"it never decides: whatever it fits, {other.id!r} ({other_layer}) fits as well and "
                f"{'denies' if other.effect == 'deny' else 'wins'}. Take it out, or narrow the other"
            )
            return


def _decides(
    winner_layer: LayerName, winner: PolicyRule, layer: LayerName, rule: PolicyRule
) -> bool:
    """Whether the winner decides wherever both rules fit."""
    if rule.effect == "deny":
        return False
    if winner.effect == "deny":
        return True
    if winner.effect == "ask" and winner_layer == "managed":
        return not (rule.effect == "ask" and layer == "managed")
    if rule.effect == "ask" and layer == "managed":
        return False
    # Otherwise the one that says more wins; a rule that covers another says as much at most, and
    # as much only where both say the same.
    same = _is_same(winner.when, rule.when) and set(winner.where) == set(rule.where)
    later = LAYERS.index(winner_layer) > LAYERS.index(layer)
    at_once = winner_layer == layer and winner.effect == "ask" and rule.effect == "allow"
    return same and (later or at_once)


def _is_same(one: RuleCondition, other: RuleCondition) -> bool:
    return one.conditions() == other.conditions()


def _covers(broad: PolicyRule, narrow: PolicyRule) -> bool:
    """Whether the broad rule surely fits whatever the narrow one fits."""
    if broad.unless is not None or broad.obligations.max_calls is not None:
        return False
    said = narrow.when.conditions()
    return set(broad.where) <= set(narrow.where) and all(
        key in said and _is_wider(key, value, said[key])
        for key, value in broad.when.conditions().items()
    )


def _is_wider(key: str, broad: Any, narrow: Any) -> bool:
    """Whether the broad circumstance surely holds wherever the narrow one does."""
    if CONDITION_KINDS[key] == "globs":
        return all(any(covers_glob(one, other) for one in broad) for other in narrow)
    if CONDITION_KINDS[key] == "flag":
        return bool(broad == narrow)
    # One of several origins is enough; of labels and hints all that are named must be there.
    return set(narrow) <= set(broad) if key == "origin" else set(broad) <= set(narrow)


def _find_broad(rule: PolicyRule) -> Iterator[str]:
    if rule.effect != "allow":
        return
    when = rule.when
    risky = [a for a in ("tool.call", "sampling.request", "server.install") if _is_about(when, a)]
    narrow = any(getattr(when, key) not in {(), ("*",)} for key in TARGET_KEYS)
    if risky and not narrow and not rule.where and not when.annotations and not when.principal:
        yield (
            f"it allows {', '.join(risky)} of every server, with any arguments: name the servers, "
            "or rest it on annotations"
        )
    if _is_about(when, "tool.call") and when.egress and not rule.where:
        yield "it allows to send out anything: say in where what may leave, and to whom"


def _is_about(when: RuleCondition, action: str) -> bool:
    if when.action and not Globs(when.action).fits(action):
        return False
    return not any(
        getattr(when, key) and action not in ACTIONS_BY_KEY[key] for key in ACTIONS_BY_KEY
    )


def _find_unknown(rule: PolicyRule, servers: Mapping[str, Collection[str]] | None) -> Iterator[str]:
    if servers is None:
        return
    for glob in rule.when.server:
        if not any(Globs([glob]).fits(name) for name in servers):
            yield f"no server is called {glob!r}; there are {', '.join(sorted(servers)) or 'none'}"
    about = [name for name in servers if not rule.when.server or Globs(rule.when.server).fits(name)]
    if not about or not all(servers[name] for name in about):
        return  # what tools some of them have is not known
    for glob in rule.when.tool:
        if not any(Globs([glob]).fits(tool) for name in about for tool in servers[name]):
            yield f"none of {', '.join(sorted(about))} has a tool that fits {glob!r}"


def _find_useless_labels(
    rule: PolicyRule, labels: Mapping[str, Collection[str]] | None
) -> Iterator[str]:
    """Find labels of a rule that nothing ever has."""
    given = {label for of in (labels or {}).values() for label in of} | WELL_KNOWN_LABELS
    for label in rule.when.labels:
        if label in given:
            continue
        meant = _suggest_label(label, given)
        if meant:
            yield f"it waits for the label {label!r}: is {meant!r} meant?"
        elif labels is not None:
            yield (
                f"it never fits: no server gives the label {label!r}; there are "
                f"{', '.join(sorted(given))} (host.labels of a server's entry)"
            )


def _find_mistyped_labels(
    policy: Policy, labels: Mapping[str, Collection[str]]
) -> Iterator[PolicyFinding]:
    """Find mistyped labels of the configuration, which no guard looks at."""
    looked_at = {
        label for one in policy.rules for label in one.rule.when.labels
    } | WELL_KNOWN_LABELS
    for server, given in labels.items():
        for label in given:
            meant = "" if label in looked_at else _suggest_label(label, WELL_KNOWN_LABELS)
            if meant:
                text = (
                    f"its data are labelled {label!r}, which no rule looks at: is {meant!r} meant?"
                )
                yield PolicyFinding("label", f"server {server}", "configuration", 0, text)


def _suggest_label(label: str, known: Collection[str]) -> str:
    """Suggest the known label that a mistyped one means; empty for none."""
    from difflib import get_close_matches  # only where something is doubtful

    alike = {one.casefold(): one for one in sorted(known)}
    found = get_close_matches(label.casefold().strip(), list(alike), 1, 0.75)
    return alike[found[0]] if found else ""
