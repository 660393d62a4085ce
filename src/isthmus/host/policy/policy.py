"""Policy decision: every rule of every layer is compared with an attempt, and the trace says why.

It depends on nothing but the policy, the attempt, its circumstances and the grants, with one
exception: ``under`` follows the links of the file system.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import structs

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import HostOptions
from isthmus.host.model.errors import PolicyError
from isthmus.host.model.facts import Facts
from isthmus.host.model.trace import (
    ASSURANCES,
    Assurance,
    Effect,
    Match,
    Obligations,
    Remember,
    Trace,
    merge_obligations,
)
from isthmus.host.policy.flow_labels import find_flow
from isthmus.host.policy.rule import LAYERS, PolicyLayer, find_problems, format_rules
from isthmus.host.policy.rule_table import CompiledRule, RuleTable

DEFAULT_RULE = "default"  # decides where no other rule does: somebody is asked

# cannot be taken away: untrusted and private data together do not leave unasked
DATA_FLOW_RULE = "data-flow"
ONLY_ONCE: tuple[Remember, ...] = ("once",)
EFFECT_VERBS: Mapping[Effect, str] = {"allow": "allows it", "ask": "asks", "deny": "denies it"}

FoundRule = tuple[tuple[int, int, int], CompiledRule, Effect]


class FoundGrant(Protocol):
    """A grant, as far as a decision needs it."""

    @property
    def id(self) -> str:
        """Its name."""
        ...


class GrantSource(Protocol):
    """Earlier grants: :class:`isthmus.host.approvals.grants.Grants`, or a stand-in."""

    def find(
        self,
        attempt: Attempt,
        facts: Facts,
        *,
        remember: tuple[Remember, ...] | None = None,
        assurance: Assurance = "callback",
    ) -> FoundGrant | None:
        """The grant that covers an attempt, if the rules accept its scope and its assurance."""
        ...


class Policy:
    """Rules in layers, compiled.

    A rule that denies wins, wherever it stands. After it comes a managed rule that asks, then the
    most particular rule among those that allow and ask: the longest literal text in what it says
    of server and object, then the number of things it is particular about, then the later layer,
    then the one that asks. Where there is none, somebody is asked. What asks is allowed where the
    user granted it before, and denied where nobody can be asked.

    Args:
        layers: the layers there are, in any order; of each name any number.

    Attributes:
        layers: the layers, in the order of :data:`isthmus.host.policy.rule.LAYERS`.
        version: a digest of the rules.
        broken: why a layer cannot be read, a sentence each. What it would have said nobody knows,
            so the policy ``locked-down`` is laid over the others then.

    Raises:
        PolicyError: a rule says what it must not say where it stands.
    """

    def __init__(self, layers: Iterable[PolicyLayer]) -> None:
        ordered = sorted(layers, key=lambda layer: LAYERS.index(layer.name))
        self.broken = tuple(layer.broken for layer in ordered if layer.broken)
        if self.broken:
            from isthmus.host.policy.shipped import load_shipped_rules

            lock = PolicyLayer(
                name="managed", rules=load_shipped_rules("locked-down"), source="locked-down"
            )
            ordered.append(lock)
        self.layers = tuple(ordered)
        wrong = [
            f"rule {rule.id} ({layer.name}): {problem}"
            for layer in ordered
            for rule in layer.rules
            for problem in find_problems(rule, layer.name)
        ]
        if wrong:
            raise PolicyError("\n".join(wrong))
        self._table = RuleTable(
            tuple(CompiledRule(r, layer.name) for layer in ordered for r in layer.rules)
        )
        self._allowances: dict[CompiledRule, Trace] = {}
        text = "\0".join(f"{layer.name}\n{format_rules(layer.rules)}" for layer in ordered)
        self.version = hashlib.sha256(text.encode()).hexdigest()[:32]

    @classmethod
    def of(cls, layers: Iterable[PolicyLayer]) -> "Policy":
        """A policy of these layers.

        Args:
            layers: layers of rules, such as those of the user and of a workspace.
        """
        return cls(layers)

    @classmethod
    def named(cls, name: str) -> "Policy":
        """A shipped policy by its name.

        Args:
            name: ``personal-read-only``, ``developer``, ``locked-down`` or ``unattended``.

        Raises:
            PolicyError: there is none of that name; the message has those there are.
        """
        from isthmus.host.policy.shipped import load_shipped_rules

        return cls([PolicyLayer(name="default", rules=load_shipped_rules(name), source=name)])

    @classmethod
    def load(cls, user: str = "", *, managed: str = "", workspace: str = "") -> "Policy":
        """The policy of files, or of names of policies that come with isthmus.

        It never fails: where something cannot be read, the policy is locked down, and ``broken``
        says why.

        Args:
            user: the user's own; empty for ``personal-read-only``.
            managed: what the machine's administrator set; empty for none.
            workspace: that of the folder that is worked in, which can only tighten.
        """
        from isthmus.host.policy.rule_file import load_layers

        layers = load_layers(user or "personal-read-only", "user")
        layers += load_layers(managed, "managed") if managed else []
        layers += load_layers(workspace, "workspace") if workspace else []
        return cls(layers)

    @classmethod
    def configured(cls, options: HostOptions) -> "Policy":
        """The policy that ``options`` of a configuration name; as :meth:`load`, but it never fails.

        Args:
            options: the options of the host's configuration.
        """
        named = options.policies
        user = named.get("command_line") or named.get("user") or options.policy
        return cls.load(
            user, managed=named.get("managed", ""), workspace=named.get("workspace", "")
        )

    @property
    def rules(self) -> tuple[CompiledRule, ...]:
        """Every rule, with its layer."""
        return self._table.rules

    def decide(self, attempt: Attempt, facts: Facts, grants: GrantSource | None = None) -> Trace:
        """Decide an attempt: allow, ask or deny, and why.

        Args:
            attempt: what somebody wants.
            facts: what else is known.
            grants: what the user said yes to before.
        """
        found = [
            (rank, rule, rule.effect(attempt, facts))
            for rank, rule in self._table.row(attempt.action, attempt.server, attempt.object)
            if rule.fits(attempt, facts)
        ]
        if not found:
            return self._trace_ask(attempt, facts, grants, NO_RULE)
        if len(found) == 1 and found[0][2] == "allow" and not find_flow(attempt, facts):
            return self._find_allowance(found)
        found.sort(key=_rank_strength)
        _, winner, effect = found[0]
        answer = _answer_by(found, effect)
        if effect == "deny":
            return self._make_trace("deny", answer)
        if effect == "ask":
            return self._trace_ask(
                attempt, facts, None if winner.layer == "managed" else grants, answer
            )
        chain = find_flow(attempt, facts)
        return (
            self._trace_flow(facts, answer, chain) if chain else self._make_trace("allow", answer)
        )

    def bars(self, attempt: Attempt, facts: Facts) -> bool:
        """Whether an attempt is denied whatever its arguments are.

        It decides nothing: it is for who lists what could be done.

        Args:
            attempt: the attempt, without arguments.
            facts: the facts about its server and tool.
        """
        return any(
            rule.rule.effect == "deny" and not rule.rule.where and rule.fits(attempt, facts)
            for _, rule in self._table.row(attempt.action, attempt.server, attempt.object)
        )

    def _find_allowance(self, found: Sequence[FoundRule]) -> Trace:
        """The trace of attempts that one rule allows, where no other is about them: it is always the same."""
        allowing = found[0][1]
        known = self._allowances.get(allowing)
        if known is None:
            known = self._make_trace("allow", _answer_by(found, "allow"))
            self._allowances[allowing] = known
        return known

    def _trace_ask(
        self, attempt: Attempt, facts: Facts, grants: GrantSource | None, answer: "_RuleAnswer"
    ) -> Trace:
        chain = find_flow(attempt, facts)
        if chain:
            return self._trace_flow(facts, answer, chain)
        demanded = answer.obligations
        grant = grants and grants.find(
            attempt, facts, remember=demanded.remember, assurance=demanded.assurance
        )
        if grant:
            reason = f"granted before; otherwise: {answer.reason}"
            return self._make_trace("allow", answer._replace(reason=reason), grant=grant.id)
        effect, why = _check_attendance(facts, demanded)
        return self._make_trace(
            effect, answer._replace(reason=f"{answer.reason}{why}") if why else answer
        )

    def _trace_flow(self, facts: Facts, answer: "_RuleAnswer", chain: tuple[str, ...]) -> Trace:
        demanded = structs.replace(answer.obligations, remember=ONLY_ONCE)
        effect, why = _check_attendance(facts, demanded)
        reason = (
            "this would send data out, and the run has read both what is private and what "
            f"nobody vouches for{why}"
        )
        guarded = _RuleAnswer(
            DATA_FLOW_RULE,
            reason,
            (Match(DATA_FLOW_RULE, DEFAULT_RULE, "ask"), *answer.matches),
            demanded,
        )
        return self._make_trace(effect, guarded, chain=chain)

    def _make_trace(
        self, effect: Effect, answer: "_RuleAnswer", *, grant: str = "", chain: tuple[str, ...] = ()
    ) -> Trace:
        return Trace(
            effect=effect,
            rule=answer.rule,
            grant=grant,
            reason=answer.reason,
            matches=answer.matches,
            obligations=answer.obligations,
            policy=self.version,
            chain=chain,
        )


class _RuleAnswer(NamedTuple):
    """The answer of the rules alone, before grants, labels and attendance count."""

    rule: str
    reason: str
    matches: tuple[Match, ...]
    obligations: Obligations


def _answer_by(found: Sequence[FoundRule], effect: Effect) -> _RuleAnswer:
    """The answer of rules that fit, the deciding one first."""
    _, winner, _ = found[0]
    rule = winner.rule
    return _RuleAnswer(
        rule.id,
        rule.reason or f"rule {rule.id!r} ({winner.layer}) {EFFECT_VERBS[effect]}",
        tuple([Match(c.rule.id, c.layer, e) for _, c, e in found]),
        merge_obligations([(e, c.rule.obligations) for _, c, e in found], effect),
    )


NO_RULE = _RuleAnswer(DEFAULT_RULE, "no rule is about it", (), Obligations())


def _check_attendance(facts: Facts, obligations: Obligations) -> tuple[Effect, str]:
    """Check whether somebody can be asked whose yes is sure enough."""
    if not facts.attended:
        return "deny", "; nobody can be asked"
    if ASSURANCES.index(facts.assurance) < ASSURANCES.index(obligations.assurance):
        return "deny", f"; nobody can be asked whose yes is sure enough ({obligations.assurance})"
    return "ask", ""


def _rank_strength(found: FoundRule) -> tuple[int, int, int, int, int, str]:
    """The sort key that puts the deciding rule first."""
    (weight, count, layer), rule, effect = found
    managed = effect == "ask" and rule.layer == "managed"
    first = 0 if effect == "deny" else 1 if managed else 2
    return (first, -weight, -count, -layer, effect == "allow", rule.rule.id)
