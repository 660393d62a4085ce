"""What holds of every policy, whatever its rules are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.trace import Obligations
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.predicates import Predicate
from isthmus.host.policy.rule import LAYERS, PolicyLayer, PolicyRule, RuleCondition, format_rules
from isthmus.host.policy.rule_file import read_layers
from isthmus.wire import UNSET, ToolAnnotations
from support.examples import count_examples
from support.host.policies import make_facts

STRENGTH = {"allow": 2, "ask": 1, "deny": 0}
LOOSE = ("default", "managed", "user")
EXAMPLES = settings(max_examples=count_examples(20), deadline=None)

some = st.sampled_from
globs = st.lists(
    some(["*", "read*", "read", "re?d", "write_file", "*e"]), min_size=1, max_size=2, unique=True
).map(tuple)
none = st.just(())
LABELS = ["private", "untrusted", "x"]
HINTS = {"read_only": (True, False), "destructive": (False, True), "open_world": (False, True)}


def whens(effect, *, unless=False):
    """Circumstances that a rule of this effect may name."""
    harmless = effect == "allow" and not unless
    hints = some(list(HINTS)).map(lambda name: ((name, HINTS[name][0 if harmless else 1]),))
    labels = (
        none
        if harmless
        else none | st.lists(some(LABELS), min_size=1, max_size=2, unique=True).map(tuple)
    )
    return st.builds(
        RuleCondition,
        action=none | some([("tool.call",), ("*",), ("resource.*", "tool.*")]),
        server=none | some([("files",), ("f*",), ("other",)]),
        tool=none | globs,
        principal=none | some([("user:*",), ("agent:1",)]),
        origin=none | some([("local",), ("result", "local")]),
        labels=labels,
        egress=some([None, None, True, False]),
        annotations=none | hints,
        unattended=some([None, None, True, False]),
    )  # fmt: skip


@st.composite
def rules(draw, effects=("allow", "ask", "deny")):
    """One rule."""
    effect = draw(some(effects))
    unless = None
    if effect != "deny":
        unless = draw(st.none() | whens(effect, unless=True).filter(RuleCondition.conditions))
    return PolicyRule(
        id=draw(st.text("abcdef", min_size=1, max_size=4)),
        effect=effect,
        when=draw(whens(effect)),
        where=tuple(map(Predicate, draw(st.lists(some(["args.n < 5", "args.p under '/tmp'", "not args.n == 3", "args.q exists"]), max_size=2, unique=True)))),
        unless=unless,
        reason=draw(some(["", 'it "is" so\\', "weil \x7f \U0001f642"])),
        obligations=draw(st.builds(
            Obligations,
            assurance=some(["callback", "local_ui"]),
            max_calls=some([None, None, 1]),
            timeout=some([None, 2.5]),
            redact=some([(), ("/a~1b",)]),
            remember=some([("once",), ("once", "session", "tool_always")]),
        )),
    )  # fmt: skip


def numbered(found):
    """Rules with ids of their own."""
    return tuple(structs.replace(rule, id=f"{rule.id}-{n}") for n, rule in enumerate(found))


lists = st.lists(rules(), max_size=6).map(numbered)
layered = st.lists(st.builds(PolicyLayer, name=some(LOOSE), rules=lists), max_size=3)
tighter = st.builds(
    PolicyLayer,
    name=some(["workspace", "session"]),
    rules=st.lists(rules(effects=("ask", "deny")), min_size=1, max_size=4).map(numbered),
)
denials = st.builds(
    PolicyLayer,
    name=some(LAYERS),
    rules=rules(effects=("deny",)).map(lambda rule: (structs.replace(rule, id="zz"),)),
)
attempts = st.builds(
    Attempt,
    id=st.just("1"),
    action=some(["tool.call", "resource.read", "sampling.request"]),
    principal=some(["user:local", "agent:1"]),
    server=some(["files", "other"]),
    object=some(["read", "read_file", "write_file"]),
    arguments=some([{}, {"n": 3}, {"n": 9, "p": "/tmp/x"}, {"p": "/tmp/../etc", "q": 1}, {"n": "x", "p": ["/tmp"]}]),
    origin=some(["local", "result"]),
)  # fmt: skip
hint = some([UNSET, True, False])
claims = st.none() | st.builds(
    ToolAnnotations, read_only_hint=hint, destructive_hint=hint, open_world_hint=hint
)
circumstances = st.builds(
    make_facts,
    trust=some(["untrusted", "annotations", "full"]),
    annotations=claims,
    labels=st.sets(some(LABELS)),
    egress=st.booleans(),
    attended=st.booleans(),
    assurance=some(["callback", "local_ui"]),
)


class Yes:
    """Grants everything that rules accept to be remembered."""

    id = "g"

    def find(self, attempt, facts, *, remember=None, assurance="callback"):
        return self


grants = st.none() | st.builds(Yes)


def strength(trace):
    """How much a trace lets through."""
    return STRENGTH[trace.effect]


@EXAMPLES
@given(layered, denials, attempts, circumstances, grants)
@pytest.mark.covers("hostpolicy.decision.order")
def test_another_denial_never_allows_more(layers, denial, attempt, around, given_before):
    """Ours: whoever forbids something more need not look at the rest."""
    more = [*layers, denial]
    before, after = (Policy(one).decide(attempt, around, given_before) for one in (layers, more))

    assert strength(after) <= strength(before)


@EXAMPLES
@given(layered, tighter, attempts, circumstances, grants)
@pytest.mark.covers("hostpolicy.layers.tighten")
def test_a_workspace_never_allows_what_the_others_do_not(
    layers, more, attempt, around, given_before
):
    """Ours: a folder that somebody downloaded can only be careful; nor does it demand less of an answer."""
    before = Policy(layers).decide(attempt, around, given_before)
    after = Policy([*layers, more]).decide(attempt, around, given_before)

    assert strength(after) <= strength(before)
    if before.effect == after.effect == "ask":
        assert set(after.obligations.remember) <= set(before.obligations.remember)


@EXAMPLES
@given(layered, attempts, circumstances, grants, st.booleans())
@pytest.mark.covers("hostpolicy.trust.monotone")
def test_less_trust_never_allows_more(layers, attempt, around, given_before, whole):
    """Ours: neither where the claims are gone, nor where nobody believes them."""
    policy = Policy(layers)
    less = (
        structs.replace(around, annotations=None)
        if whole
        else structs.replace(around, trust="untrusted")
    )

    assert strength(policy.decide(attempt, less, given_before)) <= strength(
        policy.decide(attempt, around, given_before)
    )


@EXAMPLES
@given(layered, attempts, circumstances, st.sets(some(LABELS)))
def test_more_labels_never_allow_more(layers, attempt, around, labels):
    """Ours: to read something makes nothing safer."""
    policy = Policy(layers)
    more = structs.replace(around, labels=around.labels | labels)

    assert strength(policy.decide(attempt, more)) <= strength(policy.decide(attempt, around))


@EXAMPLES
@given(layered, attempts, circumstances)
@pytest.mark.covers("hostpolicy.grants.no-override", "hostpolicy.labels.guard")
def test_a_grant_never_beats_a_denial_nor_the_guard(layers, attempt, around):
    """Ours: it answers what would be asked, and changes nothing else."""
    policy = Policy(layers)
    without, granted = policy.decide(attempt, around), policy.decide(attempt, around, Yes())
    first = without.matches[0] if without.matches else None

    if any(match.effect == "deny" for match in without.matches):
        assert "deny" == granted.effect
    if without.rule == "data-flow":
        assert without == granted
    if first and (first.layer, first.effect) == ("managed", "ask"):
        assert "allow" != granted.effect
    if without.effect == "allow":
        assert without == granted


@EXAMPLES
@given(layered, attempts, circumstances, st.randoms(use_true_random=False))
@pytest.mark.covers("hostpolicy.decision.order")
def test_the_order_of_rules_changes_nothing(layers, attempt, around, dice):
    """Ours: neither within a layer, nor among layers of one name; and the same input has the same trace."""
    turned = [
        structs.replace(layer, rules=tuple(dice.sample(layer.rules, len(layer.rules))))
        for layer in layers
    ]
    dice.shuffle(turned)
    one, other = (Policy(found).decide(attempt, around) for found in (layers, turned))

    assert (one.effect, one.chain) == (other.effect, other.chain)
    assert one == Policy(layers).decide(attempt, around)


@EXAMPLES
@given(layered, attempts, circumstances, grants)
@pytest.mark.covers("hostpolicy.unattended.never-asks")
def test_nobody_is_asked_where_nobody_is(layers, attempt, around, given_before):
    """Ours: what would be asked is denied."""
    trace = Policy(layers).decide(attempt, structs.replace(around, attended=False), given_before)

    assert "ask" != trace.effect


@EXAMPLES
@given(lists)
@pytest.mark.covers("hostpolicy.grammar.round-trip")
def test_a_policy_that_is_written_and_read_is_the_same(found):
    """Ours: what is shown is what is in force."""
    (layer,) = read_layers(format_rules(found), "user")

    assert found == tuple(structs.replace(rule, line=0) for rule in layer.rules)
    assert Policy([PolicyLayer(name="user", rules=found)]).version == Policy([layer]).version


@EXAMPLES
@given(st.text(max_size=60) | st.text("[]rule=\"'{}\n.#", max_size=60))
@pytest.mark.covers("hostpolicy.broken.locked-down")
def test_no_text_is_read_as_more_than_it_says(text):
    """Ours: it is a policy, or an error that is a policy error."""
    from isthmus.host.model.errors import PolicyError

    try:
        layers = read_layers(text, "user")
    except PolicyError:
        return
    assert all(rule.id for layer in layers for rule in layer.rules)
