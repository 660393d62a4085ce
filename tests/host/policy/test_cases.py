"""A policy's own tests."""

import pytest

from isthmus.host.model.errors import PolicyError
from isthmus.host.policy.cases import read_cases, run_cases
from support.host.policies import make_policy

RULE = '[[rule]]\nid = "no"\neffect = "deny"\nwhen = { tool = "rm" }\n'


def case(attempt="", facts="", more='expect = "deny"'):
    """One case as TOML."""
    return f'[[case]]\nname = "c"\nattempt = {{ {attempt} }}\nfacts = {{ {facts} }}\n{more}\n'


def test_a_case_that_comes_out_another_way_is_told():
    """Ours: with what was expected, what it is, by which rule and why."""
    cases = read_cases(
        case('server = "s", tool = "rm"', more='expect = "deny"\nrule = "no"')
        + case('server = "s", tool = "ls"')
        + case('server = "s", tool = "rm"', more='expect = "deny"\nrule = "other"')
    )

    assert [
        "c: expected deny, but it is ask by default: no rule is about it",
        "c: expected deny by other, but it is deny by no: rule 'no' (user) denies it",
    ] == [str(failure) for failure in run_cases(make_policy(RULE), cases)]


def test_a_case_can_have_every_circumstance():
    """Ours: what a policy can look at can be tested."""
    (one,) = read_cases(
        case(
            'action = "resource.read", server = "s", uri = "file:///a", args = { a = 1 }, principal = "agent:1", '
            'origin = "task", run = "r"',
            'trust = "full", annotations = { read_only = true }, labels = ["x"], reads = ["y"], egress = true, '
            'era = "2025-11-25", transport = "stdio", workspace = "/w", cwd = "/c", attended = false, '
            'assurance = "callback", calls = { no = 3 }, identity = "i", fingerprint = "f", now = 5',
        )
    )

    assert ("resource.read", "file:///a", {"a": 1}, "task") == (
        one.attempt.action, one.attempt.object, one.attempt.arguments, one.attempt.origin,
    )  # fmt: skip
    assert (True, frozenset({"x"}), ("y",), True, False, {"no": 3}, 5.0) == (
        one.facts.annotations.read_only_hint, one.facts.labels, one.facts.target.reads, one.facts.target.egress,
        one.facts.attended, one.facts.calls, one.facts.now,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[cases]]", "only [[case]] tables"),
        ("x", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML: it is nested too deep"),
        ("case = [3]", "is no table"),
        (case(more='expect = "perhaps"'), "expect is 'perhaps'"),
        (case(more="expects = 3"), "did you mean 'expect'?"),
        (case('tol = "x"'), "did you mean 'tool'?"),
        (case('tool = "x", uri = "y"'), "one of tool, uri, prompt and object"),
        (case('action = "tool.cal"'), "did you mean 'tool.call'?"),
        (case("args = 3"), "args is a table"),
        (case(facts="trusted = true"), "did you mean 'trust'?"),
        (case(facts='trust = "ful"'), "did you mean 'full'?"),
        (case(facts="annotations = 3"), "annotations is a table"),
        (case(facts="labels = 3"), "facts: "),
        (case(facts="calls = 3"), "facts: "),
        (case(facts='now = "soon"'), "facts: "),
        (case(facts="annotations = { readonly = true }"), "did you mean 'read_only'?"),
        ("[[case]]\nattempt = 3", "attempt is a table"),
        ("[[case]]\nfacts = 3\nexpect = 'ask'", "facts is a table"),
    ],
)
@pytest.mark.covers("hostpolicy.grammar.closed")
def test_a_case_that_cannot_be_is_refused(text, says):
    """Ours: a test that tests nothing is worse than none."""
    with pytest.raises(PolicyError) as error:
        read_cases(text, source="cases.toml")

    assert says in str(error.value)


def test_one_label_stands_for_a_list_of_one():
    """Ours: a text is not taken for its letters."""
    (one,) = read_cases(case(facts='labels = "private", reads = "x"'))

    assert (frozenset({"private"}), ("x",)) == (one.facts.labels, one.facts.target.reads)
