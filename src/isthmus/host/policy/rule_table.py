"""Rule table: compiled rules, and for each server and tool the rules that can be about them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts
from isthmus.host.model.trace import Effect
from isthmus.host.policy.patterns import Globs
from isthmus.host.policy.places import expand_path
from isthmus.host.policy.rule import (
    ACTIONS_BY_KEY,
    HINT_VALUES,
    LAYERS,
    LayerName,
    PolicyRule,
    RuleCondition,
)

MAX_TABLE_ROWS = 4_096  # the URIs of resources are many
STRICTER_EFFECTS: Mapping[Effect, Effect] = {"allow": "ask", "ask": "deny", "deny": "deny"}

CircumstanceTest: TypeAlias = Callable[[Attempt, Facts], bool]


def resolve_hints(facts: Facts) -> dict[str, bool]:
    """Resolve the hints of a tool: the server's where it is trusted, else the worst."""
    said = facts.annotations if facts.trust != "untrusted" else None
    hints = {}
    # spec 2025-06-18 server/tools#tool: annotations of servers that nobody trusts do not
    # count, and what is not said is taken as destructive and open to the world
    for name, (_, worst) in HINT_VALUES.items():
        value = getattr(said, f"{name}_hint", worst)
        hints[name] = value if isinstance(value, bool) else worst
    return hints


def _make_hint_test(expected: tuple[tuple[str, bool], ...]) -> CircumstanceTest:
    def test(_: Attempt, facts: Facts) -> bool:
        if facts.trust == "untrusted" or facts.annotations is None:
            return all(value == HINT_VALUES[name][1] for name, value in expected)
        hints = resolve_hints(facts)
        return all(hints[name] == value for name, value in expected)

    return test


def _make_glob_test(key: str, globs: tuple[str, ...]) -> CircumstanceTest:
    fits = Globs(globs).fits
    if key == "principal":
        return lambda attempt, _: fits(attempt.principal)
    return lambda _, facts: fits(getattr(facts, key))


def _make_workspace_test(globs: tuple[str, ...]) -> CircumstanceTest:
    fits = Globs([expand_path(glob, "") or glob for glob in globs]).fits
    return lambda _, facts: fits(facts.workspace)


def _make_tests(when: RuleCondition) -> list[CircumstanceTest]:
    """Make the tests that each attempt needs: all but those of action, server and object."""
    tests: list[CircumstanceTest] = []
    if when.unattended is not None:
        tests.append(lambda _, facts: facts.attended is not when.unattended)
    if when.egress is not None:
        tests.append(lambda _, facts: facts.target.egress is when.egress)
    if when.origin:
        tests.append(lambda attempt, _: attempt.origin in when.origin)
    if when.labels:
        labels = frozenset(when.labels)
        tests.append(lambda _, facts: labels <= facts.labels)
    if when.reads:
        tests.append(lambda _, facts: all(one in facts.target.reads for one in when.reads))
    if when.annotations:
        tests.append(_make_hint_test(when.annotations))
    if when.workspace:
        tests.append(_make_workspace_test(when.workspace))
    texts = ("principal", "era", "transport")
    tests.extend(_make_glob_test(key, globs) for key in texts if (globs := getattr(when, key)))
    return tests


class _TargetMatcher:
    """Matches the action, the server and the object of an attempt."""

    __slots__ = ("_action", "_objects", "_server")

    def __init__(self, when: RuleCondition) -> None:
        self._action = Globs(when.action) if when.action else None
        self._server = Globs(when.server) if when.server else None
        self._objects = [
            (frozenset(actions), Globs(globs))
            for key, actions in ACTIONS_BY_KEY.items()
            if (globs := getattr(when, key))
        ]

    def weigh(self, action: str, server: str, object: str) -> int:
        """Weigh the match: how much the rule says about them; -1 where it does not match."""
        total = 0
        if self._action and not self._action.fits(action):
            return -1
        if self._server:
            total = self._server.weigh(server)
            if total < 0:
                return -1
        for actions, globs in self._objects:
            weight = globs.weigh(object) if action in actions else -1
            if weight < 0:
                return -1
            total += weight
        return total


class CompiledRule:
    """One rule, compiled for many decisions.

    Attributes:
        rule: the rule.
        layer: where it stands.
        count: how many things it is particular about.
    """

    __slots__ = (
        "_forbids",
        "_named",
        "_tests",
        "_unless",
        "_unless_named",
        "count",
        "layer",
        "rule",
    )

    def __init__(self, rule: PolicyRule, layer: LayerName) -> None:
        self.rule = rule
        self.layer = layer
        self.count = len(rule.when.conditions()) + len(rule.where)
        self._forbids = rule.effect != "allow"
        self._named = _TargetMatcher(rule.when)
        self._tests = tuple(_make_tests(rule.when))
        self._unless = None if rule.unless is None else tuple(_make_tests(rule.unless))
        self._unless_named = None if rule.unless is None else _TargetMatcher(rule.unless)

    def rank(self, action: str, server: str, object: str) -> tuple[int, int, int] | None:
        """Rank the rule by how particular it is about these; None where it is about others."""
        weight = self._named.weigh(action, server, object)
        return None if weight < 0 else (weight, self.count, LAYERS.index(self.layer))

    def fits(self, attempt: Attempt, facts: Facts) -> bool:
        """Whether the circumstances and the arguments fit."""
        for test in self._tests:
            if not test(attempt, facts):
                return False
        for predicate in self.rule.where:
            if not predicate.fits(attempt, facts, forbids=self._forbids):
                return False
        return True

    def effect(self, attempt: Attempt, facts: Facts) -> Effect:
        """The effect: stricter by a step where ``unless`` holds, or the calls are used up."""
        effect = self.rule.effect
        most = self.rule.obligations.max_calls
        used_up = most is not None and facts.calls.get(self.rule.id, 0) >= most
        if used_up or (self._unless is not None and self._is_excepted(attempt, facts)):
            return STRICTER_EFFECTS[effect]
        return effect

    def _is_excepted(self, attempt: Attempt, facts: Facts) -> bool:
        named, tests = self._unless_named, self._unless or ()
        if named and named.weigh(attempt.action, attempt.server, attempt.object) < 0:
            return False
        return all(test(attempt, facts) for test in tests)


RankedRules: TypeAlias = tuple[tuple[tuple[int, int, int], CompiledRule], ...]


class RuleTable:
    """Table of the rules about each action, server and object, the most particular first.

    Args:
        rules: all of them.
    """

    def __init__(self, rules: tuple[CompiledRule, ...]) -> None:
        self.rules = rules
        self._rows: dict[tuple[str, str, str], RankedRules] = {}

    def row(self, action: str, server: str, object: str) -> RankedRules:
        """The rules that may fit, with their ranks."""
        key = (action, server, object)
        row = self._rows.get(key)
        if row is None:
            ranked = ((rule.rank(*key), rule) for rule in self.rules)
            found = [(rank, rule) for rank, rule in ranked if rank is not None]
            row = tuple(sorted(found, key=_sort_key))
            if len(self._rows) >= MAX_TABLE_ROWS:
                self._rows.clear()
            self._rows[key] = row
        return row


def _sort_key(found: tuple[tuple[int, int, int], CompiledRule]) -> Any:
    (weight, count, layer), rule = found
    return (-weight, -count, -layer, rule.rule.id)
