"""Decisions: which rule counts, and why."""

import pytest

from isthmus.host.model.entries import HostOptions
from isthmus.host.model.errors import PolicyError
from isthmus.host.model.trace import Match
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule import PolicyLayer, PolicyRule, RuleCondition
from isthmus.host.policy.rule_file import read_layers
from support.host.policies import READS, make_attempt, make_facts, make_policy


def rule(id, effect, when="", **more):
    """A rule as TOML."""
    lines = [f'[[rule]]\nid = "{id}"\neffect = "{effect}"', f"when = {{ {when} }}"]
    return "\n".join((*lines, *(f"{key} = {value}" for key, value in more.items()), ""))


class Yes:
    """Grants everything."""

    id = "g"

    def __init__(self):
        self.asked = []

    def find(self, attempt, facts, *, remember=None, assurance="callback"):
        self.asked.append((remember, assurance))
        return self


def effect(policy, attempt=None, circumstances=None, grants=None):
    """What is decided, and by which rule."""
    trace = policy.decide(attempt or make_attempt(), circumstances or make_facts(), grants)
    return trace.effect, trace.rule


def test_without_a_rule_somebody_is_asked():
    """Ours: an empty policy is careful."""
    assert ("ask", "default") == effect(make_policy())


@pytest.mark.parametrize("layer", ["default", "managed", "user", "workspace", "session"])
@pytest.mark.covers("hostpolicy.decision.order")
def test_a_denial_wins_from_any_layer(layer):
    """Ours: however particular what allows is."""
    particular = rule("yes", "allow", 'server = "files", tool = "read", principal = "user:local"')
    found = make_policy(particular, **({layer: rule("no", "deny")} if layer != "user" else {}))
    if layer == "user":
        found = make_policy(particular, rule("no", "deny"))

    assert ("deny", "no") == effect(found)


@pytest.mark.covers("hostpolicy.decision.order")
def test_a_managed_question_wins_over_what_the_user_allows():
    """Ours: and over what the managed layer itself allows."""
    particular = rule("yes", "allow", 'server = "files", tool = "read"')

    assert ("ask", "m") == effect(make_policy(particular, managed=rule("m", "ask")))


@pytest.mark.parametrize(
    ("one", "other", "winner"),
    [
        (rule("a", "allow", 'tool = "read*"'), rule("b", "ask", 'tool = "re*"'), "a"),
        (rule("a", "allow", 'tool = "read"'), rule("b", "ask", 'tool = "read*"'), "a"),
        (rule("a", "allow", 'server = "files"'), rule("b", "ask", 'tool = "read"'), "a"),
        (rule("a", "allow", 'action = "tool.*", principal = "user:*"'), rule("b", "ask", 'action = "tool.call"'), "a"),
        (rule("a", "allow", where="['args.p exists']"), rule("b", "ask"), "a"),
        (rule("a", "allow"), rule("b", "ask"), "b"),
        (rule("b", "allow", 'tool = "rea?"'), rule("a", "ask", 'tool = "rea*"'), "a"),
    ],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.decision.order")
def test_the_most_particular_rule_counts_whatever_the_order(one, other, winner):
    """Ours: by literal text, then by what it is particular about; of equal ones the one that asks."""
    attempt = make_attempt("read", {"p": 1})

    assert winner == effect(make_policy(one, other), attempt)[1]
    assert winner == effect(make_policy(other, one), attempt)[1]


@pytest.mark.covers("hostpolicy.decision.order")
def test_the_later_layer_counts_between_equal_rules():
    """Ours: the user's own rule over one that a shipped policy brought."""
    found = make_policy(
        rule("mine", "allow", 'tool = "read"'), default=rule("theirs", "ask", 'tool = "read"')
    )

    assert ("allow", "mine") == effect(found)
    assert (Match("mine", "user", "allow"), Match("theirs", "default", "ask")) == found.decide(
        make_attempt(), make_facts()
    ).matches


@pytest.mark.parametrize("action", ["resource.read", "prompt.get", "sampling.request"])
def test_a_rule_about_a_tool_is_about_nothing_else(action):
    """Ours: a resource called as a tool is none."""
    found = make_policy(rule("t", "deny", 'tool = "read"'))

    assert ("ask", "default") == effect(found, make_attempt(action=action))


@pytest.mark.parametrize(
    ("when", "circumstances", "more"),
    [
        ('principal = "agent:*"', {}, {"principal": "agent:1"}),
        ('origin = ["task", "result"]', {}, {"origin": "task"}),
        ('labels = ["private"]', {"labels": ("private", "x")}, {}),
        ('reads = ["private"]', {"reads": ("private",)}, {}),
        ("egress = true", {"egress": True}, {}),
        ("annotations = { destructive = true }", {}, {}),
        ('era = "2026-*"', {"era": "2026-07-28"}, {}),
        ('transport = "stdio"', {"transport": "stdio"}, {}),
        ('workspace = "/w/*"', {"workspace": "/w/a"}, {}),
        ("unattended = true", {"attended": False}, {}),
        ('uri = "file:*"', {}, {"action": "resource.read", "tool": "file:///a"}),
        ('prompt = "p"', {}, {"action": "prompt.get", "tool": "p"}),
        ('object = "read"', {}, {}),
    ],
)  # fmt: skip
def test_each_circumstance_is_looked_at(when, circumstances, more):
    """Ours: all that a rule names must hold, and elsewhere the rule is not about it."""
    found = make_policy(rule("r", "deny", when), rule("other", "deny", 'server = "elsewhere"'))

    assert ("deny", "r") == effect(found, make_attempt(**more), make_facts(**circumstances))
    if "annotations" not in when and "object" not in when:
        assert ("ask", "default") == effect(found, make_attempt(), make_facts())


@pytest.mark.parametrize(
    ("trust", "annotations", "expected"),
    [("untrusted", READS, "ask"), ("annotations", READS, "allow"), ("full", READS, "allow"), ("full", None, "ask")],
)  # fmt: skip
@pytest.mark.covers("hostpolicy.annotations.trusted-only")
def test_what_a_server_says_counts_where_it_is_trusted(trust, annotations, expected):
    """Spec: clients MUST consider tool annotations to be untrusted unless they come from trusted servers."""
    found = make_policy(
        rule("r", "allow", "annotations = { read_only = true, open_world = false }")
    )

    assert expected == effect(found, None, make_facts(trust=trust, annotations=annotations))[0]


def test_unless_makes_a_rule_stricter_by_a_step():
    """Ours: what allows asks, and what asks denies."""
    found = make_policy(rule("a", "allow", 'tool = "a"', unless='{ labels = ["untrusted"] }'),
                   rule("b", "ask", 'tool = "b"', unless='{ egress = true, server = "files" }'))  # fmt: skip
    untrusted = make_facts(labels=["untrusted"])

    assert ["allow", "ask"] == [
        effect(found, make_attempt("a"), f)[0] for f in (make_facts(), untrusted)
    ]
    assert ["ask", "deny"] == [
        effect(found, make_attempt("b"), f)[0] for f in (make_facts(), make_facts(egress=True))
    ]
    assert "ask" == effect(found, make_attempt("b", server="other"), make_facts(egress=True))[0]


@pytest.mark.covers("hostpolicy.max-calls.stricter")
def test_a_rule_that_let_through_what_it_may_is_stricter():
    """Ours: after twenty calls of a run somebody is asked, and a rule that asks denies."""
    found = make_policy(rule("a", "allow", 'tool = "a"', obligations="{ max_calls = 2 }"),
                   rule("b", "ask", 'tool = "b"', obligations="{ max_calls = 2 }"))  # fmt: skip

    for name, expected in (("a", ["allow", "allow", "ask"]), ("b", ["ask", "ask", "deny"])):
        assert expected == [
            effect(found, make_attempt(name), make_facts(calls={name: n}))[0] for n in (0, 1, 2)
        ]


@pytest.mark.covers("hostpolicy.unattended.never-asks")
def test_where_nobody_can_be_asked_it_is_denied():
    """Ours: nor where nobody is there whose yes would be sure enough."""
    found = make_policy(
        rule("r", "ask", 'tool = "sure"', obligations='{ assurance = "authenticated_web" }')
    )

    assert [("deny", "default"), ("deny", "r"), ("ask", "r")] == [
        effect(found, None, make_facts(attended=False)),
        effect(found, make_attempt("sure"), make_facts(assurance="local_ui")),
        effect(found, make_attempt("sure"), make_facts(assurance="second_person")),
    ]
    assert "nobody can be asked" in found.decide(make_attempt(), make_facts(attended=False)).reason


@pytest.mark.covers("hostpolicy.grants.no-override")
def test_a_grant_answers_a_question_and_nothing_else():
    """Ours: neither a denial, nor a managed question, nor the guard of data flow."""
    found = make_policy(rule("no", "deny", 'tool = "no"'), rule("once", "ask", 'tool = "once"', obligations='{ remember = ["once", "session"], assurance = "local_ui" }'),
                   managed=rule("m", "ask", 'tool = "managed"'))  # fmt: skip
    grants = Yes()
    flowing = make_facts(egress=True, labels=["private", "untrusted"])

    assert ("allow", "once") == effect(found, make_attempt("once"), None, grants)
    assert [(("once", "session"), "local_ui")] == grants.asked
    assert [("deny", "no"), ("ask", "m"), ("ask", "data-flow")] == [
        effect(found, make_attempt("no"), None, grants), effect(found, make_attempt("managed"), None, grants),
        effect(found, make_attempt("once"), flowing, grants),
    ]  # fmt: skip
    assert "g" == found.decide(make_attempt(), make_facts(attended=False), grants).grant


@pytest.mark.covers("hostpolicy.labels.guard")
def test_private_data_do_not_leave_unasked_once_somebody_else_has_had_a_say():
    """Ours: over a rule that allows, with the chain shown; what is denied stays denied."""
    found = make_policy(rule("yes", "allow", 'tool = "*"'), rule("no", "deny", 'tool = "no"'))
    flowing = make_facts(
        egress=True, labels=["private", "untrusted"], chain=("private: a", "untrusted: b")
    )
    trace = found.decide(make_attempt("send", server="mail"), flowing)

    assert ("ask", "data-flow", ("once",)) == (trace.effect, trace.rule, trace.obligations.remember)
    assert (
        "private: a",
        "untrusted: b",
        "egress: tool.call 'send' of 'mail' sends it out",
    ) == trace.chain
    assert ["data-flow", "yes"] == [match.rule for match in trace.matches]
    assert ("deny", "no") == effect(found, make_attempt("no"), flowing)
    assert ("deny", "data-flow") == effect(
        found, None, make_facts(egress=True, labels=["private", "untrusted"], attended=False)
    )
    for less in (
        make_facts(egress=True, labels=["private"]),
        make_facts(labels=["private", "untrusted"]),
    ):
        assert ("allow", "yes") == effect(found, None, less)
    stopping = make_attempt("task", action="task.cancel")
    assert ("ask", "default") == effect(make_policy(), stopping, flowing)


@pytest.mark.parametrize(
    "odd", ["r\u0435ad", "\u202eread", "__proto__", "<script>", "read ", "READ", ""]
)
@pytest.mark.covers("hostpolicy.names.exact")
def test_odd_names_are_names_of_their_own(odd):
    """Ours: a Cyrillic letter, a turned direction or the name of something in another language."""
    found = make_policy(rule("r", "allow", 'tool = "read"'))

    assert ("ask", "default") == effect(found, make_attempt(odd))
    assert ("deny", "odd") == effect(
        make_policy(rule("odd", "deny", f'tool = "{odd or "?"}"')), make_attempt(odd or "x")
    )


@pytest.mark.covers("hostpolicy.layers.tighten")
@pytest.mark.parametrize("layer", ["workspace", "session"])
def test_what_only_tightens_allows_nothing(layer):
    """Ours: neither by a rule, nor by leaving out a look at what a model wrote."""
    for made in (PolicyRule(id="r", effect="allow"),):
        with pytest.raises(PolicyError, match="can ask and deny"):
            Policy([PolicyLayer(name=layer, rules=(made,))])
    with pytest.raises(PolicyError, match="leave out a review"):
        read_layers(rule("r", "ask", obligations='{ review = "none" }'), layer)
    with pytest.raises(PolicyError, match="extends nothing"):
        read_layers('extends = "developer"', layer)


def test_rules_made_in_a_program_are_held_to_the_same():
    """Ours: there is no way round what a file must not say."""
    wrong = PolicyRule(
        id="r", effect="allow", when=RuleCondition(annotations=(("destructive", True),))
    )

    with pytest.raises(PolicyError, match="cannot rest on destructive = true"):
        Policy([PolicyLayer(name="user", rules=(wrong,))])


@pytest.mark.covers("hostpolicy.broken.locked-down")
def test_a_policy_that_cannot_be_read_locks_down(tmp_path):
    """Ours: what it would have denied nobody knows, so nothing is allowed."""
    broken = tmp_path / "policy.toml"
    broken.write_text("[[rule]\n")
    missing = tmp_path / "gone.toml"
    reading = make_facts(trust="full", annotations=READS)

    for place in (broken, missing, tmp_path):
        found = Policy.load("personal-read-only", managed=str(place))
        assert str(place) in found.broken[0]
        assert ("ask", "each-time") == effect(found, None, reading)
        assert ("deny", "no-changes") == effect(found, None, make_facts())
        assert ("deny", "no-servants") == effect(
            found, make_attempt("m", action="sampling.request"), reading
        )


def test_a_configuration_names_the_policies_of_its_layers(tmp_path):
    """Ours: without any it is the careful one for a person."""
    workspace = tmp_path / "policy.toml"
    workspace.write_text(rule("w", "deny", 'tool = "read"'))
    options = HostOptions(policies={"user": "developer", "workspace": str(workspace)})

    assert {"default", "workspace"} == {one.layer for one in Policy.configured(options).rules}
    assert ("deny", "w") == effect(Policy.configured(options))
    assert Policy.named("personal-read-only").version == Policy.configured(HostOptions()).version
    with pytest.raises(PolicyError, match="locked-down"):
        Policy.named("lockeddown")


def test_the_version_is_a_digest_of_the_rules():
    """Ours: another rule is another policy, and the same rules are the same one."""
    one, same, other = (
        make_policy(rule("a", "ask")),
        make_policy(rule("a", "ask")),
        make_policy(rule("a", "deny")),
    )

    assert one.version == same.version != other.version
