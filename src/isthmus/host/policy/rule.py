"""Policy rules: a closed vocabulary, so that rules can be checked, compared and explained.

A hint of a server may make things stricter where it is missing, and never laxer: so a rule that
allows may only rest on harmless hints, and every other on harmful ones. In the same way what a run
has taken over can forbid, and not allow. Rules can be written as TOML again, as
:mod:`isthmus.host.policy.rule_file` reads them.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct, json, structs

from isthmus.host.model.attempt import Action, Origin
from isthmus.host.model.trace import Effect, Obligations
from isthmus.host.policy.patterns import Globs
from isthmus.host.policy.predicates import Predicate

LayerName: TypeAlias = Literal["default", "managed", "user", "workspace", "session"]

# between rules of the same weight the later layer counts
LAYERS: tuple[LayerName, ...] = get_args(LayerName)

# they may demand more than the others, and never less
TIGHTENING_LAYERS = frozenset({"workspace", "session"})
ACTIONS: tuple[str, ...] = get_args(Action)
ORIGINS: tuple[str, ...] = get_args(Origin)

# the keys that name an object, and the actions that have one
ACTIONS_BY_KEY: dict[str, tuple[str, ...]] = {
    "tool": ("tool.call", "tool.change"),
    "uri": ("resource.read", "resource.subscribe", "elicit.url"),
    "prompt": ("prompt.get",),
    "object": ACTIONS,
}

# the harmless value, and the one assumed of a server that is not trusted
HINT_VALUES = {
    "read_only": (True, False),
    "destructive": (False, True),
    "idempotent": (True, False),
    "open_world": (False, True),
}

ConditionKind: TypeAlias = Literal["globs", "words", "flag", "hints"]

# the keys of ``when`` and ``unless``, and the kind of their values
CONDITION_KINDS: dict[str, ConditionKind] = {
    "action": "globs",
    "server": "globs",
    "tool": "globs",
    "uri": "globs",
    "prompt": "globs",
    "object": "globs",
    "principal": "globs",
    "origin": "words",
    "labels": "words",
    "reads": "words",
    "egress": "flag",
    "annotations": "hints",
    "era": "globs",
    "transport": "globs",
    "workspace": "globs",
    "unattended": "flag",
}

_DEFAULT_OBLIGATIONS = structs.asdict(Obligations())


class RuleCondition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The circumstances of a rule; all that are named must hold.

    Attributes:
        action: what is wanted; one of them, also as a glob: ``"sampling.*"``.
        server: the server's name.
        tool: the tool's name, ``uri`` the resource or page, ``prompt`` the prompt, each as the
            server spells it, and only where the action is about such a thing; ``object`` is any.
        principal: who wants it: ``user:*``, ``agent:*``, ``server:NAME``.
        origin: by which way it came; one of them.
        labels: what the run has taken over from results; all of them.
        reads: what the server or tool has access to, by its configuration; all of them.
        egress: whether what it is given leaves the machine, by its configuration.
        annotations: what the tool is said to be, by a server that is trusted to say so.
        era: the revision spoken.
        transport: how the server is reached.
        workspace: the folder that is worked in.
        unattended: whether nobody is there who can be asked.
    """

    action: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    uri: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    object: tuple[str, ...] = ()
    principal: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    egress: bool | None = None
    annotations: tuple[tuple[str, bool], ...] = ()
    era: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    unattended: bool | None = None

    def conditions(self) -> dict[str, Any]:
        """The circumstances that are named, by their keys."""
        return {
            key: value
            for key in CONDITION_KINDS
            if (value := getattr(self, key)) is not None and value != ()
        }


class PolicyRule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule.

    Attributes:
        id: its name, shown in every trace.
        effect: what is to happen.
        when: the circumstances in which it counts.
        where: what the arguments must be like; all of them.
        unless: circumstances in which it is stricter by a step: ``allow`` asks, ``ask`` denies.
        reason: why, for the person who is asked.
        obligations: what else it demands.
        line: where it begins in its file; 0 where it comes from none.
    """

    id: str
    effect: Effect
    when: RuleCondition = RuleCondition()
    where: tuple[Predicate, ...] = ()
    unless: RuleCondition | None = None
    reason: str = ""
    obligations: Obligations = Obligations()
    line: int = 0


class PolicyLayer(Struct, frozen=True, kw_only=True):
    """The rules of one file.

    Attributes:
        name: where it stands.
        rules: its rules.
        source: the file; empty for one that was made in a program.
        broken: why it cannot be read; empty where it can.
    """

    name: LayerName
    rules: tuple[PolicyRule, ...] = ()
    source: str = ""
    broken: str = ""


def suggest_word(word: str, words: tuple[str, ...]) -> str:
    """Suggest a known word in place of an unknown one."""
    found = get_close_matches(word, words, n=1)
    return f"did you mean {found[0]!r}?" if found else f"there are {', '.join(words)}"


def find_problems(rule: PolicyRule, layer: LayerName) -> Iterator[str]:
    """Find what is wrong with a rule in its layer, and how to mend it."""
    yield from _check_words(rule.when, "when")
    yield from _check_polarity(rule)
    if rule.unless is not None:
        yield from _check_words(rule.unless, "unless")
        if not rule.unless.conditions():
            yield "unless is empty, and so would always fit: name a circumstance, or leave it out"
        if rule.effect == "deny":
            yield (
                "a rule that denies has no unless, since nothing is stricter: narrow its when, or "
                "begin a predicate with not"
            )
    if layer in TIGHTENING_LAYERS:
        yield from _check_tightening(rule, layer)


def _check_words(when: RuleCondition, where: str) -> Iterator[str]:
    for action in when.action:
        if not any(Globs([action]).fits(known) for known in ACTIONS):
            yield f"{where}.action has {action!r}, which is no action; {suggest_word(action, ACTIONS)}"
    for origin in when.origin:
        if origin not in ORIGINS:
            yield f"{where}.origin has {origin!r}, which is no origin; {suggest_word(origin, ORIGINS)}"


def _check_polarity(rule: PolicyRule) -> Iterator[str]:
    allows = rule.effect == "allow"
    for name, value in rule.when.annotations:
        if (value == HINT_VALUES[name][0]) != allows:
            yield _describe_hint("when", rule.effect, name, value)
    for name, value in rule.unless.annotations if rule.unless else ():
        if value == HINT_VALUES[name][0]:
            yield _describe_hint("unless", rule.effect, name, value)
    if allows and rule.when.labels:
        yield (
            "a rule that allows cannot wait for labels: what a run has read makes nothing safer. "
            "Put them into unless, or into a rule that asks or denies"
        )


def _describe_hint(where: str, effect: str, name: str, value: bool) -> str:
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


def _check_tightening(rule: PolicyRule, layer: LayerName) -> Iterator[str]:
    if rule.effect == "allow":
        yield (
            f"the {layer} layer can ask and deny, and not allow: put the rule into the user's own "
            "policy, or take it out"
        )
    if rule.obligations.review not in {None, "both"}:
        yield f"the {layer} layer cannot leave out a review: write review = 'both', or nothing"


def format_rules(rules: Iterable[PolicyRule]) -> str:
    """Format rules as a TOML file; reading it gives the same ones."""
    return "\n".join(_format_rule(rule_to_data(rule)) for rule in rules)


def rule_to_data(rule: PolicyRule) -> dict[str, Any]:
    """Convert a rule to plain data, as it stands in a file."""
    data: dict[str, Any] = {"id": rule.id, "effect": rule.effect}
    if rule.reason:
        data["reason"] = rule.reason
    data["when"] = _condition_to_data(rule.when)
    if rule.where:
        data["where"] = [predicate.text for predicate in rule.where]
    if rule.unless is not None:
        data["unless"] = _condition_to_data(rule.unless)
    demanded = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in structs.asdict(rule.obligations).items()
        if value != _DEFAULT_OBLIGATIONS[key]
    }
    if demanded:
        data["obligations"] = demanded
    return data


def _condition_to_data(when: RuleCondition) -> dict[str, Any]:
    named = when.conditions()
    if when.annotations:
        named["annotations"] = dict(when.annotations)
    return {key: list(v) if isinstance(v, tuple) else v for key, v in named.items()}


def _format_rule(data: Mapping[str, Any]) -> str:
    return "\n".join(("[[rule]]", *(f"{key} = {_format_value(v)}" for key, v in data.items()), ""))


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {_format_value(v)}" for key, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_format_value(v) for v in value)}]"
    # TOML writes texts as JSON does, but for one character that JSON leaves as it is.
    return json.encode(value).decode().replace("\x7f", "\\u007f")
